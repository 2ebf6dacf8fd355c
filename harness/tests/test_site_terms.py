"""Terms: a word is explained once, and every later page finds the place."""

from __future__ import annotations

import pytest

from harness.site.dialect import Context, markdown
from harness.site.markup import Markup
from harness.site.terms import Term, explained, words_page

LESSON = """Memory travels in **sectors** of 32 bytes. A load is issued for a **warp**.

Lanes ask alone. That is **coalescing**. **The rule.** Ask together. *Only* **three of four words here** and `**code**`.

| **not** | here |
|---|---|
| **nor** | there |
"""


@pytest.fixture
def known() -> dict[str, Term]:
    return explained(markdown(Context("x")), LESSON, "04_coalescing")


def test_a_bold_word_in_a_paragraph_is_explained_there(known):
    assert {word: term.sentence for word, term in known.items()} == {
        "sector": "Memory travels in **sectors** of 32 bytes.",
        "warp": "A load is issued for a **warp**.",
        "coalescing": "Lanes ask alone. That is **coalescing**.",
    }


@pytest.mark.parametrize(("text", "word"), [
    ("**Decode** waits.", "decode"),
    ("Made of **SMs**.", "SM"),
    ("A **contiguous** view.", "contiguous"),
    ("The **first element** counts.", "first element"),
    ("A **pass** over it.", "pass"),
])  # fmt: skip
def test_a_term_is_looked_up_in_the_singular_without_a_sentence_s_capital(text, word):
    assert list(explained(markdown(Context("x")), text, "00_stream")) == [word]


def test_the_place_of_the_explanation_has_an_anchor(known):
    html = Markup(Context("x", own=known)).page(LESSON).html

    assert '<dfn id="word-sector">sectors</dfn>' in html
    assert '<dfn id="word-warp">warp</dfn>' in html
    assert "<strong>The rule.</strong>" in html


def test_the_first_use_on_a_later_page_is_a_link_to_it(known):
    earlier = {word: term.seen_from("../") for word, term in known.items()}
    text = "Two sectors, *and* a warp; more sectors.\n\n## Of warps\n\nA [warp](https://x.example) `warp` warps-like **warp**.\n"

    html = Markup(Context("x", earlier=earlier)).page(text).html

    assert html.count('class="term"') == 2
    assert (
        '<a class="term" href="../04_coalescing/index.html#word-sector" title="Memory travels in sectors of 32 bytes.">sectors</a>, '
        in html
    )
    assert 'title="A load is issued for a warp.">warp</a>; more sectors.' in html


def test_a_page_that_explains_a_word_anew_links_to_no_other(known):
    html = Markup(Context("x", own={"warp": known["warp"]}, earlier=known)).page("A warp, then a **warp**.").html

    assert 'class="term"' not in html


def test_the_page_of_words_is_in_the_order_of_the_alphabet(known):
    page = words_page(known.values())

    assert [line for line in page.splitlines() if line.startswith("[")] == [
        "[coalescing](lesson:04_coalescing#word-coalescing)",
        "[sector](lesson:04_coalescing#word-sector)",
        "[warp](lesson:04_coalescing#word-warp)",
    ]
