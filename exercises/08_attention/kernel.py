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
    # TODO(1/4, ~14 lines): this function returns that


@triton.jit
def attention_kernel(
    # inputs
    q_ptr,  # [B, Hkv * GROUP, Tq, D]
    k_desc,  # [B, Hkv, Tk, D], in blocks of [1, 1, BLOCK_N, HEAD_DIM]
    v_desc,  # likewise
    seq_lens_ptr,  # [B] int32, or None
    # output
    out_ptr,  # [B, Hkv * GROUP, Tq, D], contiguous
    # sizes
    Hkv,
    Tq,
    Tk,
    D,
    qk_scale,
    stride_qb, stride_qh, stride_qm, stride_qd,
    # how
    IS_CAUSAL: tl.constexpr,
    GROUP: tl.constexpr,  # query heads for each KV head
    HEAD_DIM: tl.constexpr,  # the power of two that D fits into, 16 or more
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """BLOCK_M rows of the queries of one KV head, over the keys of one split."""
    # TODO(2/4, ~28 lines): q holds this program's rows, and it is known which keys they may see

    # from the lowest finite number, because -inf - -inf would be NaN in rows that see nothing
    m_i = tl.full((BLOCK_M,), -3.4028234663852886e38, tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    # TODO(3/4, ~4 lines): acc, l_i and m_i are those of all these keys; whole blocks that every row sees had no mask

    # TODO(4/4, ~3 lines): the outputs stand in out; where there are few rows, the keys are split between programs


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
    raise NotImplementedError("attention: TODO, choose tiles and splits, and launch; README.md has hints")
