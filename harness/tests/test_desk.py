"""A desk sends one kata's cases away and keeps what comes back; what a learner reads is put together here."""

from __future__ import annotations

import pytest

from harness.desk import (
    SHRINKS,
    TOLD,
    Choices,
    Desk,
    KataFailure,
    Runner,
    as_test_facts,
    failure_text,
    replay_command,
    seed_of,
)
from harness.device import find_device
from harness.errors import HarnessFault
from harness.spec import Case
from harness.tests.golden import check_golden
from harness.tests.toys import write_kata

CASE = Case("M3-N5", {"M": 3, "N": 5}, "float32")


def passing(*keys):
    return {
        "word": "pass",
        "reason": "",
        "findings": [],
        "not_checked": [],
        "launches": [{"key": k, "kernel": "k", "grid": [1, 1, 1]} for k in keys],
    }


def failing(word="wrong", reason="values differ\nmore", **more):
    return {"word": word, "reason": reason, "findings": [], "not_checked": [], "launches": []} | more


def compiled(*keys, word="pass", **more):
    return passing(*keys) | {"word": word, "compiled": dict.fromkeys(keys, {})} | more


class Line:
    """Stands for a connection: answers from a list, and keeps what was sent."""

    def __init__(self, answers=()):
        self.answers, self.sent = list(answers), []

    def send(self, request):
        self.sent.append(request)

    def receive(self):
        return self.answers.pop(0)

    def ask(self, request):
        self.send(request)
        return self.receive()


@pytest.fixture
def desk(tmp_path):
    """Return a function: answers of the interpreter and of the compiler -> a desk."""

    def make(interpret=(), compile=(), **choices):
        kata = write_kata(tmp_path / "course")
        lines = {"interpret": Line(interpret), "compile": Line(compile)}
        given = {"seed": 7, "device": "cpu", "gpu": find_device("H200")} | choices
        desk = Desk(kata, kata.stub, Choices(**given), lines.__getitem__)
        desk.lines = lines
        return desk

    return make


def test_a_case_goes_out_in_plain_values(desk):
    d = desk([passing()])
    d.judge(CASE)

    assert d.lines["interpret"].sent == [
        {"kata": str(d.kata.folder), "file": str(d.file), "case": CASE.to_json(), "gpu": "h200_sxm"}
    ]


def test_only_new_launches_are_compiled(desk):
    d = desk([passing("a"), passing("a"), passing("a", "b")], [compiled("a"), compiled("a", "b")])
    for seed in range(3):
        d.judge(CASE.with_seed(seed))
    d.collect()

    assert [r["case"]["seed"] for r in d.lines["compile"].sent] == [0, 2]


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


def counted(**more):
    counters = {"bytes_read": 67584, "bytes_written": 67584, "sectors": 4224, "sites": []}
    cost = {"bytes_read": 67584, "bytes_written": 67584, "flops": 16896}
    return passing("a") | {"counters": counters, "cost": cost} | more


def bench(programs):
    return compiled("a") | {"launches": [{"kernel": "k", "key": "a", "grid": [programs, 1, 1]}]}


def test_speed_is_counted_in_the_traffic_case_and_the_bench_shape(desk):
    facts = desk([counted()], [bench(66), bench(4096)]).speed_facts()

    assert facts["speed"]["counts"] == {
        "bytes": 135168, "least_bytes": 135168, "sectors": 4224, "least_sectors": 4224, "launches": 1, "programs": 1, "bench_programs": 4096,
    }  # fmt: skip


def test_counts_that_hold_without_a_model_leave_it_undecided(desk):
    facts = desk([counted()], [bench(66), bench(4096)]).speed_facts()

    assert facts["word"] == "undecided"
    assert facts["reason"] == (
        "right, but its speed is not decided: the launcher stopped at the bench shape (no facts)."
    )
    assert facts["speed"]["kind"] == "counted"


def test_the_first_bench_shape_alone_is_compiled_for_the_model(desk):
    d = desk([counted()], [bench(66), bench(4096)])
    d.speed_facts()

    assert {r["case"]["id"]: "model" in r for r in d.lines["compile"].sent} == {"traffic": False, "bench": True}


def test_a_bench_shape_with_few_programs_is_slow(desk):
    facts = desk([counted()], [bench(66), bench(1)]).speed_facts()

    assert facts["word"] == "slow"
    assert "131 of the 132 SMs" in facts["reason"]


def test_what_is_slow_by_its_counts_is_told_how_slow(desk, monkeypatch):
    told = {
        "word": "undecided",
        "reason": "near",
        "findings": ["line 3: x"],
        "not_checked": [],
        "speed": {"kind": "modelled", "share": 0.69, "band": [0.59, 0.79]},
    }
    monkeypatch.setattr(Desk, "_modelled", lambda self, case: told)
    facts = desk([counted()], [bench(66), bench(1)]).speed_facts()

    assert facts["word"] == "slow"
    assert facts["reason"].startswith("1 program of k for the whole bench shape")
    assert (facts["speed"]["kind"], facts["speed"]["share"], facts["findings"]) == ("modelled", 0.69, ["line 3: x"])
    assert facts["speed"]["counts"]["bytes"] == 135168


def test_a_gpu_without_hardware_for_the_bench_shape_is_no_silent_pass(desk):
    d = desk([counted()], gpu=find_device("T4"))
    toml = d.kata.folder / "exercise.toml"
    toml.write_text(toml.read_text().replace('dtype = "float32", role = "bench"', 'dtype = "bfloat16", role = "bench"'))
    facts = d.speed_facts()

    assert (facts["word"], facts["reason"]) == (
        "undecided",
        "right, but its speed is not decided: Tesla T4 has no hardware for bfloat16, the bench shape's dtype; "
        "--gpu H200 asks about another GPU.",
    )
    assert facts["speed"]["counts"]


def test_speed_of_what_is_wrong_is_not_told(desk):
    facts = desk([failing()]).speed_facts()

    assert (facts["word"], facts["case"]) == ("wrong", "traffic")
    assert "speed" not in facts


def test_without_speed_it_is_undecided(desk):
    facts = desk(speed=False).speed_facts()

    assert (facts["word"], facts["reason"]) == ("undecided", "--no-speed was given; run without it to decide.")


# a test's run(case)


def runner(desk):
    return Runner(desk, "test_any_size", "pytest x::test_any_size --kata-seed 7")


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
            Runner(d, name, f"pytest x::{name} --kata-seed 7")(CASE)
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
