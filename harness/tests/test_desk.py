"""A desk sends one kata's cases away and keeps what comes back."""

from __future__ import annotations

import pytest

from harness.desk import AHEAD
from harness.tests.desks import CASE, compiled, failing, maker, passing


@pytest.fixture
def desk(tmp_path):
    return maker(tmp_path)


def test_a_case_goes_out_in_plain_values(desk):
    d = desk([passing()])
    d.judge(CASE)

    assert d.lines["interpret"].sent == [
        {"kata": str(d.kata.folder), "file": str(d.file), "case": CASE.to_json(), "gpu": "h200_sxm"}
    ]


def test_only_new_launches_are_compiled(desk):
    d = desk([passing("a"), passing("a", "b")], [compiled("a"), compiled("a", "b")])
    for seed in range(2):
        d.judge(CASE.with_seed(seed))
    d.collect()

    assert [r["case"]["seed"] for r in d.lines["compile"].sent] == [0, 1]


def test_the_bench_shapes_are_compiled_while_further_cases_run(desk):
    """Not before some have passed: a kernel that is wrong fails in one of the first."""
    d = desk([passing("a")] * AHEAD + [failing()], [compiled("a"), compiled("bench")])
    sent = d.lines["compile"].sent
    for seed in range(AHEAD - 1):
        d.judge(CASE.with_seed(seed))
    assert [r["case"]["role"] for r in sent] == ["small"]

    for seed in range(AHEAD - 1, AHEAD + 1):
        d.judge(CASE.with_seed(seed))
    assert [r["case"]["role"] for r in sent] == ["small", "bench"]
    assert d.compile_facts()["word"] == "pass"
    assert len(sent) == 2


def test_a_wrong_case_is_not_compiled(desk):
    d = desk([failing()])
    d.judge(CASE)

    assert d.lines["compile"].sent == []


@pytest.mark.parametrize(("answer", "word", "says"), [
    (compiled("a", word="error", reason="does not compile: line 3"), "error", "does not compile: line 3"),
    (compiled("a"), "undecided", "this interpreter cannot run what a GPU can: oops"),
    (compiled("a", stumbled="line 4: IndexError", todo=False), "error", "oops"),
    (compiled(), "error", "oops"),
])  # fmt: skip
def test_an_error_outside_of_the_learner_s_lines_is_put_to_the_compiler(desk, answer, word, says):
    facts = desk([failing("error", "oops", ours=True)], [answer]).judge(CASE)

    assert facts["word"] == word
    assert says in facts["reason"]


def test_an_error_in_the_learner_s_lines_is_an_error(desk):
    d = desk([failing("error", "line 3: oops", ours=False)])

    assert d.judge(CASE)["reason"] == "line 3: oops"
    assert d.lines["compile"].sent == []


def test_the_compiler_s_word_counts_for_the_kata(desk):
    d = desk([passing("a")], [compiled("a", word="error", reason="does not compile"), compiled("b")])
    d.judge(CASE)
    facts = d.compile_facts()

    assert (facts["word"], facts["reason"], facts["case"], facts["late"]) == (
        "error",
        "does not compile",
        "M3-N5",
        True,
    )


def test_a_compiler_that_was_too_slow_leaves_it_undecided(desk):
    d = desk([passing("a")], [compiled("a", word="undecided", reason="took longer"), compiled("b")])
    d.judge(CASE)

    assert d.compile_facts()["word"] == "undecided"


def test_what_was_run_and_not_compiled_is_said(desk):
    d = desk([passing("a", "b")], [compiled("a"), compiled("c")])
    d.judge(CASE)
    d.interpreted.clear()

    assert d.compile_facts()["not_checked"] == ["1 of 3 specialisations were run but not compiled"]


def test_a_bench_shape_that_stumbles_is_an_error(desk):
    d = desk([passing("a")], [compiled("a"), compiled("b", stumbled="line 9: too big", todo=False)])
    d.judge(CASE)
    facts = d.compile_facts()

    assert (facts["word"], facts["reason"], facts["case"]) == ("error", "line 9: too big", "bench")


def test_what_the_code_caught_is_a_note(desk):
    d = desk([passing("a")], [compiled("a", caught="OutOfResources: shared memory"), compiled("b")])
    d.judge(CASE)

    assert d.compile_facts()["findings"] == ["caught by your code, and no verdict: OutOfResources: shared memory"]


def test_the_compile_test_alone_compiles_the_declared_cases(desk):
    d = desk((), [compiled("a")] * 3)
    d.compile_facts()

    assert [r["case"]["id"] for r in d.lines["compile"].sent] == ["M3-N50", "M5-N70-transposed", "bench"]
