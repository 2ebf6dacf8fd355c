"""Lint: no number with a unit stands in a lesson but through a role, so that none can be wrong on its own."""

from __future__ import annotations

import re
from pathlib import Path

_PREFIXED = "(?:[KMGTP]i?)?(?:B|FLOPS?|Hz)(?:/s)?"
_WORDS = "bytes?|bits?|(?:milli|micro|nano)?seconds?|minutes?|hours?|(?:giga|tera)bytes?|watts?|percent"
_UNITS = rf"{_PREFIXED}|FLOP/B|[mµun]?s|W|tokens/s|tokens per second|{_WORDS}"
NUMBER = re.compile(
    r"(?<![\w.#/-])(?P<number>\d[\d,.]*)"
    rf"(?:(?:[ \N{{NO-BREAK SPACE}}-]|&nbsp;)?(?:{_UNITS})(?![\w/]|-\w)|[ \N{{NO-BREAK SPACE}}]?%(?!\d)|×(?!\s*\d))"
)
# a script holds styles too, so only what no style has counts there
_SCRIPT = re.compile(
    r"(?<![\w.#/-])\d[\d,.]*[ \N{NO-BREAK SPACE}-]?(?:[KMGT]i?B|TFLOP|GHz|µs|ns|tokens/s|bytes?|bits?)(?:/s)?(?!\w)"
)
_BLANKED = (
    re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{##.*?##\}", re.S),  # roles
    re.compile(r"^(```+|~~~+).*?^\1[ \t]*$", re.M | re.S),  # code and messages
    re.compile(r"`[^`\n]+`"),
    re.compile(r"<(style|script)\b.*?</\1>", re.S),
    re.compile(r"<[^>]*>", re.S),  # attributes of figures
    re.compile(r"\$\$.*?\$\$", re.S),
    re.compile(r"https?://\S+"),
    re.compile(r"^\[measured\]\n(?:(?!\[|\+\+\+).*\n)*", re.M),  # each value there has its source
    re.compile(r"^(?:minutes|tolerance)\s*=.*$", re.M),
)
_SCRIPT_BLANKED = (
    re.compile(r"^\s*//.*$|(?<=[\s;])// .*$", re.M),
    re.compile(r"/\*.*?\*/", re.S),
    re.compile(r"\$\{[^{}]*\}"),
)


def allowed(file: Path) -> list[re.Pattern[str]]:
    """Return the patterns of ``allow.txt``: one a line, a tab or two spaces and ``#``, then why it is no quantity."""
    patterns = []
    for line in file.read_text(encoding="utf-8").splitlines():
        pattern = re.split(r"\s{2,}#|^#", line)[0].strip()
        if pattern:
            patterns.append(re.compile(pattern))
    return patterns


def typed_numbers(source: str, allow: list[re.Pattern[str]], script: bool = False) -> list[tuple[int, str]]:
    """Return (line, text) of each number with a unit that no role computed. ``script``: JavaScript, not Markdown."""
    for pattern in _SCRIPT_BLANKED if script else _BLANKED:
        source = pattern.sub(_blank, source)
    for pattern in allow:
        source = pattern.sub(_blank, source)
    found = (_SCRIPT if script else NUMBER).finditer(source)
    return [(source.count("\n", 0, match.start()) + 1, match[0]) for match in found]


def _blank(match: re.Match[str]) -> str:
    """Keep the lines, so that what is found after it is on the right one."""
    return "\n" * match[0].count("\n") or " "
