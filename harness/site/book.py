"""Book: all of ``lessons/`` and the pages it becomes. ``build`` writes them."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.course import ROOT
from harness.site import pages
from harness.site.dialect import Context, markdown
from harness.site.faults import LessonError
from harness.site.lesson import SLUG, Lesson, load_lesson, load_reference
from harness.site.progress import Progress, read_progress
from harness.site.terms import Term, explained, words_page

WORDS_IDEA = "Each word as the lesson that needs it first explains it; a link leads there."
LIMIT = 500_000  # bytes of a page: what a slow connection or an old phone bears


@dataclass(frozen=True)
class Book:
    """Everything that the pages are made from.

    Attributes:
        arc: the groups of ``arc.toml``: title, why, lessons (slugs, also of those nobody wrote yet).
        lessons, references: in their order.
        progress: by kata id, of every lesson in the arc.
        terms: the words that lessons explain, each by the first that does.
    """

    root: Path
    arc: tuple[dict[str, Any], ...]
    lessons: tuple[Lesson, ...]
    references: tuple[Lesson, ...]
    progress: dict[str, Progress]
    terms: dict[str, Term]

    @property
    def shared(self) -> Path:
        return self.root / "lessons" / "shared"

    @property
    def slugs(self) -> list[str]:
        """The lessons of the arc in its order, written or not."""
        return [slug for group in self.arc for slug in group["lessons"]]

    def typed_numbers(self) -> list[str]:
        """What the lint found in all pages: numbers with a unit that no role computed."""
        return [found for lesson in (*self.lessons, *self.references) for found in lesson.typed]


def load_book(root: Path = ROOT, records: Path | None = None, only: str = "") -> Book:
    """Read ``lessons/`` below ``root``. Raises LessonError; a lesson outside the arc is one, too.

    ``only``: what the lesson's slug must hold whose faults count; others that have some are left out.
    """
    folder = root / "lessons"
    shared = folder / "shared"
    try:
        arc = tomllib.loads((folder / "arc.toml").read_text(encoding="utf-8"))["part"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise LessonError(f"lessons/arc.toml cannot be read: {error}.") from error
    slugs = [slug for group in arc for slug in group["lessons"]]
    found = sorted(p.name for p in folder.iterdir() if SLUG.fullmatch(p.name) and (p / "lesson.md").is_file())
    for slug in found:
        if slug not in slugs:
            raise LessonError(f"lessons/{slug} is in no part of lessons/arc.toml; put it into one.")
    lessons = _sound(
        (lambda slug=slug: load_lesson(folder / slug, shared), slug, only) for slug in slugs if slug in found
    )
    references = _sound(
        (lambda file=file: load_reference(file, shared), file.stem, only)
        for file in sorted((folder / "reference").glob("*.md"))
    )
    progress = read_progress(records or root / "records", [slug[3:] for slug in slugs])
    terms: dict[str, Term] = {}
    for lesson in lessons:
        context = Context(f"lessons/{lesson.slug}/lesson.md", pair=lesson.pair)
        terms = explained(markdown(context), lesson.body, lesson.slug) | terms
    return Book(root, tuple(arc), lessons, (*references, _words(folder, terms)), progress, terms)


def _words(folder: Path, terms: dict[str, Term]) -> Lesson:
    """Return the page of all terms, which nobody writes."""
    front = {"title": "The words", "short": "Words", "idea": WORDS_IDEA, "needs": [], "sources": [], "depends": []}
    file = folder / "reference" / f"{pages.WORDS}.md"
    return Lesson(pages.WORDS, file.parent, file, front, words_page(terms.values()), {}, is_reference=True)


def _sound(loads: Iterable[tuple[Callable[[], Lesson], str, str]]) -> tuple[Lesson, ...]:
    """Return what loads; a fault counts unless another page alone is wanted."""
    lessons = []
    for load, slug, only in loads:
        try:
            lessons.append(load())
        except LessonError:
            if not only or only in slug:
                raise
    return tuple(lessons)


def build(out: Path, root: Path = ROOT, records: Path | None = None, only: str = "") -> dict[str, int]:
    """Write the pages into ``out`` and return their sizes in bytes by path (``04_coalescing/index.html``).

    Args:
        only: build this lesson (slug, number or a part of the slug) and the home page, leave the rest as it is.

    Raises:
        LessonError: something does not follow the format; nothing is written then.
    """
    book = load_book(root, records, only)
    made = pages.pages(book, only)
    if only and len(made) < 2:
        raise LessonError(f"lesson={only!r} is none of {', '.join(lesson.slug for lesson in book.lessons)}.")
    sizes = {path: len(text.encode()) for path, text in made.items()}
    for path, size in sizes.items():
        if size > LIMIT:
            raise LessonError(f"{path} has {size:,} bytes; a page may have {LIMIT:,}.")
    if not only and (out / "index.html").is_file():
        shutil.rmtree(out)  # no page of a lesson that is gone stays behind
    for path, text in made.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(text, encoding="utf-8")
    return sizes
