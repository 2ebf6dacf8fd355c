"""Baselines of the katas: each is the same function as the reference, on the same arguments."""

from __future__ import annotations

import dataclasses

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e .")

from harness.course import load_course  # noqa: E402 - as above
from harness.runner.host_child import load_reference  # noqa: E402 - as above
from harness.runner.inputs import make_inputs  # noqa: E402 - needs torch

# a small case of each kata that every baseline knows, and a tolerance that only tells functions apart
CASES = {
    "stream": {"M": 5, "N": 300}, "blocks": {"M": 5, "N": 300}, "amortize": {"B": 3, "N": 40, "K": 64},
    "strides": {"A": 9, "B": 7}, "coalescing": {"M": 20, "N": 9}, "nf4": {"M": 16, "N": 256},
    "matmul": {"M": 20, "N": 17, "K": 24}, "softmax": {"M": 5, "N": 100},
    "attention": {"B": 2, "Hq": 4, "Hkv": 2, "Tq": 16, "Tk": 16, "D": 32},
}  # fmt: skip
ON_A_GPU = ("torch (cuDNN)", "torch (FlashAttention)", "torch (efficient)", "liger")


def prepared(kata):
    case = next(c for c in kata.spec.with_role("small") if c.dtype == "float16")
    options = {"nested": True} if kata.id == "nf4" else {}
    case = dataclasses.replace(case, dims=CASES[kata.id], layout={}, fill={}, options=options).with_seed(3)
    reference = load_reference(kata.folder)
    return reference, make_inputs(kata.spec, reference, case)


@pytest.mark.parametrize("name", CASES)
def test_what_runs_beside_a_reference_computes_the_same(name):
    kata = load_course().kata(name)
    reference, args = prepared(kata)
    expected = reference.reference(*args)
    found = reference.baselines(*args)

    assert found
    for who, work in found.items():
        if who in ON_A_GPU:
            continue
        try:
            out = work()
        except ImportError as error:
            assert who == "bitsandbytes", error  # the one that is optional here
            continue
        torch.testing.assert_close(out.double(), expected.double(), rtol=4e-3, atol=4e-3)


def test_a_part_of_an_attention_is_that_part_of_its_reference():
    reference, args = prepared(load_course().kata("attention"))
    whole = reference.reference(*args)
    torch.manual_seed(0)

    for _ in range(4):
        out, part = reference.part(whole, *args)
        torch.testing.assert_close(reference.reference(*part), out)
        assert out.shape == (1, 2, 16, 32)


def test_attention_s_baselines_are_left_out_where_they_would_answer_something_else():
    reference, (q, k, v, _, scale, _) = prepared(load_course().kata("attention"))

    assert reference.baselines(q, k, v, True, scale, None)
    assert not reference.baselines(q[:, :, :8], k, v, True, scale, None)
    assert not reference.baselines(q, k, v, False, scale, torch.tensor([16, 5], dtype=torch.int32))
    assert reference.baselines(q, k, v, False, scale, torch.tensor([16, 16], dtype=torch.int32))
