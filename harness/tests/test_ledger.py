"""Data that neither torch, in sight, nor a kernel made, and that change with the inputs, give a cheat away."""

from __future__ import annotations

import pytest
import torch

from harness.runner.ledger import SMALL, Ledger, made_elsewhere
from harness.tests.toys import BODY, SOLUTION, kernel

COPIES = """
from torch.utils._python_dispatch import _disable_current_modes

@triton.jit
def first_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0), mask=offs < n)


def double(x):
    x = x.contiguous()
    n, out = x.numel(), torch.empty_like(x)
    {0}
    double_kernel[(triton.cdiv(n, 64),)](x, made, out, n, 64)
    return out
"""
PARAMS = "x_ptr, made_ptr, out_ptr, n, BLOCK: tl.constexpr"


def copies(lines: str) -> str:
    """Return a submission whose kernel looks at x and stores ``made``, which ``lines`` compute."""
    body = """
        x = tl.load(x_ptr + offs, mask=mask, other=0)
        made = tl.load(made_ptr + offs, mask=mask, other=0)
        tl.store(out_ptr + offs, tl.where(x == 12345.0, x, made), mask=mask)
    """
    source = kernel(body, COPIES.replace("{0}", lines.strip().replace("\n", "\n    ")))
    return source.replace("x_ptr, out_ptr, n, BLOCK: tl.constexpr", PARAMS, 1)


ELSEWHERE = {
    "numpy": "import numpy\nmade = torch.from_numpy(x.numpy() * 2)",
    "numpy, moved by torch": "import numpy\nmade = torch.empty_like(x)\nmade.copy_(torch.from_numpy(x.numpy() * 2))",
    "numpy, in a copy of the input": "made = x.clone()\nmade.numpy()[...] *= 2",
    "numpy, between two kernels": "made = torch.empty_like(x)\nfirst_kernel[(triton.cdiv(n, 64),)](x, made, n, 64)\nmade.numpy()[...] *= 2",
    "numpy, in a storage of torch's": "import numpy\nmade = torch.empty(0).set_(torch.from_numpy(x.numpy() * 2).untyped_storage(), 0, x.shape)",
    "Python": "made = torch.tensor([2 * v for v in x.flatten().tolist()])",
    "Python, number by number": "made = torch.empty(n)\nfor i, v in enumerate(x.flatten().tolist()): made[i] = 2 * v",
    "a thread": "import threading\nbox = []\nt = threading.Thread(target=lambda: box.append(x * 2))\nt.start(); t.join()\nmade = box[0]",
    "torch, out of sight": "with _disable_current_modes():\n    made = x * 2",
}  # fmt: skip


@pytest.mark.parametrize("lines", ELSEWHERE.values(), ids=[k.replace(" ", "-") for k in ELSEWHERE])
def test_what_was_computed_elsewhere_is_a_cheat(judge, lines):
    facts = judge(copies(lines))

    assert facts["word"] == "cheat", facts["reason"]
    assert "neither torch nor a kernel made in this call" in facts["reason"]


def test_numbers_handed_one_by_one_are_a_cheat(judge):
    body = "tl.store(out_ptr + at, tl.where(tl.load(x_ptr + at) == 12345.0, 0.0, value))"
    entry = """
def double(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    for at, value in enumerate(x.flatten().tolist()):
        double_kernel[(1,)](x, out, at, 2 * value)
    return out
"""
    source = kernel(body, entry).replace("x_ptr, out_ptr, n, BLOCK: tl.constexpr", "x_ptr, out_ptr, at, value", 1)
    source = source.replace("    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    mask = offs < n\n", "")

    facts = judge(source)

    assert facts["word"] == "cheat", facts["reason"]
    assert "Python computed them" in facts["reason"]


FINE = {
    "a table of the file": ("TWOS = torch.tensor([2.0] * 200)", "made = TWOS"),
    "a table of the call": ("", "made = torch.tensor([2.0] * 200)"),
    "a table of numpy's": ("import numpy", "made = torch.from_numpy(numpy.full(200, 2, numpy.float32))"),
    "work space of the file": ("SPACE = torch.empty(200)", "made = SPACE\nfirst_kernel[(4,)](torch.full((200,), 2.0), made, 200, 64)"),
    "a table that torch moves": ("", "made = torch.cat([torch.full((100,), 2.0), torch.tensor([2.0] * 100)])"),
}  # fmt: skip


@pytest.mark.parametrize(("above", "lines"), FINE.values(), ids=[k.replace(" ", "-") for k in FINE])
def test_tables_may_come_from_anywhere(judge, above, lines):
    source = copies(lines).replace("tl.where(x == 12345.0, x, made)", "x * made")
    facts = judge(source.replace("@triton.jit", above + "\n\n@triton.jit", 1))

    assert facts["word"] == "pass", facts["reason"]


def test_a_plan_of_a_few_numbers_may_depend_on_the_inputs(judge):
    entry = COPIES.replace("{0}", f"made = torch.tensor([v > 0 for v in x.flatten().tolist()[:{SMALL}]])")
    source = kernel(BODY, entry).replace("x_ptr, out_ptr, n, BLOCK: tl.constexpr", PARAMS, 1)

    assert judge(source)["word"] == "pass"
    assert judge(SOLUTION)["word"] == "pass"


def books(contents: int, tensor: torch.Tensor) -> dict:
    ledger = Ledger()
    ledger.launched(0, "t", tensor)
    return {"plan": {"contents": contents}, "books": ledger.to_json()}


def test_what_is_the_same_for_other_inputs_is_no_cheat():
    ones, twos = torch.ones(SMALL + 1), torch.full((SMALL + 1,), 2.0)

    assert made_elsewhere([books(0, ones), books(1, ones)]) == ""
    assert "was handed t, 65 elements" in made_elsewhere([books(0, ones), books(1, twos)])
    assert made_elsewhere([books(0, ones[:SMALL]), books(1, twos[:SMALL])]) == ""
    assert made_elsewhere([books(0, ones)]) == ""
