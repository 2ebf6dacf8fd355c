"""Gives neighbouring lanes elements that lie num_blocks apart: right, but each lane fetches 32 bytes of its own.

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
    cols = pid % num_blocks + tl.arange(0, BLOCK).to(tl.int64) * num_blocks
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
    copy_kernel[(M * num_blocks,)](rows, out, N, num_blocks, *rows.stride(), BLOCK=2048)
    return out
