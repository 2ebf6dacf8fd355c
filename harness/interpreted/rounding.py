"""How a real number becomes a float32, float16, bfloat16, tf32, fp8 or integer number, as NVIDIA hardware does it.

Pure numpy and ml_dtypes, no triton: everything here can be tested without a GPU and without an interpreter.

Every result is rounded once. Where a calculation needs more bits than float64 has (a fused multiply-add, a 64-bit
integer), the intermediate value is rounded to odd: an inexact value gets a last bit of 1, so that the final rounding
to a shorter format sees on which side of a tie the exact value lies (Boldo and Melquiond, "Emulation of FMA and
correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008).
"""

import ml_dtypes
import numpy as np

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
FLOAT16, BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
E4M3_FNUZ, E5M2_FNUZ = np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.float8_e5m2fnuz)

# the conversion instructions saturate (`cvt.rn.satfinite`), for infinities too
FP8_MAX = {E4M3: 448.0, E5M2: 57344.0, E4M3_FNUZ: 240.0, E5M2_FNUZ: 57344.0}
# formats whose arithmetic is done in float32 and rounded once: float32 has more than twice their bits plus two, so
# the two roundings of + - * / sqrt cannot differ from one (Figueroa, "When is double rounding innocuous?", 1995)
NARROW = frozenset({FLOAT16, BFLOAT16, *FP8_MAX})

# Triton's names, then the names of torch and ml_dtypes
DTYPES = {
    "fp64": FLOAT64, "fp32": FLOAT32, "fp16": FLOAT16, "bf16": BFLOAT16,
    "fp8e4nv": E4M3, "fp8e5": E5M2, "fp8e4b8": E4M3_FNUZ, "fp8e5b16": E5M2_FNUZ,
    "float64": FLOAT64, "float32": FLOAT32, "float16": FLOAT16, "bfloat16": BFLOAT16,
    "float8_e4m3fn": E4M3, "float8_e5m2": E5M2, "float8_e4m3fnuz": E4M3_FNUZ, "float8_e5m2fnuz": E5M2_FNUZ,
}  # fmt: skip


def bits_of(array: np.ndarray) -> np.ndarray:
    """The bit patterns of an array, as unsigned integers of the same width (a view)."""
    return array.view(f"u{array.dtype.itemsize}")


def is_float(dtype: np.dtype) -> bool:
    """Whether a numpy dtype is a floating-point format (numpy itself counts the ml_dtypes ones as opaque)."""
    return dtype.kind == "f" or dtype in NARROW


def widen(array: np.ndarray) -> np.ndarray:
    """Narrow floats as float32 (exact); anything else unchanged."""
    return array.astype(FLOAT32) if array.dtype in NARROW else array


def round_to(dtype, values: np.ndarray, toward_zero: bool = False) -> np.ndarray:
    """Rounds floats to a format: to nearest, ties to even, or toward zero.

    fp8 saturates as the hardware's conversions do: beyond the largest finite value, infinities included, comes the
    largest finite value, and NaN becomes 0x7F. Toward zero (Triton's "rtz") keeps infinities.

    Args:
        dtype: a name such as "bfloat16", "bf16" or "fp8e4nv", or a numpy dtype.
        values: floats of any shape and format.
    Returns:
        an array of the named dtype and of the same shape.
    Raises:
        KeyError: for a name that is no float format.
    """
    dtype = DTYPES[dtype] if isinstance(dtype, str) else dtype
    values = widen(np.asarray(values))
    if values.dtype == FLOAT64 and dtype in NARROW:
        # numpy and ml_dtypes may go through float32 here, which would round twice
        values = _odd_float32(values)
    with np.errstate(all="ignore"):
        top = FP8_MAX.get(dtype)
        finite = values if top is None else np.clip(values, -top, top)
        if top is not None and toward_zero:
            finite = np.where(np.isinf(values), values, finite)
        out = finite.astype(dtype)
        if toward_zero:
            out = _one_step_back(out, values)
        if dtype in (E4M3, E5M2):
            out = np.where(np.isnan(values), np.uint8(0x7F).view(dtype), out)
    return out


def _one_step_back(nearest: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Turns a value rounded to nearest into the one rounded toward zero (an overflow into the largest finite value)."""
    wide = widen(nearest).astype(exact.dtype, copy=False)
    bits = bits_of(np.ascontiguousarray(nearest))
    return (bits - (np.abs(wide) > np.abs(exact)).astype(bits.dtype)).view(nearest.dtype)


@np.errstate(all="ignore")
def _odd_float32(values: np.ndarray) -> np.ndarray:
    """float64 to float32, rounded to odd."""
    cut = _one_step_back(values.astype(FLOAT32), values)
    inexact = (cut.astype(FLOAT64) != values) & ~np.isnan(values)
    return (bits_of(cut) | inexact.astype(np.uint32)).view(FLOAT32)


def _odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b in float64, rounded to odd."""
    total = np.add(a, b)
    part = total - a
    error = (a - (total - part)) + (b - part)  # exact: Knuth's two-sum
    bits = bits_of(np.ascontiguousarray(total))
    even = (bits & np.uint64(1)) == 0
    fix = np.isfinite(total) & np.isfinite(error) & (error != 0) & even
    step = np.where(np.signbit(error) == np.signbit(total), 1, -1)
    return (bits.view(np.int64) + np.where(fix, step, 0)).view(FLOAT64)


@np.errstate(all="ignore")
def fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z, rounded once to the dtype of z (any float format).

    In float64 the rounding error of x * y must not underflow (|x * y| above 1e-290, say) for that to hold.
    """
    if z.dtype != FLOAT64:
        product = x.astype(FLOAT64) * y.astype(FLOAT64)  # exact: at most 48 bits
        return round_to(z.dtype, _odd_sum(product, z.astype(FLOAT64)))
    high = x * y
    low = _product_error(x, y, high)
    t_high = z + low
    part = t_high - z
    t_low = (z - (t_high - part)) + (low - part)
    v_high = high + t_high
    part = v_high - high
    v_low = (high - (v_high - part)) + (t_high - part)
    exact = v_high + _odd_sum(t_low, v_low)
    return np.where(np.isfinite(low) & np.isfinite(exact), exact, x * y + z)


def _product_error(x: np.ndarray, y: np.ndarray, product: np.ndarray) -> np.ndarray:
    """x * y - product exactly, in float64, by splitting each factor in two halves (Dekker)."""

    def split(v):
        big = v * 134217729.0  # 2**27 + 1
        head = big - (big - v)
        return head, v - head

    (xh, xl), (yh, yl) = split(x), split(y)
    return xl * yl - (((product - xh * yh) - xl * yh) - xh * yl)


@np.errstate(all="ignore")
def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The float `%` of a compiled kernel: x - trunc(x / y) * y, one division and one fused multiply-add.

    Not fmod: where x / y rounds up to a whole number the result can have the other sign.
    """
    return np.where(np.isinf(y), x, fma(-np.trunc(x / y), y, x))


def to_tf32(values: np.ndarray, nearest: bool = False) -> np.ndarray:
    """float32 with 10 mantissa bits.

    Args:
        values: float32.
        nearest: round to nearest, ties away from zero (`cvt.rna.tf32.f32`, used by "tf32x3"); otherwise cut, which
            is what a tensor core does with operands that nobody has rounded: it does not read the low 13 bits, and
            Triton hands float32 registers over as they are.
    """
    bits = bits_of(np.ascontiguousarray(values, dtype=FLOAT32))
    cut = (bits + np.uint32(0x1000 if nearest else 0)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), cut.view(FLOAT32), values)


@np.errstate(all="ignore")
def to_int(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floats to integers as `cvt.rzi` does: toward zero, out-of-range values clamped, 8-bit results cut from 16 bits.

    NaN becomes 0, except from float64 or to 64 bits, where it becomes the pattern with only the top bit set (PTX ISA,
    "cvt"). Triton leaves values out of range unspecified; this is what a compiled kernel gives.
    """
    holder = np.dtype(f"{dtype.kind}2") if dtype.itemsize == 1 else dtype
    info = np.iinfo(holder)
    wide = np.trunc(widen(values)).astype(FLOAT64)
    nan_bits = 1 << (8 * holder.itemsize - 1) if values.dtype == FLOAT64 or holder.itemsize == 8 else 0
    above, below, nan = wide >= 2.0 ** info.max.bit_length(), wide < float(info.min), np.isnan(wide)
    out = np.where(above | below | nan, 0, wide).astype(holder)
    out = np.where(above, holder.type(info.max), np.where(below, holder.type(info.min), out))
    return np.where(nan, np.array(nan_bits, f"u{holder.itemsize}").view(holder), out).astype(dtype)


@np.errstate(all="ignore")
def from_int(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Integers or booleans to floats, rounded once (on sm_80 a compiled kernel goes through float32 on the way to
    bfloat16; later GPUs convert in one step, as here)."""
    if dtype not in NARROW:
        return values.astype(dtype)
    if values.dtype.itemsize == 8:
        # the low 11 bits only matter as "not zero" once there are more than 53
        sticky = values & ~values.dtype.type(0x7FF) | ((values & 0x7FF) != 0).astype(values.dtype) << 11
        small = (values < 2**52) & (values >= -(2**52)) if values.dtype.kind == "i" else values < 2**52
        values = np.where(small, values, sticky)
    return round_to(dtype, values.astype(FLOAT64))


def from_e4b15(codes: np.ndarray) -> np.ndarray:
    """Triton's fp8e4b15 codes (uint8; bias 15, no infinity or NaN) as float16."""
    wide = codes.astype(np.uint16)
    return ((wide & 0x7F) << 7 | (wide & 0x80) << 8).view(FLOAT16)


def to_e4b15(values: np.ndarray) -> np.ndarray:
    """Floats as fp8e4b15 codes: float32 is cut to float16 first, the magnitude is clamped to 1.75, ties round up."""
    bits = bits_of(round_to(FLOAT16, values, toward_zero=True))
    magnitude = np.minimum(bits & 0x7FFF, 0x3F00)
    return (((magnitude * 2 + 0x80) >> 8) | ((bits >> 8) & 0x80)).astype(np.uint8)
