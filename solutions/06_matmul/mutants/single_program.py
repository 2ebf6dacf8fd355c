"""One program walks over all tiles: right, but one SM works and the others look on.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    num_pid_n = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * num_pid_n, tl.num_programs(0)):
        offs_m = tile // num_pid_n * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = tile % num_pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        mask_m, mask_n = offs_m[:, None] < M, offs_n[None, :] < N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            offs_k = k + tl.arange(0, BLOCK_K)
            a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
            b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
            a = tl.load(a_ptrs, mask=mask_m & (offs_k[None, :] < K), other=0.0)
            b = tl.load(b_ptrs, mask=mask_n & (offs_k[:, None] < K), other=0.0)
            acc = tl.dot(a, b, acc, input_precision="ieee")
        out_ptrs = out_ptr + offs_m[:, None] * N + offs_n[None, :]
        tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=mask_m & mask_n)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    matmul_kernel[(1,)](a, b, out, M, N, K, *a.stride(), *b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return out
