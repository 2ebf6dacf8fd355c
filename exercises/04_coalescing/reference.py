"""04_coalescing, the truth: torch's transpose, exactly."""

import torch

from harness.spec import Cost


def make_inputs(case, build):
    """Return x, [M, N]. With the option ``turned`` it is the transpose of a matrix with the case's layout."""
    shape, layout, fill = (
        (case.dims["M"], case.dims["N"]),
        case.layout.get("x", "contiguous"),
        case.fill.get("x", "normal"),
    )
    if case.options.get("turned"):
        return (build(shape[::-1], case.dtype, layout, fill).t(),)
    return (build(shape, case.dtype, layout, fill),)


def reference(x):
    """Return x.t(): in float64, which holds every value of a smaller float, or as it is."""
    return (x.double() if x.is_floating_point() else x).t()


def error_bound(expected, x):
    """Return 0: moving an element computes nothing."""
    return 0.0


def cost(dims, dtype, **_):
    """Return the least traffic: every element read once and written once."""
    n = dims["M"] * dims["N"]
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    return Cost(bytes_read=n * size, bytes_written=n * size, flops=0)


def baselines(x):
    """Return what else is timed beside a transpose: torch's own."""
    return {"torch": lambda: x.t().contiguous()}
