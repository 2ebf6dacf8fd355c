"""One launch per slab of K adds its part to a sum in memory, which is read and written again each time.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def slab_kernel(
    a_ptr, b_ptr, work_ptr, out_ptr, k, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    IS_FIRST: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = k + tl.arange(0, BLOCK_K)
    mask_m, mask_n = offs_m[:, None] < M, offs_n[None, :] < N
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    a = tl.load(a_ptrs, mask=mask_m & (offs_k[None, :] < K), other=0.0)
    b = tl.load(b_ptrs, mask=mask_n & (offs_k[:, None] < K), other=0.0)
    offs = offs_m[:, None] * N + offs_n[None, :]
    acc = tl.dot(a, b, input_precision="ieee")
    if not IS_FIRST:
        acc += tl.load(work_ptr + offs, mask=mask_m & mask_n, other=0.0)
    tl.store(work_ptr + offs, acc, mask=mask_m & mask_n)
    tl.store(out_ptr + offs, acc.to(out_ptr.dtype.element_ty), mask=mask_m & mask_n)


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    work = torch.empty((M, N), dtype=torch.float32, device=a.device)
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    for k in range(0, K, 32):
        slab_kernel[grid](
            a, b, work, out, k, M, N, K, *a.stride(), *b.stride(), k == 0, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32
        )
    return out
