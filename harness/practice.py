"""Practice: the solutions behind a branch (``nox -s practice``). No torch here.

``reference`` is upstream's own commit, with everything; ``practice`` is the learner's, without ``solutions/``. A chain
of filtered commits joins them, and only that chain is ever merged into ``practice``::

    upstream   U0 ──────────── U1 ──────────── U2         with solutions/     <- reference
    filtered   F0 ──────────── F1 ──────────── F2         without
    practice    └─ work ─ work ─┴─ M1 ─ work ──┴─ M2      without             <- practice

No ancestor of ``practice`` has a solution, so no merge can bring one back: git itself refuses to merge ``main`` into it
("unrelated histories"). A filtered commit names its U in its message and takes over its date, so making it again gives
the same commit, and the newest one is found from ``practice`` alone, in any clone.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.course import ROOT, Course, source_digest
from harness.errors import GitError, KataError
from harness.git import IDENTITY, Git, in_the_way, reason, say, scratch_index
from harness.store import Store

PRACTICE, REFERENCE = "refs/heads/practice", "refs/heads/reference"
TRAILER = "Kata-Upstream"

_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}
_CACHES = {"__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", ".triton"}


@dataclass(frozen=True)
class Clone:
    """A clone that can be worked on: a branch is checked out, and only the learner's own files are uncommitted.

    Attributes:
        chore: ``practice`` or ``update``, for the sentences.
        folder: the git directory.
        kernels: the learner's changed ``kernel.py`` files that are not committed.
        refs: the commits of all branches, here and of remotes, by full name; where one is a name for another, that.
    """

    git: Git
    chore: str
    folder: Path
    branch: str
    head: str
    kernels: tuple[str, ...]
    refs: dict[str, str]


@dataclass(frozen=True)
class Tip:
    """The newest filtered commit in a history, and the commit of upstream's that it was made from."""

    commit: str
    upstream: str


def look(root: Path, chore: str, show: Callable[[str], None] | None = say) -> Clone:
    """Look at the clone in ``root`` before anything is changed.

    Raises:
        GitError: a ZIP, a shallow clone, no branch, no commit, a merge under way, or changes outside the learner's files.
    """
    git, again = Git(root.resolve(), show), f"then run nox -s {chore} again."
    done = git.call("rev-parse", "--is-shallow-repository", "--absolute-git-dir", "--show-toplevel")
    shallow, folder, top = done.out.splitlines() if done.status == 0 else ("", "", "")
    if "dubious ownership" in done.err:
        own = f"git config --global --add safe.directory {git.root}"
        raise GitError(f"{git.root} belongs to another user, so git does not trust it; if you do, run {own}, {again}")
    if not top or Path(top).resolve() != git.root:
        raise GitError(
            f"{git.root} is not a git clone (a ZIP has no history), and nox -s {chore} needs one: git clone the course, "
            "copy your exercises/*/kernel.py and records/ into the clone, and run it there."
        )
    for mark, name in _UNDER_WAY.items():
        if (Path(folder) / mark).exists():
            raise GitError(
                f"A {name} is under way here: end it with git {name} --continue or git {name} --abort, {again}"
            )
    branch = git.line("symbolic-ref", "--quiet", "--short", "HEAD")
    head = git.line("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    if head is None:
        raise GitError(f"This repository has no commit yet: git add -A, git commit, {again}")
    if branch is None:
        raise GitError(
            f"No branch is checked out here (HEAD is detached at {head[:7]}): run git switch main, or "
            f"git switch -c NAME to keep commits made here, {again}"
        )
    if shallow == "true":
        raise GitError(f"This clone is shallow, so the history that a merge needs is missing: git fetch --unshallow, {again}")
    kernels = _uncommitted(git, again)
    lines = git.run("for-each-ref", "--format=%(refname) %(objectname) %(symref)", "refs/heads", "refs/remotes")
    refs = {name: names[-1] for name, *names in (line.split() for line in lines.splitlines())}
    return Clone(git, chore, Path(folder), branch, head, kernels, refs)


def _uncommitted(git: Git, again: str) -> tuple[str, ...]:
    """Return the changed kernel.py files; raise GitError when anything that is not the learner's is changed, too."""
    lines = git.run("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames").split("\0")[:-1]
    changed = {line[3:]: line[:2] for line in lines}
    others = sorted(path for path in changed if not is_kernel(path) and not path.startswith("records/"))
    if others:
        few = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise GitError(
            f"Not committed: {few}; only exercises/*/kernel.py and records/ may be. "
            f"Commit, or put them aside with git stash, {again}"
        )
    return tuple(sorted(path for path, state in changed.items() if is_kernel(path) and "D" not in state))


def is_kernel(path: str) -> bool:
    """Return whether this is a file that a learner edits, by its path in the tree."""
    return re.fullmatch(r"exercises/[^/]+/kernel\.py", path) is not None


# -- the chain of filtered commits ---------------------------------------------------------------------------------------


def filtered_tip(git: Git, of: str = "HEAD") -> Tip | None:
    """Return the newest filtered commit in the history of ``of``, or None where there is none."""
    search = ("--topo-order", "--max-count=1", "--basic-regexp", f"--grep=^{TRAILER}: ")
    found = re.match(
        rf"commit (\w+)\n.*^{TRAILER}: (\w+)$", git.line("rev-list", *search, "--format=%B", of) or "", re.S | re.M
    )
    return Tip(found[1], found[2]) if found else None


def filtered_tree(clone: Clone, commit: str) -> str:
    """Write the tree of ``commit`` without ``solutions/`` and return its name."""
    with scratch_index(clone.git, clone.folder) as env:
        clone.git.run("read-tree", commit, env=env)
        clone.git.run("rm", "-r", "-f", "-q", "--cached", "--ignore-unmatch", "solutions", env=env)
        return clone.git.run("write-tree", env=env).strip()


def filtered_commit(clone: Clone, upstream: str, before: str | None) -> str:
    """Return the filtered commit of ``upstream`` behind ``before``; that one itself where its tree is the same."""
    tree = filtered_tree(clone, upstream)
    if before and clone.git.line("rev-parse", f"{before}^{{tree}}") == tree:
        return before
    date = clone.git.run("rev-list", "--max-count=1", "--format=%ct", upstream).split()[-1] + " +0000"
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    words = ("-m", f"The course at {upstream[:7]}, without solutions/", "-m", f"{TRAILER}: {upstream}")
    parents = ("-p", before) if before else ()
    return clone.git.run(*IDENTITY, "commit-tree", tree, *parents, *words, env=dates).strip()


def identity(git: Git) -> tuple[str, ...]:
    """Return the options by which a commit of the learner's gets a name: theirs, or ours where git knows none."""
    known = (git.line("config", "--get-regexp", r"^user\.(name|email)$") or "").splitlines()
    keys = {line.partition(" ")[0] for line in known}
    return tuple(w for i in (0, 2) if IDENTITY[i + 1].partition("=")[0] not in keys for w in IDENTITY[i : i + 2])


# -- upstream ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Upstream:
    """Where the course comes from: a branch of a remote."""

    remote: str
    branch: str

    @property
    def ref(self) -> str:
        """Where git keeps what it last fetched."""
        return f"refs/remotes/{self.remote}/{self.branch}"


def find_upstream(clone: Clone) -> Upstream | None:
    """Return the default branch of the remote ``upstream`` (as forks name it) or ``origin``, or of the only one.

    A fork may have made ``practice`` its default; the course is on ``main`` then.
    """
    remotes = clone.git.run("remote").split()
    named = [name for name in ("upstream", "origin") if name in remotes] or remotes[:1]
    if not named:
        return None
    prefix = f"refs/remotes/{named[0]}/"
    default = clone.refs.get(f"{prefix}HEAD", "").removeprefix(prefix)
    if not default and f"{prefix}main" not in clone.refs:
        told = re.match(r"ref: refs/heads/(\S+)\tHEAD", clone.git.line("ls-remote", "--symref", named[0], "HEAD") or "")
        default = told[1] if told else ""
    return Upstream(named[0], default if default not in ("", "practice", "reference") else "main")


# -- the branches --------------------------------------------------------------------------------------------------------


def practice(root: Path = ROOT, show: Callable[[str], None] = say) -> None:
    """Make the branches ``reference`` and ``practice`` and check out ``practice``; where they are, go there.

    Raises GitError; a run that was stopped half-way is finished by the next.
    """
    clone = look(root, "practice", show)
    upstream = find_upstream(clone)
    known = clone.refs.get(upstream.ref) if upstream else None
    theirs = f"refs/remotes/{upstream.remote}/practice" if upstream else ""
    if PRACTICE in clone.refs:
        tip = filtered_tip(clone.git, PRACTICE)
        if tip is None:
            raise GitError(
                "The branch practice here was not made by nox -s practice: git branch -m practice NAME, then run it again."
            )
        set_reference(clone, clone.refs.get(REFERENCE) or tip.upstream, tip)
        if f"refs/heads/{clone.branch}" != PRACTICE:
            _check_out(clone, "practice")
    elif theirs in clone.refs and (tip := filtered_tip(clone.git, theirs)):
        set_reference(clone, tip.upstream, tip)  # this learner's other clone made it
        _check_out(clone, "-b", "practice", "--track", theirs.removeprefix("refs/remotes/"))
    else:
        base = (known and clone.git.line("merge-base", "HEAD", known)) or clone.head
        first = filtered_commit(clone, base, None)
        mine = _with_work(clone, base, first)
        set_reference(clone, base, None)
        _check_out(clone, "--no-track", "-b", "practice", mine)
    clear_solutions(clone)
    show(
        "\nYou are on practice: the course without solutions/, your kernels and records as you left them.\n"
        "All of it is on reference, one git command away: a gate of courtesy. nox -s update brings in what is new."
    )


def _with_work(clone: Clone, base: str, first: str) -> str:
    """Return where practice starts: the filtered commit, and what the learner committed on top of upstream's ``base``."""
    if clone.head == base:
        return first
    tree = filtered_tree(clone, clone.head)
    if clone.git.line("rev-parse", f"{first}^{{tree}}") == tree:
        return first
    words = ("-m", f"Your work so far, from {clone.branch}")
    return clone.git.run(*identity(clone.git), "commit-tree", tree, "-p", first, *words).strip()


def _check_out(clone: Clone, *args: str) -> None:
    """Check a branch out; what is not committed comes along. Raises GitError, with the tree as it was."""
    done = clone.git.call("checkout", "--quiet", *args)
    if done.status:
        raise refused(clone, "checkout", done)


def refused(clone: Clone, command: str, done) -> GitError:
    """Return the error for a git that would not overwrite files: which, and what to do."""
    files = in_the_way(done)
    if not files:
        return GitError(f"git {command} failed: {reason(done)}. Nothing of yours was changed.")
    few = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    return GitError(
        f"In the way, and not committed: {few}. Nothing of yours was changed; commit or move what is yours "
        f"(or git stash -u), then run nox -s {clone.chore} again."
    )


def set_reference(clone: Clone, commit: str, tip: Tip | None) -> None:
    """Let ``reference`` be ``commit``. Commits that somebody made on it stay, on a branch of another name."""
    now = clone.refs.get(REFERENCE)
    if now == commit:
        return
    ours = now is None or (tip and now == tip.upstream)
    if not ours and clone.git.line("merge-base", "--is-ancestor", now, commit) is None:
        aside = f"reference-{now[:7]}"
        if f"refs/heads/{aside}" not in clone.refs:
            clone.git.run("branch", "--no-track", aside, now)
        say(f"The branch reference had commits that upstream has not; they are on {aside}.")
    clone.git.run("branch", "--no-track", "--force", "reference", commit)


def clear_solutions(clone: Clone) -> None:
    """Take out of practice what is left in ``solutions/``: caches and copies go, a learner's own files are kept."""
    git, folder = clone.git, clone.git.root / "solutions"
    if git.run("ls-files", "--", "solutions").strip():
        git.run("rm", "-r", "-f", "-q", "--cached", "--", "solutions")
        git.run(*identity(git), "-c", "commit.gpgsign=false", "commit", "-q", "--no-verify", "-m", "Put solutions/ away")
    if folder.is_symlink() or not folder.is_dir():
        return
    known: set[str] = set()
    files = leftovers(folder)
    if files:
        known = {e.blob for path, e in git.tree(REFERENCE).items() if path.startswith("solutions/")}
    for file in files:
        if git.run("hash-object", "--", str(file)).strip() not in known:
            kept = Store(git.root / "records").keep(file, clone.chore)
            say(f"{file.relative_to(git.root)} is no file of the course: kept as {kept.relative_to(git.root)}")
        file.unlink()
    prune(folder)


def leftovers(folder: Path) -> list[Path]:
    """Delete the caches below ``folder`` and return the other files, sorted. Links are not followed."""
    found = []
    for top, _, names in os.walk(folder):
        for path in (Path(top) / name for name in names):
            if _CACHES & set(path.relative_to(folder).parts) or path.suffix == ".pyc":
                path.unlink()
            else:
                found.append(path)
    return sorted(found)


def prune(folder: Path) -> None:
    """Remove the folders at and below ``folder`` that are empty."""
    for top, _, _ in os.walk(folder, topdown=False):
        if not os.listdir(top):
            os.rmdir(top)


# -- the pristine stub ---------------------------------------------------------------------------------------------------


def pristine_stub(root: Path, slug: str) -> str | None:
    """Return the stub of a kata as the course has it, whatever the learner committed, or None where nothing has it.

    It comes from the newest filtered commit, else from upstream's commit that this branch stands on; without an
    upstream, from the newest version in the history that ``harness/stubs.json`` knows. Never raises, prints nothing.
    """
    git, path = Git(root.resolve(), None), f"exercises/{slug}/kernel.py"
    digest = Course(git.root, ()).stub_digests.get(slug[3:])
    ...


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run ``practice``; return 0, or 1 after a sentence that says what is wrong."""
    return chore(practice, "practice", argv, root)
