"""Clones: a small fake course as upstream and a learner's clone of it, with real git in a test's own folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.branches import git as git_module
from harness.branches.git import Git, verb
from harness.course import source_digest

MARK = "the_line_that_solves_it"  # stands in every solution and nowhere else
IDENTITY = ("-c", "user.name=Upstream", "-c", "user.email=up@example.org")
ATTEMPTS = "records/attempts/0123456789ab.jsonl"
IGNORED = "__pycache__/\n*.py[cod]\n"
ASKS = {
    "cat-file",
    "config",
    "diff",
    "for-each-ref",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "merge-file",
    "remote",
}
ASKS |= {"rev-list", "rev-parse", "status", "symbolic-ref"}
CONFIG = """
[user]
  useConfigOnly = true
[init]
  defaultBranch = main
[gc]
  auto = 0
[maintenance]
  auto = false
[advice]
  detachedHead = false
"""


class Repo:
    """A repository with a work tree."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *args: str) -> str:
        """Run git here, as somebody with a name, and return what it printed; a failure fails the test."""
        command = ["git", *IDENTITY, *args]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        """Write a file of the work tree."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def read(self, path: str) -> str:
        """Return a file of the work tree."""
        return (self.root / path).read_text(encoding="utf-8")

    def has(self, path: str) -> bool:
        """Return whether the work tree has this."""
        return os.path.lexists(self.root / path)

    def commit(self, words: str = "A change") -> str:
        """Commit everything and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", words)
        return self.at("HEAD")

    def at(self, name: str) -> str:
        """Return the commit that a name stands for."""
        return self.git("rev-parse", name)

    def status(self) -> list[str]:
        """Return what is not committed."""
        return self.git("status", "--short", "--untracked-files=all").splitlines()

    def files(self, commit: str) -> dict[str, str]:
        """Return the content names of a commit by path."""
        return {path: entry.blob for path, entry in Git(self.root, None).tree(commit).items()}

    # -- a course ------------------------------------------------------------------------------------------------

    def kata(self, slug: str, version: int = 1) -> None:
        """Write the files of a kata and the digest of its stub."""
        name = slug[3:]
        self.write(
            f"exercises/{slug}/README.md", f"# {name}\n\none\ntwo\nthree\nfour\nfive\nsix\n\nVersion {version}.\n"
        )
        self.write(f"exercises/{slug}/exercise.toml", f'title = "{name}"\nentry = "{name}"\n')
        self.write(f"exercises/{slug}/reference.py", f"def reference(x):\n    return {name!r}\n")
        self.write(f"exercises/{slug}/test_kernel.py", f"def test_{name}(run):\n    run()\n")
        self.write(f"solutions/{slug}/kernel.py", f"# {MARK}\ndef {name}(x):\n    return x * {version}\n")
        self.write(f"solutions/{slug}/mutants/no_mask.py", f"# {MARK}: a mutant\n")
        self.stub(slug, version)

    def stub(self, slug: str, version: int) -> None:
        """Write the stub of a kata and its digest."""
        text = stub(slug, version)
        self.write(f"exercises/{slug}/kernel.py", text)
        path = self.root / "harness" / "stubs.json"
        digests = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.write("harness/stubs.json", json.dumps({**digests, slug[3:]: source_digest(text)}, indent=1) + "\n")

    def solve(self, slug: str, how: str = "mine") -> str:
        """Write a learner's kernel and return it."""
        text = f"# {how}\ndef {slug[3:]}(x):\n    return x + x\n"
        self.write(f"exercises/{slug}/kernel.py", text)
        return text

    def renumber(self, old: str, new: str) -> None:
        """Give a kata another number."""
        for top in ("exercises", "solutions"):
            self.git("mv", f"{top}/{old}", f"{top}/{new}")


def readme(name: str, version: int = 1, middle: str = "three") -> str:
    """Return the README of a kata: its version stands far from its middle."""
    return f"# {name}\n\none\ntwo\n{middle}\nfour\nfive\nsix\n\nVersion {version}.\n"


def stub(slug: str, version: int = 1) -> str:
    """Return the stub of a kata."""
    return f"def {slug[3:]}(x):\n    version = {version}\n    raise NotImplementedError\n"


class World:
    """The course's own repository ``up``, and the learner's clone ``me``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.up, self.me = folder, Repo(folder / "up"), Repo(folder / "me")

    @staticmethod
    def make(folder: Path) -> World:
        """Make both in a new folder."""
        world = World(folder)
        world.up.root.mkdir(parents=True)
        world.up.git("init", "--quiet", "--template=")
        world.up.write(".gitignore", IGNORED)
        world.up.write("README.md", "# A course\n")
        world.up.write("records/reference/h200.json", "{}\n")
        for slug in ("01_blocks", "05_nf4", "07_softmax"):
            world.up.kata(slug)
        world.up.commit("The course")
        world.clone("me")
        return world

    def pack(self) -> World:
        """Make quick to copy what will be copied often."""
        for repo in (self.up, self.me):
            repo.git("repack", "-a", "-d", "-q")
        return self

    def copy(self, folder: Path) -> World:
        """Return a copy of both; quicker than making them again."""
        shutil.copytree(self.folder, folder, symlinks=True)
        for config in folder.glob("*/.git/config"):
            config.write_text(config.read_text().replace(str(self.folder), str(folder)))
        return World(folder)

    def clone(self, name: str, *options: str, of: str = "up") -> Repo:
        """Clone one of the repositories."""
        command = [
            "git",
            "clone",
            "--quiet",
            "--template=",
            *options,
            f"file://{self.folder / of}",
            str(self.folder / name),
        ]
        subprocess.run(command, check=True, capture_output=True)
        return Repo(self.folder / name)


def settle(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Let git know nothing of this machine, and nobody's name."""
    home.mkdir(parents=True, exist_ok=True)
    (home / ".gitconfig").write_text(CONFIG)
    for name in [name for name in os.environ if name.startswith("GIT_") or name in ("EMAIL", "XDG_CONFIG_HOME")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")


class Killed(BaseException):
    """Stands for a kill: nothing in the code under test catches it."""


def each_kill(monkeypatch: pytest.MonkeyPatch, world: World, folder: Path, chore: Callable) -> Iterator[World]:
    """Yield copies of ``world`` in which ``chore`` was killed between two git commands: one for each that differs.

    A command that only asks leaves everything as it was, so a kill behind it is a kill before it.
    """
    ran = stopped(monkeypatch, 10_000, lambda: chore([], world.pack().copy(folder / "whole").me.root))
    for number in range(len(ran)):
        if number == 0 or ran[number - 1] not in ASKS:
            copy = world.copy(folder / f"killed-{number}")
            assert stopped(monkeypatch, number, lambda root=copy.me.root: chore([], root)) == ran[:number]
            yield copy


def stopped(monkeypatch: pytest.MonkeyPatch, number: int, run: Callable[[], object]) -> list[str]:
    """Run ``run``, killed when it starts its git command of this number; return the commands that it ran."""
    ran: list[str] = []
    execute = git_module._execute

    def count(command, **kwargs):
        if len(ran) == number:
            raise Killed
        ran.append(verb(tuple(command[1:])))
        return execute(command, **kwargs)

    with monkeypatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(git_module, "_execute", count)
        run()
    return ran


def assert_no_solutions(repo: Repo, history: bool = True) -> None:
    """Fail when the tree, the index, the search or (if asked) the history of this branch has a solution."""
    assert not repo.has("solutions")
    assert repo.git("ls-files", "--", "solutions") == ""
    found = [path for path in repo.root.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert not [path for path in found if MARK.encode() in path.read_bytes()]
    search = subprocess.run(["git", "grep", "-l", MARK], cwd=repo.root, capture_output=True, text=True, check=False)
    assert (search.returncode, search.stdout, search.stderr) == (1, "", "")
    objects = repo.git("rev-list", "--objects", "HEAD") if history else ""
    assert not re.search(r" solutions(/|$)", objects, re.MULTILINE)
