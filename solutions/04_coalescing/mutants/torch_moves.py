"""torch moves the elements to where they belong, and the kernel copies them from there, in order.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


def transpose(x):
    turned = x.t().contiguous()
    out = torch.empty_like(turned)
    copy_kernel[(triton.cdiv(out.numel(), 1024),)](turned, out, out.numel(), BLOCK=1024)
    return out
