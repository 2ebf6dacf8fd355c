"""The fork server: one start, many cases; when it cannot do its work, every client hears why in a sentence."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from harness.errors import HarnessFault
from harness.runner.client import Client, Server
from harness.tests.toys import SOLUTION, python, write_kata


def runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def request(kata, file, **more):
    return {"kata": str(kata.folder), "file": str(file), "case": kata.spec.cases[0].to_json(), "gpu": "H200"} | more


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "submission.py"
    path.write_text(SOLUTION, encoding="utf-8")
    return path


def test_requests_are_answered_in_order(interpret, kata, file, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(SOLUTION.replace("x * 2", "x * 3"), encoding="utf-8")
    for path in (file, wrong, file):
        interpret.send(request(kata, path))

    assert interpret.waiting == 3
    assert [interpret.receive()["word"] for _ in range(3)] == ["pass", "wrong", "pass"]
    assert interpret.waiting == 0


def test_clients_do_not_disturb_each_other(server, interpret, kata, file):
    other = Client(server.folder, "interpret")
    interpret.send(request(kata, file))
    other.send(request(kata, file))
    other.close()  # hangs up before the answer

    assert interpret.receive()["word"] == "pass"


@pytest.mark.parametrize(("change", "says"), [
    ({"kata": "no-such-folder"}, "exercise.toml is missing"),
    ({"gpu": "H2000"}, "is no GPU that this project has facts on"),
    ({"case": {"id": "a", "dims": {}, "dtype": "float32"}}, "the inputs of case 'a' cannot be made: KeyError('M')"),
])  # fmt: skip
def test_a_request_that_cannot_be_met_is_a_fault_and_the_next_one_is_served(interpret, kata, file, change, says):
    with pytest.raises(HarnessFault, match=r".") as error:
        interpret.ask(request(kata, file) | change)

    assert says in str(error.value)
    assert interpret.ask(request(kata, file))["word"] == "pass"


def test_a_reference_at_fault_is_never_the_learner_s(interpret, file, tmp_path):
    kata = write_kata(tmp_path / "toy", reference="def reference(x):\n    return x[1:]\n")

    with pytest.raises(HarnessFault, match=r"01_double/reference.py returned \[2, 50\] for a result \[3, 50\]"):
        interpret.ask(request(kata, file))


def test_a_reference_that_changed_is_read_again(interpret, file, tmp_path):
    kata = write_kata(tmp_path / "toy")
    assert interpret.ask(request(kata, file))["word"] == "pass"
    text = (kata.folder / "reference.py").read_text(encoding="utf-8")
    (kata.folder / "reference.py").write_text(text.replace("2 * (", "3 * ("), encoding="utf-8")
    os.utime(kata.folder / "reference.py", (1, 1))

    assert interpret.ask(request(kata, file))["word"] == "wrong"


def test_the_server_is_gone_with_its_owner(tmp_path):
    code = "from harness.runner.client import Server\nserver = Server()\nprint(server.process.pid, server.folder, flush=True)\nimport os; os._exit(0)"
    pid, _ = python("-c", code, cwd=tmp_path).stdout.split()

    deadline = time.monotonic() + 60
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)  # it has loaded torch before it looks at its standard input
    assert not runs(pid)


def test_a_server_that_cannot_start_says_so_in_every_answer(tmp_path, kata, file, monkeypatch):
    """A Triton without the names we need: the fault holds the reason, and the advice what to run."""
    fake = tmp_path / "triton"
    fake.mkdir()
    (fake / "__init__.py").write_text("__version__ = '9.9.9'\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = Server()
    try:
        with contextlib.closing(Client(server.folder, "interpret")) as client:
            with pytest.raises(HarnessFault, match=r"(?s)^the interpret server could not start: .*triton"):
                client.ask(request(kata, file))
    finally:
        server.close()


def test_a_server_that_died_says_its_last_words(tmp_path, kata, file, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(
        "import sys\nsys.stdin.read(1)\nraise SystemExit('no torch today')\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = Server()
    try:
        with contextlib.closing(Client(server.folder, "interpret")) as client:
            server.process.stdin.write(b"x")
            server.process.stdin.flush()
            server.process.wait(timeout=60)
            with pytest.raises(
                HarnessFault, match=r"^the interpret server (died|is gone)\. It said: .*no torch today"
            ) as error:
                client.ask(request(kata, file))
        assert str(error.value).endswith(" Run `nox -s doctor`.")
    finally:
        server.close()
    assert not server.folder.exists()
