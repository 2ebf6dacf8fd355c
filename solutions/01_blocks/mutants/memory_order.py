"""Makes x contiguous and forgets y: elements of a transposed y are paired in the order in which they lie in memory.

A transposed tensor is dense, so nothing out of bounds is read; square and symmetric inputs hide it too. The strided
layouts of the suite are killed as out-of-bounds, which comes first in the table of verdicts.

VERDICT: out-of-bounds
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
    tl.store(out_ptr + offs, x + y, mask=mask)


def add(x, y):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = out.numel()
    add_kernel[(triton.cdiv(n_elements, 1024),)](x, y, out, n_elements, BLOCK=1024)
    return out
