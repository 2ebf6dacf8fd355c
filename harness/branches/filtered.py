"""Filtered: the course without its solutions, as commits that can be merged. No torch here.

A chain of filtered commits joins upstream and the branch ``practice``, and only that chain is ever merged into it::

    upstream   U0 ──────────── U1 ─────────── U2        with solutions/    <- reference
    filtered   F0 ──────────── F1 ─────────── F2        without
    practice    └─ work ─ work ─┴─ M1 ─ work ─┴─ M2     without            <- practice

No ancestor of ``practice`` has a solution, so no merge can bring one back: git itself refuses to merge ``main`` into it
("unrelated histories"). A filtered commit names its U and takes over its date: made again it is the same commit, and
the newest one is found from ``practice`` alone, in any clone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.branches.clone import Clone, find_upstream, is_ancestor
from harness.branches.git import IDENTITY, Git, scratch_index

TRAILER = "Kata-Upstream"


@dataclass(frozen=True)
class Tip:
    """The newest filtered commit in a history, and the commit of upstream's that it was made from."""

    commit: str
    upstream: str


def filtered_tip(git: Git, of: str = "HEAD") -> Tip | None:
    """Return the newest filtered commit in the history of ``of``, or None where there is none."""
    search = ("--topo-order", "--max-count=1", "--basic-regexp", f"--grep=^{TRAILER}: ", "--format=%B")
    told = git.ask("rev-list", *search, of) or ""
    found = re.match(rf"commit (\w+)\n.*^{TRAILER}: (\w+)$", told, re.DOTALL | re.MULTILINE)
    return Tip(found[1], found[2]) if found else None


def filtered_commit(clone: Clone, upstream: str, before: str | None) -> str:
    """Return the filtered commit of ``upstream`` behind ``before``, or ``before`` itself where its tree is the same."""
    tree = filtered_tree(clone, upstream)
    if before and tree_of(clone.git, before) == tree:
        return before
    date = clone.git.run("rev-list", "--max-count=1", "--format=%ct", upstream).split()[-1] + " +0000"
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    words = ("-m", f"The course at {upstream[:7]}, without solutions/", "-m", f"{TRAILER}: {upstream}")
    parents = ("-p", before) if before else ()
    return clone.git.run(*IDENTITY, "commit-tree", tree, *parents, *words, env=dates).strip()


def filtered_tree(clone: Clone, commit: str) -> str:
    """Write the tree of ``commit`` without ``solutions/`` and return its name."""
    with scratch_index(clone.git, clone.folder) as env:
        clone.git.run("read-tree", commit, env=env)
        # a sparse checkout, by which a learner may have hidden the solutions before, would keep rm from them
        every = ("-c", "core.sparseCheckout=false")
        clone.git.run(*every, "rm", "-r", "-f", "-q", "--cached", "--ignore-unmatch", "solutions", env=env)
        return clone.git.run("write-tree", env=env).strip()


def tree_of(git: Git, commit: str) -> str:
    """Return the name of a commit's tree."""
    return git.run("rev-parse", f"{commit}^{{tree}}").strip()


def pure_base(git: Git, refs: dict[str, str], tip: Tip | None) -> str | None:
    """Return the commit below the learner's work that is upstream's, or None where no upstream vouches for it.

    A chain that began in a clone without a remote began with whatever the learner had committed there.
    """
    upstream = find_upstream(git, refs)
    known = refs.get(upstream.ref) if upstream else None
    if known is None:
        return None
    if tip is None:
        return git.ask("merge-base", "HEAD", known)
    return tip.commit if is_ancestor(git, tip.upstream, known) else None
