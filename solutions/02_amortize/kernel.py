"""A linear layer for a handful of tokens: out[b, n] = sum over k of x[b, k] * weight[n, k].

A weight is two bytes to fetch and, for each token, one multiplication and one addition. Fetching takes the time, so a
weight that is in the chip should meet all tokens of the batch before it is dropped: sixteen then cost what one does.
Source: https://arxiv.org/abs/2402.16363 (roofline model of LLM inference)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(
    # inputs
    x_ptr,  # [B, K]
    weight_ptr,  # [N, K]
    # output
    out_ptr,  # [B, N], contiguous
    # sizes
    B,
    N,
    K,
    # strides
    stride_xb,
    stride_xk,
    stride_wn,
    stride_wk,
    # tile
    BLOCK_B: tl.constexpr,  # at least B; tl.dot wants 16 or more on every side
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """out[:, n] for the BLOCK_N outputs of this program, for all tokens.

    A tile of the weights is [BLOCK_N, BLOCK_K], one of the tokens [BLOCK_K, BLOCK_B]; the sums, float32, are
    [BLOCK_N, BLOCK_B].
    """
    # int64, because offs * stride passes 2**31 in a large layer
    offs_n = tl.program_id(axis=0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)  # [BLOCK_N]
    offs_b = tl.arange(0, BLOCK_B).to(tl.int64)  # [BLOCK_B]
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)  # [BLOCK_K]
    # step 1: the weights are the tall operand. Their 64 rows fill a tensor-core instruction, whose other side can be as
    # narrow as 16: the tokens, padded. A product of [16, K] and [K, 64] would have to turn every weight first
    w_ptrs = weight_ptr + offs_n[:, None] * stride_wn + offs_k[None, :] * stride_wk  # [BLOCK_N, BLOCK_K]
    x_ptrs = x_ptr + offs_k[:, None] * stride_xk + offs_b[None, :] * stride_xb  # [BLOCK_K, BLOCK_B]
    acc = tl.zeros((BLOCK_N, BLOCK_B), tl.float32)
    for k in range(0, K, BLOCK_K):
        mask_k = offs_k < K - k  # the last tile may be ragged
        # step 2: lanes past the end of a row, or beyond the last token, must add nothing: 0 on both sides, since what
        # lies there might be NaN, and 0 * NaN is NaN
        w = tl.load(w_ptrs, mask=(offs_n[:, None] < N) & mask_k[None, :], other=0.0)  # [BLOCK_N, BLOCK_K]
        x = tl.load(x_ptrs, mask=mask_k[:, None] & (offs_b[None, :] < B), other=0.0)  # [BLOCK_K, BLOCK_B]
        # step 3: all tokens at once. On CUDA cores 16 tokens would take longer than the memory does; here they are free
        acc = tl.dot(w, x, acc)
        w_ptrs += BLOCK_K * stride_wk
        x_ptrs += BLOCK_K * stride_xk
    # step 4: out[b, n] is acc[n, b]; neighbours in memory are neighbours in n
    out = tl.trans(acc).to(out_ptr.dtype.element_ty)  # [BLOCK_B, BLOCK_N]
    mask = (offs_b[:, None] < B) & (offs_n[None, :] < N)
    tl.store(out_ptr + offs_b[:, None] * N + offs_n[None, :], out, mask=mask)


def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return x @ weight.T, reading the weights once.

    Args:
        x: [B, K] float16 or bfloat16, any strides, B from 1 to 16.
        weight: [N, K], dtype of x, any strides; fast where its rows are dense.

    Returns:
        [B, N], contiguous, dtype of x.

    Raises:
        ValueError: shapes or dtypes do not match, or B is larger than 16.

    Cost: reads N * K + B * K, writes B * N elements; 2 * B * N * K operations.
    """
    if x.shape[1] != weight.shape[1] or x.dtype != weight.dtype:
        shapes = f"x is {x.dtype} {tuple(x.shape)}, weight is {weight.dtype} {tuple(weight.shape)}"
        raise ValueError(f"{shapes}; expected [B, K] and [N, K] of one dtype")
    (B, K), N = x.shape, weight.shape[0]
    BLOCK_B, BLOCK_K = 16, 128
    if B > BLOCK_B:
        raise ValueError(f"x has B={B} rows; expected {BLOCK_B} at most; more is a matrix product, 06_matmul")
    out = torch.empty((B, N), dtype=x.dtype, device=x.device)
    # 64 rows fill the tensor cores' instruction; few outputs need smaller tiles to give every SM a program
    BLOCK_N = 64 if N > 4096 else 16
    # num_stages: three tiles are on their way while one is multiplied, 48 KiB a program and two programs per SM
    linear_kernel[(triton.cdiv(N, BLOCK_N),)](
        x, weight, out, B, N, K, *x.stride(), *weight.stride(),
        BLOCK_B=BLOCK_B, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=4, num_stages=4,
    )  # fmt: skip
    return out
