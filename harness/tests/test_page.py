"""One HTML page: well formed, self-contained, everything escaped, and its numbers those of the records."""

import re
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from harness.loop.page import SHOWN, page, picture, summary
from harness.record import Attempt, stamp
from harness.streaks import standings
from harness.tests import toys
from harness.verdict import WORDS, Verdict

NOW = datetime(2026, 3, 10, 18, 30, tzinfo=UTC)
NASTY = """<script>alert("it's")</script> & {braces} ]]>"""


def event(verdict="", days=0.0, kind="attempt", id="double", **more):
    """Return an event so many days before NOW."""
    slug = {"double": "01_double", "twice": "02_twice"}[id]
    return Attempt(id=id, slug=slug, kind=kind, verdict=verdict, time=stamp(NOW - timedelta(days=days)), **more)


def verdict(slug="01_double", word="pass", reason="", **more):
    """Return a verdict with two tests."""
    return Verdict(slug, word, reason, {"a": "passed", "b": "passed" if word == "pass" else "failed"}, **more)


@pytest.fixture
def course(tmp_path):
    """Two katas."""
    return toys.write_course(tmp_path, {"01_double": {}, "02_twice": {}})


def made(course, verdicts, events, zone=UTC):
    """Return the page as of NOW."""
    return page(course, verdicts, standings(events, [k.id for k in course.katas], NOW), events, NOW, zone)


class Seen(HTMLParser):
    """The tags, attributes and words of a page; fails on tags that do not close."""

    VOID = {"meta", "link", "br", "img"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def cells(text):
    """Return the words of each cell of the table's body, row by row."""
    rows = re.findall(r"<tbody>(.*?)</tbody>", text, re.DOTALL)
    strip = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[re.sub(r"<svg.*?</svg>|<[^>]+>", " ", c, flags=re.DOTALL).split() for c in row] for row in strip]


def test_the_table_says_what_the_records_say(course):
    events = [
        event("wrong", 9), event("pass", 9), event(kind="reset", days=5), event(kind="hint", days=5),
        event("pass", 5), event("pass", 0.2, id="twice"),
    ]  # fmt: skip
    verdicts = [verdict(), verdict("02_twice", "slow", "it moves twice the bytes\nand more")]
    found = cells(made(course, verdicts, events))

    assert [" ".join(c) for c in found[0]] == [
        "01_double Double: a toy", "pass 2 of 2 tests", "2 2 passes", "1 hint", "now", "",
    ]  # fmt: skip
    assert [" ".join(c) for c in found[1]] == [
        "02_twice Double: a toy", "slow 1 of 2 tests", "1 1 pass", "–", "in 1 day", "", "it moves twice the bytes",
    ]  # fmt: skip


def test_the_tiles_count_passes_days_streaks_and_what_is_due(course):
    events = [event("pass", 1), event("pass", 0, id="twice"), event(kind="reset", days=0, id="twice")]
    text = made(course, [verdict(), verdict("02_twice", "todo")], events)
    tiles = [re.sub(r"<[^>]+>", "", t) for t in re.findall(r"<li>(<b>.*?)</li>", text)]

    assert tiles == [
        "1 of 2 katas pass now",
        "2 days in a row with a pass",
        "1 round in a row, the longest streak of a kata",
        "1 due again from blank: 01_double",
    ]


def test_a_fresh_course_has_a_page_too(course):
    text = made(course, [verdict(word="todo", reason="the stub is untouched."), verdict("02_twice", "todo")], [])

    assert [" ".join(c) for c in cells(text)[0]] == [
        "01_double Double: a toy", "todo 1 of 2 tests", "–", "–", "–", "no attempts yet",
    ]  # fmt: skip
    assert "<b>0 of 2</b>" in text
    assert "Next: 01_double" in text


def test_it_is_well_formed_and_loads_nothing(course):
    events = [event(w, i / 9) for i, w in enumerate(WORDS[1:])][::-1]
    text = made(course, [verdict(), verdict("02_twice", "cheat", "torch computed this")], events)
    seen = Seen(text)

    assert not {tag for tag, _ in seen.tags} & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert not [(t, a) for t, attrs in seen.tags for a in attrs if a in ("src", "href", "style") or a.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", text)
    assert text.startswith('<!doctype html>\n<html lang="en">')


def test_everything_is_escaped(course):
    events = [event("wrong", 1, reason=NASTY), event(NASTY, 0.5), event(kind="hint", days=0, reason=NASTY)]
    text = made(course, [verdict(word="wrong", reason=NASTY), verdict("02_twice", NASTY, NASTY)], events)
    seen = Seen(text)

    assert "script" not in {tag for tag, _ in seen.tags}
    assert "".join(seen.words).count(NASTY) >= 5
    assert "{" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL).replace("{braces}", "")


def test_light_dark_print_and_phones_have_their_styles(course):
    text = made(course, [verdict(), verdict("02_twice", "todo")], [])

    assert "color-scheme: light dark" in text
    for medium in ("(prefers-color-scheme: dark)", "print", "screen and (max-width: "):
        assert f"@media {medium}" in text
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text


def test_a_picture_has_one_dot_an_attempt_and_marks_for_the_rest():
    events = [
        event("wrong", 4), event(kind="hint", days=3), event("slow", 3), event(kind="peek", days=2),
        event("pass", 2), event(kind="reset", days=1), event("pass", 1, id="twice"), event("error", 1, whole=False),
    ]  # fmt: skip
    svg = ElementTree.fromstring(picture("double", "01_double", events, UTC))
    marks = [(e.tag, e.get("class"), e.find("title").text) for e in svg if e.find("title") is not None]

    assert marks == [
        ("circle", "bad", "2026-03-06 18:30  wrong"),
        ("path", "help", "2026-03-07 18:30  hint"),
        ("circle", "near", "2026-03-07 18:30  slow"),
        ("path", "help", "2026-03-08 18:30  peek"),
        ("circle", "pass", "2026-03-08 18:30  pass"),
        ("line", "reset", "2026-03-09 18:30  reset"),
    ]
    assert svg.get("aria-label") == "01_double: 3 attempts (1 wrong, 1 slow, 1 pass), 1 hint, 1 peek, 1 reset"


def test_marks_stand_inside_the_picture_in_their_order():
    events = [event(w, 20 - i) for i, w in enumerate([*WORDS[1:]] * 2)]
    svg = ElementTree.fromstring(picture("double", "01_double", events, UTC))
    dots = [(float(e.get("cx")), float(e.get("cy")), float(e.get("r"))) for e in svg.iter("circle")]
    width, height = float(svg.get("width")), float(svg.get("height"))

    assert [x for x, _, _ in dots] == sorted({x for x, _, _ in dots})
    assert all(r <= x <= width - r and r <= y <= height - r for x, y, r in dots)
    assert len({y for _, y, _ in dots}) == 3, "the row tells a pass from the rest, without any colour"


def test_a_long_history_shows_its_end_and_says_how_much_came_before():
    events = [event("wrong", 100 - i) for i in range(SHOWN + 7)]
    text = picture("double", "01_double", events, UTC)

    assert text.count("<circle") == SHOWN
    assert text.endswith("</svg><small>and 7 before</small>")
    assert f"{SHOWN + 7} attempts" in text


def test_times_are_those_of_the_zone(course):
    zone = timezone(timedelta(hours=9))
    text = made(course, [verdict(), verdict("02_twice", "todo")], [event("pass", 0)], zone)

    assert '<time datetime="2026-03-11T03:30:00+0900">2026-03-11 03:30</time>' in text
    assert "<title>2026-03-11 03:30  pass</title>" in text


def test_summary_of_nothing_but_help():
    assert summary([event(kind="hint"), event(kind="hint")]) == "0 attempts, 2 hints"


def test_ten_thousand_attempts_are_a_page_within_a_second(course):
    import time

    events = [event("wrong", 10 - i / 1000) for i in range(10_000)]
    started = time.process_time()
    text = made(course, [verdict(), verdict("02_twice", "todo")], events)

    assert time.process_time() - started < 1
    assert len(text) < 40_000
