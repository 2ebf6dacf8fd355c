"""Clone: what a chore that works with branches must know of a checkout before it changes anything. No torch here."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.branches.git import IDENTITY, Done, Git, few, reason, say
from harness.errors import GitError, KataError

PRACTICE, REFERENCE = "refs/heads/practice", "refs/heads/reference"

_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}


@dataclass(frozen=True)
class Clone:
    """A clone that can be worked on: a branch is checked out, and at most the learner's own files are uncommitted.

    Attributes:
        chore: ``practice`` or ``update``, for the sentences.
        folder: the git directory.
        branch: the branch that is checked out, such as ``main``.
        head: its commit.
        kernels: the learner's changed ``kernel.py`` files that are not committed, sorted.
        refs: see read_refs.
    """

    git: Git
    chore: str
    folder: Path
    branch: str
    head: str
    kernels: tuple[str, ...]
    refs: dict[str, str]

    def refused(self, command: str, done: Done) -> GitError:
        """Return the error for a git that would not touch the tree: which files are in the way, and what to do."""
        files = [line.strip() for line in done.err.splitlines() if line.startswith("\t")]
        if not files:
            return GitError(f"git {command} failed: {reason(done)}. Nothing of yours was changed.")
        return GitError(
            f"In the way, and not committed: {few(files)}. Nothing of yours was changed; commit what is yours or move "
            f"it away, then run nox -s {self.chore} again."
        )


@dataclass(frozen=True)
class Upstream:
    """Where the course comes from: a branch of a remote."""

    remote: str
    branch: str

    @property
    def ref(self) -> str:
        """Where git keeps what it last fetched."""
        return f"refs/remotes/{self.remote}/{self.branch}"

    def __str__(self) -> str:
        return f"{self.remote}/{self.branch}"


def look(root: Path, chore: str, show: Callable[[str], None] | None = say) -> Clone:
    """Look at the clone in ``root``; nothing is changed.

    Raises:
        GitError: no git, a ZIP, a merge under way, no commit, no branch, a shallow clone, or changes outside the
            learner's files; in this order.
    """
    git, again = Git(root.resolve(), show), f"then run nox -s {chore} again."
    shallow, folder = _repository(git, chore, again)
    for mark, name in _UNDER_WAY.items():
        if (folder / mark).exists():
            raise GitError(
                f"A {name} is under way here: end it with git {name} --continue or git {name} --abort, {again}"
            )
    head, branch, changed = _status(git)
    if head == "(initial)":
        raise GitError(f"This repository has no commit yet: git add -A, git commit, {again}")
    if branch == "(detached)":
        raise GitError(
            f"No branch is checked out (HEAD is detached at {head[:7]}): git switch main, or git switch -c NAME to "
            f"keep commits made here, {again}"
        )
    if shallow:
        raise GitError(
            f"This clone is shallow, and merging needs the history that it lacks: git fetch --unshallow, {again}"
        )
    if torn := sorted(path for path, state in changed.items() if "U" in state or state in ("AA", "DD")):
        raise GitError(f"Conflicts not settled yet: {few(torn)}. Edit, git add what you want to keep, {again}")
    others = sorted(path for path in changed if not is_kernel(path) and not path.startswith("records/"))
    if others:
        raise GitError(
            f"Changed and not committed: {few(others)}; only exercises/*/kernel.py and records/ may be. Commit, or put "
            f"aside with git stash, {again}"
        )
    kernels = sorted(path for path, state in changed.items() if is_kernel(path) and "D" not in state)
    return Clone(git, chore, folder, branch, head, tuple(kernels), read_refs(git))


def _repository(git: Git, chore: str, again: str) -> tuple[bool, Path]:
    """Return whether the clone is shallow, and its git directory. Raises GitError where ``git.root`` is no clone."""
    done = git.call("rev-parse", "--is-shallow-repository", "--absolute-git-dir", "--show-toplevel")
    if "dubious ownership" in done.err:
        trust = f"git config --global --add safe.directory {git.root}"
        raise GitError(f"{git.root} belongs to another user, so git does not trust it. If you do: {trust}, {again}")
    if done.status and (git.root / ".git").exists():
        raise GitError(f"git cannot use {git.root}: {reason(done)}.")
    shallow, folder, top = done.out.splitlines() if done.status == 0 else ("", "", "")
    if not top or Path(top).resolve() != git.root:  # a ZIP may be unpacked inside of another repository
        raise GitError(
            f"{git.root} is no git clone (a ZIP has no history), and nox -s {chore} needs one: git clone the course, "
            "copy your exercises/*/kernel.py and records/ into the clone, and run it there."
        )
    return shallow == "true", Path(folder)


def _status(git: Git) -> tuple[str, str, dict[str, str]]:
    """Return the commit and the branch that are checked out, and the state (``.M``) of each file that is changed."""
    command = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--no-renames")
    lines = git.run(*command).split("\0")[:-1]
    facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# "))
    fields = [line.split(" ", {"1": 8, "u": 10}[line[0]]) for line in lines if not line.startswith("# ")]
    return facts["branch.oid"], facts["branch.head"], {field[-1]: field[1] for field in fields}


def is_kernel(path: str) -> bool:
    """Return whether this is a file that a learner edits, by its path in the tree."""
    return re.fullmatch(r"exercises/[^/]+/kernel\.py", path) is not None


def read_refs(git: Git) -> dict[str, str]:
    """Return the commit of each branch, here and of remotes, by full name; for a name of another name, that one."""
    lines = git.run("for-each-ref", "--format=%(refname) %(objectname) %(symref)", "refs/heads", "refs/remotes")
    return {name: names[-1] for name, *names in (line.split() for line in lines.splitlines())}


def find_upstream(git: Git, refs: dict[str, str], ask: bool = False) -> Upstream | None:
    """Return the default branch of the remote ``upstream`` (as forks name it), else of ``origin``, else of the first.

    A fork may have made ``practice`` its default; the course is on ``main`` then.

    Args:
        ask: whether to ask the remote for its default branch where this clone does not know it.
    """
    remotes = git.run("remote").split()
    named = [name for name in ("upstream", "origin", *remotes) if name in remotes]
    if not named:
        return None
    prefix = f"refs/remotes/{named[0]}/"
    default = refs.get(f"{prefix}HEAD", "").removeprefix(prefix)
    if not default and f"{prefix}main" not in refs and ask:
        told = re.match(r"ref: refs/heads/(\S+)\tHEAD", git.ask("ls-remote", "--symref", named[0], "HEAD") or "")
        default = told[1] if told else ""
    return Upstream(named[0], default if default not in ("", "practice", "reference") else "main")


def is_ancestor(git: Git, commit: str, of: str) -> bool:
    """Return whether ``commit`` is in the history of ``of``; False where this clone does not have one of them."""
    return git.ask("merge-base", "--is-ancestor", commit, of) is not None


def identity(git: Git) -> tuple[str, ...]:
    """Return the options by which a commit of the learner's gets a name: ours where git knows none of theirs."""
    known = {line.partition(" ")[0] for line in (git.ask("config", "--get-regexp", r"^user\.") or "").splitlines()}
    pairs = zip(IDENTITY[::2], IDENTITY[1::2], strict=True)
    return tuple(word for pair in pairs if pair[1].partition("=")[0] not in known for word in pair)


def chore(name: str, do: Callable[[Path], None], argv: Sequence[str] | None, root: Path) -> int:
    """Run a chore that takes no arguments; return 0, or 1 after one sentence that says what is wrong."""
    args = sys.argv[1:] if argv is None else argv
    if args:
        known = args[0] in ("-h", "--help")
        say(f"usage: nox -s {name}; it takes no arguments.{'' if known else f' Got {args[0]!r}.'}")
        return 0 if known else 1
    try:
        do(root)
    except KataError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.filename or 'git'}: {error.strerror}. Mend that, then run nox -s {name} again.", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"\nStopped. Nothing is lost; nox -s {name} goes on from here.", file=sys.stderr)
    else:
        return 0
    return 1
