"""Update: bring in what is new in the course, with the learner's work kept (``nox -s update``). No torch here.

The merge is made beside the work tree: trees are read, joined and written, and the finished commit is taken over in one
fast-forward. Nothing is ever half merged, and a run that is stopped anywhere is finished by the next.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.branches.clone import PRACTICE, Clone, Upstream, chore, find_upstream, identity, is_ancestor, look
from harness.branches.filtered import Tip, filtered_commit, filtered_tip
from harness.branches.git import Entry, Git, say, scratch_index
from harness.branches.merge import Merge, Tree, clashing, merge
from harness.branches.practice import clear_solutions, keep, leftovers, prune, set_reference
from harness.course import ROOT, Course, source_digest
from harness.errors import GitError


@dataclass(frozen=True)
class News:
    """What is to be merged: the commit of upstream's, and the two ends of its change as this branch sees them."""

    upstream: Upstream
    commit: str
    base: str
    theirs: str


def update(root: Path = ROOT, show: Callable[[str], None] | None = say) -> None:
    """Fetch the course and merge it into this branch. Raises KataError, with the learner's files as they were."""
    clone = look(root, "update", show)
    git = clone.git
    tip = filtered_tip(git)
    if tip is None and PRACTICE in clone.refs and filtered_tip(git, PRACTICE):
        raise GitError(
            f"You are on {clone.branch}, your work is on practice: nox -s practice, then run nox -s update again."
        )
    upstream, commit = _fetch(clone)
    if tip:
        clear_solutions(clone, commit)
        news = News(upstream, commit, tip.commit, filtered_commit(clone, commit, tip.commit))
    else:
        base = git.ask("merge-base", "HEAD", commit)
        if base is None:
            raise GitError(
                f"{clone.branch} and {upstream} share no commit: clone the course anew, and copy your "
                "exercises/*/kernel.py and records/ into the clone."
            )
        news = News(upstream, commit, base, commit)
    if is_ancestor(git, news.theirs, "HEAD"):
        last = f"\nNothing new: you have all of {upstream}."
    else:
        _take_over(clone, news, tip)
        last = f"You have all of {upstream} now. Next: nox -s grade"
    if tip:
        set_reference(clone, commit, tip)
    _sweep(clone)
    git.say(last)


def _fetch(clone: Clone) -> tuple[Upstream, str]:
    """Fetch upstream's branch, say which, and return it with its commit. Raises GitError."""
    upstream = find_upstream(clone.git, clone.refs, ask=True)
    if upstream is None:
        raise GitError(
            "This clone has no remote to update from: git remote add origin ADDRESS, then run nox -s update again."
        )
    clone.git.run(
        "fetch", upstream.remote, f"+refs/heads/{upstream.branch}:{upstream.ref}",
        then=f"Nothing was changed. Is there a network, and is {upstream} still the course (git remote set-head "
        f"{upstream.remote} --auto)? Then run nox -s update again.",
    )  # fmt: skip
    commit, date, subject = clone.git.run(
        "log", "--max-count=1", "--no-show-signature", "--date=short", "--format=%H%n%cd%n%s", upstream.ref
    ).split("\n")[:3]
    clone.git.say(f"Upstream is {upstream}, at {commit[:7]} of {date}: {subject}")
    return upstream, commit


def _take_over(clone: Clone, news: News, tip: Tip | None) -> None:
    """Merge the news, and fast-forward to the merge."""
    git = clone.git
    base, theirs = git.tree(news.base), git.tree(news.theirs)
    who = identity(git)
    if mine := clashing(clone.kernels, base, theirs):
        words = ("-q", "--no-verify", "-m", "Your work, before an update", "--", *mine)
        git.run(*who, "-c", "commit.gpgsign=false", "commit", *words)
        git.say(f"Committed, for upstream changed these katas: {', '.join(mine)}")
    head = git.run("rev-parse", "HEAD").strip()
    pure = tip is None or is_ancestor(git, tip.upstream, news.commit)
    plan = merge(base, git.tree(head), theirs, lambda path: not pure and _edited(git.root, path))
    of = "reference" if tip else str(news.upstream)
    notes = [*_told(plan), *_line_by_line(git, plan, base, theirs, of)]
    for path in plan.kernels:
        _show_change(git, news, plan, path)
    same = (head, plan.tree) == (news.base, theirs)
    target = news.theirs if same else _commit(clone, who, news, head, plan, theirs, notes)
    for path in plan.aside:
        if (git.root / path).is_file():
            keep(clone, git.root / path, path.split("/")[1])
    done = git.call("-c", "merge.autoStash=false", "merge", "--ff-only", "--quiet", target)
    if done.status:
        raise clone.refused("merge", done)
    git.say("\n" + "\n".join(f"- {note}" for note in notes or ["nothing changed in the katas"]))


def _told(plan: Merge) -> list[str]:
    """Return a line about each kata that changed."""
    lines = [f"new: {slug}" for slug in plan.new]
    lines += [f"{old} is {new} now; your files and records went along" for old, new in plan.moved.items()]
    lines += [f"gone: {slug}; its records stay" for slug in plan.gone]
    lines += [f"new stub, for yours was untouched: {path}" for path in plan.stubs]
    lines += [f"yours is kept: {path}; upstream changed the stub" for path in plan.kernels]
    return lines


def _show_change(git: Git, news: News, plan: Merge, path: str) -> None:
    """Print what upstream changed in the stub of a kernel that the learner keeps."""
    before = plan.before.get(path)
    old = f"{news.base}:{before}" if before else f"HEAD:{path}"
    git.say(
        f"\nYours is kept: {path}. " + ("What upstream changed in the stub:" if before else "Upstream's against yours:")
    )
    git.say(git.run("diff", "--no-color", "--no-ext-diff", "--no-textconv", old, f"{news.theirs}:{path}"))


def _line_by_line(git: Git, plan: Merge, base: Tree, theirs: Tree, of: str) -> list[str]:
    """Join the files that both changed; where lines clash the learner's stays as it is. Return what happened.

    Args:
        of: the branch on which upstream's version can be seen.
    """
    notes = []
    for path in plan.both:
        b, o, t = base.get(plan.before.get(path, "")), plan.tree.get(path), theirs.get(path)
        see = f"upstream's: git show {of}:{path}"
        if t is None:
            notes.append(f"yours is kept: {path}; upstream removed it")
        elif o is None:
            notes.append(f"{path} stays removed, as you left it; {see}")
        elif b and (blob := _joined(git, b, o, t)):
            plan.tree[path] = Entry(t.mode if o.mode == b.mode else o.mode, blob)
            notes.append(f"joined: {path}, your lines and upstream's")
        else:
            notes.append(f"yours is kept: {path}; upstream changed the same lines. {see[0].upper()}{see[1:]}")
    return notes


def _joined(git: Git, base: Entry, ours: Entry, theirs: Entry) -> str | None:
    """Return the content that has the changes of both, or None where they clash or one is no text."""
    if not all(entry.mode.startswith("100") for entry in (base, ours, theirs)):
        return None
    with tempfile.TemporaryDirectory(prefix="kata-") as folder:
        files = [Path(folder) / name for name in ("yours", "before", "upstream")]
        for file, entry in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes((git.text(entry.blob) or "").encode("utf-8", "surrogateescape"))
        done = git.call("merge-file", "-p", "-q", *map(str, files))
    return git.run("hash-object", "-w", "--stdin", stdin=done.out).strip() if done.status == 0 else None


def _edited(root: Path, path: str) -> bool:
    """Return whether a kernel differs from the stub that ``harness/stubs.json`` knows; unreadable is edited."""
    try:
        digest = Course(root, ()).stub_digests.get(path.split("/")[1][3:])
        return digest is not None and source_digest((root / path).read_text(encoding="utf-8")) != digest
    except (OSError, ValueError):
        return True


def _commit(
    clone: Clone, who: tuple[str, ...], news: News, head: str, plan: Merge, theirs: Tree, notes: list[str]
) -> str:
    """Write the merged tree and its commit, and return that."""
    git = clone.git
    changed = [path for path in {**plan.tree, **theirs} if plan.tree.get(path) != theirs.get(path)]
    none = Entry("0", "0" * len(head))
    lines = (f"{entry.mode} {entry.blob}\t{path}\0" for path in changed for entry in [plan.tree.get(path, none)])
    with scratch_index(git, clone.folder) as env:
        git.run("read-tree", news.theirs, env=env)
        if changed:
            git.run("update-index", "-z", "--index-info", stdin="".join(lines), env=env)
        tree = git.run("write-tree", env=env).strip()
    words = ("-m", f"Update to {news.upstream} at {news.commit[:7]}", *(("-m", "\n".join(notes)) if notes else ()))
    return git.run(*who, "commit-tree", tree, "-p", head, "-p", news.theirs, *words).strip()


def _sweep(clone: Clone) -> None:
    """Empty the folders of katas that are gone: what git does not know of is still there, and would pass for a kata."""
    git, exercises = clone.git, clone.git.root / "exercises"
    folders = [p for p in sorted(exercises.glob("[0-9][0-9]_*")) if p.is_dir() and not p.is_symlink()]
    bare = [p for p in folders if not (p / "exercise.toml").exists()]
    if not bare:
        return
    options = ("--full-history", "--no-renames", "--diff-filter=D", "--name-only", "--format=")
    once = set(git.run("log", *options, "HEAD", "--", "exercises/*/exercise.toml").splitlines())
    for folder in bare:
        if f"exercises/{folder.name}/exercise.toml" not in once or git.run("ls-files", "--", str(folder)):
            continue
        heirs = [p for p in folders if p not in bare and p.name[3:] == folder.name[3:]]
        for file in leftovers(folder):
            place = heirs[0] / file.relative_to(folder) if heirs else None
            if place and not os.path.lexists(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                os.rename(file, place)
                git.say(f"Moved along: {file.relative_to(git.root)} is now {place.relative_to(git.root)}")
            else:
                keep(clone, file, folder.name)
                file.unlink()
        prune(folder)


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Update this branch; return 0, or 1 after one sentence that says what is wrong."""
    return chore("update", update, argv, root)


if __name__ == "__main__":
    sys.exit(main())
