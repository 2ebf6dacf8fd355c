"""Writes the sum into x and returns x: one allocation less, and the caller's tensor is gone.

VERDICT: mutated-input
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0).to(tl.int64)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    y = tl.load(y_ptr + offs, mask=mask, other=0)
    tl.store(x_ptr + offs, x + y, mask=mask)


def add(x, y):
    y = y.contiguous()
    out = x if x.is_contiguous() else x.clone(memory_format=torch.contiguous_format)
    n_elements = out.numel()
    add_kernel[(triton.cdiv(n_elements, 1024),)](out, y, out, n_elements, BLOCK=1024)
    return out
