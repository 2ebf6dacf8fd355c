"""Reads the row three times, for the maximum, the sum and the output, with a launch for each: twice the least traffic.

VERDICT: slow
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, max_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=float("-inf")).to(tl.float32)
    tl.store(max_ptr + row, tl.max(x, axis=0))


@triton.jit
def exp_kernel(x_ptr, max_ptr, sum_ptr, p_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=float("-inf")).to(tl.float32)
    p = tl.exp(x - tl.load(max_ptr + row))
    tl.store(sum_ptr + row, tl.sum(p, axis=0))
    tl.store(p_ptr + row * N + cols, p, mask=cols < N)


@triton.jit
def divide_kernel(p_ptr, sum_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    p = tl.load(p_ptr + row * N + cols, mask=cols < N, other=0.0)
    out = p / tl.load(sum_ptr + row)
    tl.store(out_ptr + row * N + cols, out.to(out_ptr.dtype.element_ty), mask=cols < N)


def softmax(x):
    N = x.shape[-1]
    rows = x.reshape(-1, N)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    top, total = torch.empty((2, len(rows)), dtype=torch.float32, device=x.device)
    p = torch.empty(rows.shape, dtype=torch.float32, device=x.device)
    grid, BLOCK = (len(rows),), triton.next_power_of_2(N)
    max_kernel[grid](rows, top, N, *rows.stride(), BLOCK=BLOCK, num_warps=32)
    exp_kernel[grid](rows, top, total, p, N, *rows.stride(), BLOCK=BLOCK, num_warps=32)
    divide_kernel[grid](p, total, out, N, BLOCK=BLOCK, num_warps=32)
    return out
