"""Copies both inputs with a kernel of its own before it adds: seven elements move where three would do.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=0), mask=mask)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    y = tl.load(y_ptr + offs, mask=mask, other=0)
    tl.store(out_ptr + offs, x + y, mask=mask)


def add(x, y):
    x, y = x.contiguous(), y.contiguous()
    x_copy, y_copy, out = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
    n_elements = out.numel()
    grid = (triton.cdiv(n_elements, 1024),)
    copy_kernel[grid](x, x_copy, n_elements, BLOCK=1024)
    copy_kernel[grid](y, y_copy, n_elements, BLOCK=1024)
    add_kernel[grid](x_copy, y_copy, out, n_elements, BLOCK=1024)
    return out
