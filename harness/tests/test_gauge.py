"""A gauge reads a kata's speed off its bench shapes: counts, the model, or a measurement."""

from __future__ import annotations

import types

import pytest

from harness import gauge
from harness.device import find_device
from harness.gauge import Shape, speed_facts
from harness.spec import Case, Gate
from harness.tests.desks import compiled, failing, maker, passing


@pytest.fixture
def desk(tmp_path):
    return maker(tmp_path)


def counted(**more):
    counters = {"bytes_read": 67584, "bytes_written": 67584, "sectors": 4224, "sites": []}
    cost = {"bytes_read": 67584, "bytes_written": 67584, "flops": 16896}
    return passing("a") | {"counters": counters, "cost": cost} | more


def bench(programs):
    return compiled("a") | {"launches": [{"kernel": "k", "key": "a", "grid": [programs, 1, 1]}]}


def test_speed_is_counted_in_the_traffic_case_and_the_bench_shape(desk):
    facts = speed_facts(desk([counted()], [bench(66), bench(4096)]))

    assert facts["speed"]["counts"] == {
        "bytes": 135168, "least_bytes": 135168, "sectors": 4224, "least_sectors": 4224, "launches": 1, "programs": 1, "bench_programs": 4096,
    }  # fmt: skip


def test_counts_that_hold_without_a_model_leave_it_undecided(desk):
    facts = speed_facts(desk([counted()], [bench(66), bench(4096)]))

    assert facts["word"] == "undecided"
    assert facts["reason"] == (
        "right, but its speed is not decided: the launcher stopped at the bench shape (no facts)."
    )
    assert facts["speed"]["kind"] == "counted"


def test_the_first_bench_shape_alone_is_compiled_for_the_model(desk):
    d = desk([counted()], [bench(66), bench(4096)])
    speed_facts(d)

    assert {r["case"]["id"]: "model" in r for r in d.lines["compile"].sent} == {"traffic": False, "bench": True}


def test_a_bench_shape_with_few_programs_is_slow(desk):
    facts = speed_facts(desk([counted()], [bench(66), bench(1)]))

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
    monkeypatch.setattr(gauge, "_modelled", lambda desk: told)
    facts = speed_facts(desk([counted()], [bench(66), bench(1)]))

    assert facts["word"] == "slow"
    assert facts["reason"].startswith("1 program of k for the whole bench shape")
    assert (facts["speed"]["kind"], facts["speed"]["share"], facts["findings"]) == ("modelled", 0.69, ["line 3: x"])
    assert facts["speed"]["counts"]["bytes"] == 135168


def test_a_gpu_without_hardware_for_the_bench_shape_is_no_silent_pass(desk):
    d = desk([counted()], gpu=find_device("T4"))
    toml = d.kata.folder / "exercise.toml"
    toml.write_text(toml.read_text().replace('dtype = "float32", role = "bench"', 'dtype = "bfloat16", role = "bench"'))
    facts = speed_facts(d)

    assert (facts["word"], facts["reason"]) == (
        "undecided",
        "right, but its speed is not decided: Tesla T4 has no hardware for bfloat16, the bench shape's dtype; "
        "--gpu H200 asks about another GPU.",
    )
    assert facts["speed"]["counts"]


def test_speed_of_what_is_wrong_is_not_told(desk):
    facts = speed_facts(desk([failing()]))

    assert (facts["word"], facts["case"]) == ("wrong", "traffic")
    assert "speed" not in facts


def test_without_speed_it_is_undecided(desk):
    facts = speed_facts(desk(speed=False))

    assert (facts["word"], facts["reason"]) == ("undecided", "--no-speed was given; run without it to decide.")


# several shapes


def shape(name="a", word="pass", share=1.0, seconds=1e-3, within=0.0, **more):
    speed = {"kind": "modelled", "share": share, "gate": 0.7, "band": [share - 0.1, share + 0.1], "text": f"at {share}"}
    facts = {"word": word, "reason": "" if word == "pass" else f"{share} of it.", "findings": [], "not_checked": []}
    gate = Gate(name, 0.7, 0.8, within, "What both read is read once.")
    return Shape(Case(name, {}, "float32"), gate, facts | {"speed": speed} | more, seconds)


def test_one_shape_speaks_for_itself():
    only = shape()

    assert gauge._folded([only], "modelled") is only.facts


@pytest.mark.parametrize(("words", "worst"), [
    (("pass", "pass"), "b"), (("slow", "undecided"), "a"), (("undecided", "slow"), "b"), (("undecided", "pass"), "a"),
])  # fmt: skip
def test_the_shape_that_is_worst_off_speaks_for_all(words, worst):
    shapes = [shape("a", words[0], 1.0, findings=["line 1"]), shape("b", words[1], 0.9, findings=["line 1", "line 2"])]
    found = gauge._folded(shapes, "modelled")

    assert found["word"] == words["ab".index(worst)]
    assert found["reason"] == ("" if found["word"] == "pass" else f"{worst}: {1.0 if worst == 'a' else 0.9} of it.")
    assert found["speed"]["text"].startswith(f"{worst}: at ")
    assert found["findings"] == ["line 1", "line 2"]
    assert {k: (v["word"], v["share"]) for k, v in found["speed"]["shapes"].items()} == {
        "a": (words[0], 1.0), "b": (words[1], 0.9),
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "ratio", "word"), [
    ("modelled", 1.1, "pass"), ("modelled", 1.2, "undecided"), ("modelled", 1.3, "slow"),
    ("measured", 1.14, "pass"), ("measured", 1.16, "undecided"), ("measured", 1.2, "slow"),
])  # fmt: skip
def test_the_first_shape_may_take_only_so_many_times_as_long(kind, ratio, word):
    found = gauge._folded([shape("sixteen", seconds=ratio), shape("one", seconds=1.0, within=1.15)], kind)

    assert found["word"] == word
    if word != "pass":
        assert found["reason"] == (
            f"one: sixteen takes {ratio:.2f} times as long; at most 1.15 times is asked for. What both read is read once."
        )


def test_a_shape_whose_time_nobody_knows_is_not_held_against_the_first():
    found = gauge._folded([shape("a", "undecided", 0.0, seconds=0.0), shape("b", within=1.15)], "modelled")

    assert (found["word"], found["speed"]["shapes"]["b"]["word"]) == ("undecided", "pass")


def test_the_bound_is_that_of_the_first_shape():
    first = shape("a")
    first.facts["speed"]["bound"] = "at most 9 tokens/s"

    assert gauge._folded([first, shape("b", share=0.8)], "modelled")["speed"]["bound"] == "at most 9 tokens/s"


def test_further_gated_shapes_are_modelled_too(desk):
    d = desk([counted()], [bench(66), bench(4096), bench(4096)])
    toml = d.kata.folder / "exercise.toml"
    text = toml.read_text()
    row = next(line for line in text.splitlines() if 'role = "bench"' in line)
    text = text.replace(row, f"{row}\n{row.replace('bench', 'wide', 1)}")
    toml.write_text(text.replace("[gate]\n", '[gate]\nalso = [{ case = "wide" }]\n'))
    speed_facts(d)

    assert [gate.case for _, gate in d.gated()] == ["bench", "wide"]
    assert {r["case"]["id"]: "model" in r for r in d.lines["compile"].sent} == {
        "traffic": False, "bench": True, "wide": True,
    }  # fmt: skip


def test_findings_of_several_shapes_name_a_line_once_and_are_three_at_most():
    first = shape(findings=["line 3: a", "k: the autotuner's best", "line 5: b"])
    second = shape(findings=["line 3: c", "line 7: d", "line 9: e"])

    assert gauge._told([first, second]) == ["line 3: a", "line 5: b", "line 7: d", "k: the autotuner's best"]


def test_a_further_shape_whose_block_is_too_large_to_compile_is_not_checked(monkeypatch):
    cases = [Case(name, {"N": 8}, "float32", role="bench") for name in ("first", "second")]
    speed = {"kind": "modelled", "share": 1.0, "gate": 0.7, "band": [0.9, 1.1]}
    passed = {"word": "pass", "reason": "", "findings": [], "not_checked": [], "speed": speed}
    unsure = passed | {"word": "undecided", "reason": "right, but its speed is not decided: k was not compiled."}
    known = {"first": (passed, 1.0), "second": (unsure, 0.0, True)}
    monkeypatch.setattr(gauge, "_modelled_shape", lambda desk, case, gate: Shape(case, gate, *known[case.id]))

    facts = gauge._modelled(types.SimpleNamespace(gated=lambda: [(case, Gate(case.id, 0.7, 0.7)) for case in cases]))

    assert facts["word"] == "pass"
    assert facts["not_checked"] == [
        "second: speed, because its kernel has a block too large to compile here (--device cuda decides)"
    ]
