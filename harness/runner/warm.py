"""A tiny kernel that the fork server runs once, so that no child pays for first uses (imports, caches, parsing).

Imported in the fork server only, after ``TRITON_INTERPRET`` was settled.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def warm_kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    """out = softmax-like arithmetic on one block: loads, stores, masks, reductions, casts, a loop."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (offs < n) & (offs >= 0)
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, 2):
        acc += tl.where(x > i, tl.exp(x - tl.max(x, axis=0)), x * scale)
    total = tl.sum(acc, axis=0)
    tl.store(out_ptr + offs, (acc / total).to(out_ptr.dtype.element_ty), mask=mask)


def warm(x: torch.Tensor) -> torch.Tensor:
    """Launch the kernel once on one program."""
    out = torch.empty_like(x)
    warm_kernel[(1,)](x, out, x.numel(), 0.5, BLOCK=16)
    return out
