"""03_strides, the truth: the same values, exactly."""

import math

import torch

from harness.spec import Cost

DIMS = "ABCDE"


def make_inputs(case, build):
    """Return x, with the dims A, B, C, D, E that the case names; none of them: a scalar.

    Options, of which a case has one at most (else the case's layout):
        order: the dims from the outermost to the innermost in memory, such as "CAB"; the layout is that of this memory
        gap: so many elements lie between the rows
        expand: the names of dims with stride 0
        windows: x has one dim more: sliding windows of this length over the last one, which overlap
    """
    names = [d for d in DIMS if d in case.dims]
    shape = [case.dims[d] for d in names]
    fill = case.fill.get("x", "normal")
    options = case.options
    if "order" in options:
        order = [names.index(d) for d in options["order"] if d in names]
        x = build([shape[i] for i in order], case.dtype, case.layout.get("x", "contiguous"), fill)
        return (x.permute([order.index(i) for i in range(len(names))]),)
    if "gap" in options:
        return (build((*shape[:-1], shape[-1] + options["gap"]), case.dtype, fill=fill)[..., : shape[-1]],)
    if "expand" in options:
        kept = [1 if d in options["expand"] else n for d, n in zip(names, shape, strict=True)]
        return (build(kept, case.dtype, fill=fill).expand(shape),)
    if "windows" in options:
        length = options["windows"]
        x = build((*shape[:-1], shape[-1] + length - 1), case.dtype, fill=fill)
        return (x.unfold(-1, length, 1),)
    return (build(shape, case.dtype, case.layout.get("x", "contiguous"), fill),)


def reference(x):
    """Return x: in float64, which holds every value of a smaller float, or as it is."""
    return x.double() if x.is_floating_point() else x.clone()


def error_bound(expected, x):
    """Return 0: moving an element computes nothing."""
    return 0.0


def cost(dims, dtype, expand="", windows=1, **_):
    """Return the least traffic: what lies in memory read once, every element of the output written once."""
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    read = math.prod(n for d, n in dims.items() if d not in expand)
    return Cost(bytes_read=read * size, bytes_written=math.prod(dims.values()) * windows * size, flops=0)


def baselines(x):
    """Return what else is timed beside it: torch's own."""
    return {"torch": x.contiguous}
