"""Tensor descriptors: what a GPU refuses is an error at the learner's line; blocks may start anywhere."""

from __future__ import annotations

import numpy as np
import pytest

from harness.interpreted.descriptors import addresses, fault
from harness.tests.toys import HEAD


@pytest.mark.parametrize(("base", "strides", "size", "says"), [
    (1 << 20, [8, 1], 2, ""),
    (1 << 20, [3, 16, 1], 1, "stride 0 of the tensor descriptor is 3 elements, 3 bytes"),
    (1 << 20, [16, 24, 1], 1, "stride 1 of the tensor descriptor is 24 elements, 24 bytes"),
    ((1 << 20) + 6, [8, 1], 2, "starts 6 bytes past a multiple of 16"),
    (1 << 20, [8, 2], 2, "the last stride of the tensor descriptor is 2"),
    (1 << 20, [1], 4, ""),
])  # fmt: skip
def test_what_a_gpu_takes(base, strides, size, says):
    text = fault(base, strides, size)

    assert says in text
    assert bool(text) == bool(says)


def test_a_block_lies_where_the_strides_say_and_ends_where_the_shape_says():
    where, inside = addresses(1000, [3, 5], [8, 1], [2, 4], [2, -1], 2)

    assert where.dtype == np.uint64
    assert (where[0] - where[0, 0] == [0, 2, 4, 6]).all()
    assert where[1, 1] == 1000 + 3 * 16
    assert inside.tolist() == [[False, True, True, True], [False] * 4]


MADE = (
    HEAD
    + """
@triton.jit
def double_kernel(x_ptr, out_ptr, M, N, stride, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[stride, 1], block_shape=[BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN - {shift}
    offs_m, offs_n = m + tl.arange(0, BM), n + tl.arange(0, BN)
    mask = (offs_m < M)[:, None] & ((offs_n >= 0) & (offs_n < N))[None, :]
    tl.store(out_ptr + offs_m[:, None] * N + offs_n[None, :], x.load([m, n]) * 2, mask=mask)


def double(x):
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=x.device))
    (M, N), out = x.shape, torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows = torch.empty((M, {width}), dtype=x.dtype, device=x.device)[:, {first}:{first} + N]
    rows.copy_(x)
    double_kernel[(triton.cdiv(M, 4), triton.cdiv(N + {shift}, 32))](rows, out, M, N, rows.stride(0), 4, 32)
    return out
"""
)


def made(width: int, first: int = 0, shift: int = 0) -> str:
    """Return a submission with a descriptor of rows of ``width`` floats that begin at the float ``first``."""
    return MADE.replace("{width}", str(width)).replace("{first}", str(first)).replace("{shift}", str(shift))


def test_rows_that_are_no_multiple_of_16_bytes_are_an_error(judge):
    facts = judge(made(50))

    assert facts["word"] == "error"
    assert (
        "line 8: stride 0 of the tensor descriptor is 50 elements, 200 bytes; a GPU wants a multiple of 16"
        in facts["reason"]
    )


def test_a_base_that_is_no_multiple_of_16_bytes_is_an_error(judge):
    facts = judge(made(64, first=3))

    assert facts["word"] == "error"
    assert "line 8: the tensor descriptor starts 12 bytes past a multiple of 16" in facts["reason"]


@pytest.mark.parametrize(("first", "shift"), [(0, 0), (4, 0), (0, 3)])
def test_padded_rows_pass_wherever_a_block_starts(judge, first, shift):
    facts = judge(made(64, first, shift), compiled=True)

    assert facts["word"] == "pass", facts["reason"]


def test_a_descriptor_of_the_launcher_says_what_to_do(judge):
    source = (
        HEAD
        + """
from triton.tools.tensor_descriptor import TensorDescriptor


def double(x):
    return TensorDescriptor.from_tensor(x, [4, 32])
"""
    )
    facts = judge(source)

    assert facts["word"] == "error"
    assert "copy what is not so into rows of a padded width, or use plain pointers" in facts["reason"]
