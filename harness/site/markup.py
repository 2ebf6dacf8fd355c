"""Markup: a lesson's Markdown to HTML. The dialect is described in ``lessons/README.md``.

Sections are cut at headings: prose keeps to the text column, a world spans the page, a note stands beside what it
follows. What stands inside a block is rendered by ``dialect``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from markdown_it.token import Token

from harness.site import terms
from harness.site.dialect import Context, markdown, plain, unbroken
from harness.site.faults import LessonError

# a full stop must not begin a line because a formula ended the last one
_MATH_AND_STOP = re.compile(r"(<math>(?:(?!</math>).){1,1500}</math>)([.,;:?)]+)", re.S)


@dataclass
class Section:
    """What one heading starts: its anchor, its words as they are read, and the text under it (for search)."""

    anchor: str
    title: str
    text: str = ""


@dataclass
class Rendered:
    """A text as HTML, what its headings are, and the names of the worlds in it."""

    html: str
    sections: list[Section] = field(default_factory=list)
    worlds: list[str] = field(default_factory=list)


class Markup:
    """Renders texts for one page; section numbers go on from text to text."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.count = 0
        self.anchors: dict[str, int] = {}
        self.md = markdown(context)

    def inline(self, source: str) -> str:
        """Return one line or paragraph as HTML without a block around it."""
        return self._checked(self.md.renderInline, unbroken(source.strip()))

    def page(self, source: str) -> Rendered:
        """Return a whole text: sections, worlds at full width, notes beside what they follow."""
        tokens = self.md.parse(unbroken(source))
        terms.mark(tokens, self.context.own, self.context.earlier)
        out = Rendered("")
        parts: list[str] = []
        wrapped = in_section = False
        groups = _groups(tokens)
        for i, group in enumerate(groups):
            head = group[0]
            if head.type == "heading_open" and head.tag == "h2":
                parts += ["</div>"] * wrapped + ["</section>"] * in_section
                anchor, html = self._heading(group, out)
                parts.append(f'<section aria-labelledby="{anchor}"><div class="wrap">{html}')
                wrapped = in_section = True
                continue
            html = self._block(group, out)
            if head.type == "container_world_open":
                parts += ["</div>"] * wrapped + [f'<div class="band"><div class="wide">{html}</div></div>']
                wrapped = False
                continue
            if not wrapped:
                parts.append('<div class="wrap">')
                wrapped = True
            if head.type == "container_note_open":
                self._note(parts, html, groups[i - 1] if i else None)
                continue
            if i == 0 and head.type == "paragraph_open":
                html = html.replace("<p>", '<p class="lead">', 1)
            parts.append(html)
            (out.sections or [Section("", "")])[-1].text += " " + plain(html)
        out.html = "\n".join([*parts, *["</div>"] * wrapped, *["</section>"] * in_section])
        return out

    def heading(self, title: str, anchor: str = "") -> str:
        """Return an ``h2`` with the next number, for a section that the builder adds."""
        self.count += 1
        number = f'<span class="n">{self.context.number}.{self.count}</span>' if self.context.number else ""
        return f'<h2 id="{anchor or self._anchor(title)}">{number}{title}</h2>'

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _heading(self, group: list[Token], out: Rendered) -> tuple[str, str]:
        title = self._checked(self.md.renderer.render, group[1:-1], self.md.options, {})
        anchor = self._anchor(plain(title))
        out.sections.append(Section(anchor, plain(title)))
        return anchor, self.heading(title, anchor)

    def _block(self, group: list[Token], out: Rendered) -> str:
        head = group[0]
        name = head.type.removeprefix("container_").removesuffix("_open")
        if head.type == "heading_open":
            title = self._checked(self.md.renderer.render, group[1:-1], self.md.options, {})
            anchor = self._anchor(plain(title))
            out.sections.append(Section(anchor, plain(title)))
            return f'<{head.tag} id="{anchor}">{title}</{head.tag}>'
        if not head.type.startswith("container_"):
            return self._checked(self.md.renderer.render, group, self.md.options, {})
        title = head.info.strip().removeprefix(name).strip()
        if name == "world":
            out.worlds.append(title)
        body = group[1:-1]
        return getattr(self, f"_{name}_block")(title, body)

    def _html(self, tokens: list[Token]) -> str:
        return self._checked(self.md.renderer.render, tokens, self.md.options, {})

    def _note_block(self, title: str, body: list[Token]) -> str:
        stop = "" if title.endswith(("?", ".")) else "."
        lead = f"<b>{self.md.renderInline(title)}{stop}</b> " if title else ""
        inner = self._html(body).strip()
        return f'<aside class="note">{inner.replace("<p>", "<p>" + lead, 1)}</aside>'

    def _note(self, parts: list[str], html: str, before: list[Token] | None) -> None:
        if before is None or before[0].type.startswith(("container_note", "heading", "container_world")):
            raise LessonError(f"{self.context.where}: a note stands after the paragraph it belongs to; one has none.")
        parts[-1] = f'<div class="with">{parts[-1]}{html}</div>'

    def _figure_block(self, title: str, body: list[Token]) -> str:
        if not title:
            raise LessonError(f"{self.context.where}: `::: figure` needs the sentence that describes the picture.")
        picture, caption = "", body
        if body and body[0].type == "paragraph_open":
            words, caption = body[1].content.strip(), body[3:]
            picture = words if words.startswith("<") else self._picture_file(words)
        elif body:
            picture, caption = body[0].content, body[1:]
        under = f"<figcaption>{self._html(caption)}</figcaption>" if caption else ""
        return f'<figure><div role="img" aria-label="{escape(title, quote=True)}">{picture}</div>{under}</figure>'

    def _picture_file(self, name: str) -> str:
        file = (self.context.folder or Path()) / name
        if not name.endswith(".svg") or not file.is_file():
            raise LessonError(
                f"{self.context.where}: figure={name[:60]!r}; expected HTML, or an .svg file in the folder."
            )
        return re.sub(r"^.*?(?=<svg)", "", file.read_text(encoding="utf-8"), flags=re.S)

    def _world_block(self, title: str, body: list[Token]) -> str:
        if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", title):
            raise LessonError(f"{self.context.where}: world={title!r}; expected an element's name: warp-world.")
        without = self._html(body) or "<p></p>"
        return f'<{title} class="world"><div class="nojs">{without}</div></{title}>'

    def _mistake_block(self, title: str, body: list[Token]) -> str:
        at = next((i for i, t in enumerate(body) if t.type == "fence"), len(body))
        text, fences = self._html(body[:at]), self._html(body[at:])
        anchor = self._anchor(plain(title))
        head = f'<h3 id="{anchor}">{self.md.renderInline(title)}</h3>'
        return f'<div class="mist"><div>{head}{text}</div><div>{fences}</div></div>'

    def _takeaway_block(self, title: str, body: list[Token]) -> str:
        return f'<div class="takeaway">{self._html(body)}</div>'

    def _anchor(self, title: str) -> str:
        words = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
        slug = re.sub(r"[^a-z0-9]+", "-", words).strip("-") or "section"
        self.anchors[slug] = self.anchors.get(slug, 0) + 1
        return slug if self.anchors[slug] == 1 else f"{slug}-{self.anchors[slug]}"

    def _checked(self, render: Callable[..., str], *args: object) -> str:
        try:
            return _MATH_AND_STOP.sub(r'<span class="nowrap">\1\2</span>', render(*args))
        except LessonError:
            raise
        except Exception as error:
            raise LessonError(f"{self.context.where}: {type(error).__name__}: {error}.") from error


def _groups(tokens: list[Token]) -> list[list[Token]]:
    """Cut a token stream into its blocks of the top level."""
    groups: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            groups.append([])
        groups[-1].append(token)
        depth += token.nesting
    return groups
