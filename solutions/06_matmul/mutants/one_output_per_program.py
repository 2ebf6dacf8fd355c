"""One program per output reads a row of a and a column of b, N and M times each.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, out_ptr, N, K, stride_am, stride_ak, stride_bk, stride_bn, BLOCK_K: tl.constexpr):
    m, n = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BLOCK_K,), tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m * stride_am + offs_k * stride_ak, mask=offs_k < K, other=0.0)
        b = tl.load(b_ptr + offs_k * stride_bk + n * stride_bn, mask=offs_k < K, other=0.0)
        acc += a.to(tl.float32) * b.to(tl.float32)
    tl.store(out_ptr + m * N + n, tl.sum(acc, axis=0).to(out_ptr.dtype.element_ty))


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[(M, N)](a, b, out, N, K, *a.stride(), *b.stride(), BLOCK_K=256)
    return out
