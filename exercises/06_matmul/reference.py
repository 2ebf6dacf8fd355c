"""06_matmul, the truth: the product in float64."""

import math

import torch

from harness.spec import Cost

U = 2.0**-24  # half an ulp of float32, relative: the largest error of one rounding

FILLS = {
    "beyond_half": lambda x, generator: x.mul_(2.0**20),  # float16 would make infinities of them
    "one_sign": lambda x, generator: x.abs_(),  # no cancellation: every partial sum is larger than the one before
}


def reference(a, b):
    """Return a @ b in float64."""
    return a.double() @ b.double()


def error_bound(expected, a, b):
    """Return how far honest float32 arithmetic may lie from the truth before it is rounded to the output dtype.

    All of it relative to S = |a| @ |b|, the sum of the products' magnitudes, in halves of an ulp of float32 (U):
    - K additions in any order: 4 U sqrt(K), beyond it with a probability of less than 2 exp(-8) even if every partial
      sum were as large as S (Higham and Mary, 2019, https://doi.org/10.1137/18M1226312);
    - a tensor core adds 16 products at once, aligned, and cuts what is left over: up to 2 U for each such step;
    - 16 U for float32 made of three TF32 products ("tf32x3"), which leave out 3 * 2**-22 of each product.
    On top, absolute: a GPU may flush subnormal numbers to 0.
    """
    K = a.shape[1]
    return U * (4 * math.sqrt(K) + K / 8 + 16) * (a.double().abs() @ b.double().abs()) + 2.0**-125


def cost(dims, dtype):
    """Return the least traffic, every input read and the output written once, and two operations for each product."""
    m, n, k = dims["M"], dims["N"], dims["K"]
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    return Cost(bytes_read=(m * k + k * n) * size, bytes_written=m * n * size, flops=2 * m * n * k)


def baselines(a, b):
    """Return what else is timed beside a product: cuBLAS, through torch."""
    return {"torch (cuBLAS)": lambda: a @ b}
