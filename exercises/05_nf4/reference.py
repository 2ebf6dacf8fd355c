"""05_nf4, the truth: what bitsandbytes computes, bit for bit."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import torch

from harness.spec import Cost

# the 16 codes: quantiles of a normal distribution, scaled to [-1, 1] (bitsandbytes, functional.get_4bit_type)
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip


@dataclass
class QuantState:
    """What bitsandbytes keeps beside the packed weights; state2 and offset are None unless absmax is nested."""

    absmax: torch.Tensor  # [ceil(n / blocksize)] float32, or uint8 if nested
    code: torch.Tensor  # [16] float32; in a state2 [256] float32
    blocksize: int
    shape: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None  # what was quantised; the caller may ask for another
    offset: torch.Tensor | None = None  # [] float32
    state2: Any = None  # another QuantState: absmax float32, code, blocksize


def dynamic_map():
    """Return the [256] float32 codes of a nested absmax: seven decades in linear steps, both signs, 0 and 1."""
    values = [0.0, 1.0]
    for i in range(7):
        edges = torch.linspace(0.1, 1, 2**i + 1)
        means = (edges[:-1] + edges[1:]) / 2 * 10.0 ** (i - 6)
        values += means.tolist() + (-means).tolist()
    return torch.tensor(sorted(values))


def make_inputs(case, build):
    """Return packed, quant_state, dtype.

    Options: blocksize (64); nested (False); stored, the name of quant_state.dtype (by default not the one asked for).
    Any byte occurs; absmax is that of a real layer, 0.02 to 0.12. The fill of absmax scales it: large to 1e5 (to 1e4
    for float16), tiny to 1e-6.
    """
    m, n = case.dims["M"], case.dims["N"]
    blocksize, nested = case.options.get("blocksize", 64), case.options.get("nested", False)
    other = "float16" if case.dtype == "bfloat16" else "bfloat16"
    large = 1e4 if case.dtype == "float16" else 1e5
    scale = {"large": large / 0.12, "tiny": 1e-5}.get(case.fill.get("absmax", "normal"), 1.0)
    blocks = -(-m * n // blocksize)
    layout = case.layout.get("packed", "contiguous")
    state = QuantState(
        absmax=build((blocks,), "uint8" if nested else "float32", case.layout.get("absmax", "contiguous"), "uniform"),
        code=torch.tensor(NF4),
        blocksize=blocksize,
        shape=torch.Size((m, n)),
        dtype=getattr(torch, case.options.get("stored", other)),
    )
    if nested:
        # every uint8 code gives a positive absmax, the smallest one near 0: there the offset all but cancels
        absmax2 = build((-(-blocks // 256),), "float32", fill="uniform")
        state.offset = torch.tensor(0.07 * scale)
        state.state2 = QuantState(absmax=absmax2, code=dynamic_map(), blocksize=256)
        if not build.lazy:
            absmax2.mul_(0.02).add_(0.05).mul_(scale)
    elif not build.lazy:
        state.absmax.mul_(0.1).add_(0.02).mul_(scale)
    return build(((m * n + 1) // 2, 1), "uint8", layout), state, getattr(torch, case.dtype)


def _scales(quant_state):
    """Return the absmax of each block in float32, and the product that its sum with the offset rounds."""
    state2 = quant_state.state2
    if state2 is None:
        return quant_state.absmax, torch.zeros_like(quant_state.absmax)
    group = torch.arange(quant_state.absmax.numel(), device=quant_state.absmax.device) // state2.blocksize
    product = state2.code[quant_state.absmax.long()] * state2.absmax[group]
    return product + quant_state.offset, product


def _per_element(packed, quant_state):
    """Return for each element its code, its absmax and the absmax's inner product, [n] float32."""
    n = math.prod(quant_state.shape)
    nibbles = torch.stack((packed.view(-1) >> 4, packed.view(-1) & 15), 1).view(-1)[:n]
    block = torch.arange(n, device=packed.device) // quant_state.blocksize
    absmax, product = _scales(quant_state)
    return quant_state.code[nibbles.long()], absmax[block], product[block]


def reference(packed, quant_state, dtype):
    """Return the weights in ``dtype``: float32 products, one rounding, as bitsandbytes' CPU and CUDA paths do it."""
    code, absmax, _ = _per_element(packed, quant_state)
    return (code * absmax).to(dtype).view(quant_state.shape)


def error_bound(expected, packed, quant_state, dtype):
    """Return how far honest float32 arithmetic may lie from bitsandbytes' before both are rounded to ``dtype``.

    Half an ulp each: the product code2 * absmax2, which a fused multiply-add does not round; the sum with the offset,
    and code * absmax, both on either side. The first counts where the offset all but cancels the product.
    """
    code, absmax, product = (t.double().abs() for t in _per_element(packed, quant_state))
    return (code * (product + 4 * absmax) * 2.0**-24).view(quant_state.shape)


def cost(dims, dtype, blocksize=64, nested=False, **_):
    """Return the least traffic: codes, absmax and tables read once, two bytes written per weight."""
    n = dims["M"] * dims["N"]
    blocks = -(-n // blocksize)
    scales = blocks + 4 * -(-blocks // 256) + 4 * 256 + 4 if nested else 4 * blocks
    return Cost(bytes_read=(n + 1) // 2 + 4 * 16 + scales, bytes_written=2 * n, flops=n + 2 * nested * blocks)


def baselines(packed, quant_state, dtype):
    """Return what else is timed beside it: bitsandbytes' own kernels, where that package is installed."""

    def bitsandbytes():
        from bitsandbytes.functional import dequantize_4bit

        return dequantize_4bit(packed, theirs())

    @functools.cache
    def theirs():
        from bitsandbytes.functional import QuantState as State

        s, s2 = quant_state, quant_state.state2
        inner = None if s2 is None else State(s2.absmax, code=s2.code, blocksize=s2.blocksize, dtype=torch.float32)
        return State(
            s.absmax, shape=s.shape, code=s.code, blocksize=s.blocksize, quant_type="nf4", dtype=dtype,
            offset=s.offset, state2=inner,
        )  # fmt: skip

    return {"bitsandbytes": bitsandbytes}
