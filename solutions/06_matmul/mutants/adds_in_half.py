"""Splits K over programs that add atomically, as they may, but into an output that rounds to 16 bits at every addition.

VERDICT: wrong
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr, b_ptr, work_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    mask_m, mask_n = offs_m[:, None] < M, offs_n[None, :] < N
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    a = tl.load(a_ptrs, mask=mask_m & (offs_k[None, :] < K), other=0.0)
    b = tl.load(b_ptrs, mask=mask_n & (offs_k[:, None] < K), other=0.0)
    work_ptrs = work_ptr + offs_m[:, None] * N + offs_n[None, :]
    part = tl.dot(a, b, input_precision="ieee").to(work_ptr.dtype.element_ty)
    tl.atomic_add(work_ptrs, part, mask=mask_m & mask_n)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.zeros((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64), triton.cdiv(K, 32))
    part_kernel[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return out
