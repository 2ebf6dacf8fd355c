"""Quiz: ``quiz.toml`` to the questions of a page: HTML that stands without JavaScript, and a module that runs them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from harness.errors import did_you_mean
from harness.site.faults import LessonError
from harness.site.markup import Markup

_CHOICE = {"ask", "right", "wrong"}
_NUMBER = {"ask", "unit", "draw", "let", "answer", "tolerance", "right", "wrong", "otherwise", "unless"}
_HOLE = re.compile(r"\{([^{}]+)\}")
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"  # stands for a hole while Markdown is rendered


@dataclass(frozen=True)
class Question:
    """One question. A number question has ``draw``; its texts have holes ``{…}`` with JavaScript in them."""

    where: str
    data: Mapping[str, Any]

    @property
    def is_number(self) -> bool:
        return "answer" in self.data

    def html(self, index: int, markup: Markup) -> str:
        """Return the fieldset; a number question gets its words when it is drawn."""
        number = f'<span class="k">{index + 1}</span>'
        if self.is_number:
            ask = '<span data-ask><span class="nojs">JavaScript draws the numbers of this question.</span></span>'
            return (
                f'<fieldset data-q="{index}"><legend>{number}{ask}</legend><form class="answer" novalidate>'
                f'<span class="box"><input id="q{index}" inputmode="decimal" autocomplete="off" '
                f'aria-label="Your answer in {escape(self.data["unit"], quote=True)}">'
                f'<span class="u">{escape(self.data["unit"])}</span></span>'
                '<button class="btn">Check</button>'
                '<button class="btn quiet" type="button">New numbers</button></form>'
                '<p class="fb" role="status"></p></fieldset>'
            )
        options = [self.data["right"], *self.data["wrong"]]
        order = sorted(range(len(options)), key=lambda k: options[k][0])  # where there is no JavaScript to shuffle
        labels = "".join(
            f'<label class="opt"><input type="radio" name="q{index}" value="{k}">'
            f"<span>{markup.inline(options[k][0])}</span></label>"
            for k in order
        )
        ask = markup.inline(self.data["ask"])
        return (
            f'<fieldset data-q="{index}"><legend>{number}{ask}</legend><div class="opts">{labels}</div>'
            '<p class="fb" role="status"></p></fieldset>'
        )

    def script(self, markup: Markup) -> str:
        """Return the question as a JavaScript object; option 0 of a choice is the right one."""
        data = self.data
        if not self.is_number:
            whys = [markup.inline(why) for _, why in (data["right"], *data["wrong"])]
            return f"{{ whys: {json.dumps(whys)} }}"
        names = ", ".join(data.get("draw", {}))
        lets = "".join(f"const {name} = ({code}); " for name, code in data.get("let", {}).items())
        wrong = ", ".join(f"[(v) => ({when}), (v) => {_text(why, markup)}]" for when, why in data["wrong"])
        return (
            f"{{ draw: {json.dumps(data.get('draw', {}))}, tolerance: {data.get('tolerance', 0.01)}, "
            f"make: ({{ {names} }}) => {{ {lets}const answer = ({data['answer']}); return {{ answer, "
            f"skip: () => ({data.get('unless', 'false')}), ask: () => {_text(data['ask'], markup)}, "
            f"right: (v) => {_text(data['right'], markup)}, wrong: [{wrong}], "
            f"otherwise: (v) => {_text(data['otherwise'], markup)} }}; }} }}"
        )


def read_questions(source: str, where: str) -> list[Question]:
    """Return the questions of a ``quiz.toml`` whose roles are filled in.

    Raises:
        LessonError: a question lacks or misnames a part; the message has its number.
    """
    try:
        data = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise LessonError(f"{where} cannot be read: {error}.") from error
    raw = data.get("question", [])
    if set(data) != {"question"} or not raw:
        raise LessonError(f"{where}: expected [[question]] and nothing else, got {', '.join(data) or 'nothing'}.")
    return [_question(item, f"{where}, question {i}") for i, item in enumerate(raw, 1)]


def module(questions: Sequence[Question], markup: Markup) -> str:
    """Return the ES module that exports QUIZ; its expressions see ``model``, ``facts`` and the words of the kit."""
    items = ",\n".join(q.script(markup) for q in questions)
    return (
        'import { count, facts, percent, quantity, show, times } from "../shared/kit.js";\n'
        f'import * as model from "./model.js";\nexport const QUIZ = [\n{items}\n];\n'
    )


def _question(item: Mapping[str, Any], where: str) -> Question:
    known = _NUMBER if "answer" in item else _CHOICE
    needed = known - {"tolerance", "unless", "let"} if "answer" in item else known
    for key in item.keys() - known:
        raise LessonError(f"{where}: {key} is no part of it.{did_you_mean(key, known)}")
    for key in sorted(needed - item.keys()):
        raise LessonError(f"{where}: {key} is missing.")
    pairs = item["wrong"] if "answer" in item else [item["right"], *item["wrong"]]
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) and part for part in pair):
            raise LessonError(f"{where}: {pair!r}; expected [answer, why], two texts.")
    if len(pairs) < 2:
        raise LessonError(f"{where}: it has {len(pairs)} answers with a reason; expected two or more.")
    return Question(where, item)


def _text(source: str, markup: Markup) -> str:
    """Return a text with holes as a JavaScript expression. A hole is put aside while Markdown reads the rest."""
    holes = _HOLE.findall(source)
    html = markup.inline(_HOLE.sub(_MARK, source))
    parts = [json.dumps(part) for part in html.split(_MARK)]
    joined = parts[0]
    for hole, part in zip(holes, parts[1:], strict=True):
        joined += f" + show({hole}) + {part}"
    return joined
