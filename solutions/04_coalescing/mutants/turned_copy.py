"""Copies x as it is and returns the copy's transpose: a view. The values are right, and nothing has moved to where it
belongs; whoever reads along a row of it walks down a column.

VERDICT: wrong
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, N, num_blocks, stride_xm, stride_xn, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    row = (pid // num_blocks).to(tl.int64)
    cols = (pid % num_blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < N)
    tl.store(out_ptr + row * N + cols, x, mask=cols < N)


def transpose(x):
    M, N = x.shape
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    num_blocks = triton.cdiv(N, 1024)
    copy_kernel[(M * num_blocks,)](x, out, N, num_blocks, *x.stride(), BLOCK=1024)
    return out.t()
