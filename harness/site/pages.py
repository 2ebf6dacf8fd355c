"""Pages: lessons, reference pages and home in their frame, each one file with its style and script inside."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from harness.errors import did_you_mean
from harness.site import quiz
from harness.site.bundle import bundle
from harness.site.dialect import Context, plain
from harness.site.faults import LessonError
from harness.site.lesson import Lesson
from harness.site.markup import Markup, Rendered
from harness.site.terms import Term

if TYPE_CHECKING:
    from harness.site.book import Book


WORDS = "words"  # the slug of the page that lists all terms


def pages(book: Book, only: str = "") -> dict[str, str]:
    """Return every page of a book as HTML, by its path below the output folder.

    ``only``: what a page's slug must hold to be made (home always is, and then finds these pages alone).
    """
    frame = _Frame(book)
    made: dict[str, str] = {}
    index: list[dict[str, str]] = []
    for lesson in (*book.lessons, *book.references):
        if only not in lesson.slug:
            continue
        folder = f"reference/{lesson.slug}" if lesson.is_reference else lesson.slug
        markup = Markup(_context(book, lesson))
        body = markup.page(lesson.body)
        path = f"{folder}/index.html"
        made[path] = frame.lesson(lesson, markup, body)
        index += _entries(lesson, body, path)
    for term in book.terms.values():
        here = term.seen_from("")
        index.append({"page": "Words", "title": term.word, "url": here.href, "text": plain(term.sentence)})
    made["index.html"] = frame.home(index)
    return made


class _Frame:
    """The templates of ``lessons/shared/``, and what all pages have in common."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.env = jinja2.Environment(
            loader=jinja2.FileSystemLoader(book.shared),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.style = _style((book.shared / "style.css").read_text(encoding="utf-8"))

    def lesson(self, lesson: Lesson, markup: Markup, body: Rendered) -> str:
        top = "../../" if lesson.is_reference else "../"
        front = lesson.front
        order = [one.slug for one in self.book.lessons]
        at = order.index(lesson.slug) if lesson.slug in order else -1
        template = "reference.html" if lesson.is_reference else "lesson.html"
        for slug in front["needs"]:
            if slug not in self.book.slugs:
                hint = did_you_mean(slug, self.book.slugs)
                raise LessonError(f"lessons/{lesson.slug}/lesson.md: needs={slug!r} is no lesson of arc.toml.{hint}")
        return self._render(
            template,
            top=top,
            lesson=lesson,
            title=plain(markup.inline(front["title"])),
            heading=self._title(lesson, markup),
            description=plain(markup.inline(front.get("description", front["idea"]))),
            inline=markup.inline,
            body=body.html,
            h2=markup.heading,
            depends=_depends(lesson, markup),
            questions=[q.html(i, markup) for i, q in enumerate(lesson.questions)],
            measured=sorted({item["source"] for item in front.get("measured", {}).values()}),
            prev=self.book.lessons[at - 1] if at > 0 else None,
            next=self.book.lessons[at + 1] if 0 <= at < len(order) - 1 else None,
            facts=_json(lesson.facts),
            script=self._script(lesson, markup, body),
        )

    def home(self, index: Sequence[Mapping[str, str]]) -> str:
        return self._render(
            "home.html",
            top="",
            lesson=None,
            title="Kernel Kata",
            description="Ten lessons on what makes inference fast on a GPU, and how to prove it.",
            prev=None,
            next=None,
            by_slug={lesson.slug: lesson for lesson in self.book.lessons},
            titles={lesson.slug: Markup(Context("")).inline(lesson.front["title"]) for lesson in self.book.lessons},
            inline=Markup(Context("lessons/arc.toml")).inline,
            index=_json(index),
            facts="",
            script=bundle(["shared/page.js", "shared/search.js"], self._source),
        )

    def _render(self, template: str, **values: Any) -> str:
        return self.env.get_template(template).render(book=self.book, style=self.style, **values)

    def _title(self, lesson: Lesson, markup: Markup) -> str:
        html = markup.inline(lesson.front["title"])
        tone = "m" if lesson.is_reference or lesson.front["underline"] == lesson.pair[1] else "a"
        return html.replace("<em>", f'<em class="u-{tone}">')

    def _script(self, lesson: Lesson, markup: Markup, body: Rendered) -> str:
        if lesson.is_reference:
            return bundle(["shared/page.js"], self._source)
        questions = quiz.module(lesson.questions, markup)
        if body.worlds and not lesson.has_world:
            raise LessonError(f"lessons/{lesson.slug}: {body.worlds[0]} is used, but there is no world.js.")
        start = (
            'import { startQuiz } from "../shared/quiz.js";\nimport { QUIZ } from "./questions.js";\nstartQuiz(QUIZ);\n'
        )
        own = {f"{lesson.slug}/questions.js": questions, f"{lesson.slug}/start.js": start}
        entries = ["shared/page.js", *[f"{lesson.slug}/world.js"] * bool(body.worlds), f"{lesson.slug}/start.js"]
        return bundle(entries, lambda path: own.get(path) or self._source(path))

    def _source(self, path: str) -> str:
        return (self.book.root / "lessons" / path).read_text(encoding="utf-8")


def _context(book: Book, lesson: Lesson) -> Context:
    top = "../../" if lesson.is_reference else "../"
    written = {one.slug for one in book.lessons}
    references = {one.slug for one in book.references}

    def resolve(href: str) -> str | None:
        kind, _, rest = href.partition(":")
        name, hash_, anchor = rest.partition("#")
        if kind == "lesson":
            if name not in book.slugs:
                raise LessonError(f"{where}: the link lesson:{name} names no lesson of lessons/arc.toml.")
            return f"{top}{name}/index.html{hash_}{anchor}" if name in written else None
        if kind == "reference":
            return f"{top}reference/{name}/index.html{hash_}{anchor}" if name in references else None
        if not re.match(r"https://|#", href):
            raise LessonError(f"{where}: the link {href!r} is none of https://…, #…, lesson:…, reference:….")
        return href

    where = f"lessons/{lesson.file.parent.name}/{lesson.file.name}"
    own, earlier = _terms(book, lesson, top)
    return Context(where, lesson.number, lesson.pair, resolve, lesson.folder, own, earlier)


def _terms(book: Book, lesson: Lesson, top: str) -> tuple[dict[str, Term], dict[str, Term]]:
    """Return the terms that a page explains and those that an earlier lesson does; a reference page follows all."""
    order = book.slugs
    own = {word: term for word, term in book.terms.items() if term.slug == lesson.slug}
    before = order[: order.index(lesson.slug)] if lesson.slug in order else order
    others = {} if lesson.slug == WORDS else book.terms
    return own, {word: term.seen_from(top) for word, term in others.items() if term.slug in before}


def _depends(lesson: Lesson, markup: Markup) -> list[tuple[str, str]]:
    """Return (short name, sentence) of what depends on a lesson; a slug is shortened to its number."""
    rows = []
    for item in lesson.front.get("depends", []):
        if set(item) != {"on", "why"}:
            raise LessonError(f"lessons/{lesson.slug}/lesson.md: [[depends]] has {', '.join(item)}; expected on, why.")
        rows.append((re.sub(r"^(\d\d)_\w+$", r"\1", item["on"]), markup.inline(item["why"])))
    return rows


def _entries(lesson: Lesson, body: Rendered, path: str) -> list[dict[str, str]]:
    """Return what search finds of a page: its head, and each section with its text."""
    page = plain(Markup(Context("")).inline(lesson.front["title"]))
    name = f"{lesson.number}. {lesson.short}" if lesson.number else lesson.short
    head = " ".join(plain(str(lesson.front.get(key, ""))) for key in ("idea", "win", "task"))
    lead = next((s.text for s in body.sections if not s.anchor), "")
    entries = [{"page": name, "title": page, "url": path, "text": f"{head} {lead}".strip()}]
    for section in body.sections:
        if section.anchor:
            url = f"{path}#{section.anchor}"
            entries.append({"page": name, "title": section.title, "url": url, "text": section.text.strip()})
    return entries


def _json(value: Any) -> str:
    """Return JSON that may stand in a script element."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")


def _style(source: str) -> str:
    """Return a style sheet without comments and indentation."""
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    return re.sub(r"\n\s*", "\n", source).strip()


def same_values(folder: Path) -> list[tuple[str, str]]:
    """Return (JavaScript, Python) expressions of a lesson's ``vectors.toml`` that must be equal. Raises LessonError."""
    file = folder / "vectors.toml"
    try:
        pairs = [(one["js"], one["python"]) for one in tomllib.loads(file.read_text(encoding="utf-8"))["same"]]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise LessonError(
            f"lessons/{folder.name}/vectors.toml cannot be read: {error!r}; see lessons/README.md."
        ) from error
    return pairs


def words(folder: Path) -> int:
    """Return how many words the text of a lesson has: its body and its quiz, without code and figures."""
    source = (folder / "lesson.md").read_text(encoding="utf-8").split("+++\n", 2)[-1]
    source = re.sub(r"^```.*?^```|<svg.*?</svg>|\{%.*?%\}|\$\$.*?\$\$|^:::.*?$", " ", source, flags=re.S | re.M)
    return len(re.findall(r"[A-Za-z][\w'’-]*", re.sub(r"<[^>]+>|\{\{.*?\}\}", " 1 ", source, flags=re.S)))
