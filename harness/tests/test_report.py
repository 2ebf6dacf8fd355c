"""What a person reads at the end of a run: one paragraph a kata, one table, one next step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from harness.report import brief, counted, next_step, paragraph, table
from harness.streaks import Standing
from harness.tests.golden import check_golden
from harness.tests.toys import TOML, write_course
from harness.verdict import Verdict

LIMITS = "a CPU cannot check measured speed"
COUNTS = {
    "bytes": 270336, "least_bytes": 135168, "sectors": 33792, "least_sectors": 4224, "launches": 2, "programs": 66, "bench_programs": 65536,
}  # fmt: skip


def verdict(slug="01_double", word="pass", reason="", passed=5, tests=5, **more):
    outcomes = {f"test_{i}": "passed" if i < passed else "failed" for i in range(tests)}
    given = {"not_checked": (LIMITS,), "seed": 7, "failed_in": "test_4" if word != "pass" else ""} | more
    return Verdict(slug, word, reason, outcomes, **given)


WRONG = verdict(
    "05_triple", "wrong", "22 of 150 elements of triple's result are wrong (14.7 %) in case M3-N50.\n  [2, 28] got 1", passed=3,
    findings=("line 9: a masked load without `other=`",),
)  # fmt: skip
TODO = verdict("07_four", "todo", "the stub is untouched", passed=0)
SEVERAL = {"kind": "modelled", "text": "b: at 90%", "shapes": {"a": {"share": 1.02}, "b": {"share": 0.9}}}
PASS = verdict(speed={"kind": "counted", "counts": COUNTS})
MODELLED = verdict(speed={
    "kind": "modelled", "share": 0.98, "gate": 0.7, "band": [0.88, 1.08], "binds": "DRAM", "counts": COUNTS,
    "bars": {"DRAM": 9e-5, "L2": 3e-5}, "text": "98% of the reference's speed (give or take 10 points) on NVIDIA H200",
})  # fmt: skip
SLOW = verdict(
    "05_triple", "slow", "moves 4 bytes where 1 would do (4.0 times as many).", passed=4, speed={"counts": COUNTS}
)
UNDECIDED = verdict("05_triple", "undecided", "only part of the suite ran.", passed=5)


@pytest.fixture
def course(tmp_path):
    """Return three katas; the third needs the second, which needs the first."""
    titles = {
        "01_double": "Double: a toy",
        "05_triple": "Triple: a toy with a title that is longer than any table has room for, really",
        "07_four": "Four",
    }
    needs = {"01_double": "[]", "05_triple": '["double"]', "07_four": '["triple"]'}
    return write_course(tmp_path, {
        slug: {"exercise.toml": TOML.replace("Double: a toy", title).replace('entry =', f"needs = {needs[slug]}\nentry =")}
        for slug, title in titles.items()
    })  # fmt: skip


def test_the_paragraphs(request):
    parts = [
        PASS,
        MODELLED,
        verdict(word="pass", speed={"text": "120 us on NVIDIA H200"}),
        WRONG,
        TODO,
        SLOW,
        UNDECIDED,
    ]

    check_golden("paragraphs.txt", "\n".join(line for v in parts for line in paragraph(v)), request)


def test_a_paragraph_begins_apart_and_has_no_empty_line_after():
    for v in (PASS, WRONG, TODO):
        lines = paragraph(v)
        assert lines[0] == ""
        assert all(lines[1:])


def test_a_long_reason_is_cut_to_a_line():
    line = next(x for x in paragraph(verdict(word="error", reason="word " * 100)) if "why:" in x)

    assert len(line) < 130
    assert line.endswith("…  [test_4]")


@pytest.mark.parametrize(("counts", "text"), [
    (COUNTS, "2.00x the least bytes, 8.00x the least sectors, 2 launches, 65,536 programs at the bench shape"),
    (COUNTS | {"launches": 1, "bench_programs": 0}, "2.00x the least bytes, 8.00x the least sectors, 1 launch, 66 programs"),
    (COUNTS | {"least_bytes": 0}, "270,336 of 0 the least bytes, 8.00x the least sectors, 2 launches, 65,536 programs at the bench shape"),
])  # fmt: skip
def test_the_counters_in_one_line(counts, text):
    assert counted({"counts": counts}) == text


@pytest.mark.parametrize("speed", [None, {}, {"counts": {}}, {"counts": None}])
def test_nothing_counted_is_nothing_said(speed):
    assert counted(speed) == ""


@pytest.mark.parametrize(("speed", "text"), [
    ({"kind": "modelled", "share": 1.0213, "band": [0.9213, 1.1213], "counts": COUNTS}, "1.02 ± 0.10 modelled"),
    ({"kind": "measured", "share": 0.941, "band": [0.935, 0.947]}, "0.94 ± 0.01 measured"),
    ({"kind": "counted", "counts": COUNTS}, "sectors 8.00x counted"),
    ({"kind": "counted", "counts": COUNTS | {"sectors": 4224}}, "bytes 2.00x counted"),
    ({"kind": "counted", "counts": COUNTS | {"least_bytes": 0, "least_sectors": 0}}, ""),
    ({"kind": "counted", "share": None, "band": None, "counts": {}}, ""), ({}, ""), (None, ""),
])  # fmt: skip
def test_the_speed_in_a_few_words(speed, text):
    assert brief(speed) == text


def test_the_table_of_a_fresh_course(course, request):
    check_golden("table.txt", table(course, [PASS, WRONG, TODO], width=100), request)


def test_the_table_of_a_learner_with_a_history(course, request):
    day = datetime(2030, 5, 17, tzinfo=UTC)
    standings = {
        "double": Standing("double", "pass", passes=3, streak=2, attempts=9, due_at=day),
        "triple": Standing("triple", "wrong", attempts=4, hints_used=2, peeked=True, in_round=True),
        "four": Standing("four"),
    }

    check_golden(
        "table_history.txt", table(course, [MODELLED, SLOW, TODO], standings, days=3, width=120, zone=UTC), request
    )


def test_the_table_is_plain_and_fits(course):
    text = table(course, [PASS, WRONG, TODO], width=90)

    assert "\x1b" not in text
    assert max(map(len, text.splitlines()[:4])) <= 90
    assert not any(line != line.rstrip() for line in text.splitlines())


# rich takes a word in brackets for a style and drops it
def test_a_title_with_brackets_keeps_them(tmp_path):
    course = write_course(tmp_path, {"01_double": {"exercise.toml": TOML.replace("Double: a toy", "out[i] = 2 x[i]")}})

    assert "out[i] = 2 x[i]" in table(course, [PASS], width=100)


# what is next, and why


def passed(*slugs):
    return [verdict(slug) for slug in slugs]


@pytest.mark.parametrize(("verdicts", "text"), [
    ([*passed("01_double"), WRONG, TODO],
     "Next: 05_triple, because 22 of 150 elements of triple's result are wrong (14.7 %) in case M3-N50.\n      pytest exercises/05_triple"),
    ([*passed("01_double", "05_triple"), TODO],
     "Next: 07_four, because it is the next on the path, and its stub is untouched. Start with exercises/07_four/README.md.\n"
     "      pytest exercises/07_four"),
    ([*passed("01_double"), SLOW, TODO], "Next: 05_triple, because the result is right; now make it fast.\n      pytest exercises/05_triple"),
    ([verdict("01_double", "todo"), WRONG, TODO],
     "Next: 01_double, because it is the next on the path, and its stub is untouched. Start with exercises/01_double/README.md.\n"
     "      pytest exercises/01_double"),
    ([TODO], "Next: 07_four, because it is the next on the path, and its stub is untouched. Start with exercises/07_four/README.md.\n"
     "      pytest exercises/07_four"),
    ([*passed("01_double"), UNDECIDED],
     "Nothing is wrong; undecided: 05_triple. `pytest exercises/05_triple` says what would decide."),
    ([*passed("01_double"), UNDECIDED, TODO],
     "Next: 07_four, because it is the next on the path, and its stub is untouched. Start with exercises/07_four/README.md.\n"
     "      pytest exercises/07_four"),
    (passed("01_double", "05_triple"), "All of it passes."),
    ([], "All of it passes."),
])  # fmt: skip
def test_the_next_step_is_the_first_open_kata_whose_needs_are_met(course, verdicts, text):
    assert next_step(course, verdicts) == text


def test_what_a_kata_needs_comes_before_it_whatever_its_number(tmp_path):
    toml = TOML.replace("entry =", 'needs = ["triple"]\nentry =')
    course = write_course(tmp_path, {"01_double": {"exercise.toml": toml}, "05_triple": {}})
    both = [verdict("01_double", "todo"), verdict("05_triple", "todo")]

    assert next_step(course, both).startswith("Next: 05_triple, ")
    assert next_step(course, both[:1]).startswith("Next: 01_double, ")


def test_a_reason_is_cut_to_its_first_sentence(course):
    many = verdict("01_double", "error", "line 3: TypeError: x. What now? Nothing.\n    code")

    assert next_step(course, [many]).splitlines()[0] == "Next: 01_double, because line 3: TypeError: x."


def test_when_all_passes_what_is_due_comes_next(course):
    standings = {"double": Standing("double", is_due=True)}

    assert next_step(course, passed("01_double", "05_triple"), standings) == (
        "Next: 01_double again from blank, because it is due.\n      nox -s reset -- 01_double"
    )


def test_what_is_due_besides_stands_below(course):
    due = Standing("", passes=1, is_due=True)
    standings = {"double": due, "triple": due}
    below = "\nDue again from blank: 01_double, 05_triple. Begin: nox -s reset -- 01_double"

    assert next_step(course, [*passed("01_double", "05_triple"), TODO], standings).endswith("exercises/07_four" + below)
    assert next_step(course, [*passed("01_double"), UNDECIDED], standings).endswith("what would decide." + below)
    assert next_step(course, passed("01_double", "05_triple"), standings) == (
        "Next: 01_double again from blank, because it is due.\n      nox -s reset -- 01_double"
        "\nAlso due: 05_triple. Begin: nox -s reset -- 05_triple"
    )


def test_a_kata_that_was_reset_is_said_to_be_so_and_is_due_no_more(course):
    standings = {"double": Standing("double", passes=1, is_due=True, in_round=True)}

    assert next_step(course, [verdict("01_double", "todo"), TODO], standings) == (
        "Next: 01_double, because you reset it to do it again from blank.\n      pytest exercises/01_double"
    )


def test_a_kata_is_due_on_a_day_of_the_learner_s_zone(course):
    standings = {"double": Standing("double", passes=1, attempts=1, due_at=datetime(2030, 5, 17, 3, tzinfo=UTC))}

    text = table(course, [PASS], standings, width=110, zone=timezone(timedelta(hours=-8)))

    assert "2030-05-16" in text and "2030-05-17" not in text


@pytest.mark.parametrize(("used", "help"), [({"peeked": True}, "peek"), ({"hints_used": 1}, "1 hint")])
def test_help_before_the_first_run_is_shown(course, used, help):
    text = table(course, [TODO], {"four": Standing("four", in_round=True, **used)}, width=110)

    assert text.splitlines()[0].split() == ["kata", "verdict", "tests", "streak", "due", "help", "speed", "about"]
    assert text.splitlines()[1].split() == ["07_four", "todo", *help.split(), "Four"]


def test_every_gated_shape_is_named():
    assert "  each shape: a 102%, b 90%" in paragraph(verdict(speed=SEVERAL))
    assert not [line for line in paragraph(MODELLED) if "each shape" in line]
