"""Practice: the solutions behind a branch (``nox -s practice``). No torch here.

The branch ``reference`` is upstream's own commit, with everything; ``practice`` is the learner's, without
``solutions/``. ``harness/branches/filtered.py`` shows what joins them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.branches.clone import (
    PRACTICE,
    REFERENCE,
    Clone,
    chore,
    find_upstream,
    identity,
    is_ancestor,
    look,
    read_refs,
)
from harness.branches.filtered import Tip, filtered_commit, filtered_tip, filtered_tree, pure_base, tree_of
from harness.branches.git import Git, say
from harness.course import ROOT, Course, source_digest
from harness.errors import GitError
from harness.store import Store

_CACHES = {"__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", ".triton"}


def practice(root: Path = ROOT, show: Callable[[str], None] | None = say) -> None:
    """Make the branches ``reference`` and ``practice`` and check out ``practice``; where they are, go there.

    A run that was stopped half-way is finished by the next. Raises KataError.
    """
    clone = look(root, "practice", show)
    git = clone.git
    upstream = find_upstream(git, clone.refs)
    known = clone.refs.get(upstream.ref) if upstream else None
    elsewhere = f"refs/remotes/{upstream.remote}/practice" if upstream else ""
    if PRACTICE in clone.refs:
        tip = filtered_tip(git, PRACTICE)
        if tip is None:
            raise GitError(
                "The branch practice was not made by nox -s practice: git branch -m practice NAME, then run it again."
            )
        full = clone.refs.get(REFERENCE) or _found(git, tip.upstream) or known
        there = () if f"refs/heads/{clone.branch}" == PRACTICE else ("practice", "--")
    elif elsewhere in clone.refs and (tip := filtered_tip(git, elsewhere)):  # the learner pushed it from another clone
        full = _found(git, tip.upstream) or known
        there = ("--track", "-b", "practice", elsewhere)
    else:
        tip, full = None, (known and git.ask("merge-base", "HEAD", known)) or clone.head
        there = ("--no-track", "-b", "practice", _with_work(clone, full, filtered_commit(clone, full, None)))
    if full:  # else upstream was never fetched here, which `update` will do
        set_reference(clone, full, tip)
    if there:
        _check_out(clone, *there)
    clear_solutions(clone, full)
    git.say(
        "\nYou are on practice: the course without solutions/, with your kernels and records as you left them.\n"
        "The branch reference has all of it, one git command away: this is a gate of courtesy.\n"
        "When the course has news: nox -s update"
    )


def _with_work(clone: Clone, base: str, first: str) -> str:
    """Return where practice starts: ``first``, and on it what the learner committed since upstream's ``base``."""
    if clone.head == base:
        return first
    tree = filtered_tree(clone, clone.head)
    if tree_of(clone.git, first) == tree:
        return first
    words = ("-m", f"Your work so far, from {clone.branch}")
    return clone.git.run(*identity(clone.git), "commit-tree", tree, "-p", first, *words).strip()


def _found(git: Git, commit: str) -> str | None:
    """Return the commit if this clone has it."""
    return git.ask("rev-parse", "--quiet", "--verify", f"{commit}^{{commit}}")


def _check_out(clone: Clone, *args: str) -> None:
    """Check a branch out; what is not committed comes along. Raises GitError, with the tree as it was."""
    done = clone.git.call("checkout", "--quiet", *args)
    if done.status:
        raise clone.refused("checkout", done)


def set_reference(clone: Clone, commit: str, tip: Tip | None) -> None:
    """Let ``reference`` be ``commit``. Commits that somebody made on it stay, on a branch of another name."""
    now = clone.refs.get(REFERENCE)
    if now == commit:
        return
    ours = now is None or (tip and now == tip.upstream) or is_ancestor(clone.git, now, commit)
    aside = f"reference-{now[:7]}" if now else ""
    if not ours:
        if f"refs/heads/{aside}" not in clone.refs:
            clone.git.run("branch", "--no-track", aside, now)
        clone.git.say(f"The branch reference had commits that the course has not; they are on {aside}.")
    clone.git.run("branch", "--no-track", "--force", "reference", commit)


def clear_solutions(clone: Clone, full: str | None) -> None:
    """Take out of practice what stands in ``solutions/``: caches and copies go, files of the learner's are kept.

    Args:
        full: upstream's commit, which has the solutions.
    """
    git, folder = clone.git, clone.git.root / "solutions"
    if git.run("ls-files", "--", "solutions"):
        git.run("rm", "-r", "-f", "-q", "--cached", "--", "solutions")
        words = ("-q", "--no-verify", "-m", "Put solutions/ behind the branch")
        git.run(*identity(git), "-c", "commit.gpgsign=false", "commit", *words)
    if folder.is_symlink() or not folder.is_dir():
        return
    if files := leftovers(folder):
        tree = git.tree(full) if full else {}
        known = {entry.blob for path, entry in tree.items() if path.startswith("solutions/")}
        for file in files:
            if git.run("hash-object", "--", str(file)).strip() not in known:
                keep(clone, file, file.parent.name)
            file.unlink()
    prune(folder)


def keep(clone: Clone, file: Path, slug: str) -> None:
    """Copy a learner's file to ``records/kept/``, once, and say so. Raises StoreError: then it must not be touched."""
    store, data = Store(clone.git.root / "records"), file.read_bytes()
    kept = [path for path in store.kept.glob(f"*_{slug}_*{file.suffix}") if path.read_bytes() == data]
    path = kept[0] if kept else store.keep(file, clone.chore, slug)
    clone.git.say(f"Kept: {file.relative_to(clone.git.root)} is now {path.relative_to(clone.git.root)}")


def leftovers(folder: Path) -> list[Path]:
    """Delete the caches below ``folder`` and return the other files, sorted. Links are not followed."""
    found = []
    for top, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(top) / name).is_symlink()]
        for path in (Path(top) / name for name in (*names, *links)):
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


def pristine_stub(root: Path, slug: str) -> str | None:
    """Return the stub of a kata as the course has it, whatever the learner committed, or None where nothing has it.

    It comes from the newest filtered commit; on another branch, from upstream's commit that the branch stands on. Where
    that is not known to be upstream's, it is the newest of ``main`` and the history that ``harness/stubs.json`` knows.
    Prints nothing and raises nothing.
    """
    git, path = Git(root.resolve(), None), f"exercises/{slug}/kernel.py"
    try:
        top = git.ask("rev-parse", "--show-toplevel")
        if top is None or Path(top).resolve() != git.root:
            return None
        digest = Course(git.root, ()).stub_digests.get(slug[3:])
        tip = filtered_tip(git)
        base = pure_base(git, read_refs(git), tip)
        if base and (text := git.text(f"{base}:{path}")) is not None:
            return text
        for commit in _history(git, tip, path):
            text = git.text(f"{commit}:{path}")
            if text is not None and digest in (None, source_digest(text)):
                return text
    except (GitError, OSError, ValueError):
        return None
    return None


def _history(git: Git, tip: Tip | None, path: str) -> Iterator[str]:
    """Yield the commits in which a stub may be found, the likeliest first."""
    if tip:
        yield tip.commit
    yield "refs/heads/main"
    yield from git.run("rev-list", "--branches", "--", path).split()


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Make and check out the branches; return 0, or 1 after one sentence that says what is wrong."""
    return chore("practice", practice, argv, root)


if __name__ == "__main__":
    sys.exit(main())
