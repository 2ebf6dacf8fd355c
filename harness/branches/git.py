"""Git: run git in a checkout, show each command as it runs, and make one sentence of a failure. No torch here."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.errors import GitError

ROOT = Path(__file__).resolve().parents[2]
NAME, EMAIL = "Kernel Kata", "kata@kernel-kata.invalid"
IDENTITY = ("-c", f"user.name={NAME}", "-c", f"user.email={EMAIL}")

# set by git for its hooks: they would point our commands at another repository, or at another index of this one
_OF_A_CALLER = {
    f"GIT_{name}"
    for name in ("DIR", "WORK_TREE", "INDEX_FILE", "OBJECT_DIRECTORY", "COMMON_DIR", "NAMESPACE", "PREFIX")
}

_execute = subprocess.run  # the one call that tests make fail


class Done(NamedTuple):
    """How a command ended. Bytes that are no UTF-8 are kept as surrogates, so that they survive a way back into git."""

    status: int
    out: str
    err: str


class Entry(NamedTuple):
    """A file in a tree: its mode (``100644``) and the name of its content."""

    mode: str
    blob: str


def say(text: str) -> None:
    """Print a line at once; what the terminal cannot show becomes a question mark."""
    coding = sys.stdout.encoding or "utf-8"
    print(text.encode(coding, "replace").decode(coding), flush=True)


@dataclass(frozen=True)
class Git:
    """git in the checkout ``root``. ``show`` gets each command before it runs; None keeps quiet."""

    root: Path
    show: Callable[[str], None] | None = say

    def call(self, *args: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Done:
        """Run ``git args`` and return how it ended. Raises GitError when there is no git.

        Ctrl-C waits for the end of a command that works on this disk: git is never stopped in the middle of the tree.
        """
        self.say(
            "$ " + " ".join([*(f"{k}={shlex.quote(v)}" for k, v in (env or {}).items()), shlex.join(["git", *args])])
        )
        kept = {name: value for name, value in os.environ.items() if name not in _OF_A_CALLER}
        full = {**kept, "LC_ALL": "C", "LANGUAGE": "C", **(env or {})}  # reasons in the language of our sentences
        far = "fetch" in args or "ls-remote" in args
        try:
            with contextlib.nullcontext() if far else _undisturbed():
                done = _execute(
                    ["git", *args], cwd=self.root, input=_bytes(stdin), capture_output=True, env=full, check=False
                )
        except FileNotFoundError:
            raise GitError("git was not found; install it (apt install git), then run this again.") from None
        return Done(done.returncode, _text(done.stdout), _text(done.stderr))

    def run(self, *args: str, stdin: str = "", env: Mapping[str, str] | None = None, then: str = "") -> str:
        """Run ``git args`` and return what it printed.

        Args:
            env: variables set for this command; they are shown in front of it.
            then: a sentence for the error: what to do.

        Raises:
            GitError: git's own reason in one sentence, and ``then``.
        """
        done = self.call(*args, stdin=stdin, env=env)
        if done.status:
            raise GitError(f"git {verb(args)} failed: {reason(done)}." + (f" {then}" if then else ""))
        return done.out

    def say(self, text: str) -> None:
        """Say something between the commands; nothing where they are not shown."""
        if self.show:
            self.show(text)

    def ask(self, *args: str) -> str | None:
        """Return what ``git args`` printed, stripped, or None when it failed: for questions whose answer may be no."""
        done = self.call(*args)
        return None if done.status else done.out.strip()

    def tree(self, commit: str) -> dict[str, Entry]:
        """Return the files of a commit by path."""
        entries = {}
        for line in self.run("ls-tree", "-r", "-z", commit).split("\0")[:-1]:
            facts, _, path = line.partition("\t")
            mode, _, blob = facts.split(" ")
            entries[path] = Entry(mode, blob)
        return entries

    def text(self, spec: str) -> str | None:
        """Return a file's text, such as ``main:exercises/05_nf4/kernel.py``, or None where there is none."""
        done = self.call("cat-file", "blob", spec)
        return None if done.status else done.out


def run(*args: str, root: Path = ROOT, show: Callable[[str], None] | None = say) -> str:
    """Run ``git args`` in this checkout, shown as it runs, and return what it printed. Raises GitError."""
    return Git(root, show).run(*args)


def verb(args: tuple[str, ...]) -> str:
    """Return the name of a git command: the first word that is no option."""
    words = iter(args)
    for word in words:
        if word == "-c":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return args[0]


def reason(done: Done) -> str:
    """Return git's reason for a failure without its prefix and full stop."""
    lines = [line.strip() for line in done.err.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("fatal:", "error:"))]
    told = (
        told
        or [line for line in lines if not line.startswith(("hint:", "warning:"))]
        or [f"it ended with {done.status}"]
    )
    return told[0].removeprefix("fatal:").removeprefix("error:").strip().rstrip(".:")


def few(paths: Sequence[str]) -> str:
    """Return the first three of these, and how many more there are."""
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


@contextlib.contextmanager
def scratch_index(git: Git, folder: Path) -> Iterator[dict[str, str]]:
    """Yield the environment of an index of our own in the git directory ``folder``: the learner's is not touched."""
    path = folder / "kata-index"
    lock = path.with_name("kata-index.lock")  # left by a run that was killed; nobody else has use for it
    path.unlink(missing_ok=True)
    lock.unlink(missing_ok=True)
    try:
        yield {"GIT_INDEX_FILE": str(path.relative_to(git.root) if path.is_relative_to(git.root) else path)}
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back Ctrl-C, here and in what is started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
