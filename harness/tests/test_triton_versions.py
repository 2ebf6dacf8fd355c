"""Other Tritons are installed beside the environment, judged, and put in one table."""

import subprocess
from types import SimpleNamespace

import pytest

from harness import triton_versions as tv
from harness.triton_versions import Row


@pytest.fixture
def commands(monkeypatch):
    """Replace child processes; returns the list of commands that were run. pip of 3.7.1 fails, so do tests of 3.8.0."""
    seen = []

    def run(command, **kwargs):
        seen.append((command, kwargs.get("env", {}).get("PYTHONPATH", "")))
        if "pip" in command:
            if command[-1] == "triton==3.7.1":
                error = "WARNING: slow\nERROR: No matching distribution found for triton==3.7.1\n"
                return SimpleNamespace(returncode=1, stderr=error)
            folder = tv.Path(command[command.index("--target") + 1])
            (folder / f"triton-{folder.name}.dist-info").mkdir(parents=True)
        bad = "pytest" in command and "/3.8.0" in kwargs["env"]["PYTHONPATH"]
        return SimpleNamespace(returncode=int(bad), stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    return seen


def test_one_table_says_what_came_out(tmp_path, monkeypatch, commands, capsys):
    monkeypatch.setattr(tv, "cache_folder", lambda: tmp_path)

    assert tv.main([]) == 1
    assert capsys.readouterr().out.partition("\ntriton ")[2] == (
        "   installed  doctor   tests\n"
        "3.6.0     yes        ok       pass\n"
        "3.7.1     no         -        -      No matching distribution found for triton==3.7.1\n"
        "3.8.0     yes        ok       fail\n"
        "3.9.0     yes        ok       pass\n"
    )


def test_the_version_comes_first_on_the_path(tmp_path, monkeypatch, commands):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")

    assert tv.judge("3.6.0", tmp_path, ["harness/tests"]).ok
    assert [path for command, path in commands if "pip" not in command] == [f"{tmp_path}/3.6.0:/elsewhere"] * 2


def test_a_version_is_installed_once_and_whole(tmp_path, commands):
    first, second = tv.install("3.6.0", tmp_path), tv.install("3.6.0", tmp_path)

    assert first == second == (tmp_path / "3.6.0", "")
    assert len(commands) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["3.6.0"]


def test_a_failed_install_leaves_nothing(tmp_path, commands):
    assert tv.install("3.7.1", tmp_path)[1] == "No matching distribution found for triton==3.7.1"
    assert not list(tmp_path.iterdir())


def test_the_cache_is_outside_the_checkout(tmp_path):
    assert tv.cache_folder({"XDG_CACHE_HOME": str(tmp_path)}).parent == tmp_path / "kernel-kata"
    assert tv.ROOT not in tv.cache_folder({}).parents


@pytest.mark.parametrize(
    "row", [Row("3.6.0", "no"), Row("3.6.0", "yes", "broken", "pass"), Row("3.6.0", "yes", "ok", "fail")]
)
def test_anything_but_well_is_not_ok(row):
    assert not row.ok
