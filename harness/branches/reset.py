"""``nox -s reset -- 05_nf4``: back to the blank stub, and the learner's file is kept. No torch here."""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.branches.practice import pristine_stub
from harness.course import Course, Kata, load_course, source_digest
from harness.errors import CourseError, KataError, StoreError
from harness.record import Attempt
from harness.store import Store
from harness.streaks import rounds


def main(argv: Sequence[str] | None = None, root: Path | None = None) -> int:
    """Reset the katas that ``argv`` names. Returns 0, or 1 after one sentence that says what is wrong.

    Nothing is changed before the blank stub of every named kata was found.
    """
    parser = argparse.ArgumentParser(prog="nox -s reset --", description="Back to the blank stub; your file is kept.")
    parser.add_argument("katas", nargs="*", default=[""], help="slugs, ids or numbers, such as 05_nf4")
    parser.add_argument("--records", metavar="DIR", type=Path, help="where records are kept (default: records/)")
    args = parser.parse_args(argv)
    try:
        course = load_course(root)
        katas = {kata.slug: kata for kata in map(course.kata, args.katas)}.values()
        store = Store(args.records or course.root / "records")
        for kata, stub in [(kata, blank(course, kata)) for kata in katas]:
            reset(course, kata, stub, store)
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def blank(course: Course, kata: Kata) -> bytes:
    """Return the pristine stub of a kata, checked against ``harness/stubs.json``. Raises CourseError."""
    text = pristine_stub(course.root, kata.slug)
    if text is None:
        if course.is_untouched(kata, kata.stub):
            return kata.stub.read_bytes()
        raise CourseError(
            f"The blank stub of {kata.slug} is nowhere here (a ZIP or a shallow clone has no history to take it from); "
            f"nothing was changed. Take exercises/{kata.slug}/kernel.py from a fresh clone of the course."
        )
    if source_digest(text) != course.stub_digests.get(kata.id):
        raise CourseError(
            f"The stub of {kata.slug} that git has is not the one that harness/stubs.json names; nothing was changed. "
            "`nox -s update` brings both to the same state."
        )
    return text.encode("utf-8", "surrogateescape")


def reset(course: Course, kata: Kata, stub: bytes, store: Store) -> None:
    """Put the learner's file aside and the stub in its place, record that, and say so.

    Raises:
        StoreError: the file could not be put aside, so it was not touched.
        CourseError: the stub could not be written.
    """
    file = kata.stub
    try:
        before = file.read_bytes()
    except FileNotFoundError:
        before = None
    except OSError as error:
        raise CourseError(f"exercises/{kata.slug}/kernel.py cannot be read: {error.strerror}.") from None
    if before == stub:
        _begin_again(kata, store)
        return
    while before is not None:
        kept = store.keep(file, "reset", slug=kata.slug)
        if kept.read_bytes() == file.read_bytes():  # else it was saved once more meanwhile: keep that, too
            print(f"{kata.slug}: your file is kept in {_shown(kept, course.root)}")
            break
    _put(kata, stub)
    try:
        store.append(Attempt(kind="reset", id=kata.id, slug=kata.slug, help={}))
    except StoreError as error:
        print(error, file=sys.stderr)
    print(f"{kata.slug}: the blank stub is back, and a new round begins: exercises/{kata.slug}/kernel.py")


def _begin_again(kata: Kata, store: Store) -> None:
    """Say that there is nothing to reset; but a round that was passed is over, so then record that one begins.

    The stub may have come back by git, or by a reset that was stopped before it was recorded. Raises StoreError.
    """
    mine = rounds(store.history()[0], kata.id)
    if not mine or mine[-1].outcome != "pass":
        print(f"{kata.slug}: the stub is untouched, so there is nothing to reset.")
        return
    store.append(Attempt(kind="reset", id=kata.id, slug=kata.slug, help={}))
    print(f"{kata.slug}: the blank stub was back already; a new round begins: exercises/{kata.slug}/kernel.py")


def _put(kata: Kata, stub: bytes) -> None:
    """Replace the file in one step, so that a kill leaves the old one or the new one."""
    draft = kata.folder / f".kernel.py.{secrets.token_hex(4)}.tmp"
    try:
        draft.write_bytes(stub)
        with contextlib.suppress(OSError):
            shutil.copymode(kata.stub, draft)
        os.replace(draft, kata.stub)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise CourseError(
            f"exercises/{kata.slug}/kernel.py cannot be written: {error.strerror}; it is as it was."
        ) from None


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


if __name__ == "__main__":
    sys.exit(main())
