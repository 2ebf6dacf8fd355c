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
    ptrs = row_ptr + offs.to(tl.int64) * stride_xn
    return tl.load(ptrs, mask=offs < N, other=float("-inf"), eviction_policy=EVICT).to(tl.float32) * LOG2_E


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
        x = load_row(row_ptr, cols, N, stride_xn, "")  # [BLOCK]
        p = tl.exp2(x - tl.max(x, axis=0))
        out = p * (1.0 / tl.sum(p, axis=0))
        tl.store(out_row_ptr + cols, out.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        l_i = tl.zeros((BLOCK,), tl.float32)  # the sum of each lane, relative to the lane's maximum
        # that maximum starts from the lowest finite number: -inf - -inf would be NaN
        m_i = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
        for start in range(0, N, BLOCK):
            x = load_row(row_ptr, start + cols, N, stride_xn, "evict_last")  # [BLOCK], which is read again below
            m_new = tl.maximum(m_i, x)
            l_i = l_i * tl.exp2(m_i - m_new) + tl.exp2(x - m_new)
            m_i = m_new
        m = tl.max(m_i, axis=0)
        scale = 1.0 / tl.sum(l_i * tl.exp2(m_i - m), axis=0)
        for start in range(0, N, BLOCK):
            out = tl.exp2(load_row(row_ptr, start + cols, N, stride_xn, "evict_first") - m) * scale  # [BLOCK]
            tl.store(out_row_ptr + start + cols, out.to(out_ptr.dtype.element_ty), mask=start + cols < N)


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
