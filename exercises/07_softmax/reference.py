"""07_softmax, the truth: torch's softmax in float64."""

import math

import torch

from harness.spec import Cost

U = 2.0**-24  # half an ulp of float32, relative: the largest error of one rounding


def _first(value):
    """Return a fill that puts ``value`` into the first column of every row."""

    def fill(x, generator):
        x[..., 0] = value

    return fill


def _half_minus_inf(x, generator):
    """Mask half of each row, and all of its first half, as a causal or padding mask does; the last column stays."""
    drop = torch.rand(x.shape, generator=generator) < 0.5
    drop[..., : x.shape[-1] // 2] = True
    drop[..., -1] = False
    x[drop] = -math.inf


def _all_minus_inf(x, generator):
    """Mask the first row whole."""
    x.reshape(-1, x.shape[-1])[0] = -math.inf


def _peaks(x, generator):
    """Lift every 16384th element: a few terms are nearly the whole sum, and they meet in one lane of any tile."""
    x[..., ::16384] += 20


FILLS = {
    "peaks": _peaks,
    "half_minus_inf": _half_minus_inf,
    "nan_from_all_minus_inf": _all_minus_inf,
    "nan_from_plus_inf": _first(math.inf),
    "nan": _first(math.nan),
    "ascending": lambda x, generator: x.copy_(x.sort(-1).values),
    "below_minus_200": lambda x, generator: x.abs_().neg_().sub_(200),
}


def make_inputs(case, build):
    """Return x, [N], [M, N] or [B, M, N]."""
    shape = tuple(case.dims[d] for d in "BMN" if d in case.dims)
    return (build(shape, case.dtype, case.layout.get("x", "contiguous"), case.fill.get("x", "normal")),)


def reference(x):
    """Return softmax(x, dim=-1) in float64."""
    return torch.softmax(x.double(), -1)


def error_bound(expected, x):
    """Return how far honest float32 arithmetic may lie from the truth before it is rounded to the output dtype.

    All of it relative to the output, to first order, in halves of an ulp (U):
    - the argument of exp: x and the maximum may each be rounded once when they are scaled for exp2, the difference
      and its product with log2(e) once each, and log2(e) itself is rounded;
    - exp2 on a GPU is off by 2 ulp, a reciprocal or a division and a product by 3 at most;
    - the sum: its terms carry the errors above; N additions (and the rescaling of a running sum) add 8 U sqrt(N) with
      a probability beyond doubt (Higham and Mary, 2019, https://doi.org/10.1137/18M1226312).
    On top, absolute: a GPU may flush subnormal numbers to 0.
    """
    x = x.double()
    top = x.amax(-1, keepdim=True)
    below = (top - x).clamp(max=200)  # what lies deeper is 0 in float32
    exp = U * (3 * below + x.abs().nan_to_num(posinf=0) + top.abs() + 4)
    total = (expected * exp).sum(-1, keepdim=True) + 8 * U * (math.sqrt(x.shape[-1]) + 2)
    return expected * (exp + total + 6 * U) + 2.0**-125


def cost(dims, dtype):
    """Return the least traffic: every element read once and written once; subtract, exp, add, multiply, compare."""
    n = math.prod(dims.values())
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    return Cost(bytes_read=n * size, bytes_written=n * size, flops=5 * n)


def baselines(x):
    """Return what else is timed beside a softmax: torch's own, and Liger's kernel where that package is installed."""

    def liger():
        from liger_kernel.ops.softmax import LigerSoftmaxFunction

        return LigerSoftmaxFunction.apply(x)

    return {"torch": lambda: torch.softmax(x, -1), "liger": liger}
