"""New: scaffold a kata (``nox -s new -- 21_formats``): files that work as they are, with blanks to fill.

The templates in ``harness/template/`` are the files themselves, with ``.txt`` behind their names (so that no tool takes
them for a kata) and ``{{name}}`` where the kata's own words go.
"""

from __future__ import annotations

import keyword
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import CourseError, KataError

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = Path(__file__).resolve().parent / "template"

_SLUG = re.compile(r"\d\d_[a-z][a-z0-9]*(_[a-z0-9]+)*")


def scaffold(slug: str, root: Path = ROOT) -> list[Path]:
    """Write ``exercises/slug`` and ``solutions/slug`` below ``root``; return the files, sorted.

    Raises:
        CourseError: the slug is malformed, or its number, its name or one of its folders is taken. Nothing is written.
    """
    check_slug(slug, root)
    places = {root / "exercises" / slug: TEMPLATE / "exercise", root / "solutions" / slug: TEMPLATE / "solution"}
    files: list[Path] = []
    try:
        for folder, template in places.items():
            for source in sorted(template.rglob("*.txt")):
                target = folder / source.relative_to(template).with_suffix("")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(fill(source.read_text(encoding="utf-8"), slug), encoding="utf-8")
                files.append(target)
    except OSError as error:
        for folder in places:
            shutil.rmtree(folder, ignore_errors=True)
        raise CourseError(f"slug={slug!r}: {error.filename} cannot be written: {error.strerror}.") from error
    return sorted(files)


def fill(text: str, slug: str) -> str:
    """Return ``text`` with the kata's words in place of ``{{...}}``."""
    number, name = slug[:2], slug[3:]
    words = {"slug": slug, "number": number, "name": name, "words": name.replace("_", " ").capitalize()}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: words[match[1]], text)


def check_slug(slug: str, root: Path) -> None:
    """Raise CourseError unless a kata of this slug can be made below ``root``."""
    if not _SLUG.fullmatch(slug):
        raise CourseError(f"slug={slug!r}: expected two digits and a name in small letters, such as 21_formats.")
    number, name = slug[:2], slug[3:]
    if keyword.iskeyword(name):
        raise CourseError(f"slug={slug!r}: {name} is a word of Python and cannot name a function; choose another name.")
    for folder in (root / "exercises" / slug, root / "solutions" / slug):
        if folder.exists():
            raise CourseError(f"slug={slug!r}: {folder.relative_to(root)} exists; remove it or choose another slug.")
    for other in sorted(p.name for p in (root / "exercises").glob("[0-9][0-9]_*")):
        if other[:2] == number:
            raise CourseError(f"slug={slug!r}: number {number} belongs to {other}; choose another number.")
        if other[3:] == name:
            raise CourseError(f"slug={slug!r}: {name} is the id of {other}, and records go by id; choose another name.")


def main(args: Sequence[str], root: Path = ROOT) -> int:
    """Scaffold the kata that ``args`` name; return 0, or 2 after one line that says what is wrong."""
    if len(args) != 1:
        print(f"Expected one slug, got {len(args)}: nox -s new -- 21_formats", file=sys.stderr)
        return 2
    try:
        files = scaffold(args[0], root)
    except KataError as error:
        print(error, file=sys.stderr)
        return 2
    for file in files:
        print(f"wrote {file.relative_to(root)}")
    print(
        f"\nIt works as it is: a copy kernel. Make it yours, fill what says TODO outside the stub, then run\n"
        f"  pytest exercises/{args[0]} --solutions\n  nox -s course -- {args[0]} --write-stubs"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
