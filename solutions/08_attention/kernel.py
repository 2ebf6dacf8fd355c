"""Attention without a score matrix: out = softmax(sm_scale * q @ k.T) @ v, for prefill and for decoding.

A program keeps some rows of queries and walks along the keys, a block at a time. Running maximum, running sum and
running output are enough to forget the scores of each block at once. All query heads that share a KV head are rows of
the same tile, so that each key is loaded once for all of them; with few rows, the keys are split between programs.
Source: https://arxiv.org/abs/2205.14135 (FlashAttention), https://arxiv.org/abs/2305.13245 (grouped queries)
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def attend(
    acc, l_i, m_i, q, k_desc, v_desc, b, h_kv, start, last, n_keys, qk_scale,
    IS_MASKED: tl.constexpr, HAS_LENS: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):  # fmt: skip
    """Take in the keys from `start` on: return acc, l_i and m_i, the sum, weight and largest score of each row so far.

    Scores are in base 2 (exp2 is what the hardware has): qk_scale is sm_scale * log2(e). acc and l_i are relative to
    exp2(m_i). `last` is the last key that each row may see; it and n_keys matter only if IS_MASKED.
    """
    # both are asked for before the first is needed: a wait between the two products would stop all warps
    k = k_desc.load([b, h_kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
    v = v_desc.load([b, h_kv, start, 0]).reshape(BLOCK_N, HEAD_DIM)
    qk = tl.dot(q, k.T)  # [BLOCK_M, BLOCK_N]
    if IS_MASKED:
        keys = start + tl.arange(0, BLOCK_N)
        qk = tl.where(keys[None, :] <= last[:, None], qk, float("-inf"))
        if HAS_LENS:  # behind Tk a descriptor reads zeros; what a cache holds behind n_keys, times 0, might be NaN
            v = tl.where((keys < n_keys)[:, None], v, 0.0)
    m_new = tl.maximum(m_i, tl.max(qk, axis=1) * qk_scale)
    p = tl.exp2(qk * qk_scale - m_new[:, None])
    # what was added up so far is relative to the old maximum
    alpha = tl.exp2(m_i - m_new)
    l_i = l_i * alpha + tl.sum(p, axis=1)
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    return acc, l_i, m_new


@triton.jit
def attention_kernel(
    # inputs
    q_ptr,  # [B, Hkv * GROUP, Tq, D]
    k_desc,  # [B, Hkv, Tk, D], in blocks of [1, 1, BLOCK_N, HEAD_DIM]
    v_desc,  # likewise
    seq_lens_ptr,  # [B] int32, or None
    # output
    out_ptr,  # [B, Hkv * GROUP, Tq, D], contiguous
    # the parts of each split, for combine_kernel; None if IS_SPLIT is False
    acc_ptr,  # [B, Hkv * GROUP, Tq, number of splits, D] float32
    m_ptr,  # [B, Hkv * GROUP, Tq, number of splits] float32
    l_ptr,  # likewise
    # sizes
    Hkv,
    Tq,
    Tk,
    D,
    keys_per_split,  # a multiple of BLOCK_N
    qk_scale,
    stride_qb, stride_qh, stride_qm, stride_qd,
    # how
    IS_CAUSAL: tl.constexpr,
    IS_SPLIT: tl.constexpr,
    GROUP: tl.constexpr,  # query heads for each KV head
    HEAD_DIM: tl.constexpr,  # the power of two that D fits into, 16 or more
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """BLOCK_M rows of the queries of one KV head, over the keys of one split."""
    num_splits = tl.num_programs(2)
    # the last rows see the most keys: they go first, and the short ones fill the end
    pid_m = tl.num_programs(0) - 1 - tl.program_id(0)
    b = tl.program_id(1) // Hkv
    h_kv = tl.program_id(1) % Hkv
    split = tl.program_id(2)
    # row r is query r // GROUP of the group's head r % GROUP
    offs_r = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_t = offs_r // GROUP
    offs_h = h_kv * GROUP + offs_r % GROUP
    offs_d = tl.arange(0, HEAD_DIM)
    mask_q = (offs_t < Tq)[:, None] & (offs_d < D)[None, :]
    # int64, because these are multiplied by strides
    q_ptrs = q_ptr + b.to(tl.int64) * stride_qb
    q_ptrs += offs_h.to(tl.int64)[:, None] * stride_qh + offs_t.to(tl.int64)[:, None] * stride_qm
    q = tl.load(q_ptrs + offs_d[None, :] * stride_qd, mask=mask_q, other=0.0)  # [BLOCK_M, HEAD_DIM]

    n_keys = Tk
    HAS_LENS: tl.constexpr = seq_lens_ptr is not None
    if HAS_LENS:
        n_keys = tl.load(seq_lens_ptr + b)

    last = tl.zeros((BLOCK_M,), tl.int32) + (n_keys - 1)  # the last key that each row sees
    seen_by_all, seen_by_any = n_keys, n_keys
    if IS_CAUSAL:
        # bottom right: the last query sees the last key
        last = offs_t + (n_keys - Tq)
        first_t = pid_m * BLOCK_M // GROUP
        last_t = tl.minimum((pid_m * BLOCK_M + BLOCK_M - 1) // GROUP, Tq - 1)
        seen_by_all = tl.maximum(first_t + 1 + (n_keys - Tq), 0)
        seen_by_any = tl.maximum(last_t + 1 + (n_keys - Tq), 0)
    start_n = split * keys_per_split
    end_n = tl.minimum(start_n + keys_per_split, seen_by_any)
    # whole blocks that every row sees need no mask
    middle_n = tl.maximum(tl.minimum(seen_by_all // BLOCK_N * BLOCK_N, end_n), start_n)

    # from the lowest finite number, because -inf - -inf would be NaN in rows that see nothing
    m_i = tl.full((BLOCK_M,), -3.4028234663852886e38, tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    for start in range(start_n, middle_n, BLOCK_N):
        acc, l_i, m_i = attend(
            acc, l_i, m_i, q, k_desc, v_desc, b, h_kv, start, last, n_keys, qk_scale, False, HAS_LENS, BLOCK_N, HEAD_DIM
        )
    for start in range(middle_n, end_n, BLOCK_N):
        acc, l_i, m_i = attend(
            acc, l_i, m_i, q, k_desc, v_desc, b, h_kv, start, last, n_keys, qk_scale, True, HAS_LENS, BLOCK_N, HEAD_DIM
        )

    out_row = (b.to(tl.int64) * Hkv * GROUP + offs_h) * Tq + offs_t  # [BLOCK_M]
    if IS_SPLIT:
        part = out_row * num_splits + split
        tl.store(m_ptr + part, m_i, mask=offs_t < Tq)
        tl.store(l_ptr + part, l_i, mask=offs_t < Tq)
        tl.store(acc_ptr + part[:, None] * D + offs_d[None, :], acc, mask=mask_q)
    else:
        # a row that sees no key has the weight 0 and becomes zeros
        out = acc / tl.where(l_i == 0.0, 1.0, l_i)[:, None]
        tl.store(out_ptr + out_row[:, None] * D + offs_d[None, :], out.to(out_ptr.dtype.element_ty), mask=mask_q)


@triton.jit
def combine_kernel(
    acc_ptr,  # [rows, num_splits, D] float32
    m_ptr,  # [rows, num_splits] float32
    l_ptr,  # [rows, num_splits] float32
    out_ptr,  # [rows, D]
    num_splits,
    D,
    HEAD_DIM: tl.constexpr,
    SPLITS: tl.constexpr,  # the next power of two
):
    """One row: bring the splits to one maximum and add them up."""
    row = tl.program_id(0).to(tl.int64)
    splits = tl.arange(0, SPLITS)
    offs_d = tl.arange(0, HEAD_DIM)
    mask = splits < num_splits
    m_i = tl.load(m_ptr + row * num_splits + splits, mask=mask, other=-3.4028234663852886e38)  # [SPLITS]
    l_i = tl.load(l_ptr + row * num_splits + splits, mask=mask, other=0.0)  # [SPLITS]
    weight = tl.exp2(m_i - tl.max(m_i, axis=0))
    total = tl.sum(l_i * weight, axis=0)
    acc_ptrs = acc_ptr + (row * num_splits + splits)[:, None] * D + offs_d[None, :]
    acc = tl.load(acc_ptrs, mask=mask[:, None] & (offs_d < D)[None, :], other=0.0)  # [SPLITS, HEAD_DIM]
    out = tl.sum(acc * weight[:, None], axis=0) / tl.where(total == 0.0, 1.0, total)
    tl.store(out_ptr + row * D + offs_d, out.to(out_ptr.dtype.element_ty), mask=offs_d < D)


def for_descriptor(x: torch.Tensor) -> torch.Tensor:
    """Return x, or a copy of it that a tensor descriptor can address: rows contiguous and on multiples of 16 bytes."""
    size = x.element_size()
    if x.stride(-1) == 1 and x.data_ptr() % 16 == 0 and all(s * size % 16 == 0 for s in x.stride()[:-1]):
        return x
    D = x.shape[-1]
    return torch.empty((*x.shape[:-1], triton.cdiv(D, 8) * 8), dtype=x.dtype, device=x.device)[..., :D].copy_(x)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, sm_scale: float, seq_lens: torch.Tensor | None
) -> torch.Tensor:
    """Return softmax(sm_scale * q @ k.T) @ v for each head.

    Args:
        q: [B, Hq, Tq, D] float16 or bfloat16, any strides, D up to 256.
        k, v: [B, Hkv, Tk, D], dtype of q, any strides; head h of q reads head h // (Hq / Hkv).
        causal: whether query i sees only the keys j <= i + n - Tq, where n is the number of valid keys.
        sm_scale: positive.
        seq_lens: [B] int32, the number of valid keys, 0 to Tk; None means Tk. What lies behind them is not looked at.

    Returns:
        [B, Hq, Tq, D], dtype of q, contiguous. A query that sees no key gets zeros.

    Cost: reads q, and k and v once for all query heads; 4 * D operations for each score.
    """
    B, Hq, Tq, D = q.shape
    Hkv, Tk = k.shape[1:3]
    if Hq % Hkv or v.shape != k.shape or k.shape != (B, Hkv, Tk, D):
        raise ValueError(f"q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)} do not fit together")
    GROUP = Hq // Hkv
    k, v = for_descriptor(k), for_descriptor(v)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    HEAD_DIM = max(triton.next_power_of_2(D), 16)
    BLOCK_M, BLOCK_N = (16 if GROUP * Tq <= 16 else 64), 64
    row_tiles = triton.cdiv(GROUP * Tq, BLOCK_M)
    # a decoding step has few rows: without splits there would be fewer programs than it takes to keep memory busy
    wanted = 16 * torch.cuda.get_device_properties(q.device).multi_processor_count // max(row_tiles * B * Hkv, 1)
    keys_per_split = triton.cdiv(max(triton.cdiv(Tk, max(wanted, 1)), 256), BLOCK_N) * BLOCK_N
    num_splits = triton.cdiv(Tk, keys_per_split)
    acc, m_i, l_i = None, None, None
    if num_splits > 1:
        acc = torch.empty((B, Hq, Tq, num_splits, D), dtype=torch.float32, device=q.device)
        m_i, l_i = torch.empty((2, B, Hq, Tq, num_splits), dtype=torch.float32, device=q.device)
    block = [1, 1, BLOCK_N, HEAD_DIM]
    attention_kernel[(row_tiles, B * Hkv, num_splits)](
        q, TensorDescriptor.from_tensor(k, block), TensorDescriptor.from_tensor(v, block), seq_lens,
        out, acc, m_i, l_i,
        Hkv, Tq, Tk, D, keys_per_split, sm_scale * 1.4426950408889634,
        *q.stride(),
        IS_CAUSAL=causal, IS_SPLIT=num_splits > 1, GROUP=GROUP, HEAD_DIM=HEAD_DIM,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=3 if HEAD_DIM <= 128 else 2,
    )  # fmt: skip
    if num_splits > 1:
        combine_kernel[(B * Hq * Tq,)](
            acc, m_i, l_i, out, num_splits, D, HEAD_DIM=HEAD_DIM, SPLITS=triton.next_power_of_2(num_splits), num_warps=1
        )
    return out
