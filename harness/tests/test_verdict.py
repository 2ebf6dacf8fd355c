"""Folding: the first word that applies, its reason, and nothing said that was not seen."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.verdict import WORDS, TestFacts, Verdict, fold, worst


def facts(word="pass", name="test_a", outcome=None, **more):
    return TestFacts(name, outcome or ("passed" if word == "pass" else "failed"), word, **more)


def folded(*seen, **more):
    return fold("01_double", seen, **{"seed": 7, "device_limits": "speed"} | more)


def test_the_words_stand_in_the_order_of_the_contract():
    assert WORDS == (
        "todo", "error", "timeout", "out-of-bounds", "unwritten", "mutated-input", "cheat", "racy", "wrong", "slow",
        "undecided", "pass",
    )  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=5))
def test_the_worst_word_comes_first_in_the_table(words):
    assert worst(words) == next((w for w in WORDS if w in words), "pass")


def test_all_passed_is_a_pass():
    verdict = folded(facts(name="test_a"), facts(name="test_b"))

    assert (verdict.word, verdict.reason, verdict.failed_in, verdict.whole) == ("pass", "", "", True)
    assert verdict.tests == {"test_a": "passed", "test_b": "passed"}


def test_the_reason_is_that_of_the_worst_word():
    verdict = folded(
        facts("slow", "test_s", reason="too slow"),
        facts("wrong", "test_w", reason="first"),
        facts("wrong", "test_v", reason="second"),
    )

    assert (verdict.word, verdict.reason, verdict.failed_in) == ("wrong", "first", "test_w")


def test_what_is_only_slow_is_said_to_be_right():
    slow = facts("slow", "test_speed", reason="moves twice the bytes.", speed={"kind": "counted"})
    unsure = facts("undecided", "test_speed", reason="too close to call.", speed={"kind": "modelled"})

    assert folded(facts(), slow).reason == "right, but moves twice the bytes."
    assert folded(facts(), unsure).reason == "right, but too close to call."
    assert folded(facts("undecided", reason="cannot run here.")).reason == "cannot run here."


def test_a_cheat_outranks_a_kernel_that_does_not_compile():
    """Torch stood in for the kernel: that it does not compile is then no accident."""
    late = facts("error", "test_compiles", reason="does not compile", late=True)

    assert folded(late, facts("cheat", "test_c", reason="torch computed this")).word == "cheat"
    assert folded(late, facts("wrong", "test_w", reason="wrong")).word == "error"
    assert folded(facts("error", reason="raised"), facts("cheat", "test_c", reason="torch")).word == "error"


@pytest.mark.parametrize(("more", "reason"), [
    ({"missing": ["test_b", "test_c"]}, "only part of the suite ran; not run: test_b, test_c. Run all of it for a verdict."),
    ({"missing": list("abcde")}, "only part of the suite ran; not run: a, b, c, d, …. Run all of it for a verdict."),
    ({"narrowed": True}, "only part of the suite ran. Run all of it for a verdict."),
])  # fmt: skip
def test_a_part_of_a_suite_cannot_pass(more, reason):
    verdict = folded(facts(), **more)

    assert (verdict.word, verdict.reason, verdict.whole) == ("undecided", reason, False)


def test_a_part_of_a_suite_can_fail():
    verdict = folded(facts("wrong", reason="values differ"), missing=["test_b"])

    assert (verdict.word, verdict.reason) == ("wrong", "values differ")
    assert verdict.tests["test_b"] == "not run"


def test_notes_are_said_once_and_the_device_s_limits_last():
    verdict = folded(
        facts(findings=("n", "m"), not_checked=("asm",)),
        facts(name="test_b", findings=("n",), not_checked=("asm", "two")),
    )

    assert verdict.findings == ("n", "m")
    assert verdict.not_checked == ("asm", "two", "speed")


def test_the_first_speed_is_kept():
    assert folded(
        facts(), facts(name="test_s", speed={"kind": "counted"}), facts(name="x", speed={"kind": "other"})
    ).speed == {"kind": "counted"}


words = st.text(max_size=6)
seen = st.builds(
    TestFacts, name=words, outcome=words, word=st.sampled_from(WORDS), reason=words, findings=st.tuples(words),
    not_checked=st.tuples(words, words), speed=st.none() | st.fixed_dictionaries({"kind": words}), late=st.booleans(),
)  # fmt: skip


@given(seen)
def test_facts_survive_json(fact):
    assert TestFacts.from_json(json.loads(json.dumps(fact.to_json()))) == fact


@given(st.lists(seen, min_size=1, max_size=4), st.integers(0))
def test_a_verdict_survives_json(parts, seed):
    verdict = fold("01_double", parts, seed=seed, missing=["z"], device_limits="x")
    data = json.loads(json.dumps(verdict.to_json()))
    again = Verdict.from_json("01_double", data)

    assert {k: data[k] for k in ("verdict", "reason", "seed")} == {
        "verdict": verdict.word,
        "reason": verdict.reason,
        "seed": seed,
    }
    assert again.to_json() == verdict.to_json()
