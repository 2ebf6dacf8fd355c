"""Lesson: one folder of ``lessons/``, its front matter checked and its roles filled in."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import did_you_mean
from harness.site import lint
from harness.site.faults import LessonError
from harness.site.quiz import Question, read_questions
from harness.site.roles import Roles

SLUG = re.compile(r"\d\d_[a-z][a-z0-9_]*")
_NEEDED = {"title", "short", "idea", "win", "minutes", "task", "pair"}
_KNOWN = _NEEDED | {"underline", "needs", "sources", "facts", "measured", "depends", "description"}
_REFERENCE_NEEDED = {"title", "short", "idea"}
_REFERENCE_KNOWN = _REFERENCE_NEEDED | {"sources", "facts", "measured", "pair", "description"}


@dataclass(frozen=True)
class Lesson:
    """A lesson or (``is_reference``) a reference page. ``front`` and ``body`` have their roles filled in."""

    slug: str
    folder: Path
    file: Path
    front: Mapping[str, Any]
    body: str
    facts: Mapping[str, Any]
    questions: tuple[Question, ...] = ()
    is_reference: bool = False
    typed: tuple[str, ...] = field(default=(), repr=False)  # what the lint found, as "file:line: text"

    @property
    def number(self) -> str:
        """Without a leading zero; empty for a reference page."""
        return "" if self.is_reference else str(int(self.slug[:2]))

    @property
    def id(self) -> str:
        return self.slug if self.is_reference else self.slug[3:]

    @property
    def short(self) -> str:
        return self.front["short"]

    @property
    def pair(self) -> tuple[str, ...]:
        """The names of the two data colours, blue first."""
        return tuple(self.front.get("pair", {}))

    @property
    def has_world(self) -> bool:
        return (self.folder / "world.js").is_file() and not self.is_reference


def load_lesson(folder: Path, shared: Path) -> Lesson:
    """Return the lesson in ``folder``. Raises LessonError for what does not follow ``lessons/README.md``."""
    file = folder / "lesson.md"
    lesson = _load(file, folder, folder.name, shared, reference=False)
    quiz = folder / "quiz.toml"
    if not quiz.is_file():
        raise LessonError(f"{_name(quiz)} is missing: five to seven questions, see lessons/README.md.")
    source = quiz.read_text(encoding="utf-8")
    roles = _roles(quiz, lesson.front)
    roles.add(facts=lesson.facts)
    questions = read_questions(roles.text(source), _name(quiz))
    allow = lint.allowed(shared / "allow.txt")
    typed = [*lesson.typed, *_typed(quiz, source, allow)]
    for script in sorted(folder.glob("*.js")):
        typed += _typed(script, script.read_text(encoding="utf-8"), allow, script=True)
    return Lesson(
        lesson.slug, folder, file, lesson.front, lesson.body, lesson.facts, tuple(questions), typed=tuple(typed)
    )


def load_reference(file: Path, shared: Path) -> Lesson:
    """Return the reference page in ``file``. Raises LessonError."""
    return _load(file, file.parent, file.stem, shared, reference=True)


def _load(file: Path, folder: Path, slug: str, shared: Path, reference: bool) -> Lesson:
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LessonError(f"{_name(file)} cannot be read: {error}.") from error
    match = re.match(r"\+\+\+\n(.*?)^\+\+\+\n", source, re.S | re.M)
    if not match:
        raise LessonError(f"{_name(file)} must begin with front matter between two lines of +++.")
    front = _front(file, match[1], reference)
    roles = _roles(file, front)
    facts = roles.facts(front.get("facts", {}))
    roles.add(facts=facts)
    keep = {"facts", "measured", "pair"}
    filled = {key: value if key in keep else _fill(roles, value) for key, value in front.items()}
    body = roles.text(source[match.end() :], 1 + source.count("\n", 0, match.end()))
    typed = _typed(file, source, lint.allowed(shared / "allow.txt"))
    return Lesson(slug, folder, file, filled, body, facts, is_reference=reference, typed=tuple(typed))


def _front(file: Path, source: str, reference: bool) -> dict[str, Any]:
    try:
        front = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise LessonError(f"{_name(file)}: the front matter is no TOML: {error}.") from error
    known, needed = (_REFERENCE_KNOWN, _REFERENCE_NEEDED) if reference else (_KNOWN, _NEEDED)
    for key in front.keys() - known:
        raise LessonError(f"{_name(file)}: {key} is no part of the front matter.{did_you_mean(key, known)}")
    for key in sorted(needed - front.keys()):
        raise LessonError(f"{_name(file)}: {key} is missing in the front matter.")
    if front.get("pair") is not None and len(front["pair"]) != 2:
        raise LessonError(f"{_name(file)}: [pair] names {len(front['pair'])} colours; a page has two.")
    for key in ("needs", "sources", "depends"):
        front.setdefault(key, [])
    if not reference and front.setdefault("underline", list(front["pair"])[1]) not in front["pair"]:
        raise LessonError(f"{_name(file)}: underline={front['underline']!r} is none of {', '.join(front['pair'])}.")
    return front


def _roles(file: Path, front: Mapping[str, Any]) -> Roles:
    roles = Roles(_name(file), tuple(front.get("pair", {})))
    measured = {}
    for name, item in front.get("measured", {}).items():
        if not isinstance(item, dict) or set(item) != {"value", "source"}:
            raise LessonError(f"{_name(file)}: measured.{name}={item!r}; expected {{ value = NUMBER, source = TEXT }}.")
        measured[name] = item["value"]
    roles.add(measured=measured)
    return roles


def _fill(roles: Roles, value: Any) -> Any:
    if isinstance(value, str):
        return roles.text(value)
    if isinstance(value, list):
        return [_fill(roles, item) for item in value]
    if isinstance(value, dict):
        return {key: _fill(roles, item) for key, item in value.items()}
    return value


def _typed(file: Path, source: str, allow: list[re.Pattern[str]], script: bool = False) -> list[str]:
    return [f"{_name(file)}:{line}: {text}" for line, text in lint.typed_numbers(source, allow, script)]


def _name(file: Path) -> str:
    return f"lessons/{file.parent.name}/{file.name}"
