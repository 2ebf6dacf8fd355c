"""Gives each lane a row and walks down the columns: neighbouring lanes read elements that lie a whole row apart.

VERDICT: slow
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < M
    m_i = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
    l_i = tl.zeros((BLOCK,), tl.float32)
    for n in range(N):
        x = tl.load(x_ptr + rows * stride_xm + n * stride_xn, mask=mask, other=0.0).to(tl.float32)
        m_new = tl.maximum(m_i, x)
        l_i = l_i * tl.exp(m_i - m_new) + tl.exp(x - m_new)
        m_i = m_new
    for n in range(N):
        x = tl.load(x_ptr + rows * stride_xm + n * stride_xn, mask=mask, other=0.0).to(tl.float32)
        out = tl.exp(x - m_i) / l_i
        tl.store(out_ptr + rows * N + n, out.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x):
    N = x.shape[-1]
    rows = x.reshape(-1, N)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(triton.cdiv(len(rows), 32),)](rows, out, len(rows), N, *rows.stride(), BLOCK=32, num_warps=1)
    return out
