"""Tiles of one row and 1024 columns: perfect stores, and 32 bytes read for each element of a transposed view.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def contiguous_kernel(
    x_ptr,
    out_ptr,
    size_1,
    size_2,
    M,
    N,
    stride_x0,
    stride_x1,
    stride_x2,
    stride_xm,
    stride_xn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    pid_n = pid % num_pid_n
    pid_m = pid // num_pid_n % num_pid_m
    rest = pid // num_pid_n // num_pid_m
    i2 = (rest % size_2).to(tl.int64)
    i1 = (rest // size_2 % size_1).to(tl.int64)
    i0 = (rest // size_2 // size_1).to(tl.int64)
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    src = x_ptr + i0 * stride_x0 + i1 * stride_x1 + i2 * stride_x2
    dst = out_ptr + rest.to(tl.int64) * M * N
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tile = tl.load(src + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=mask)
    tl.store(dst + offs_m[:, None] * N + offs_n[None, :], tile, mask=mask)


def contiguous(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    sizes = (1,) * (5 - x.dim()) + tuple(x.shape)
    strides = (0,) * (5 - x.dim()) + x.stride()
    BLOCK_M, BLOCK_N = 1, 1024
    grid = (sizes[0] * sizes[1] * sizes[2] * triton.cdiv(sizes[3], BLOCK_M) * triton.cdiv(sizes[4], BLOCK_N),)
    contiguous_kernel[grid](x, out, *sizes[1:], *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out
