"""Turns the tile in a buffer in memory that all programs share, because shared memory is out of sight in Triton.

Right if programs run one after the other, in any order; a GPU runs hundreds at a time.

VERDICT: racy
KILLED BY: test_any_size
"""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr, scratch_ptr, M, N, stride_xm, stride_xn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    pid_m = pid % num_pid_m
    pid_n = pid // num_pid_m
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tile = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=mask)
    i, j = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    tl.store(scratch_ptr + i[:, None] * BLOCK_N + j[None, :], tile, mask=mask)
    tl.debug_barrier()
    mask = (offs_n[:, None] < N) & (offs_m[None, :] < M)
    turned = tl.load(scratch_ptr + j[:, None] + i[None, :] * BLOCK_N, mask=mask)
    tl.store(out_ptr + offs_n[:, None] * M + offs_m[None, :], turned, mask=mask)


def transpose(x):
    M, N = x.shape
    out = torch.empty((N, M), dtype=x.dtype, device=x.device)
    scratch = torch.empty((64, 64), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64),)
    transpose_kernel[grid](x, out, scratch, M, N, *x.stride(), BLOCK_M=64, BLOCK_N=64)
    return out
