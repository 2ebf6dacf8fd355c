"""Looks at fifteen tokens at most: the mask ends one short of the tile.

VERDICT: wrong
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(
    x_ptr,
    weight_ptr,
    out_ptr,
    B,
    N,
    K,
    stride_xb,
    stride_xk,
    stride_wn,
    stride_wk,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    offs_n = tl.program_id(axis=0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_b = tl.arange(0, BLOCK_B).to(tl.int64)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    w_ptrs = weight_ptr + offs_n[:, None] * stride_wn + offs_k[None, :] * stride_wk
    x_ptrs = x_ptr + offs_k[:, None] * stride_xk + offs_b[None, :] * stride_xb
    acc = tl.zeros((BLOCK_N, BLOCK_B), tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k < K - k
        w = tl.load(w_ptrs, mask=(offs_n[:, None] < N) & mask_k[None, :], other=0.0)
        x = tl.load(x_ptrs, mask=mask_k[:, None] & (offs_b[None, :] < tl.minimum(B, 15)), other=0.0)
        acc = tl.dot(w, x, acc)
        w_ptrs += BLOCK_K * stride_wk
        x_ptrs += BLOCK_K * stride_xk
    out = tl.trans(acc).to(out_ptr.dtype.element_ty)
    mask = (offs_b[:, None] < B) & (offs_n[None, :] < N)
    tl.store(out_ptr + offs_b[:, None] * N + offs_n[None, :], out, mask=mask)


def linear(x, weight):
    (B, K), N = x.shape, weight.shape[0]
    out = torch.empty((B, N), dtype=x.dtype, device=x.device)
    BLOCK_N = 64 if N > 4096 else 16
    grid = (triton.cdiv(N, BLOCK_N),)
    linear_kernel[grid](
        x, weight, out, B, N, K, *x.stride(), *weight.stride(), BLOCK_B=16, BLOCK_N=BLOCK_N, BLOCK_K=128
    )
    return out
