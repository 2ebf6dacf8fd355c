"""Stores the scores, reads them for the softmax, stores the weights, and reads those for the output.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(
    q_ptr, k_ptr, seq_lens_ptr, scores_ptr, Hq, Hkv, Tq, Tk, D, qk_scale,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    IS_CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(2) // Hq, tl.program_id(2) % Hq
    h_kv = h // (Hq // Hkv)
    offs_m, offs_d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd
    k_ptrs = k_ptr + b * stride_kb + h_kv * stride_kh + n[:, None] * stride_kn + offs_d[None, :] * stride_kd
    q = tl.load(q_ptrs, mask=(offs_m < Tq)[:, None] & (offs_d < D)[None, :], other=0.0)
    k = tl.load(k_ptrs, mask=(n < Tk)[:, None] & (offs_d < D)[None, :], other=0.0)
    n_keys = Tk
    if seq_lens_ptr is not None:
        n_keys = tl.load(seq_lens_ptr + b)
    seen = n[None, :] < n_keys
    if IS_CAUSAL:
        seen = seen & (n[None, :] <= offs_m[:, None] + n_keys - Tq)
    qk = tl.where(seen, tl.dot(q, tl.trans(k)) * qk_scale, float("-inf"))
    ptrs = scores_ptr + (tl.program_id(2) * Tq + offs_m)[:, None] * Tk + n[None, :]
    tl.store(ptrs, qk, mask=(offs_m < Tq)[:, None] & (n < Tk)[None, :])


@triton.jit
def softmax_kernel(scores_ptr, weights_ptr, Tk, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(scores_ptr + row * Tk + offs, mask=offs < Tk, other=float("-inf"))
    p = tl.exp2(x - tl.maximum(tl.max(x, axis=0), -3.4028234663852886e38))
    total = tl.sum(p, axis=0)
    p = p / tl.where(total == 0.0, 1.0, total)
    tl.store(weights_ptr + row * Tk + offs, p.to(weights_ptr.dtype.element_ty), mask=offs < Tk)


@triton.jit
def output_kernel(
    weights_ptr, v_ptr, out_ptr, Hq, Hkv, Tq, Tk, D, stride_vb, stride_vh, stride_vn, stride_vd,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // Hq, tl.program_id(1) % Hq
    h_kv = h // (Hq // Hkv)
    offs_m, offs_d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
    row = tl.program_id(1) * Tq + offs_m
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    for start in range(0, Tk, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        p_ptrs = weights_ptr + row[:, None] * Tk + n[None, :]
        v_ptrs = v_ptr + b * stride_vb + h_kv * stride_vh + n[:, None] * stride_vn + offs_d[None, :] * stride_vd
        p = tl.load(p_ptrs, mask=(offs_m < Tq)[:, None] & (n < Tk)[None, :], other=0.0)
        v = tl.load(v_ptrs, mask=(n < Tk)[:, None] & (offs_d < D)[None, :], other=0.0)
        acc = tl.dot(p, v, acc)
    mask = (offs_m < Tq)[:, None] & (offs_d < D)[None, :]
    tl.store(out_ptr + row[:, None] * D + offs_d[None, :], acc.to(out_ptr.dtype.element_ty), mask=mask)


def attention(q, k, v, *, causal, sm_scale, seq_lens):
    (B, Hq, Tq, D), (Hkv, Tk) = q.shape, k.shape[1:3]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    scores = torch.empty((B, Hq, Tq, Tk), dtype=torch.float32, device=q.device)
    weights = torch.empty((B, Hq, Tq, Tk), dtype=q.dtype, device=q.device)
    HEAD_DIM = max(triton.next_power_of_2(D), 16)
    scores_kernel[(triton.cdiv(Tq, 32), triton.cdiv(Tk, 32), B * Hq)](
        q, k, seq_lens, scores, Hq, Hkv, Tq, Tk, D, sm_scale * 1.4426950408889634,
        *q.stride(), *k.stride(), IS_CAUSAL=causal, HEAD_DIM=HEAD_DIM, BLOCK_M=32, BLOCK_N=32,
    )  # fmt: skip
    softmax_kernel[(B * Hq * Tq,)](scores, weights, Tk, BLOCK=triton.next_power_of_2(Tk))
    output_kernel[(triton.cdiv(Tq, 32), B * Hq)](
        weights, v, out, Hq, Hkv, Tq, Tk, D, *v.stride(), HEAD_DIM=HEAD_DIM, BLOCK_M=32, BLOCK_N=32
    )
    return out
