"""Multiplies element number and stride in 32 bits.

Element 2 at a stride of 2**30 lies at 2**31, which wraps around to the far side of the tensor's beginning.

VERDICT: out-of-bounds
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, stride_x, stride_y, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs * stride_x, mask=mask, other=0)
    y = tl.load(y_ptr + offs * stride_y, mask=mask, other=0)
    tl.store(out_ptr + offs, x + y, mask=mask)


def add(x, y):
    if x.dim() != 1:
        return add(x.reshape(-1), y.reshape(-1)).reshape(x.shape)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(out.numel(), 1024),)
    add_kernel[grid](x, y, out, out.numel(), x.stride(0), y.stride(0), BLOCK=1024)
    return out
