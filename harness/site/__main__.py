"""``nox -s lessons``: build the lesson pages, or with ``--serve`` show them."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.course import ROOT
from harness.errors import KataError

NEEDED = {
    "jinja2": "jinja2",
    "latex2mathml": "latex2mathml",
    "markdown_it": "markdown-it-py",
    "mdit_py_plugins": "mdit-py-plugins",
    "pygments": "pygments",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Build, print one line for each page, serve if asked. Returns 0, or 1 after a sentence about what is wrong."""
    parser = argparse.ArgumentParser(prog="nox -s lessons --", description="Build the lesson pages.")
    parser.add_argument("lesson", nargs="?", default="", help="only this one, such as 04 (and the home page)")
    parser.add_argument("--serve", action="store_true", help="serve them on this machine, open the browser")
    parser.add_argument("--port", type=int, default=8000, help="for --serve; 0 takes a free one (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "lessons", help="where (default: build/lessons)")
    parser.add_argument("--records", metavar="DIR", type=Path, help="whose progress (default: records/)")
    args = parser.parse_args(argv)
    missing = [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        print(
            f"The lessons are built with {', '.join(missing)}, not installed here. Run: pip install -e .",
            file=sys.stderr,
        )
        return 1
    try:
        ok = _build(args)
        if args.serve:
            from harness.site.serve import serve

            watched = [p for p in (ROOT / "lessons", args.records or ROOT / "records") if p.is_dir()]
            first = _page(args.out, args.lesson)
            serve(args.out, watched, lambda: _build(args) and None, port=args.port, open_page=first)
        elif ok:
            print(f"Open {args.out / 'index.html'} in a browser, or run: nox -s lessons -- --serve")
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    return 0 if ok else 1


def _build(args: argparse.Namespace) -> bool:
    from harness.site.book import build

    try:
        sizes = build(args.out, records=args.records, only=args.lesson)
    except KataError as error:
        print(error, file=sys.stderr)
        return False
    for path, size in sizes.items():
        print(f"{size / 1e3:5.0f} kB  {path}")
    return True


def _page(out: Path, lesson: str) -> str:
    """The page that shows first: the one lesson that was asked for, else home."""
    found = [
        p.relative_to(out).as_posix() for p in sorted(out.glob("*/index.html")) if lesson and lesson in p.parent.name
    ]
    return found[0] if found else "index.html"


if __name__ == "__main__":
    sys.exit(main())
