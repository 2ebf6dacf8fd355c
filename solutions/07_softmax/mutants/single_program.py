"""One program walks over all rows: right, and every byte moves once, but one SM works and the others look on.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    for m in range(M):
        row = tl.program_id(0).to(tl.int64) + m
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=float("-inf")).to(tl.float32)
        p = tl.exp(x - tl.max(x, axis=0))
        out = p / tl.sum(p, axis=0)
        tl.store(out_ptr + row * N + cols, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    N = x.shape[-1]
    rows = x.reshape(-1, N)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(1,)](rows, out, len(rows), N, *rows.stride(), BLOCK=triton.next_power_of_2(N), num_warps=32)
    return out
