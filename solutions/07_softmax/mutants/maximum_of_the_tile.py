"""Keeps one maximum of a long row, that of its last tile, and a sum that is relative to each tile's own maximum.

VERDICT: wrong
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_xm
    out_ptr += row * N
    cols = tl.arange(0, BLOCK)
    m_i = -3.4028234663852886e38
    l_i = 0.0
    for start in range(0, N, BLOCK):
        offs = start + cols
        x = tl.load(x_ptr + offs.to(tl.int64) * stride_xn, mask=offs < N, other=float("-inf")).to(tl.float32)
        m_new = tl.max(x, axis=0)
        l_i = l_i + tl.sum(tl.exp(x - m_new), axis=0)
        m_i = m_new
    for start in range(0, N, BLOCK):
        offs = start + cols
        x = tl.load(x_ptr + offs.to(tl.int64) * stride_xn, mask=offs < N, other=float("-inf")).to(tl.float32)
        out = tl.exp(x - m_i) / l_i
        tl.store(out_ptr + offs, out.to(out_ptr.dtype.element_ty), mask=offs < N)


def softmax(x):
    N = x.shape[-1]
    rows = x.reshape(-1, N)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(len(rows),)](rows, out, N, *rows.stride(), BLOCK=1024)
    return out
