"""Softmax over the last dim: out[m, n] = exp(x[m, n] - max_n x[m, n]) / sum_n exp(x[m, n] - max_n x[m, n]).

A row that fits into one tile is read once; a longer row keeps a running maximum and sum, and is read twice.
Source: https://arxiv.org/abs/1805.02867 (online softmax)
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def load_row(row_ptr, offs, N, stride_xn, EVICT: tl.constexpr):
    """Return row[offs] * log2(e) in float32: exp(x) is exp2 of that, and exp2 is what the hardware has.

    Past the end it is what changes neither a maximum nor a sum of exponentials. EVICT says how soon the L2 may drop it.
    """
    # TODO(1/3, ~2 lines): this function returns that; offs * stride_xn may pass 2**31


@triton.jit
def softmax_kernel(
    x_ptr,  # [M, N]
    out_ptr,  # [M, N], contiguous
    N,
    stride_xm,
    stride_xn,
    IS_ONE_TILE: tl.constexpr,  # whether N <= BLOCK
    BLOCK: tl.constexpr,
):
    """One program per row, float32 inside."""
    row = tl.program_id(0).to(tl.int64)  # int64, because row * stride passes 2**31
    row_ptr = x_ptr + row * stride_xm
    out_row_ptr = out_ptr + row * N
    cols = tl.arange(0, BLOCK)
    if IS_ONE_TILE:
        mask = cols < N
        # TODO(2/3, ~4 lines): the row was read once, and its softmax stands in the output
    else:
        l_i = tl.zeros((BLOCK,), tl.float32)  # the sum of each lane, relative to the lane's maximum
        # TODO(3/3, ~11 lines): the softmax of this longer row stands in the output; it was read twice, tile by tile


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return softmax(x, dim=-1).

    Args:
        x: [..., N] float32, float16 or bfloat16, any strides, any number of rows, N >= 1.

    Returns:
        Shape and dtype of x, contiguous. As in torch a row of -inf, or with +inf or NaN in it, becomes NaN.
    """
    N = x.shape[-1]
    rows = x.reshape(-1, N)  # a view where the strides allow it
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = min(triton.next_power_of_2(N), 16384)
    warps = min(max(BLOCK // 512, 1), 32)
    softmax_kernel[(len(rows),)](rows, out, N, *rows.stride(), N <= BLOCK, BLOCK, num_warps=warps)
    return out
