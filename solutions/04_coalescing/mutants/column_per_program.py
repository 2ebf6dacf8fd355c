"""Walks down the columns of x: each element that is read costs 32 bytes, whatever its size. The stores are perfect.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M, num_blocks, stride_xm, stride_xn, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    n = (pid // num_blocks).to(tl.int64)
    offs_m = (pid % num_blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs_m * stride_xm + n * stride_xn, mask=offs_m < M)
    tl.store(out_ptr + n * M + offs_m, x, mask=offs_m < M)


def transpose(x):
    M, N = x.shape
    out = torch.empty((N, M), dtype=x.dtype, device=x.device)
    num_blocks = triton.cdiv(M, 1024)
    transpose_kernel[(N * num_blocks,)](x, out, M, num_blocks, *x.stride(), BLOCK=1024)
    return out
