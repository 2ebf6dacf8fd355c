"""A test's run(case): a failure is told once, whole, and with the command that repeats it."""

from __future__ import annotations

import pytest

from harness.errors import HarnessFault
from harness.run import SHRINKS, TOLD, KataFailure, Run, as_test_facts, failure_text, replay_command, seed_of
from harness.spec import Case
from harness.tests.desks import CASE, failing, maker, passing
from harness.tests.golden import check_golden


@pytest.fixture
def desk(tmp_path):
    return maker(tmp_path)


def runner(desk):
    return Run(desk, "test_any_size", "pytest x::test_any_size --kata-seed 7")


def test_a_right_case_says_nothing(desk):
    run = runner(desk([passing()]))

    assert run(CASE) is None
    assert [f["word"] for f in run.facts] == ["pass"]


def test_a_failure_is_remembered_not_repeated(desk):
    run = runner(desk([failing("error")]))
    texts = []
    for _ in range(2):
        with pytest.raises(KataFailure) as error:
            run(CASE)
        texts.append(str(error.value))

    assert texts[0] == texts[1]


@pytest.mark.parametrize(("word", "more"), [("wrong", SHRINKS), ("error", 0), ("out-of-bounds", 0)])
def test_only_a_wrong_result_may_become_smaller(desk, word, more):
    d = desk([failing(word)] * (SHRINKS + 2))
    run = runner(d)
    for n in range(2 * SHRINKS):
        try:
            run(Case("a", {"M": n}, "float32"))
        except KataFailure:
            pass

    assert len(d.lines["interpret"].sent) == 1 + more


def test_a_timeout_ends_the_kata(desk):
    d = desk([failing("timeout", "no answer within 2 s.")])
    with pytest.raises(KataFailure, match="no answer within 2 s"):
        runner(d)(CASE)
    with pytest.raises(KataFailure) as error:
        runner(d)(Case("other", {}, "float32"))

    assert error.value.facts["word"] == "timeout"
    assert "not run, because case M3-N5 had used up the kata's time." in str(error.value)


def test_a_reason_is_told_once(desk):
    d = desk([failing(), failing()])
    texts = []
    for name in ("test_a", "test_b"):
        with pytest.raises(KataFailure) as error:
            Run(d, name, f"pytest x::{name} --kata-seed 7")(CASE)
        texts.append(str(error.value))

    assert texts[0].splitlines()[1:] == ["values differ", "more", "see it again: pytest x::test_a --kata-seed 7"]
    assert texts[1].splitlines()[1:] == ["as in test_a: values differ"]


def test_after_three_long_failures_the_rest_is_brief(desk):
    d = desk([failing(reason=f"values differ\nmore\n{n}") for n in range(9)])
    texts = []
    for n in range(TOLD + 1):
        with pytest.raises(KataFailure) as error:
            runner(d)(Case("a", {"M": n}, "float32"))
        texts.append(str(error.value))

    assert all("values differ\nmore\n" in t for t in texts[:TOLD])
    assert texts[TOLD].splitlines()[1:] == ["values differ", "see all of it: pytest x::test_any_size --kata-seed 7"]


def test_a_fault_of_the_harness_goes_through(desk):
    d = desk()
    d.connect = lambda kind: (_ for _ in ()).throw(HarnessFault("gone"))

    with pytest.raises(HarnessFault):
        runner(d)(CASE)


def test_the_values_depend_on_run_test_and_case_alone():
    seeds = {
        seed_of(7, "test_a", CASE),
        seed_of(8, "test_a", CASE),
        seed_of(7, "test_b", CASE),
        seed_of(7, "test_a", Case("b", {}, "int8")),
    }

    assert len(seeds) == 4
    assert seed_of(7, "test_a[M3-N5]", CASE.with_seed(99)) == seed_of(7, "test_a", CASE)
    assert 0 <= min(seeds) and max(seeds) < 2**56


# words for the learner


def test_a_failure_is_told_whole(desk, request):
    facts = failing(
        "wrong", "3 of 15 elements of double's result are wrong (20.0 %) in case M3-N5.\n  [0, 0]  got 1  expected 2",
        printed="\n".join(f"line {n}" for n in range(20)), findings=["line 12: a masked load without `other=`"],
    )  # fmt: skip

    check_golden(
        "failure.txt",
        failure_text(desk(), "pytest exercises/01_double/test_kernel.py::test_any_size --kata-seed 7", facts, CASE),
        request,
    )


@pytest.mark.parametrize(("facts", "last"), [
    (failing("todo", "the stub is untouched"), "the stub is untouched"),
    (failing("undecided", "why", printed="noise"), "see it again: R"),
    (failing("error", "line 3: oops", case="bench"), "see it again: R"),
])  # fmt: skip
def test_a_failure_says_no_more_than_it_knows(desk, facts, last):
    text = failure_text(desk(), "R", facts, None)

    assert text.splitlines()[-1] == last
    assert "noise" not in text
    assert ("case bench" in text) == ("case" in facts)


def test_a_file_outside_of_the_checkout_is_called_by_its_name(desk, tmp_path):
    d = desk()
    d.file = tmp_path / "elsewhere" / "mine.py"

    assert failure_text(d, "R", failing(), None).startswith("wrong: double in mine.py\n")


@pytest.mark.parametrize(("more", "end"), [
    ({}, ""),
    ({"solutions": True}, " --solutions"),
    ({"device": "cuda"}, " --device cuda"),
])  # fmt: skip
def test_the_command_that_repeats_a_failure_can_be_pasted(desk, monkeypatch, more, end):
    d = desk(**more)
    monkeypatch.chdir(d.kata.folder.parent.parent)

    assert replay_command(d.kata, "test_a[M3-N5]", d.choices) == (
        f"pytest 'exercises/01_double/test_kernel.py::test_a[M3-N5]' --kata-seed 7{end}"
    )


def test_the_command_names_a_submission_from_where_one_stands(desk, monkeypatch, tmp_path):
    d = desk(submission=tmp_path / "my file.py")
    monkeypatch.chdir(tmp_path)

    assert replay_command(d.kata, "test_a", d.choices).endswith("--kata-seed 7 --submission 'my file.py'")


def test_the_facts_of_a_test_are_folded():
    seen = [passing() | {"findings": ["n"]}, passing() | {"findings": ["n", "m"], "speed": {"kind": "counted"}}]
    failure = failing("slow", "too slow", late=True, not_checked=["asm"])
    facts = as_test_facts("test_a", "failed", seen, failure)

    assert (facts.word, facts.reason, facts.findings, facts.not_checked) == ("slow", "too slow", ("n", "m"), ("asm",))
    assert (facts.speed, facts.late) == ({"kind": "counted"}, True)
    assert as_test_facts("test_a", "passed", seen, None).word == "pass"
    assert as_test_facts("test_a", "failed", seen, None).word == "error"
