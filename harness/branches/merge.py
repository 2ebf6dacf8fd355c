"""Merge: from which side each file of an update comes. Trees in, a tree out; no git and no torch here.

A learner's ``kernel.py`` is theirs: once edited, no update changes it, not even where lines would not clash, for a
kernel that is half somebody else's is nobody's. Katas are followed by their id, so that a renumbered kata takes the
learner's files along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from harness.branches.clone import is_kernel
from harness.branches.git import Entry

Tree = dict[str, Entry]


@dataclass
class Merge:
    """What an update comes to.

    Attributes:
        tree: the merged tree.
        before: where a file of the merged tree stood in ``base``.
        moved: the new slug of each renumbered kata.
        new, gone: slugs that upstream added, and removed.
        stubs: kernels that follow upstream, for the learner had not edited them.
        kernels: kernels that the learner keeps although upstream changed the stub.
        both: other files that both changed: the learner's stands in ``tree``, and is to be merged line by line.
        aside: files of the learner's, as they are named now, whose kata is gone.
    """

    tree: Tree = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    stubs: list[str] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    both: list[str] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)


def slugs(tree: Iterable[str]) -> set[str]:
    """Return the katas of a tree: ``05_nf4``."""
    return {match[1] for path in tree if (match := re.match(r"exercises/(\d\d_[^/]+)/exercise\.toml$", path))}


def renumbered(base: Tree, theirs: Tree) -> dict[str, str]:
    """Return the new slug of each kata whose number upstream changed."""
    before, after = slugs(base), slugs(theirs)
    new = {slug[3:]: slug for slug in after - before}
    return {slug: new[slug[3:]] for slug in before - after if slug[3:] in new}


def moved_path(path: str, moved: dict[str, str]) -> str:
    """Return where a file of a renumbered kata stands now."""
    top, _, rest = path.partition("/")
    slug, _, name = rest.partition("/")
    return f"{top}/{moved[slug]}/{name}" if name and slug in moved else path


def clashing(kernels: Iterable[str], base: Tree, theirs: Tree) -> list[str]:
    """Return the kernels that upstream changed, moved or removed."""
    moved = renumbered(base, theirs)
    places = ((path, moved_path(path, moved)) for path in kernels)
    return [path for path, place in places if place != path or base.get(path) != theirs.get(path)]


def merge(base: Tree, ours: Tree, theirs: Tree, edited: Callable[[str], bool] = lambda path: False) -> Merge:
    """Return the merge of ``ours`` and ``theirs``, which both come from ``base``.

    Args:
        edited: whether a kernel of ours was edited, although it is the one of ``base``.
    """
    plan = Merge(moved=renumbered(base, theirs))
    plan.new = sorted(slugs(theirs) - slugs(base) - set(plan.moved.values()))
    plan.gone = sorted(slugs(base) - slugs(theirs) - set(plan.moved))
    places = {path: moved_path(path, plan.moved) for path in {**base, **ours}}
    # a file of the learner's that stands in a new place already is not overwritten by the one that would move there
    here = {
        place if place == path or place not in ours else path: path for path, place in places.items() if path in ours
    }
    plan.before = {places[path]: path for path in base}
    left = {*plan.gone, *plan.moved}
    for path in sorted({*plan.before, *here, *theirs}):
        old, name = plan.before.get(path), here.get(path)
        b, o, t = base[old] if old else None, ours[name] if name else None, theirs.get(path)
        follows = o == b and not (o and is_kernel(path) and edited(name))
        if t is None and o and path.startswith("exercises/") and path.split("/")[1] in left:
            if not follows:
                plan.aside.append(name)
            continue
        if o == t or t == b:
            entry = o
        elif follows or (o is None and is_kernel(path)):
            entry = t
            plan.stubs += [path] if b and t and is_kernel(path) else []
        else:
            entry = o
            (plan.kernels if is_kernel(path) and t else plan.both).append(path)
        if entry:
            plan.tree[path] = entry
    return plan
