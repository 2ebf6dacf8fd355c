"""The path that this kata replaces: one launch unpacks absmax, one adds the offset, one decodes, absmax in a buffer.

Every value is right. The buffer is written, read, written and read again, a tenth more traffic than needed, and two
more launches cost the host more than a small layer costs the GPU. One launch is what the kata asks for
(`max_launches`), and so this is not only slow: the word for work that was not done as asked is "cheat".

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def absmax_kernel(absmax_ptr, code2_ptr, absmax2_ptr, buffer_ptr, n_blocks, BLOCKSIZE2, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_blocks
    code = tl.load(code2_ptr + tl.load(absmax_ptr + offs, mask=mask, other=0).to(tl.int32))
    scale = tl.load(absmax2_ptr + offs // BLOCKSIZE2, mask=mask, other=0.0)
    tl.store(buffer_ptr + offs, code * scale, mask=mask)


@triton.jit
def offset_kernel(buffer_ptr, offset_ptr, n_blocks, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_blocks
    value = tl.load(buffer_ptr + offs, mask=mask, other=0.0)
    tl.store(buffer_ptr + offs, value + tl.load(offset_ptr), mask=mask)


@triton.jit
def decode_kernel(
    packed_ptr, code_ptr, absmax_ptr, out_ptr, n_bytes, n_elements, BLOCKSIZE: tl.constexpr, BLOCK: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    offs = start + tl.arange(0, BLOCK)
    mask = offs < n_bytes
    byte = tl.load(packed_ptr + offs, mask=mask, other=0)
    absmax = tl.load(absmax_ptr + offs // (BLOCKSIZE // 2), mask=mask, other=0.0)
    hi = tl.load(code_ptr + (byte >> 4).to(tl.int32)) * absmax
    lo = tl.load(code_ptr + (byte & 0xF).to(tl.int32)) * absmax
    offs_out = 2 * start + tl.arange(0, 2 * BLOCK)
    out = tl.interleave(hi, lo).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + offs_out, out, mask=offs_out < n_elements)


def dequantize_nf4(packed, quant_state, dtype):
    out = torch.empty(quant_state.shape, dtype=dtype, device=packed.device)
    absmax, nested = quant_state.absmax, quant_state.state2
    if nested is not None:
        n_blocks = absmax.numel()
        grid = (triton.cdiv(n_blocks, 256),)
        buffer = torch.empty(n_blocks, dtype=torch.float32, device=packed.device)
        absmax_kernel[grid](absmax, nested.code, nested.absmax, buffer, n_blocks, nested.blocksize, BLOCK=256)
        offset_kernel[grid](buffer, quant_state.offset, n_blocks, BLOCK=256)
        absmax = buffer
    n_elements, n_bytes = out.numel(), packed.numel()
    decode_kernel[(triton.cdiv(n_bytes, 1024),)](
        packed, quant_state.code, absmax, out, n_bytes, n_elements, quant_state.blocksize, BLOCK=1024
    )
    return out
