"""``nox -s hint -- 05_nf4``: one more hint of the kata's README, the mildest first, recorded. No torch here."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.course import Course, Kata, load_course
from harness.errors import CourseError, KataError, StoreError
from harness.record import Attempt
from harness.steps import steps
from harness.store import Store

_BLOCK = re.compile(r"<details[^>]*>\s*(?:<summary>(.*?)</summary>)?(.*?)(?:</details>|(?=<details)|\Z)", re.DOTALL)
_NUMBER = re.compile(r"^\s*\d+[.:)]\s*")


@dataclass(frozen=True)
class Hint:
    """One hint: its question, and the answer in Markdown."""

    title: str
    text: str


def main(argv: Sequence[str] | None = None, root: Path | None = None) -> int:
    """Show the next hint of the kata that ``argv`` names. Returns 0, or 1 after a sentence about what is wrong."""
    parser = argparse.ArgumentParser(prog="nox -s hint --", description="One more hint, the mildest first.")
    parser.add_argument("kata", nargs="?", default="", help="slug, id or number, such as 05_nf4")
    parser.add_argument("--again", action="store_true", help="show the hints of this round once more; records nothing")
    parser.add_argument("--records", metavar="DIR", type=Path, help="where records are kept (default: records/)")
    args = parser.parse_args(argv)
    try:
        course = load_course(root)
        kata = course.kata(args.kata)
        store = Store(args.records or course.root / "records")
        hints = read_hints(kata)
        history, problems = store.history()
        seen = min(hints_seen(history, kata.id), len(hints))
        for problem in problems:
            print(problem, file=sys.stderr)
        if args.again:
            _show_again(kata, hints, seen)
        elif seen < len(hints):
            _show_next(kata, hints, seen, store)
        else:
            print(none_left(course, kata, len(hints)))
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def read_hints(kata: Kata) -> list[Hint]:
    """Return the hints of a kata in the order of its README. Raises CourseError when it has none."""
    path = kata.folder / "README.md"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CourseError(f"exercises/{kata.slug}/README.md cannot be read: {error.strerror}.") from None
    found = [Hint(_NUMBER.sub("", (title or "").strip()), body.strip()) for title, body in _BLOCK.findall(text)]
    if not found:
        raise CourseError(f"exercises/{kata.slug}/README.md has no hints; expected <details> blocks, mildest first.")
    return found


def hints_seen(history: Iterable[Attempt], id: str) -> int:
    """Return how many hints of the kata ``id`` were shown since its last pass or reset."""
    seen = 0
    for e in history:
        if e.id != id:
            continue
        if e.kind == "hint":
            seen += 1
        elif e.kind == "reset" or e.passed:
            seen = 0
        elif e.kind == "attempt":  # it says how many there were: a hint's own line may be lost
            seen = max(seen, e.help.get("hints", 0))
    return seen


def _show_next(kata: Kata, hints: Sequence[Hint], seen: int, store: Store) -> None:
    hint = hints[seen]
    unrecorded = ""
    try:
        store.append(Attempt(kind="hint", id=kata.id, slug=kata.slug, reason=hint.title, help={"hints": seen + 1}))
    except StoreError as error:
        unrecorded = (
            f"{error}\nSo the next call shows this hint again; exercises/{kata.slug}/README.md has all of them."
        )
    _print(kata, hint, seen + 1, len(hints))
    left = len(hints) - seen - 1
    if left:
        print(f"{left} hint{'s' if left > 1 else ''} left. Try this one first; the next: nox -s hint -- {kata.slug}")
    else:
        print("That was the last hint of this kata.")
    if unrecorded:
        print(unrecorded, file=sys.stderr)


def _show_again(kata: Kata, hints: Sequence[Hint], seen: int) -> None:
    if not seen:
        print(f"{kata.slug}: no hint was shown in this round yet. The first: nox -s hint -- {kata.slug}")
    for number, hint in enumerate(hints[:seen], 1):
        _print(kata, hint, number, len(hints))


def none_left(course: Course, kata: Kata, count: int) -> str:
    """Return what to read when every hint was shown: what else helps."""
    rows = [
        (f"nox -s hint -- {kata.slug} --again", "the hints of this round once more"),
        (f"pytest exercises/{kata.slug}", "the argument, index, program and line that the first failure names"),
    ]
    if (course.root / "lessons" / kata.slug).is_dir():
        rows.append((f"lessons/{kata.slug}", "the idea behind the kata, with a worked example"))
    rows.append((f"nox -s compare -- {kata.slug} --peek", "the reference beside yours; recorded, ends the streak"))
    return steps(f"{kata.slug}: all {count} hints were shown in this round. What else helps:", *rows)


def _print(kata: Kata, hint: Hint, number: int, count: int) -> None:
    """A terminal gets the Markdown rendered; a pipe gets it as it stands, which reads well, too."""
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.padding import Padding

    console = Console(highlight=False)
    console.print(f"[bold]{kata.slug}, hint {number} of {count}[/]", end="")
    console.print(f": {hint.title}" if hint.title else "", markup=False)
    if console.is_terminal:
        console.print(Padding(Markdown(hint.text), (1, 0, 1, 2)), width=min(console.width, 100))
    else:
        print(f"\n{textwrap.indent(hint.text, '  ')}\n")


if __name__ == "__main__":
    sys.exit(main())
