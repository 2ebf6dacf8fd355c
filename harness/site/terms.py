"""Terms: the words that lessons explain, so that every later page can point back to where a word was explained.

A word in **bold** inside a paragraph is one, unless it begins with an article or ends a sentence of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

from harness.site.dialect import plain

_TERM = re.compile(r"(?!(?:The|A|An)\b)[A-Za-z][A-Za-z-]*(?: [a-z][a-z-]*){0,2}")
_SENTENCE = re.compile(r"(?<=[.?!:])\s+(?=[A-Z*`])")


@dataclass(frozen=True)
class Term:
    """One word and where it is explained.

    Attributes:
        word: as it is looked up: without a capital that only begins a sentence.
        sentence: the sentence that explains it, as Markdown.
        slug: of the lesson that explains it.
        href: from the page that points to it; empty where nothing does yet.
    """

    word: str
    sentence: str
    slug: str
    href: str = ""

    @property
    def anchor(self) -> str:
        return "word-" + re.sub(r"[^a-z0-9]+", "-", self.word.lower())

    def seen_from(self, top: str) -> Term:
        """Return the same term for a page from which ``top`` leads to the folder of all pages."""
        return replace(self, href=f"{top}{self.slug}/index.html#{self.anchor}")


def explained(md: MarkdownIt, source: str, slug: str) -> dict[str, Term]:
    """Return the terms that a lesson explains, by their word; the first explanation of each counts."""
    found: dict[str, Term] = {}
    for inline in _paragraphs(md.parse(source)):
        for word in _bold(inline):
            term = Term(_key(word), _sentence(inline.content, f"**{word}**"), slug)
            found.setdefault(term.word, term)
    return found


def mark(tokens: list[Token], own: Mapping[str, Term], earlier: Mapping[str, Term]) -> None:
    """Give each explanation an anchor, and make the first use of every earlier term a link to its explanation."""
    left = {word: term for word, term in earlier.items() if word not in own}
    anchored: set[str] = set()
    for inline in _paragraphs(tokens):
        children = inline.children or []
        inside = ""  # a link holds no link, and a word in bold says something of its own
        out: list[Token] = []
        for i, token in enumerate(children):
            if token.type in ("link_open", "strong_open", "span_open"):
                inside = token.type.replace("open", "close")
            elif token.type == inside:
                inside = ""
            if token.type == "strong_open" and (word := _key(children[i + 1].content)) in own and word not in anchored:
                anchored.add(word)
                token.tag = children[i + 2].tag = "dfn"
                token.attrSet("id", own[word].anchor)
            out += _linked(token, left) if token.type == "text" and not inside else [token]
        inline.children = out


def _sentence(paragraph: str, bold: str) -> str:
    """Return the sentence that holds the word; with the one before it, if it begins with "That is" or the like."""
    sentences = _SENTENCE.split(paragraph.replace("\n", " "))
    i = next((i for i, s in enumerate(sentences) if bold in s), 0)
    first = i - 1 if i and re.match(r"(That|This|It|Those|These) ", sentences[i]) else i
    return " ".join(sentences[first : i + 1])


def _linked(token: Token, left: dict[str, Term]) -> list[Token]:
    """Cut a text at the terms in it; what was linked leaves ``left``."""
    if not left:
        return [token]
    words = [w if w[1:2].isupper() else f"[{w[0].upper()}{w[0]}]{w[1:]}" for w in sorted(left, key=len, reverse=True)]
    match = re.search(rf"(?<![\w-])({'|'.join(words)})s?(?![\w-])", token.content)
    if not match:
        return [token]
    term = left.pop(_key(match[1]))
    title = escape(plain(re.sub(r"[*`$]", "", term.sentence)), quote=True)
    link = Token("html_inline", "", 0, content=f'<a class="term" href="{term.href}" title="{title}">{match[0]}</a>')
    before = Token("text", "", 0, content=token.content[: match.start()])
    after = Token("text", "", 0, content=token.content[match.end() :])
    return [before, link, *_linked(after, left)]


def words_page(terms: Iterable[Term]) -> str:
    """Return the body of the page that lists all terms, as Markdown."""
    lines = []
    for term in sorted(terms, key=lambda t: t.word.lower()):
        lines.append(f"[{term.word}](lesson:{term.slug}#{term.anchor})\n: {term.sentence}\n")
    return "\n".join(lines)


def _paragraphs(tokens: list[Token]) -> Iterable[Token]:
    for before, token in zip(tokens, tokens[1:], strict=False):
        if before.type == "paragraph_open" and token.type == "inline":
            yield token


def _bold(inline: Token) -> Iterable[str]:
    children = inline.children or []
    for i, token in enumerate(children[:-2]):
        if (
            token.type == "strong_open"
            and children[i + 2].type == "strong_close"
            and _TERM.fullmatch(children[i + 1].content)
        ):
            yield children[i + 1].content


def _key(word: str) -> str:
    """``Lanes`` at the start of a sentence is ``lane``; ``SMs`` is ``SM``."""
    word = word if word[1:2].isupper() else word[:1].lower() + word[1:]
    return word[:-1] if len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
