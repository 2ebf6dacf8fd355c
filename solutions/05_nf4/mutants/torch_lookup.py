"""torch decodes: shifts, a table lookup and a product, each a kernel of torch's own with its own buffer.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


def dequantize_nf4(packed, quant_state, dtype):
    absmax, nested = quant_state.absmax, quant_state.state2
    if nested is not None:
        absmax2 = nested.absmax.repeat_interleave(nested.blocksize)[: absmax.numel()]
        absmax = nested.code[absmax.long()] * absmax2 + quant_state.offset
    nibbles = torch.stack((packed.view(-1) >> 4, packed.view(-1) & 15), 1).view(-1)
    n_elements = quant_state.shape[0] * quant_state.shape[1]
    values = quant_state.code[nibbles[:n_elements].long()]
    values = values * absmax.repeat_interleave(quant_state.blocksize)[:n_elements]
    return values.to(dtype).reshape(quant_state.shape)
