"""Splits the keys and adds up outputs and sums that are relative to different maxima.

VERDICT: wrong
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, seq_lens_ptr, part_ptr, stats_ptr, out_ptr, Hq, Hkv, Tq, Tk, D, qk_scale,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    IS_CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    b, h = tl.program_id(1) // Hq, tl.program_id(1) % Hq
    h_kv = h // (Hq // Hkv)
    offs_m, offs_n = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    mask_q = (offs_m < Tq)[:, None] & (offs_d < D)[None, :]
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=mask_q, other=0.0)
    n_keys = Tk
    if seq_lens_ptr is not None:
        n_keys = tl.load(seq_lens_ptr + b)
    m_i = tl.full((BLOCK_M,), -3.4028234663852886e38, tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    split, num_splits = tl.program_id(2), tl.num_programs(2)
    first = split * KEYS
    for start in range(first, tl.minimum(first + KEYS, n_keys), BLOCK_N):
        n = start + offs_n
        mask_n = (n < n_keys)[:, None] & (offs_d < D)[None, :]
        k_ptrs = k_ptr + b * stride_kb + h_kv * stride_kh + n[:, None] * stride_kn + offs_d[None, :] * stride_kd
        k = tl.load(k_ptrs, mask=mask_n, other=0.0)
        qk = tl.dot(q, tl.trans(k)) * qk_scale
        seen = n[None, :] < n_keys
        if IS_CAUSAL:
            seen = seen & (n[None, :] <= offs_m[:, None] + n_keys - Tq)
        qk = tl.where(seen, qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v_ptrs = v_ptr + b * stride_vb + h_kv * stride_vh + n[:, None] * stride_vn + offs_d[None, :] * stride_vd
        v = tl.load(v_ptrs, mask=mask_n, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    row = (b * Hq + h) * Tq + offs_m
    part = row * num_splits + split
    tl.store(part_ptr + part[:, None] * D + offs_d[None, :], acc, mask=mask_q)
    tl.store(stats_ptr + 2 * part, m_i, mask=offs_m < Tq)
    tl.store(stats_ptr + 2 * part + 1, l_i, mask=offs_m < Tq)


@triton.jit
def combine_kernel(part_ptr, stats_ptr, out_ptr, num_splits, D, HEAD_DIM: tl.constexpr):
    row = tl.program_id(0)
    offs_d = tl.arange(0, HEAD_DIM)
    acc = tl.zeros((HEAD_DIM,), tl.float32)
    used = 0.0
    for split in range(num_splits):
        part = row * num_splits + split
        l_i = tl.load(stats_ptr + 2 * part + 1)
        acc += tl.load(part_ptr + part * D + offs_d, mask=offs_d < D, other=0.0)
        used += l_i
    out = acc / tl.where(used == 0.0, 1.0, used)
    tl.store(out_ptr + row * D + offs_d, out.to(out_ptr.dtype.element_ty), mask=offs_d < D)


def attention(q, k, v, *, causal, sm_scale, seq_lens):
    (B, Hq, Tq, D), (Hkv, Tk) = q.shape, k.shape[1:3]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    HEAD_DIM = max(triton.next_power_of_2(D), 16)
    num_splits = triton.cdiv(Tk, 128)
    parts = torch.empty((B, Hq, Tq, num_splits, D), dtype=torch.float32, device=q.device)
    stats = torch.empty((B, Hq, Tq, num_splits, 2), dtype=torch.float32, device=q.device)
    attention_kernel[(triton.cdiv(Tq, 32), B * Hq, num_splits)](
        q, k, v, seq_lens, parts, stats, out, Hq, Hkv, Tq, Tk, D, sm_scale * 1.4426950408889634,
        *q.stride(), *k.stride(), *v.stride(), IS_CAUSAL=causal, HEAD_DIM=HEAD_DIM, BLOCK_M=32, BLOCK_N=32,
        KEYS=128,
    )  # fmt: skip
    combine_kernel[(B * Hq * Tq,)](parts, stats, out, num_splits, D, HEAD_DIM=HEAD_DIM)
    return out
