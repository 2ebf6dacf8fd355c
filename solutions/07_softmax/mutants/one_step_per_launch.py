"""A launch each for the difference, exp and the division, with a buffer between them: three times the least traffic.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def below_max_kernel(x_ptr, d_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N, other=float("-inf")).to(tl.float32)
    tl.store(d_ptr + row * N + cols, x - tl.max(x, axis=0), mask=cols < N)


@triton.jit
def exp_kernel(d_ptr, p_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    tl.store(p_ptr + row * N + cols, tl.exp(tl.load(d_ptr + row * N + cols, mask=cols < N, other=0.0)), mask=cols < N)


@triton.jit
def divide_kernel(p_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    p = tl.load(p_ptr + row * N + cols, mask=cols < N, other=0.0)
    tl.store(out_ptr + row * N + cols, (p / tl.sum(p, axis=0)).to(out_ptr.dtype.element_ty), mask=cols < N)


def softmax(x):
    N = x.shape[-1]
    rows = x.reshape(-1, N)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    d, p = torch.empty((2, *rows.shape), dtype=torch.float32, device=x.device)
    grid, BLOCK = (len(rows),), triton.next_power_of_2(N)
    below_max_kernel[grid](rows, d, N, *rows.stride(), BLOCK=BLOCK, num_warps=32)
    exp_kernel[grid](d, p, N, BLOCK=BLOCK, num_warps=32)
    divide_kernel[grid](p, out, N, BLOCK=BLOCK, num_warps=32)
    return out
