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
    # TODO(1/3, ~2 lines): `hi` and `lo` hold the code values of each byte's first and second element, float32
    # TODO(2/3, ~5 lines): `absmax` holds each byte's float32 absmax, plain or nested (code2_ptr is None if plain)
    # TODO(3/3, ~3 lines): elements 2 * i and 2 * i + 1 of the output hold the two elements of byte i


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
