"""Reads along the rows of x and writes down the columns of the output: each element costs a write of 32 bytes, of which
memory has to read the rest first. The loads are perfect.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M, N, num_blocks, stride_xm, stride_xn, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    m = (pid // num_blocks).to(tl.int64)
    offs_n = (pid % num_blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + m * stride_xm + offs_n * stride_xn, mask=offs_n < N)
    tl.store(out_ptr + offs_n * M + m, x, mask=offs_n < N)


def transpose(x):
    M, N = x.shape
    out = torch.empty((N, M), dtype=x.dtype, device=x.device)
    num_blocks = triton.cdiv(N, 1024)
    transpose_kernel[(M * num_blocks,)](x, out, M, N, num_blocks, *x.stride(), BLOCK=1024)
    return out
