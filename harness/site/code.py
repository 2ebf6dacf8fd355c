"""Code and the harness's messages as HTML. Only comments are set apart, and lines that the author marks."""

from __future__ import annotations

import re
from html import escape

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment
from pygments.util import ClassNotFound

COLUMNS = 42  # what a phone of 375 pixels shows without scrolling


def block(source: str, language: str = "", options: str = "") -> str:
    """Return a code block. ``options``: ``mark=3,7`` sets lines apart; ``wide`` lifts the limit on columns.

    Raises:
        ValueError: a line is too long for a phone, an option or the language is not known.
    """
    marked, wide = _options(options)
    source = _fits(source, wide)
    html = "".join(
        f'<span class="c">{escape(text)}</span>' if kind else escape(text) for kind, text in _pieces(source, language)
    )
    lines = [f"<mark>{line}</mark>" if i in marked else line for i, line in enumerate(html.split("\n"), 1)]
    scrolls = ' class="scrolls" tabindex="0"' if wide else ""
    return f"<pre{scrolls}><code>{chr(10).join(lines)}</code></pre>\n"


def harness_block(source: str) -> str:
    """Return what the harness says: the verdict, its first word, set apart. Long lines wrap, as a terminal's do."""
    text = re.sub(r"^(\S+)", r"<b>\1</b>", escape(source.rstrip("\n")), count=1)
    return f'<pre class="harness"><code>{text}</code></pre>\n'


def _fits(source: str, wide: bool = False) -> str:
    source = source.rstrip("\n")
    long = [
        f"{number} ({line.strip()[:50]!r}…)" for number, line in enumerate(source.split("\n"), 1) if len(line) > COLUMNS
    ]
    if long and not wide:
        raise ValueError(f"code lines have more than the {COLUMNS} columns that a phone shows: {', '.join(long)}.")
    return source


def _options(options: str) -> tuple[set[int], bool]:
    marked: set[int] = set()
    wide = False
    for option in options.split():
        if option == "wide":
            wide = True
        elif re.fullmatch(r"mark=\d+(,\d+)*", option):
            marked = {int(line) for line in option[5:].split(",")}
        else:
            raise ValueError(f"code option {option!r} is none of: wide, mark=3,7.")
    return marked, wide


def _pieces(source: str, language: str) -> list[tuple[bool, str]]:
    """Return (is a comment, text) runs; a comment never holds a line break."""
    if not language:
        return [(False, source)]
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound as error:
        raise ValueError(f"code language {language!r} is not known to Pygments.") from error
    return [(kind in Comment and "\n" not in text, text) for kind, text in lexer.get_tokens(source)]
