"""A program owns one row of 256 outputs: each element of b is loaded once for every row of a.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, out_ptr, N, K, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_N: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N,), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + m * stride_am + k * stride_ak).to(tl.float32)
        b = tl.load(b_ptr + k * stride_bk + offs_n * stride_bn, mask=offs_n < N, other=0.0).to(tl.float32)
        acc += a * b
    tl.store(out_ptr + m * N + offs_n, acc.to(out_ptr.dtype.element_ty), mask=offs_n < N)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[(M, triton.cdiv(N, 256))](a, b, out, N, K, *a.stride(), *b.stride(), BLOCK_N=256)
    return out
