"""00_stream, the truth: the same values, exactly."""

import math

import torch

from harness.spec import Cost


def _not_numbers(x, generator):
    """Put a NaN, both infinities and a negative zero at the beginning: a copy keeps them."""
    if x.is_floating_point():
        special = torch.tensor([math.nan, math.inf, -math.inf, -0.0])[: x.shape[-1]]
        x[..., : len(special)] = special.to(x.dtype)


FILLS = {"nan_and_infinities": _not_numbers}


def make_inputs(case, build):
    """Return x, [N] or [M, N]."""
    shape = tuple(case.dims[d] for d in "MN" if d in case.dims)
    return (build(shape, case.dtype, case.layout.get("x", "contiguous"), case.fill.get("x", "normal")),)


def reference(x):
    """Return x: in float64, which holds every value of a smaller float, or as it is."""
    return x.double() if x.is_floating_point() else x.clone()


def error_bound(expected, x):
    """Return 0: a copy computes nothing."""
    return 0.0


def cost(dims, dtype):
    """Return the least traffic: every element read once and written once."""
    n = math.prod(dims.values())
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    return Cost(bytes_read=n * size, bytes_written=n * size, flops=0)


def baselines(x):
    """Return what else is timed beside a copy: torch's own."""
    return {"torch": x.clone}
