"""The parts of the lesson builder: units, roles, Markdown, questions, bundles, the lint, progress, the server."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from datetime import timedelta

import pytest

from harness.errors import KataError
from harness.record import Attempt, now, stamp
from harness.site import bundle, lint, quiz, units
from harness.site.dialect import Context, math, plain
from harness.site.faults import LessonError
from harness.site.lesson import load_lesson
from harness.site.markup import Markup
from harness.site.progress import read_progress
from harness.site.roles import Roles, bars
from harness.site.serve import server
from harness.store import Store

PAIR = ("asked", "moved")


def markup(**more) -> Markup:
    return Markup(Context("lessons/04_x/lesson.md", "4", PAIR, **more))


# -- units and roles ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (4.27e12, "TB/s", "4.27 TB/s"),
        (4.8e12, "TB/s", "4.8 TB/s"),
        (1.09488e-3, "µs", "1,095 µs"),
        (131072, "KiB", "128 KiB"),
        (0.25, "%", "25 %"),
        (9.996, "s", "10.0 s"),
        (0.012345, "%", "1.23 %"),
        (-3e-6, "us", "−3 µs"),
        (0, "GB", "0 GB"),
    ],
)
def test_a_quantity_has_three_digits_and_its_unit(value, unit, words):
    assert units.to(value, unit).replace(units.NBSP, " ") == words


def test_a_number_is_full_or_has_the_digits_asked_for():
    assert [units.n(67108864), units.n(52.0996, 3), units.n(1.3449), units.n(0.9999, 2)] == [
        "67,108,864",
        "52.1",
        "1.34",
        "1.0",
    ]
    assert [units.times(8.114), units.times(2), units.times(41.3)] == ["8.1×", "2×", "41×"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "3"])
def test_what_is_no_number_is_not_printed(value):
    with pytest.raises(LessonError, match="no finite number"):
        units.n(value)


def test_roles_know_devices_models_and_equations():
    text = (
        '{{ H200.mem_bw | to("TB/s") }} {{ models["llama-3.1-8b"].layers }} {{ physics.ridge(6, 2) | n }} {{ SECTOR }}'
    )

    assert Roles("x").text(text).replace(units.NBSP, " ") == "4.8 TB/s 32 3 32"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("one\ntwo {{ H200.mem }}", r"lesson\.md:11: .*no attribute 'mem'"),
        (
            "{{ H200.mem_bw | to('TBs') }}",
            r"lesson\.md:10: unit='TBs' is none that a page can print\. Did you mean \"TB/s\"",
        ),
        ("\n{{ 1 + }}", r"lesson\.md:11: "),
        ("{{ nothing }}", r"'nothing' is undefined"),
    ],
)
def test_a_role_that_does_not_work_out_names_its_line(source, message):
    with pytest.raises(LessonError, match=message):
        Roles("lesson.md").text(source, line=10)


def test_bars_share_a_scale_and_know_the_pair():
    html = bars(PAIR, "Times", [("floor", 1e-6, "outline"), ("good", 2e-6, "asked"), ("bad", 4e-6)], "µs")

    assert re.findall(r'class="b-(\w)" style="--v:([\d.]+)">([^<]+)', html) == [
        ("o", "0.2500", "1\xa0µs"), ("a", "0.5000", "2\xa0µs"), ("m", "1.0000", "4\xa0µs"),
    ]  # fmt: skip
    with pytest.raises(LessonError, match="role='red' is none of"):
        bars(PAIR, "Times", [("x", 1, "red")])


# -- Markdown ----------------------------------------------------------------------------------------------------------


def test_a_page_has_a_lead_sections_notes_and_worlds():
    source = (
        "Lead.\n\n::: note Title\nAside.\n:::\n\n## Head *two*\n\nText.\n\n"
        "::: world my-world\nWithout.\n:::\n\nAfter.\n"
    )
    page = markup().page(source)

    assert (
        '<div class="with"><p class="lead">Lead.</p>\n<aside class="note"><p><b>Title.</b> Aside.</p></aside></div>'
        in page.html
    )
    assert '<h2 id="head-two"><span class="n">4.1</span>Head <em>two</em></h2>' in page.html
    assert '<div class="band"><div class="wide"><my-world class="world">' in page.html
    assert (page.worlds, [s.anchor for s in page.sections]) == (["my-world"], ["head-two"])
    assert page.html.count("<div") == page.html.count("</div>")
    assert page.html.count("<section") == page.html.count("</section>") == 1


def test_the_pair_colours_words_and_mathematics():
    assert markup().inline("[128 bytes]{.asked}") == '<span class="a">128 bytes</span>'
    assert 'class="m"' in math(r"\frac{1}{\moved{32 S}}", False, PAIR)
    with pytest.raises(LessonError, match=r"\{\.movd\} is no colour of \[pair\]\. Did you mean \"moved\""):
        markup().inline("[x]{.movd}")


def test_tables_tell_ledgers_from_grids_and_label_their_cells():
    html = markup().page("|step|time|\n|---|--:|\n|**sum**|3|\n").html

    assert '<table class="ledger">' in html and '<tr class="sum">' in html
    assert '<th data-label="step" scope="row">' in html and '<td data-label="time">3</td>' in html
    assert '<table class="grid">' in markup().page("|a|b|\n|---|---|\n|1|2|\n").html


def test_code_sets_comments_and_marked_lines_apart_and_fits_a_phone():
    html = markup().page("```python mark=2\nx = 1  # why\ny = '<'\n```\n").html

    assert '<span class="c"># why</span>' in html and "<mark>y = &#x27;&lt;&#x27;</mark>" in html
    with pytest.raises(LessonError, match="code lines have more than the 42 columns that a phone shows: 1 "):
        markup().page(f"```python\n{'x' * 60}\n```\n")
    assert "scrolls" in markup().page(f"```python wide\n{'x' * 60}\n```\n").html


def test_a_harness_message_shows_its_verdict():
    assert '<pre class="harness"><code><b>slow:</b> x &lt; y' in markup().page("```harness\nslow: x < y\n```\n").html


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("::: note\nAlone.\n:::\n", "a note stands after the paragraph"),
        ("a\n\n::: figure\n<svg></svg>\n:::\n", "needs the sentence that describes"),
        ("a\n\n::: figure Words.\nnot-there.svg\n:::\n", "figure='not-there.svg'"),
        ("a\n\n::: world Warp\nx\n:::\n", "expected an element's name"),
    ],
)
def test_a_block_that_is_not_right_says_so(source, message):
    with pytest.raises(LessonError, match=re.escape(message)):
        markup().page(source)


def test_links_that_lead_nowhere_yet_become_words():
    page = markup(resolve=lambda href: None if href == "lesson:05_nf4" else href)

    assert page.inline("[later](lesson:05_nf4) [now](https://x.org)") == (
        '<span class="later">later</span> <a href="https://x.org">now</a>'
    )


def test_plain_words_of_html():
    assert plain("<p>a <b>b</b></p><p>c &amp; d</p><svg><text>no</text></svg>") == "a b c & d"


# -- questions ---------------------------------------------------------------------------------------------------------

CHOICE = '[[question]]\nask = "Which?"\nright = ["A", "Yes."]\nwrong = [["B", "No."]]\n'
NUMBER = (
    '[[question]]\nask = "What is {a} * *two*?"\nunit = "s"\ndraw = { a = [1, 2] }\nanswer = "a * 2"\nright = "{a * 2}"\n'
    'wrong = [["a", "Not {a}."], ["v > 9", "Too much."]]\notherwise = "No."\n'
)


def test_questions_of_both_kinds_are_read_and_written():
    choice, number = quiz.read_questions(CHOICE + NUMBER, "quiz.toml")

    assert (choice.is_number, number.is_number) == (False, True)
    assert choice.html(0, markup()).count('type="radio"') == 2
    assert 'aria-label="Your answer in s"' in number.html(1, markup())
    script = quiz.module([choice, number], markup())
    assert 'whys: ["Yes.", "No."]' in script
    assert '"What is " + show(a) + " * <em>two</em>?"' in script
    assert "[(v) => (v > 9), (v) => " in script


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (CHOICE.replace("right", "rihgt"), r"question 1: rihgt is no part of it\. Did you mean \"right\""),
        (NUMBER.replace('unit = "s"\n', ""), "unit is missing"),
        (CHOICE.replace('["B", "No."]', '["B"]'), r"\['B'\]; expected \[answer, why\]"),
        ("x = 1", "expected [[question]] and nothing else, got x"),
    ],
)
def test_a_question_that_is_not_right_says_which(source, message):
    with pytest.raises(LessonError, match=message if "\\" in message else re.escape(message)):
        quiz.read_questions(source, "quiz.toml")


# -- bundles -----------------------------------------------------------------------------------------------------------


def joined(files: dict[str, str], *entries: str) -> str:
    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    return bundle.bundle(list(entries), read)


def test_modules_are_joined_in_the_order_in_which_they_need_each_other():
    script = joined(
        {
            "a/world.js": 'import { $, f as g } from "./model.js";\nimport * as m from "./model.js";\ng(m);\n',
            "a/model.js": "export const $ = 1;\nexport async function f() {}\n",
        },
        "a/world.js",
    )

    assert script.index('MODULES["a/model.js"] =') < script.index('MODULES["a/world.js"] =')
    assert 'const { $, f: g } = MODULES["a/model.js"];' in script
    assert "return { $, f };" in script


def test_a_module_passes_on_what_another_one_exports():
    script = joined(
        {"kit.js": 'export { a, b } from "./c.js";\n', "c.js": "export const a = 1;\nexport class b {}\n"}, "kit.js"
    )

    assert script.index('MODULES["c.js"] =') < script.index('MODULES["kit.js"] =')
    assert 'const { a, b } = MODULES["c.js"];' in script and script.count("return { a, b };") == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('import x from "./b.js";\n', "is a form that the builder does not know"),
        ("export default 3;\n", "is a form that the builder does not know"),
        ('import { x } from "https://cdn/x.js";\n', "expected a path that starts with"),
        ('import { x } from "./c.js";\n', "c.js, imported by a.js, is not there"),
        ('import { x } from "./a.js";\n', "imports itself"),
    ],
)
def test_other_forms_are_refused(source, message):
    with pytest.raises(LessonError, match=re.escape(message)):
        joined({"a.js": source}, "a.js")


def test_a_script_cannot_end_its_element():
    assert "</script" not in joined({"a.js": 'const x = "</script>";\n'}, "a.js").lower()


# -- the lint ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "typed",
    [
        "4.27 TB/s",
        "32 bytes",
        "a 32-byte sector",
        "25 %",
        "8.1×",
        "1,095 µs",
        "80 GB",
        "300 ns",
        "989 TFLOP/s",
        "3 seconds",
        "80GB",
    ],
)
def test_the_lint_finds_a_typed_number_with_a_unit(typed):
    assert [line for line, _ in lint.typed_numbers(f"one\ntwo\nIt takes {typed} here.\n", [])] == [3]


@pytest.mark.parametrize(
    "fine",
    [
        "{{ x | to('GB') }}",
        "32 lanes",
        "8192 × 8192 floats",
        "`32 bytes`",
        "```\n80 GB\n```\n",
        "in 2022",
        "lesson 4, 5 B-trees",
        "H100 80 units",
    ],
)
def test_the_lint_leaves_roles_counts_shapes_and_code_alone(fine):
    assert lint.typed_numbers(f"Here: {fine}\n" if not fine.startswith("```") else fine, []) == []


def test_names_may_be_allowed_with_a_reason(tmp_path):
    (tmp_path / "allow.txt").write_text("# why\n\\b\\d-bit\\b  # a format\n", encoding="utf-8")
    allow = lint.allowed(tmp_path / "allow.txt")

    assert lint.typed_numbers("4-bit weights\n", []) and not lint.typed_numbers("4-bit weights\n", allow)


def test_the_lint_reads_scripts_too():
    source = "// 80 GB in a comment\nconst words = `needs 80 GB`;\nconst style = 'width:50%;height:12px';\n"

    assert lint.typed_numbers(source, [], script=True) == [(2, "80 GB")]


# -- lessons -----------------------------------------------------------------------------------------------------------

FRONT = (
    'title = "A *b*"\nshort = "B"\nidea = "{{ facts.two }} {{ measured.t | to(\'s\') }}"\nwin = "w"\nminutes = 1\ntask = "t"\n'
    '[pair]\nasked = "x"\nmoved = "y"\n[facts]\ntwo = "1 + 1"\n[measured]\nt = { value = 2, source = "here" }\n'
)


def lesson_at(tmp_path, front: str = FRONT, body: str = "Text {{ facts.two }}.\n", questions: str = CHOICE):
    folder, shared = tmp_path / "04_x", tmp_path / "shared"
    folder.mkdir()
    shared.mkdir()
    (shared / "allow.txt").write_text("", encoding="utf-8")
    (folder / "lesson.md").write_text(f"+++\n{front}+++\n{body}", encoding="utf-8")
    (folder / "quiz.toml").write_text(questions, encoding="utf-8")
    return load_lesson(folder, shared)


def test_a_lesson_has_its_facts_its_measurements_and_what_the_lint_found(tmp_path):
    lesson = lesson_at(tmp_path, body="It is {{ facts.two }}, not 3 GB.\n")

    assert (lesson.number, lesson.id, lesson.pair) == ("4", "x", PAIR)
    assert (lesson.front["idea"], lesson.body) == ("2 2\xa0s", "It is 2, not 3 GB.\n")
    assert lesson.front["underline"] == "moved"
    assert [found.split(": ")[1] for found in lesson.typed] == ["3 GB"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("short", "shrot", r"shrot is no part of the front matter\. Did you mean \"short\""),
        ('task = "t"\n', "", "task is missing"),
        ('moved = "y"\n', "", r"\[pair\] names 1 colours"),
        ('two = "1 + 1"', 'two = "1 +"', "'1 \\+' does not work out"),
        ("{ value = 2, source", "{ valu = 2, source", "measured.t="),
        ('title = "A *b*"', "title = A", "the front matter is no TOML"),
    ],
)
def test_front_matter_that_is_not_right_says_so(tmp_path, old, new, message):
    with pytest.raises(LessonError, match=message):
        lesson_at(tmp_path, FRONT.replace(old, new, 1))


# -- progress and the server -------------------------------------------------------------------------------------------


def test_progress_is_read_from_the_records(tmp_path):
    at = now()
    for id, verdict, ago in (
        ("matmul", "pass", timedelta(days=3)),
        ("softmax", "pass", timedelta(hours=2)),
        ("nf4", "wrong", timedelta()),
    ):
        Store(tmp_path).append(Attempt(id=id, slug=f"01_{id}", verdict=verdict, time=stamp(at - ago)))

    progress = read_progress(tmp_path, ["blocks", "nf4", "softmax", "matmul"], at)

    assert [p.state for p in progress.values()] == ["new", "tried", "passed", "due"]
    assert progress["nf4"].words == "1 attempt, last verdict wrong"
    assert progress["softmax"].words == "passed, due again in 1 day"
    assert progress["matmul"].words == "passed, due again from blank"


def test_the_server_answers_on_this_machine_alone(tmp_path):
    (tmp_path / "index.html").write_text("here", encoding="utf-8")
    with server(tmp_path) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        host, port = running.server_address[:2]
        with urllib.request.urlopen(f"http://{host}:{port}/index.html") as answer:
            text, cached = answer.read(), answer.headers["Cache-Control"]
        with pytest.raises(urllib.error.HTTPError) as missing:
            urllib.request.urlopen(f"http://{host}:{port}/../../etc/passwd")
        missing.value.close()
        with pytest.raises(KataError, match=f"port={port} cannot be used"):
            server(tmp_path, port)
        running.shutdown()

    assert (host, text, cached) == ("127.0.0.1", b"here", "no-store")
