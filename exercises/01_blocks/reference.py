"""01_blocks, the truth: the sum in float64, or exact in integers."""

import math

import torch

from harness.spec import Cost


def make_inputs(case, build):
    """Return x and y, [N], [M, N] or [B, M, N]."""
    shape, layout, fill = tuple(case.dims[d] for d in "BMN" if d in case.dims), case.layout, case.fill
    return tuple(
        build(shape, case.dtype, layout.get(name, "contiguous"), fill.get(name, "normal")) for name in ("x", "y")
    )


def reference(x, y):
    """Return x + y: float64 for floats, the dtype of x (wrapping around) for integers."""
    return x.double() + y.double() if x.is_floating_point() else x + y


def error_bound(expected, x, y):
    """Return 0: a sum of two floats needs no rounding but the one to the output dtype."""
    return 0.0


def cost(dims, dtype):
    """Return the least traffic: both inputs read once, the output written once."""
    n = math.prod(dims.values())
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    return Cost(bytes_read=2 * n * size, bytes_written=n * size, flops=n)


def baselines(x, y):
    """Return what else is timed beside an addition: torch's own."""
    return {"torch": lambda: x + y}
