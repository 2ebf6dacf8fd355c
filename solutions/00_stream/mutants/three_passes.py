"""Copies into one buffer, from there into another, and from there into the result: three times the bytes.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, N, num_blocks, stride_xm, stride_xn, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    row = (pid // num_blocks).to(tl.int64)
    cols = (pid % num_blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    src = x_ptr + row * stride_xm + cols * stride_xn
    dst = out_ptr + row * N + cols
    mask = cols < N
    x = tl.load(src, mask=mask)
    tl.store(dst, x, mask=mask)


def copy(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows = x.view(1, -1) if x.is_contiguous() else x.reshape(-1, x.shape[-1])
    M, N = rows.shape
    num_blocks = triton.cdiv(N, 2048)
    first, second = torch.empty_like(out), torch.empty_like(out)
    grid = (M * num_blocks,)
    copy_kernel[grid](rows, first, N, num_blocks, *rows.stride(), BLOCK=2048)
    copy_kernel[grid](first, second, N, num_blocks, N, 1, BLOCK=2048)
    copy_kernel[grid](second, out, N, num_blocks, N, 1, BLOCK=2048)
    return out
