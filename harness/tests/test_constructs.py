"""What a kernel file does, read from its source: each construct, and the differences of two files, both ways."""

import pytest

from harness.diagnosis.constructs import constructs, difference
from harness.tests import toys


def kernel(body="pass", launch="", head="@triton.jit"):
    """Return a file with one kernel and a launcher."""
    return f"""
import triton
import triton.language as tl

{head}
def f_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    {body}

def f(x):
    {launch or "f_kernel[(1,)](x, x, 4)"}
"""


CASES = {
    "masks": (
        kernel("x = tl.load(x_ptr, mask=m, other=0)\n    y = tl.load(x_ptr, m)\n    tl.store(out_ptr, x, m)"),
        {
            "tl.load in the file": "2",
            "a mask on tl.load": "2 of 2",
            "other= on masked loads, so that masked lanes hold a known value": "1 of 2",
            "tl.store in the file": "1",
            "a mask on tl.store": "1 of 1",
        },
    ),
    "no mask": (kernel("x = tl.load(x_ptr, mask=None)"), {"tl.load in the file": "1"}),
    "caches": (
        kernel("x = tl.load(x_ptr, eviction_policy='evict_first', cache_modifier='')"),
        {
            "tl.load in the file": "1",
            "eviction_policy on tl.load, a wish about what stays in the cache": "'evict_first'",
        },
    ),
    "joining": (
        kernel("x = tl.interleave(a, tl.join(b, c))"),
        {
            "tl.interleave, two blocks become one whose elements alternate: one store for neighbouring addresses": "",
            "tl.join, two blocks become one with a last axis of two": "",
        },
    ),
    "loops": (
        kernel("for i in tl.static_range(4):\n        while i:\n            pass"),
        {"loops inside the kernels": "2", "tl.static_range, a loop that is unrolled when it is compiled": ""},
    ),
    "casts": (
        kernel("x = (tl.program_id(0).to(tl.int64) + tl.zeros((4,), dtype=tl.float32)).to(dtype=tl.int32)"),
        {
            "a cast to int64, so that large offsets do not wrap around": "",
            "float32 arithmetic on narrower inputs": "",
            "tl.zeros": "",
        },
    ),
    "launch options": (
        kernel(launch="warps = 8\n    f_kernel[(1,)](x, x, 4, BLOCK=256, num_warps=warps, num_stages=2)"),
        {"num_warps at the launch": "8", "num_stages at the launch": "2", "BLOCK": "256"},
    ),
    "block sizes": (
        kernel(launch="BLOCK = 1024\n    BLOCK_M, other = 16, 2\n    f_kernel[(1,)](x, x, 4, BLOCK=BLOCK)"),
        {"BLOCK": "1024", "BLOCK_M": "16"},
    ),
    "launches": (
        kernel(launch="f_kernel[(1,)](x, x, 4)\n    for i in x:\n        f_kernel[lambda meta: (1,)](x, x, 4)"),
        {"launches in the file": "2", "a launch in a loop of the launcher": ""},
    ),
    "autotune": (
        kernel(head="@triton.autotune([triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 128})], [])\n@triton.jit"),
        {"@triton.autotune, which tries several launch options": "", "BLOCK": "64 and 128"},
    ),
    "tensors": (
        kernel(launch="out = torch.empty_like(x.contiguous())\n    f_kernel[(1,)](x, out, 4)"),
        {
            "tensors made by the launcher": "1",
            ".contiguous() in the launcher, a copy where the strides are not the plain ones": "",
        },
    ),
    "no kernel": ("def f(x):\n    return x[0](1)\n", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_construct_is_seen(name):
    source, wanted = CASES[name]
    found = constructs(source)

    if "launches in the file" not in wanted:
        found.pop("launches in the file", None)
    assert found == wanted


def test_differences_go_both_ways():
    mine = kernel("x = tl.load(x_ptr)\n    tl.store(out_ptr, x)\n    tl.store(out_ptr, tl.where(x, 1, 2))")
    theirs = kernel("x = tl.load(x_ptr, mask=m)\n    tl.store(out_ptr, x)")
    found = difference(mine, theirs)

    assert found.only_reference == ("a mask on tl.load: 1 of 1",)
    assert found.only_yours == ("tl.where, a choice per lane",)
    assert found.changed == (("tl.store in the file", "2", "1"),)
    assert found


def test_a_file_does_not_differ_from_itself_with_other_names():
    assert not difference(toys.SOLUTION, toys.SOLUTION.replace("mask", "inside").replace("inside=", "mask="))


def test_a_syntax_error_is_raised():
    with pytest.raises(SyntaxError):
        difference("def f(:", toys.SOLUTION)


def test_every_kernel_of_the_course_can_be_read():
    for kata in toys.load_course().katas:
        for file in (kata.solution, *kata.mutants()):
            if file.is_file():
                difference(kata.stub.read_text(encoding="utf-8"), file.read_text(encoding="utf-8"))
