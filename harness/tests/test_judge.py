"""From what a child saw to one word: the first check that applies is the cause of those that follow."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from harness.device import find_device
from harness.errors import HarnessFault
from harness.runner import judge, wire
from harness.runner.cage import Outcome
from harness.runner.hostwatch import poison_pattern
from harness.spec import Case
from harness.tests.toys import write_kata

X = torch.tensor([[1.0, 2.0, 3.0]])


@pytest.fixture
def job(tmp_path):
    """Return a request, unpacked: doubling a [1, 3] float32 tensor."""
    kata = write_kata(tmp_path)
    reference = SimpleNamespace(reference=lambda x: 2 * x.double(), cost=lambda dims, dtype: None)
    return SimpleNamespace(
        folder=kata.folder, file=kata.stub, spec=kata.spec, reference=reference, seconds=2.0, device=find_device("H200"),
        case=Case("a", {"M": 1, "N": 3}, "float32"), cost=lambda: {"bytes_read": 12, "bytes_written": 12, "flops": 3},
    )  # fmt: skip


LAUNCH = {"kernel": "double_kernel", "grid": (1, 1, 1), "constants": {"BLOCK": "4"}, "key": "k"}


class Seen:
    """What a child reports: calls in the making."""

    def __init__(self):
        self.blobs, self.calls = [], []

    def blob(self, array):
        self.blobs.append(np.ascontiguousarray(array).tobytes())
        return {"blob": len(self.blobs) - 1, "dtype": array.dtype.str, "shape": list(array.shape)}

    def call(self, values, written=(True, True, True), plan=(0, 0), output=None, **more):
        t = torch.tensor([values])
        out = {
            "shape": list(t.shape),
            "torch_dtype": "float32",
            "values": self.blob(t.view(torch.uint8).flatten().numpy()),
        }
        if written is not None:
            out |= {"written": self.blob(np.array([written])), "writers": self.blob(np.zeros((1, 3), np.int32))}
        self.calls.append({
            "plan": {"contents": plan[0], "poison": plan[1]}, "launches": [LAUNCH], "violation": None, "race": None, "leaked": None,
            "failure": None, "computed": {}, "during_kernel": {}, "findings": [], "unmasked_fill": [], "unchecked": [],
            "output": out | (output or {}),
        } | more)  # fmt: skip
        return self

    def outcome(self, **more):
        return Outcome(
            wire.pack({"calls": self.calls, "tampering": []} | more, self.blobs), "returned", "printed", "", 0.1
        )


def right(**more):
    return Seen().call([2.0, 4.0, 6.0], **more)


def facts(job, seen, contents=((X,),)):
    return judge.cpu_facts(job, list(contents), lambda changes: seen.outcome())


def test_right_is_a_pass(job):
    found = facts(job, right())

    assert (found["word"], found["reason"], found["findings"], found["not_checked"]) == ("pass", "", [], [])
    assert (found["launches"], found["printed"]) == ([LAUNCH | {"grid": [1, 1, 1]}], "printed")


@pytest.mark.parametrize(("more", "word", "reason"), [
    ({"during_kernel": {"ones": 4}}, "cheat", "torch ran inside the kernel (ones, 4 elements). On a GPU a kernel cannot call back into Python."),
    ({"violation": {"kind": "out-of-bounds", "text": "line 3: reads"}}, "out-of-bounds", "line 3: reads"),
    ({"violation": {"kind": "misaligned", "text": "line 3: reads"}}, "error", "line 3: reads"),
    ({"raised": {"todo": True, "text": "TODO", "ours": False}}, "todo", "TODO"),
    ({"raised": {"todo": False, "text": "line 3: oops", "ours": True}}, "error", "line 3: oops"),
    ({"output": {"problem": "the entry returned None"}}, "error", "the entry returned None."),
    ({"output": {"problem": "the entry returned a Lazy", "subclass": True}}, "cheat", "the entry returned a Lazy."),
    ({"output": {"torch_dtype": "float16"}}, "wrong", "the result is float16; expected float32."),
    ({"output": {"shape": [3]}}, "wrong", "the result has shape [3]; expected [1, 3]."),
    ({"mutated": "x"}, "mutated-input", "x was changed by the call; inputs belong to the caller."),
    ({"leaked": "line 9: a value"}, "cheat", "line 9: a value."),
    ({"computed": {"mul": 3, "add": 9}}, "cheat", "torch computed this: add on 9 elements, outside of your kernel."),
    ({"computed": {"mul": 3}, "failure": "TypeError: x"}, "cheat",
     "torch computed this: mul on 3 elements, outside of your kernel. Your kernel itself failed: TypeError: x."),
    ({"launches": []}, "cheat", "no kernel of yours was launched in this call."),
    ({"output": {"aliases": "x"}}, "cheat", "the result is the memory of the input x, not a new tensor."),
    ({"output": {"altered": 12}}, "cheat", "12 bytes of the result were changed after your kernel had written them, by neither a kernel nor torch."),
    ({"race": "line 9: two programs"}, "racy", "line 9: two programs."),
    ({"output": {"reused": True}}, "wrong", "a second call returned the memory of the first result, so the first result is gone."),
])  # fmt: skip
def test_each_sign_has_its_word(job, more, word, reason):
    found = facts(job, right(**more))

    assert (found["word"], found["reason"]) == (word, reason)


def test_the_cause_comes_before_what_follows_from_it(job):
    """An input that was changed, a race and wrong values at once: the first in the table of words is told."""
    everything = {
        "mutated": "x",
        "race": "r",
        "computed": {"mul": 3},
        "violation": {"kind": "out-of-bounds", "text": "oob"},
    }
    words = []
    for drop in [None, "violation", "mutated", "computed", "race"]:
        everything.pop(drop, None)
        words.append(facts(job, Seen().call([0.0, 0.0, 0.0], **everything))["word"])

    assert words == ["out-of-bounds", "mutated-input", "cheat", "racy", "wrong"]


def test_more_launches_than_the_kata_allows(job):
    import dataclasses

    job.spec = dataclasses.replace(job.spec, max_launches=1)

    assert facts(job, right(launches=[LAUNCH] * 2))["reason"] == "2 launches; this kata asks for at most 1 a call."


def test_unwritten_elements_are_listed(job):
    found = facts(job, right(written=(True, False, True)))

    assert found["word"] == "unwritten"
    assert found["reason"].startswith(
        "1 of 3 elements of the result were never written: [0, 1]. The last launch was double_kernel with grid (1, 1, 1). "
        "Does the grid cover every tile, the last one too? Does each program find a tile of its own, and does the store's mask let these through?"
    )


def test_a_grid_of_no_programs_is_named(job):
    found = facts(job, right(written=(False, False, False), launches=[LAUNCH | {"grid": [0, 1, 1]}]))

    assert found["word"] == "unwritten"
    assert found["reason"] == (
        "not one of the 3 elements of the result was written: the grid of double_kernel was (0, 1, 1), so no program ran. "
        "Round the number of programs up (triton.cdiv)."
    )


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_one_element_is_spoken_of_as_one(job, shape):
    text = judge._missing(job, np.ones(shape, bool), {"launches": [LAUNCH]})

    assert text.startswith("the one element of the result was not written: no tl.store reached it.")


def test_a_copy_of_poison_is_unwritten(job):
    """The result was copied from a work buffer: what holds the poison of each call was never computed."""
    seen = Seen()
    for which, contents in ((0, 0), (1, 1)):
        seen.call([2.0, 4.0, 6.0], written=None, plan=(contents, which))
        raw = np.array([0x40000000, 0x40800000, poison_pattern(torch.float32, which)], np.uint32)
        seen.blobs[-1] = raw.tobytes()

    found = facts(job, seen, [(X,), (X,)])
    assert found["word"] == "unwritten"
    assert "1 of 3 elements of the result were never written: [0, 2]." in found["reason"]


@pytest.mark.parametrize(("values", "word", "says"), [
    ([2.0, 4.0, 6.5], "wrong", "1 of 3 elements"),
    ([2.0, 4.0, float("nan")], "wrong", "1 of 3 elements"),
    ([2.0, 4.0, 6.0000002], "pass", ""),
])  # fmt: skip
def test_values_are_held_against_the_reference(job, values, word, says):
    found = facts(job, Seen().call(values))

    assert found["word"] == word
    assert says in found["reason"]


def test_a_second_call_with_new_values_must_be_right_too(job):
    seen = right().call([2.0, 4.0, 6.0], plan=(1, 1))

    found = facts(job, seen, [(X,), (X + 1,)])
    assert found["word"] == "wrong"
    assert found["reason"].startswith("in the second call, with new values at the same addresses: ")


def test_right_in_one_order_and_wrong_in_another_is_racy(job):
    found = facts(job, right().call([0.0, 4.0, 6.0], plan=(0, 1)))

    assert found["word"] == "racy"
    assert found["reason"].startswith("right when the programs run in one order, wrong in another.\n")


def test_what_is_wrong_in_any_order_but_the_natural_one_is_racy(job):
    runs = []

    def call(changes):
        runs.append(changes)
        return (right() if changes else Seen().call([0.0, 4.0, 6.0], launches=[LAUNCH | {"grid": (2, 1, 1)}])).outcome()

    found = judge.cpu_facts(job, [(X,)], call)
    assert runs == [{}, {"order": None}]
    assert found["word"] == "racy"
    assert found["reason"].startswith("right when the programs run in one order, wrong in another")


def test_a_masked_load_without_other_is_run_again_with_zero(job):
    runs = []

    def call(changes):
        runs.append(changes)
        seen = right() if changes else Seen().call([2.0, 4.0, 9.0], unmasked_fill=[12])
        return seen.outcome()

    found = judge.cpu_facts(job, [(X,)], call)
    assert runs == [{}, {"masked_fill": "zero"}]
    assert found["word"] == "pass"
    assert found["findings"][0].startswith("line 12: a masked load without `other=`")


def test_it_stays_wrong_when_zero_does_not_help(job):
    found = judge.cpu_facts(job, [(X,)], lambda changes: Seen().call([2.0, 4.0, 9.0], unmasked_fill=[12]).outcome())

    assert (found["word"], found["findings"]) == ("wrong", [])


def test_a_copied_result_is_run_again_without_kernels(job):
    same = judge.cpu_facts(job, [(X,)], lambda changes: right(written=None).outcome())
    other = judge.cpu_facts(
        job,
        [(X,)],
        lambda changes: Seen().call([0.0, 0.0, 0.0] if changes else [2.0, 4.0, 6.0], written=None).outcome(),
    )

    assert (same["word"], same["reason"]) == ("cheat", "the result is the same when your kernels are not run.")
    assert other["word"] == "pass"


def test_tampering_comes_first(job):
    outcome = right(mutated="x").outcome(tampering=["exercises/01/reference.py"])
    found = judge.cpu_facts(job, [(X,)], lambda changes: outcome)

    assert (found["word"], found["reason"]) == (
        "cheat",
        "your code tried to change exercises/01/reference.py, which belongs to the course.",
    )


def test_a_sample_is_counted_not_compared(job):
    found = facts(job, Seen().call([0.0, 0.0, 0.0], written=None, sampled=True, counters={"sectors": 3}))

    assert (found["word"], found["counters"], found["cost"]["flops"]) == ("pass", {"sectors": 3}, 3)


# a child that did not come back


@pytest.mark.parametrize(("outcome", "word", "reason"), [
    (Outcome(b"", "timeout", "", 'File "{file}", line 12 in f\nFile "{file}", line 15 in g', 2.0), "timeout",
     "no answer within 2 s. It was at line 12. A loop that does not end for these sizes?"),
    (Outcome(b"", "timeout", "", "", 2.0), "timeout", "no answer within 2 s. A loop that does not end for these sizes?"),
    (Outcome(b"", "memory", "", "", 2.0, 3 * 2**30), "error", "used more than 3 GiB of memory and was stopped."),
    (Outcome(b"", "signal SIGSEGV", "", "", 2.0), "error", "the process died of SIGSEGV in your code, outside of any checked access."),
    (Outcome(b"", "exit 3", "", "", 2.0), "error", "your code ended its process (exit status 3) before it returned a result."),
    (Outcome(b"", "returned", "", "", 2.0), "error", "the report of your code's process cannot be read"),
    (Outcome(b"x" * 40, "returned", "", "", 2.0), "error", "the report of your code's process cannot be read"),
    (Outcome(wire.pack({"calls": [{}]}, []), "returned", "", "", 2.0), "error", "the report of your code's process cannot be read"),
])  # fmt: skip
def test_how_it_ended_is_told(job, outcome, word, reason):
    import dataclasses

    outcome = dataclasses.replace(outcome, stack=outcome.stack.replace("{file}", str(job.file)))
    found = judge.cpu_facts(job, [(X,)], lambda changes: outcome)

    assert found["word"] == word
    assert found["reason"].startswith(reason)


def test_our_own_failure_in_a_child_is_a_fault(job):
    with pytest.raises(HarnessFault, match="harness: KeyError"):
        judge.cpu_facts(job, [(X,)], lambda changes: Outcome(b"", "exit 70", "", "harness: KeyError('x')", 0.1))


# a reference at fault


@pytest.mark.parametrize(("reference", "says"), [
    (lambda x: 1 // 0, "reference.py failed on case 'a': ZeroDivisionError"),
    (lambda x: x[:, 1:].double(), r"reference.py returned \[1, 2\] for a result \[1, 3\]"),
])  # fmt: skip
def test_a_reference_at_fault_is_ours(job, reference, says):
    job.reference.reference = reference

    with pytest.raises(HarnessFault, match=says):
        facts(job, right())


def test_a_nan_in_the_reference_needs_a_fill_that_asks_for_it(job):
    nan = torch.tensor([[1.0, 2.0, float("nan")]])
    seen = Seen().call([2.0, 4.0, float("nan")])
    with pytest.raises((HarnessFault, ValueError), match="NaN"):
        facts(job, seen, [(nan,)])
    job.reference.FILLS = {"nan": None}
    job.case = Case("a", {"M": 1, "N": 3}, "float32", fill={"x": "nan"})

    assert facts(job, seen, [(nan,)])["word"] == "pass"


# what the compiler said


def compiled(seen):
    return Outcome(
        wire.pack({"launches": [LAUNCH], "compiled": {"k": {}}, "failed": None} | seen, []), "returned", "", "", 9.0
    )


RAISED = {"text": "line 3: TypeError: x", "todo": False, "compiling": True}


@pytest.mark.parametrize(("seen", "word", "reason"), [
    ({}, "pass", ""),
    ({"raised": RAISED, "failed": "TypeError: x"}, "error", "does not compile for NVIDIA H200: line 3: TypeError: x"),
    ({"failed": "TypeError: x", "compiled": {}}, "error", "does not compile for NVIDIA H200: TypeError: x"),
])  # fmt: skip
def test_the_compiler_s_word(job, seen, word, reason):
    found = judge.compile_facts(job, compiled(seen))

    assert (found["word"], found["reason"]) == (word, reason)


def test_an_error_that_the_code_caught_and_another_kernel_took_over_is_a_note(job):
    found = judge.compile_facts(job, compiled({"failed": "TypeError: x"}))

    assert (found["word"], found["caught"]) == ("pass", "TypeError: x")


def test_a_launcher_that_stumbles_over_empty_results_is_no_error_yet(job):
    found = judge.compile_facts(job, compiled({"raised": RAISED | {"compiling": False}}))

    assert (found["word"], found["stumbled"], found["todo"]) == ("pass", "line 3: TypeError: x", False)


def test_a_gpu_that_this_triton_cannot_compile_for_is_no_fault_of_the_kernel(job, monkeypatch):
    monkeypatch.setattr(judge.metadata, "version", lambda name: "3.6.0")
    found = judge.compile_facts(job, compiled({"raised": RAISED, "failed": None, "unsupported": True, "compiled": {}}))

    assert (found["word"], found["reason"]) == (
        "undecided",
        "Triton 3.6.0 has no compiler for NVIDIA H200 (capability 9.0): a newer one may, or --gpu names another GPU.",
    )


def test_a_compiler_that_takes_too_long_leaves_it_undecided(job):
    found = judge.compile_facts(job, Outcome(b"", "timeout", "", "", 61.0))

    assert (found["word"], found["reason"]) == ("undecided", "compiling took longer than 61 s; --device cuda decides.")
