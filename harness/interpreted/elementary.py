"""Elementary functions on numpy arrays, as a compiled kernel computes them; `tl.*` and libdevice share them.

Transcendental functions of float32 are computed in float64 and rounded once: within half a unit in the last place, the
same on every CPU. A GPU's own instructions are up to two units off. What a GPU does differently by more than that is
done here as it does it: `exp` rounds its scaled argument, and most float32 functions flush subnormal numbers.
"""

import math
from collections.abc import Callable

import numpy as np

from harness.interpreted.rounding import FLOAT32, FLOAT64

_TINY = np.float32(2.0**-126)  # the smallest normal float32
_LOG2_E = np.float32(1.4426950408889634)
_erf = np.vectorize(math.erf, otypes=[np.float64])
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def flush(values: np.ndarray) -> np.ndarray:
    """float32 with subnormal numbers replaced by zeros of the same sign (PTX ".ftz"); other formats unchanged."""
    if values.dtype != FLOAT32:
        return values
    return np.where(np.abs(values) < _TINY, np.copysign(np.float32(0), values), values)


def through_float64(function: Callable[..., np.ndarray], ftz: bool = True) -> Callable[..., np.ndarray]:
    """A numpy function whose float32 arguments are computed in float64; with `ftz`, subnormals in and out are zeros."""

    def computed(*args: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            if args[0].dtype == FLOAT64:
                return function(*args)
            args = [flush(a) if ftz and a.dtype == FLOAT32 else a for a in args]
            out = function(*(a.astype(FLOAT64) if a.dtype == FLOAT32 else a for a in args)).astype(FLOAT32)
            return flush(out) if ftz else out

    return computed


@np.errstate(all="ignore")
def exp(values: np.ndarray) -> np.ndarray:
    """e**x as `tl.exp` compiles: 2**(x * log2 e) with the product rounded to float32.

    That costs up to 1.25 |x| 2**-24 of relative error: about fifty units in the last place at x = -80.
    """
    if values.dtype == FLOAT64:
        return np.exp(values)
    return np.exp2((values * _LOG2_E).astype(FLOAT64)).astype(FLOAT32)


def maxnum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger of two floats; a NaN gives way to a number, and +0 is larger than -0."""
    return _larger_zero(np.fmax(a, b), a, b)


def minnum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller of two floats; a NaN gives way to a number, and -0 is smaller than +0."""
    return _smaller_zero(np.fmin(a, b), a, b)


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger of two floats; NaN if either is, and +0 is larger than -0."""
    return _larger_zero(np.maximum(a, b), a, b)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller of two floats; NaN if either is, and -0 is smaller than +0."""
    return _smaller_zero(np.minimum(a, b), a, b)


def _larger_zero(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # numpy takes either of two zeros; their sum is -0 only if both are
    zero = out == 0
    return np.where(zero & (a == 0) & (b == 0), a + b, out) if zero.any() else out


def _smaller_zero(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    zero = out == 0
    return np.where(zero & (a == 0) & (b == 0), -(-a - b), out) if zero.any() else out


def idiv(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer division toward zero (C's, not Python's); by zero it gives 0 here and anything on a GPU."""
    return (a - np.fmod(a, b)) // b


def umulhi(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of the product of two integers, both taken as unsigned bit patterns."""
    bits = 8 * a.dtype.itemsize
    x, y = a.view(f"u{a.dtype.itemsize}"), b.view(f"u{b.dtype.itemsize}")
    if bits < 64:
        wide = np.dtype(f"u{a.dtype.itemsize * 2}")
        high = (x.astype(wide) * y.astype(wide)) >> wide.type(bits)
    else:
        high = (x.astype(object) * y.astype(object)) >> 64
    return high.astype(x.dtype).view(a.dtype)


def round_away(values: np.ndarray) -> np.ndarray:
    """To the nearest whole number, halves away from zero (C's round, not numpy's)."""
    whole = np.trunc(values)
    return np.copysign(np.abs(whole) + (np.abs(values - whole) >= 0.5), values)


erf, erfc = through_float64(_erf), through_float64(_erfc)
exp2 = through_float64(np.exp2)
log, log2, log10 = (through_float64(f, ftz=False) for f in (np.log, np.log2, np.log10))
sin, cos = through_float64(np.sin), through_float64(np.cos)
sqrt, rsqrt = through_float64(np.sqrt), through_float64(lambda x: 1 / np.sqrt(x))
