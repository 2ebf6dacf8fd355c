"""Subtracts the maximum in the dtype of the input, and rounds that difference before exp.

Exact in float32; in float16 and bfloat16 an argument near -8 is off by up to 1/512 and 1/64.

VERDICT: wrong
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_xm + cols.to(tl.int64) * stride_xn, mask=mask, other=float("-inf")).to(tl.float32)
    p = tl.exp((x - tl.max(x, axis=0)).to(x_ptr.dtype.element_ty).to(tl.float32))
    out = p / tl.sum(p, axis=0)
    tl.store(out_ptr + row * N + cols, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    N = x.shape[-1]
    rows = x.reshape(-1, N)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(len(rows),)](rows, out, N, *rows.stride(), BLOCK=triton.next_power_of_2(N), num_warps=32)
    return out
