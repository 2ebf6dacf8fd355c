"""The doctor says one thing a line, in plain words, and fails only for what grading needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import doctor
from harness.doctor import Finding

ROOT = Path(__file__).resolve().parents[2]
TESTED = "3.6.0, 3.7.1, 3.8.0, 3.9.0"


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (doctor.check_python((3, 11, 7)), "ok      Python       3.11.7"),
        (doctor.check_python((3, 10, 2)), "broken  Python       3.10.2 is too old: 3.11 or newer is needed."),
        (
            doctor.check_python((3, 15, 0)),
            "note    Python       3.15.0 is newer than the ones this project was made for (3.11 to 3.14).",
        ),
        (doctor.check_system("Linux", "x86_64", "6.1.0"), "ok      system       Linux x86_64"),
        (
            doctor.check_system("Linux", "x86_64", "5.15.90.1-microsoft-standard-WSL2"),
            "note    system       Linux x86_64 in WSL: expected to work, not tested.",
        ),
        (
            doctor.check_system("Linux", "aarch64", "6.1.0"),
            "note    system       Linux aarch64: expected to work, not tested.",
        ),
        (
            doctor.check_system("Darwin", "arm64", "24.0"),
            "broken  system       Darwin arm64: Triton has no wheel for macOS. "
            "Use a Linux machine: a container, a virtual machine, Colab or a server.",
        ),
        (
            doctor.check_system("Windows", "AMD64", "11"),
            "broken  system       Windows AMD64: Triton has no wheel for it. On Windows, work inside WSL.",
        ),
        (
            doctor.check_modules(lambda name: None if name in ("xdist", "rich") else name),
            "broken  packages     missing: pytest-xdist, rich. Run: pip install -c constraints.txt -e .",
        ),
        (
            doctor.check_torch({"error": "ModuleNotFoundError: No module named 'torch'"}),
            "broken  torch        cannot be imported (ModuleNotFoundError: No module named 'torch'). "
            "Run: pip install -c constraints.txt -e .",
        ),
        (
            doctor.check_gpu({"version": "2.13.0+cpu", "gpu": "", "cuda": ""}),
            "note    GPU          none (torch is a CPU build): "
            "kernels are interpreted and compiled for a named GPU, not run on one.",
        ),
        (
            doctor.check_gpu({"version": "2.13.0", "gpu": "", "cuda": "13.0"}),
            "note    GPU          none (torch sees none): "
            "kernels are interpreted and compiled for a named GPU, not run on one.",
        ),
        (doctor.check_gpu({"gpu": "NVIDIA H200", "cuda": "13.0"}, "/usr/bin/gcc"), "ok      GPU          NVIDIA H200"),
        (
            doctor.check_gpu({"gpu": "NVIDIA H200", "cuda": "13.0"}),
            "broken  GPU          NVIDIA H200, but no C compiler, which Triton needs to launch on it: "
            "install gcc or clang, or set CC.",
        ),
        (doctor.check_triton({"version": "3.9.0"}), "ok      Triton       3.9.0, tested"),
        (
            doctor.check_triton({"version": "3.10.0"}),
            f"note    Triton       3.10.0 is not one of the tested ones: {TESTED}.",
        ),
        (
            doctor.check_seams({"missing": ["interpreter.GridExecutor", "interpreter._patch_lang"]}, "3.12.0"),
            "broken  interpreter  Triton 3.12.0 cannot be used, its private names moved (it has no "
            f"interpreter.GridExecutor, interpreter._patch_lang). Install one of {TESTED}.",
        ),
        (
            doctor.check_seams({"error": "ImportError: cannot import name 'x' from 'triton'"}, "3.12.0"),
            "broken  interpreter  Triton 3.12.0 cannot be used, its private names moved "
            f"(ImportError: cannot import name 'x' from 'triton'). Install one of {TESTED}.",
        ),
        (
            doctor.check_seams({"error": "MemoryError"}, "3.9.0"),
            "broken  interpreter  cannot be loaded with Triton 3.9.0 (MemoryError).",
        ),
        (
            doctor.check_seams({"missing": []}, "3.9.0"),
            "ok      interpreter  every private name of Triton that it needs is there",
        ),
        (doctor.check_fork(), "ok      fork         each case can run in a child of its own"),
    ],
    ids=lambda value: value.split()[0] + "-" + value.split()[1] if isinstance(value, str) else "",
)
def test_each_finding_is_one_line(finding, line):
    assert str(finding) == line


def test_a_system_without_fork_is_broken(monkeypatch):
    monkeypatch.delattr(os, "fork")

    assert (
        str(doctor.check_fork())
        == "broken  fork         this system has no fork, and each case runs in a forked child."
    )


def test_records_that_cannot_be_written_are_a_note(tmp_path, monkeypatch):
    def refuse(**kwargs):
        raise OSError(30, "Read-only file system")

    assert str(doctor.check_records(tmp_path / "records")) == "ok      records      records/ can be written"
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refuse)
    assert str(doctor.check_records(tmp_path / "records")) == (
        "note    records      records/ cannot be written (Read-only file system): grading works, attempts are not kept."
    )


def test_a_child_answers_with_json_or_with_its_last_words():
    assert doctor.ask("print('chatter'); print('{\"version\": \"1\"}')") == {"version": "1"}
    assert doctor.ask("raise ImportError('gone')") == {"error": "ImportError: gone"}
    assert doctor.ask("import os; os._exit(7)") == {"error": "the process ended with 7"}


@pytest.mark.parametrize(
    ("findings", "code", "last"),
    [
        ([Finding("ok", "a", "fine"), Finding("note", "b", "fine too")], 0, "Ready."),
        ([Finding("broken", "a", "bad"), Finding("ok", "b", "fine")], 1, "1 broken: mend the first one"),
    ],
)
def test_only_what_is_broken_fails(monkeypatch, capsys, findings, code, last):
    monkeypatch.setattr(doctor, "examine", lambda: iter(findings))

    assert doctor.main() == code
    assert capsys.readouterr().out.splitlines()[-1].startswith(last)


def run_doctor(*path: Path) -> subprocess.CompletedProcess:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT]))}
    return subprocess.run([sys.executable, "-m", "harness.doctor"], capture_output=True, text=True, env=environ)


def test_a_triton_whose_private_names_moved_is_one_sentence(tmp_path):
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("__version__ = '9.9.9'\n", encoding="utf-8")

    result = run_doctor(tmp_path)

    assert result.returncode == 1
    assert "Traceback" not in result.stdout + result.stderr
    (line,) = [line for line in result.stdout.splitlines() if " interpreter " in line]
    assert line.startswith("broken  interpreter  Triton 9.9.9 cannot be used, its private names moved (")
    assert line.endswith(f". Install one of {TESTED}.")


def test_this_machine_is_ready():
    """The tests run here, so the doctor must not say that grading cannot."""
    result = run_doctor(*map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))))

    assert "broken" not in result.stdout
    assert result.returncode == 0
