"""Roles: what ``{{ … }}`` in a lesson may name, over the devices, the models and ``harness.physics``."""

from __future__ import annotations

import builtins
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import jinja2

from harness import physics
from harness.device import load_devices
from harness.models import load_models
from harness.site import units
from harness.site.faults import LessonError

_MATH = ("ceil", "exp", "floor", "log", "log2", "sqrt")
_BUILTIN = (
    "abs",
    "dict",
    "float",
    "int",
    "len",
    "list",
    "max",
    "min",
    "range",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
    "zip",
)


class Roles:
    """The names that one file may use, and the two things done with them: text to text, expression to value.

    Args:
        pair: the names of the two data colours, blue first.
        where: the file, for messages.
    """

    def __init__(self, where: str, pair: Sequence[str] = ()) -> None:
        self.where = where
        self.env = jinja2.Environment(
            undefined=jinja2.StrictUndefined,
            comment_start_string="{##",  # "{#name}" is an anchor
            comment_end_string="##}",
            keep_trailing_newline=True,
        )
        self.env.filters |= {"to": units.to, "n": units.n, "times": units.times}
        self.env.globals |= _names() | {"bars": lambda *args: bars(pair, *args)}

    def add(self, **names: Any) -> None:
        """Make more names known: ``facts``, ``measured``."""
        self.env.globals |= names

    def text(self, source: str, line: int = 1) -> str:
        """Return ``source`` with its roles filled in. ``line``: where it starts in the file, for messages.

        Raises:
            LessonError: a role does not work out; the message has file, line, and what is wrong.
        """
        try:
            return self.env.from_string(source).render()
        except jinja2.TemplateSyntaxError as error:
            raise LessonError(f"{self.where}:{line + error.lineno - 1}: {error.message}.") from error
        except Exception as error:
            raise LessonError(f"{self.where}:{line + _line_of(error) - 1}: {_said(error)}.") from error

    def value(self, expression: str) -> Any:
        """Return the value of one expression. Raises LessonError as ``text`` does."""
        try:
            value = self.env.compile_expression(expression, undefined_to_none=False)()
            if isinstance(value, jinja2.Undefined):
                str(value)
        except Exception as error:
            raise LessonError(f"{self.where}: {expression!r} does not work out: {_said(error)}.") from error
        return value

    def facts(self, table: Mapping[str, str]) -> dict[str, Any]:
        """Return the ``[facts]`` of a lesson, each worked out; they must be numbers, text, lists or dicts."""
        facts = {name: self.value(expression) for name, expression in table.items()}
        try:
            json.dumps(facts, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise LessonError(f"{self.where}: [facts] must be what JSON can say: {error}.") from error
        return facts


def bars(pair: Sequence[str], caption: str, rows: Iterable[Sequence[Any]], unit: str = "", digits: int = 3) -> str:
    """Return a bar chart as HTML: rows of (label, value), or (label, value, role).

    Args:
        pair: the names of the two data colours; a role is one of them, or ``outline``. Default: the second.
        unit: of ``units.SCALES``, or empty for plain numbers. The bars share one scale, from 0 to the largest.
    """
    rows = [(*row, pair[1] if pair else "m")[:3] for row in rows]
    tones = {**dict(zip(pair, "am", strict=False)), "a": "a", "m": "m", "outline": "o"}
    top = max(value for _, value, _ in rows)
    texts = [units.to(value, unit, digits) if unit else units.n(value, digits) for _, value, _ in rows]
    out = [
        f'<figure class="chart"><figcaption>{escape(caption)}</figcaption>'
        f'<dl class="bars" style="--w:{max(map(len, texts)) + 2}ch">'
    ]
    for (label, value, role), shown in zip(rows, texts, strict=True):
        if role not in tones:
            raise LessonError(f"bars({caption!r}): role={role!r} is none of {', '.join(tones)}.")
        out.append(
            f'<div><dt>{escape(label)}</dt><dd class="b-{tones[role]}" style="--v:{value / top:.4f}">{shown}</dd></div>'
        )
    return "".join(out) + "</dl></figure>\n"


def pick(thing: Any, *names: str) -> dict[str, Any]:
    """Return some attributes of a device or a model as a dict, for ``[facts]``."""
    return {name: getattr(thing, name) for name in names}


def _names() -> dict[str, Any]:
    devices = load_devices()
    short = {re.sub(r"\W", "", device.aliases[0]): device for device in devices.values()}
    plain = {name: getattr(builtins, name) for name in _BUILTIN} | {name: getattr(math, name) for name in _MATH}
    fixed = {"physics": physics, "WARP": physics.WARP, "SECTOR": physics.SECTOR, "LINE": 4 * physics.SECTOR}
    fixed["pick"] = pick
    return {**short, **plain, **fixed, "devices": devices, "models": MappingProxyType(load_models())}


def _line_of(error: BaseException) -> int:
    """The line of the template that an error came through."""
    line, trace = 1, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _said(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.rstrip(".")
