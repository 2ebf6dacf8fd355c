"""`.ci/run` types the README's two commands in fresh clones, and lets nothing of the machine through."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GIT = ["git", "-c", "user.name=Toy", "-c", "user.email=toy@example.org", "-c", "commit.gpgsign=false"]
SUMMARY = "===== 3 passed in 0.01s ====="


@pytest.fixture
def toy(tmp_path):
    """Return a function: commit a checkout whose README has these two commands, run its .ci/run there."""
    if shutil.which("git") is None:
        pytest.skip("CI starts from a git clone; there is no git here")

    def run(grade: str, tests: str, dirty: bool = False) -> subprocess.CompletedProcess:
        top = tmp_path / "a checkout"
        (top / ".ci").mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "run", top / ".ci" / "run")
        lines = [f"python3 -m venv --help >help.log && {grade} && : nox -s grade"]
        lines.append(f"python3 -m venv --help >help.log && {tests} && : nox -s tests")
        (top / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (top / ".gitignore").write_text("help.log\n", encoding="utf-8")
        subprocess.run(["git", "init", "--quiet", str(top)], check=True)
        subprocess.run([*GIT, "-C", str(top), "add", "."], check=True)
        subprocess.run([*GIT, "-C", str(top), "commit", "--quiet", "-m", "toy"], check=True)
        if dirty:
            (top / "new.txt").touch()
        places = {
            "TMPDIR": str(tmp_path),
            "HOME": str(tmp_path / "home"),
            "PYTHONPATH": "/hidden",
            "PYTEST_ADDOPTS": "-x",
        }
        return subprocess.run(
            ["bash", str(top / ".ci" / "run")], capture_output=True, text=True, env={**os.environ, **places}
        )

    return run


def test_both_commands_run_and_the_summary_comes_last(toy, tmp_path):
    result = toy("echo table", f"echo '{SUMMARY}'; echo course")

    assert result.returncode == 0, result.stderr
    assert "table" in result.stdout
    assert result.stdout.splitlines()[-1] == SUMMARY
    assert [p.name for p in tmp_path.iterdir()] == ["a checkout"]


@pytest.mark.parametrize("fails", ["grade", "tests"])
def test_either_command_can_fail_it(toy, fails):
    result = toy(
        "exit 3" if fails == "grade" else "true", f"echo '{SUMMARY}'; " + ("exit 1" if fails == "tests" else "true")
    )

    assert result.returncode == 1
    assert SUMMARY in result.stdout


def test_a_run_without_a_test_fails(toy):
    result = toy("true", "echo nothing")

    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "pytest printed no summary: no test ran."


def test_a_tree_that_is_not_clean_fails(toy):
    result = toy("true", f"touch left.txt; echo '{SUMMARY}'")

    assert result.returncode == 1
    assert "It left these files in the tree:\n?? left.txt" in result.stderr


def test_nothing_of_the_machine_is_let_through(toy, tmp_path):
    shown = (
        "echo path=[${PYTHONPATH-}] opts=[${PYTEST_ADDOPTS-}] user=[$PYTHONNOUSERSITE] home=[$(ls -A $HOME)] at=[$PWD]"
    )
    result = toy(shown, f"echo '{SUMMARY}'")

    assert "path=[] opts=[] user=[1] home=[] at=[" in result.stdout
    assert f"at=[{tmp_path}/a checkout]" not in result.stdout


def test_what_is_not_committed_is_not_tested_and_said(toy):
    result = toy("ls", f"echo '{SUMMARY}'", dirty=True)

    assert result.stdout.startswith("Note: HEAD is tested, not these changes:\n?? new.txt\n")
    assert result.stdout.count("new.txt") == 1


def test_the_real_readme_has_the_lines_that_it_looks_for():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for chore in ("grade", "tests"):
        assert len(re.findall(rf"^python3 -m venv .* && .*nox -s {chore}$", readme, re.MULTILINE)) == 1
