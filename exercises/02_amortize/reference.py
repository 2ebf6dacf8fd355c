"""02_amortize, the truth: the product in float64."""

import math

import torch

from harness.spec import Cost

U = 2.0**-24  # half an ulp of float32, relative: the largest error of one rounding


# bfloat16 reaches as far as float32; float16 ends at 65504 and at 6e-8
FILLS = {
    "beyond_float16": lambda x, generator: x.mul_(2.0**20),
    "below_float16": lambda x, generator: x.mul_(2.0**-40),
}


def make_inputs(case, build):
    """Return x, [B, K], and weight, [N, K]. With the option ``turned`` both are transposes of what has the layouts."""
    b, n, k = (case.dims[d] for d in "BNK")
    out = []
    for name, shape in (("x", (b, k)), ("weight", (n, k))):
        how = case.layout.get(name, "contiguous"), case.fill.get(name, "normal")
        turned = case.options.get("turned")
        out.append(build(shape[::-1], case.dtype, *how).t() if turned else build(shape, case.dtype, *how))
    return tuple(out)


def reference(x, weight):
    """Return x @ weight.T in float64."""
    return x.double() @ weight.double().t()


def error_bound(expected, x, weight):
    """Return how far honest float32 sums may lie from the truth before they are rounded to the output dtype.

    A product of two float16 or bfloat16 numbers is exact in float32; its rounding counts only where it underflows.
    Adding K of them errs by U a step, relative to the sum of magnitudes: 8 U sqrt(K) with a probability beyond doubt
    (Higham and Mary, 2019, https://doi.org/10.1137/18M1226312). Tensor cores add 8 to 16 products at a time and cut off
    where others round, always downwards, so that their errors add up in proportion to K: 2 U for every 8 products
    (Fasi, Higham, Mikaitis and Pranesh, 2021, https://doi.org/10.7717/peerj-cs.330).
    """
    K = x.shape[1]
    magnitudes = x.double().abs() @ weight.double().abs().t()
    return magnitudes * U * (8 * math.sqrt(K) + K / 4) + K * 2.0**-149


def cost(dims, dtype, **_):
    """Return the least traffic: inputs read once, the output written once; a multiply and an add per product."""
    b, n, k = dims["B"], dims["N"], dims["K"]
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    return Cost(bytes_read=(n * k + b * k) * size, bytes_written=b * n * size, flops=2 * b * n * k)


def baselines(x, weight):
    """Return what else is timed beside the layer: cuBLAS, through torch."""
    return {"torch (cuBLAS)": lambda: torch.nn.functional.linear(x, weight)}
