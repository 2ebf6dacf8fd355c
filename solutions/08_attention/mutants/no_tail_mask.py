"""Masks the scores behind the last key, but loads whatever lies there, garbage and other people's memory.

VERDICT: out-of-bounds
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, seq_lens_ptr, out_ptr, Hq, Hkv, Tq, Tk, D, qk_scale,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    IS_CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
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
    for start in range(0, n_keys, BLOCK_N):
        n = start + offs_n
        mask_n = (n < start + BLOCK_N)[:, None] & (offs_d < D)[None, :]
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
    out = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
    out_ptrs = out_ptr + ((b * Hq + h) * Tq + offs_m)[:, None] * D + offs_d[None, :]
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=mask_q)


def attention(q, k, v, *, causal, sm_scale, seq_lens):
    (B, Hq, Tq, D), (Hkv, Tk) = q.shape, k.shape[1:3]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    HEAD_DIM = max(triton.next_power_of_2(D), 16)
    attention_kernel[(triton.cdiv(Tq, 32), B * Hq)](
        q, k, v, seq_lens, out, Hq, Hkv, Tq, Tk, D, sm_scale * 1.4426950408889634,
        *q.stride(), *k.stride(), *v.stride(), IS_CAUSAL=causal, HEAD_DIM=HEAD_DIM, BLOCK_M=32, BLOCK_N=32,
    )  # fmt: skip
    return out
