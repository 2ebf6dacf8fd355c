"""The lesson pages as the tests need them: built once a process, and the browser that opens them."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from harness.course import ROOT
from harness.site.book import Book, build, load_book

NEED_BROWSER = "KATA_NEED_BROWSER"  # set to 1 where a missing browser is a fault and no reason to skip
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# no window, no calls home; what it asks of the network is what a page asks
FLAGS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


@functools.cache
def book() -> Book:
    return load_book(records=Path(tempfile.gettempdir()) / "no-records-here")


@functools.cache
def built() -> Path:
    """Return the folder with all pages, of nobody's records; it goes when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="kata-lessons-")
    _keep.append(folder)
    build(Path(folder.name), records=Path(folder.name) / "none")
    return Path(folder.name)


_keep: list[tempfile.TemporaryDirectory] = []


def paths() -> list[str]:
    """Return every page's path, without building: home, lessons, reference pages."""
    lessons = sorted(p.parent.name for p in (ROOT / "lessons").glob("[0-9][0-9]_*/lesson.md"))
    references = sorted(p.stem for p in (ROOT / "lessons" / "reference").glob("*.md"))
    return ["index.html", *(f"{s}/index.html" for s in lessons), *(f"reference/{s}/index.html" for s in references)]


def slugs() -> list[str]:
    return [path.split("/")[0] for path in paths() if path[0].isdigit()]


def missing(what: str) -> None:
    """Skip the test, or fail it where a browser must be there."""
    if os.environ.get(NEED_BROWSER) == "1":
        pytest.fail(f"{what} ({NEED_BROWSER}=1 asks for it.)")
    pytest.skip(what)


def browser_path() -> str:
    """Return the browser's program; without one, skip."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    missing("No Chromium here, so no page was opened; on Debian or Ubuntu: sudo apt-get install chromium.")
    return ""


def node() -> str:
    """Return Node.js; without it, skip."""
    found = shutil.which("node")
    if not found:
        missing("No Node.js here, so no JavaScript was tested; on Debian or Ubuntu: sudo apt-get install nodejs.")
    return found or ""
