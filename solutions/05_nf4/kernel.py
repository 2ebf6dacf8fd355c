"""NF4 to float16 or bfloat16 in one launch, as bitsandbytes stores it.

out[i] = T(code[nibble i] * absmax[i // blocksize]); a byte's HIGH nibble is its first element.
A nested absmax is uint8: absmax[b] = code2[q[b]] * absmax2[b // blocksize2] + offset. All of it in float32.
Source: https://github.com/bitsandbytes-foundation/bitsandbytes (bitsandbytes/functional.py, csrc/kernels.cu)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def dequantize_nf4_kernel(
    # inputs; the last three are None unless absmax is nested
    packed_ptr,  # [n_bytes] uint8
    code_ptr,  # [16] float32
    absmax_ptr,  # [ceil(n_elements / BLOCKSIZE)] float32, or uint8 if nested
    code2_ptr,  # [256] float32
    absmax2_ptr,  # [ceil(number of absmax / BLOCKSIZE2)] float32
    offset_ptr,  # [] float32
    # output
    out_ptr,  # [n_elements] float16 or bfloat16
    n_bytes,
    n_elements,
    # blocks, all powers of two
    BLOCKSIZE: tl.constexpr,  # elements per absmax
    BLOCKSIZE2: tl.constexpr,  # absmax per absmax2
    BLOCK: tl.constexpr,  # bytes per program
):
    """Decode BLOCK bytes into 2 * BLOCK neighbouring elements. int64, because numbers of elements pass 2**31."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    offs = start + tl.arange(0, BLOCK)
    mask = offs < n_bytes
    byte = tl.load(packed_ptr + offs, mask=mask, other=0)  # [BLOCK]
    hi = tl.load(code_ptr + (byte >> 4).to(tl.int32))  # [BLOCK]
    lo = tl.load(code_ptr + (byte & 0xF).to(tl.int32))  # [BLOCK]
    # both elements of a byte share one absmax, since blocks have even sizes. Bytes past the end take the last one: with
    # a mask of their own they could differ, and the compiler would look each byte's absmax up instead of each block's
    block = tl.minimum(offs // (BLOCKSIZE // 2), (n_bytes - 1) // (BLOCKSIZE // 2))  # [BLOCK]
    absmax = tl.load(absmax_ptr + block)  # [BLOCK]
    if code2_ptr is not None:
        absmax2 = tl.load(absmax2_ptr + block // BLOCKSIZE2)  # [BLOCK]
        absmax = tl.load(code2_ptr + absmax.to(tl.int32)) * absmax2 + tl.load(offset_ptr)
    # interleaved first, so that one store covers neighbouring addresses
    out = tl.interleave(hi * absmax, lo * absmax).to(out_ptr.dtype.element_ty)  # [2 * BLOCK]
    offs_out = 2 * start + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + offs_out, out, mask=offs_out < n_elements)


def dequantize_nf4(packed, quant_state, dtype: torch.dtype) -> torch.Tensor:
    """Return the weights, [*quant_state.shape] in `dtype`; quant_state.dtype has no say.

    Args:
        packed: [ceil(n / 2), 1] uint8, two elements a byte, contiguous.
        quant_state: has absmax, code, blocksize, shape, dtype, offset, state2 (README.md has the table).
        dtype: torch.float16 or torch.bfloat16.
    """
    out = torch.empty(quant_state.shape, dtype=dtype, device=packed.device)
    n_elements, n_bytes = out.numel(), packed.numel()
    if n_bytes != triton.cdiv(n_elements, 2):
        raise ValueError(f"packed has {n_bytes} bytes for {n_elements} elements; expected two elements a byte")
    nested, code2, absmax2, blocksize2 = quant_state.state2, None, None, 1
    if nested is not None:
        code2, absmax2, blocksize2 = nested.code, nested.absmax, nested.blocksize
    BLOCK = 1024
    dequantize_nf4_kernel[(triton.cdiv(n_bytes, BLOCK),)](
        packed, quant_state.code, quant_state.absmax, code2, absmax2, quant_state.offset, out,
        n_bytes, n_elements, quant_state.blocksize, blocksize2, BLOCK,
    )  # fmt: skip
    return out
