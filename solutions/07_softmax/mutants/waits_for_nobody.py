"""Splits a row between two programs: the first leaves maximum and sum in a buffer, the second takes them from there.

Nothing makes the second one wait. Right whenever programs happen to run one after the other, in order.

VERDICT: racy
KILLED BY: test_any_row_length
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stats_ptr, N, stride_xm, stride_xn, HALF: tl.constexpr):
    row = (tl.program_id(0) // 2).to(tl.int64)
    part = tl.program_id(0) % 2
    x_ptr += row * stride_xm
    cols = part * HALF + tl.arange(0, HALF)
    x = tl.load(x_ptr + cols.to(tl.int64) * stride_xn, mask=cols < N, other=float("-inf")).to(tl.float32)
    if part == 0:
        rest = HALF + tl.arange(0, HALF)
        y = tl.load(x_ptr + rest.to(tl.int64) * stride_xn, mask=rest < N, other=float("-inf")).to(tl.float32)
        m = tl.maximum(tl.max(x, axis=0), tl.max(y, axis=0))
        tl.store(stats_ptr + 2 * row, m)
        tl.store(stats_ptr + 2 * row + 1, tl.sum(tl.exp(x - m) + tl.exp(y - m), axis=0))
    top = tl.load(stats_ptr + 2 * row)
    out = tl.exp(x - top) / tl.load(stats_ptr + 2 * row + 1)
    tl.store(out_ptr + row * N + cols, out.to(out_ptr.dtype.element_ty), mask=cols < N)


def softmax(x):
    N = x.shape[-1]
    rows = x.reshape(-1, N)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    stats = torch.empty((len(rows), 2), dtype=torch.float32, device=x.device)
    HALF = max(triton.next_power_of_2(N) // 2, 1)
    softmax_kernel[(2 * len(rows),)](rows, out, stats, N, *rows.stride(), HALF=HALF, num_warps=32)
    return out
