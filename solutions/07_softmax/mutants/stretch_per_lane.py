"""Gives each lane a stretch of the row, as one would with threads on a CPU: neighbouring lanes read far apart.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, N, stride_xm, stride_xn, STEPS, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_xm
    out_ptr += row * N
    first = tl.arange(0, BLOCK) * STEPS
    m_i = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
    l_i = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        offs = first + step
        x = tl.load(x_ptr + offs.to(tl.int64) * stride_xn, mask=offs < N, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m_i, x)
        l_i = l_i * tl.exp(m_i - m_new) + tl.exp(x - m_new)
        m_i = m_new
    m = tl.max(m_i, axis=0)
    total = tl.sum(l_i * tl.exp(m_i - m), axis=0)
    for step in range(STEPS):
        offs = first + step
        x = tl.load(x_ptr + offs.to(tl.int64) * stride_xn, mask=offs < N, other=float("-inf")).to(tl.float32)
        tl.store(out_ptr + offs, (tl.exp(x - m) / total).to(out_ptr.dtype.element_ty), mask=offs < N)


def softmax(x):
    N = x.shape[-1]
    rows = x.reshape(-1, N)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = max(triton.next_power_of_2(N) // 64, 32)
    softmax_kernel[(len(rows),)](rows, out, N, *rows.stride(), triton.cdiv(N, BLOCK), BLOCK=BLOCK, num_warps=1)
    return out
