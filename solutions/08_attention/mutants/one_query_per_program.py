"""A program has one query: all keys and values are loaded again for each of them, and no tensor core is in use.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, seq_lens_ptr, out_ptr, Hq, Hkv, Tq, Tk, D, qk_scale,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    IS_CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    b, h, m = tl.program_id(1) // Hq, tl.program_id(1) % Hq, tl.program_id(0)
    h_kv = h // (Hq // Hkv)
    offs_d = tl.arange(0, HEAD_DIM)
    mask_d = offs_d < D
    q_ptrs = q_ptr + b * stride_qb + h * stride_qh + m * stride_qm + offs_d * stride_qd
    q = tl.load(q_ptrs, mask=mask_d, other=0.0).to(tl.float32)
    n_keys = Tk
    if seq_lens_ptr is not None:
        n_keys = tl.load(seq_lens_ptr + b)
    if IS_CAUSAL:
        n_keys = tl.maximum(tl.minimum(n_keys, m + 1 + n_keys - Tq), 0)
    m_i = -3.4028234663852886e38
    l_i = 0.0
    acc = tl.zeros((HEAD_DIM,), tl.float32)
    for start in range(0, n_keys, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        mask_n = (n < n_keys)[:, None] & mask_d[None, :]
        k_ptrs = k_ptr + b * stride_kb + h_kv * stride_kh + n[:, None] * stride_kn + offs_d[None, :] * stride_kd
        v_ptrs = v_ptr + b * stride_vb + h_kv * stride_vh + n[:, None] * stride_vn + offs_d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=mask_n, other=0.0).to(tl.float32)
        v = tl.load(v_ptrs, mask=mask_n, other=0.0).to(tl.float32)
        qk = tl.where(n < n_keys, tl.sum(k * q[None, :], axis=1) * qk_scale, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, axis=0))
        p = tl.exp2(qk - m_new)
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=0)
        acc = acc * alpha + tl.sum(p[:, None] * v, axis=0)
        m_i = m_new
    out = acc / tl.where(l_i == 0.0, 1.0, l_i)
    out_ptrs = out_ptr + ((b * Hq + h) * Tq + m) * D + offs_d
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=mask_d)


def attention(q, k, v, *, causal, sm_scale, seq_lens):
    (B, Hq, Tq, D), (Hkv, Tk) = q.shape, k.shape[1:3]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    HEAD_DIM = max(triton.next_power_of_2(D), 16)
    attention_kernel[(Tq, B * Hq)](
        q, k, v, seq_lens, out, Hq, Hkv, Tq, Tk, D, sm_scale * 1.4426950408889634,
        *q.stride(), *k.stride(), *v.stride(), IS_CAUSAL=causal, HEAD_DIM=HEAD_DIM, BLOCK_N=64,
    )  # fmt: skip
    return out
