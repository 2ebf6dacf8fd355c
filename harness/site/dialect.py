"""Dialect: what Markdown means on our pages: links inside the course, MathML, coloured words, ledgers, code.

markdown-it-py reads it with four of its plugins; here stands how each of our own pieces becomes HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.attrs import attrs_plugin
from mdit_py_plugins.container import container_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from harness.errors import did_you_mean
from harness.site.code import block as code_block
from harness.site.code import harness_block
from harness.site.faults import LessonError

if TYPE_CHECKING:
    from harness.site.terms import Term

BLOCKS = ("note", "figure", "world", "mistake", "takeaway")
_SPAN_CLASSES = ("nowrap",)


@dataclass(frozen=True)
class Context:
    """What Markdown is rendered for.

    Attributes:
        where: the file, for messages.
        number: of the lesson, for its section numbers; empty: none are printed.
        pair: names of the two data colours, blue first.
        resolve: from a link such as ``lesson:05_nf4`` to an address, or None where it leads nowhere yet.
        folder: of the lesson, where its figures lie.
        own, earlier: the terms that this page explains, and those that others do, by their word.
    """

    where: str
    number: str = ""
    pair: Sequence[str] = ()
    resolve: Callable[[str], str | None] = lambda href: href
    folder: Path | None = None
    own: Mapping[str, Term] = field(default_factory=dict)
    earlier: Mapping[str, Term] = field(default_factory=dict)

    @property
    def tones(self) -> dict[str, str]:
        """From the name of a data colour to its class."""
        return dict(zip(self.pair, "am", strict=False))


def markdown(context: Context) -> MarkdownIt:
    """Return the reader and renderer of the dialect for one page."""
    md = MarkdownIt("commonmark", {"html": True, "typographer": True}).enable(["table", "smartquotes"])
    attrs_plugin(md, spans=True)
    deflist_plugin(md)
    dollarmath_plugin(md, allow_space=False)
    for name in BLOCKS:
        container_plugin(md, name)
    rules: Mapping[str, Callable[..., str]] = {
        "math_inline": lambda tokens, i, *_: math(tokens[i].content, False, context.pair),
        "math_block": lambda tokens, i, *_: f'<div class="eq">{math(tokens[i].content, True, context.pair)}</div>\n',
        "fence": lambda tokens, i, *_: _fence(tokens[i], context),
        "dl_open": lambda *_: '<dl class="syms">\n',
        "link_open": lambda tokens, i, options, env: _link(md, context, tokens, i, options, env),
        "link_close": lambda tokens, i, options, env: "</span>" if tokens[i].meta.get("dead") else "</a>",
        "span_open": lambda tokens, i, options, env: _span(md, context, tokens, i, options, env),
        "table_open": lambda tokens, i, *_: _table(tokens, i),
        "table_close": lambda *_: "</table>\n",
    }
    for name, rule in rules.items():
        md.renderer.rules[name] = rule
    return md


def _fence(token: Token, context: Context) -> str:
    language, _, options = token.info.strip().partition(" ")
    try:
        if language == "harness":
            return harness_block(token.content)
        return code_block(token.content, language, options)
    except ValueError as error:
        raise LessonError(f"{context.where}: {error}") from error


def _link(md: MarkdownIt, context: Context, tokens: list[Token], i: int, options: object, env: object) -> str:
    token = tokens[i]
    href = context.resolve(str(token.attrs["href"]))
    if href is None:
        close = next(t for t in tokens[i:] if t.type == "link_close" and t.level == token.level)
        close.meta["dead"] = True
        return '<span class="later">'
    token.attrs["href"] = href
    return md.renderer.renderToken(tokens, i, options, env)


def _span(md: MarkdownIt, context: Context, tokens: list[Token], i: int, options: object, env: object) -> str:
    names = str(tokens[i].attrs.get("class", "")).split()
    for name in names:
        if name not in context.tones and name not in _SPAN_CLASSES:
            known = [*context.tones, *_SPAN_CLASSES]
            raise LessonError(f"{context.where}: {{.{name}}} is no colour of [pair].{did_you_mean(name, known)}")
    tokens[i].attrs["class"] = " ".join(context.tones.get(name, name) for name in names)
    return md.renderer.renderToken(tokens, i, options, env)


def _table(tokens: list[Token], i: int) -> str:
    """A table whose last column is aligned right is a ledger; every cell learns its column's name, for narrow pages."""
    end = next(k for k in range(i, len(tokens)) if tokens[k].type == "table_close")
    heads = [tokens[k + 1].content for k in range(i, end) if tokens[k].type == "th_open"]
    aligned = [str(tokens[k].attrs.get("style", "")) for k in range(i, end) if tokens[k].type == "th_open"]
    ledger = bool(aligned) and "right" in aligned[-1]
    column = 0
    for k in range(i, end):
        if tokens[k].type == "tr_open":
            column = 0
            cell = tokens[k + 2].content if k + 2 < end else ""
            if ledger and cell.startswith("**"):
                tokens[k].attrSet("class", "sum")
        elif tokens[k].type == "td_open":
            tokens[k].attrs.pop("style", None)
            tokens[k].attrSet("data-label", plain(heads[column]))
            if column == 0:
                tokens[k].tag = "th"
                tokens[k].attrSet("scope", "row")
                close = next(m for m in range(k, end) if tokens[m].type == "td_close")
                tokens[close].tag = "th"
            column += 1
        elif tokens[k].type == "th_open":
            tokens[k].attrs.pop("style", None)
            tokens[k].attrSet("scope", "col")
    return f'<table class="{"ledger" if ledger else "grid"}">\n'


def math(source: str, display: bool, pair: Sequence[str] = ()) -> str:
    r"""Return LaTeX as MathML; ``\asked{…}`` colours a part where ``asked`` is a name of ``pair``."""
    for name, tone in zip(pair, "am", strict=False):
        source = re.sub(rf"\\{name}(?![a-z])", rf"\\class{{{tone}}}", source)
    out = convert(source, display="block" if display else "inline")
    out = re.sub(r"&#x0*([0-9A-Fa-f]+);", lambda m: escape(chr(int(m[1], 16)), quote=False), out)
    return out.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace(' display="inline"', "")


def unbroken(source: str) -> str:
    """Return the text with spaces that never break in products and shapes: 8192 × 8192."""
    return re.sub(r"(?<=[\w\d]) × (?=\d)", "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}", source)


def plain(html: str) -> str:
    """Return the words of some HTML, for titles and search; MathML gives its symbols."""
    text = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", html, flags=re.S)
    text = re.sub(r"</?(p|li|dt|dd|td|th|tr|div|h\d|pre|figcaption|aside)\b[^>]*>", " ", text)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", text))).strip()
