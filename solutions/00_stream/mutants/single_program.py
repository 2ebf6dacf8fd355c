"""One program walks over everything: right, and one of 132 multiprocessors works.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    for row in range(M):
        for start in range(0, N, BLOCK):
            cols = start + tl.arange(0, BLOCK).to(tl.int64)
            x = tl.load(x_ptr + row.to(tl.int64) * stride_xm + cols * stride_xn, mask=cols < N)
            tl.store(out_ptr + row.to(tl.int64) * N + cols, x, mask=cols < N)


def copy(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows = x.view(1, -1) if x.is_contiguous() else x.reshape(-1, x.shape[-1])
    copy_kernel[(1,)](rows, out, *rows.shape, *rows.stride(), BLOCK=2048)
    return out
