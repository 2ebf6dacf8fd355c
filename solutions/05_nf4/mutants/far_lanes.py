"""Gives neighbouring lanes bytes that lie a grid apart: right, but each lane needs a 32-byte sector for its one byte.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def dequantize_nf4_kernel(
    packed_ptr,
    code_ptr,
    absmax_ptr,
    code2_ptr,
    absmax2_ptr,
    offset_ptr,
    out_ptr,
    n_bytes,
    n_elements,
    BLOCKSIZE: tl.constexpr,
    BLOCKSIZE2: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offs = tl.program_id(0) + tl.arange(0, BLOCK).to(tl.int64) * tl.num_programs(0)
    mask = offs < n_bytes
    byte = tl.load(packed_ptr + offs, mask=mask, other=0)
    hi = tl.load(code_ptr + (byte >> 4).to(tl.int32))
    lo = tl.load(code_ptr + (byte & 0xF).to(tl.int32))
    block = offs // (BLOCKSIZE // 2)
    absmax = tl.load(absmax_ptr + block, mask=mask, other=0)
    if code2_ptr is not None:
        absmax2 = tl.load(absmax2_ptr + block // BLOCKSIZE2, mask=mask, other=0.0)
        absmax = tl.load(code2_ptr + absmax.to(tl.int32)) * absmax2 + tl.load(offset_ptr)
    out = tl.interleave(hi * absmax, lo * absmax).to(out_ptr.dtype.element_ty)
    offs_out = tl.interleave(2 * offs, 2 * offs + 1)
    tl.store(out_ptr + offs_out, out, mask=offs_out < n_elements)


def dequantize_nf4(packed, quant_state, dtype):
    out = torch.empty(quant_state.shape, dtype=dtype, device=packed.device)
    n_elements, n_bytes = out.numel(), packed.numel()
    nested, code2, absmax2, blocksize2 = quant_state.state2, None, None, 1
    if nested is not None:
        code2, absmax2, blocksize2 = nested.code, nested.absmax, nested.blocksize
    dequantize_nf4_kernel[(triton.cdiv(n_bytes, 1024),)](
        packed, quant_state.code, quant_state.absmax, code2, absmax2, quant_state.offset, out,
        n_bytes, n_elements, quant_state.blocksize, blocksize2, BLOCK=1024,
    )  # fmt: skip
    return out
