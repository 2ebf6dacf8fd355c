"""`tl.dot` and `tl.dot_scaled` on numpy arrays, with the precision of a tensor core.

Operands are widened exactly and multiplied in float32, which also accumulates. What is not copied is a tensor core's
order of additions and the few bits it drops while it aligns addends: an H200 comes within 6 * 2**-24 of the sum of the
products' magnitudes at K = 64. Larger is only the loss of Hopper's fp8 instructions, which keep about 14 bits of the
running sum (2**-13 of that sum was seen); a kernel that needs more adds partial sums itself.
"""

import numpy as np

from harness.interpreted.rounding import BFLOAT16, E4M3, FLOAT16, FLOAT32, FLOAT64, round_to, to_tf32

_MMA_K = 16  # the inner dimension of one fp16 tensor-core instruction: a float16 accumulator is rounded after each
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], FLOAT32)
_E2M1[8] = -0.0


@np.errstate(all="ignore")
def dot(a: np.ndarray, b: np.ndarray, acc: np.ndarray, precision: str = "TF32") -> np.ndarray:
    """a @ b + acc.

    Args:
        a, b: [..., M, K] and [..., K, N] of any float format, or int8.
        acc: [..., M, N] of float32, float16, float64 or int32; its dtype is that of the result.
        precision: for float32 operands "TF32", "TF32x3", "IEEE", "BF16x3" or "BF16x6"; others ignore it.
    """
    if acc.dtype.kind in "iu":
        # float64 is exact for as many int8 products as any tile has, and fast
        product = np.matmul(a.astype(FLOAT64), b.astype(FLOAT64)).astype(np.int64)
        return (product + acc).astype(acc.dtype)
    if a.dtype == FLOAT64:
        return np.matmul(a, b) + acc
    if a.dtype == FLOAT32:
        return (_float32_product(a, b, precision.upper()) + acc).astype(acc.dtype)
    a, b = a.astype(FLOAT32), b.astype(FLOAT32)
    if acc.dtype == FLOAT16:
        for k in range(0, a.shape[-1], _MMA_K):
            acc = (np.matmul(a[..., k : k + _MMA_K], b[..., k : k + _MMA_K, :]) + acc.astype(FLOAT32)).astype(FLOAT16)
        return acc
    return np.matmul(a, b) + acc


def _float32_product(a: np.ndarray, b: np.ndarray, precision: str) -> np.ndarray:
    if precision == "IEEE":
        return np.matmul(a, b)
    if precision == "TF32":
        return np.matmul(to_tf32(a), to_tf32(b))
    if precision == "TF32X3":
        # the large part and the rest are rounded to nearest, the product of the rests is left out
        (ah, al), (bh, bl) = _split(a, _nearest_tf32, 2), _split(b, _nearest_tf32, 2)
        return _with_rest(np.matmul(al, bh) + np.matmul(ah, bl), ah, bh)
    if precision in ("BF16X3", "BF16X6"):
        (ah, am, al), (bh, bm, bl) = _split(a, _bfloat16, 3), _split(b, _bfloat16, 3)
        rest = np.matmul(am, bh) + np.matmul(ah, bm)
        if precision == "BF16X6":
            rest = np.matmul(am, bm) + np.matmul(al, bh) + np.matmul(ah, bl) + rest
        return _with_rest(rest, ah, bh)
    raise NotImplementedError(f"tl.dot with input_precision={precision} is not known here; a GPU decides")


def _with_rest(rest: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # an infinite operand leaves NaN in the rest; compiled code then keeps the large product alone
    return np.where(np.isnan(rest), np.float32(0), rest) + np.matmul(a, b)


def _nearest_tf32(values: np.ndarray) -> np.ndarray:
    return to_tf32(values, nearest=True)


def _bfloat16(values: np.ndarray) -> np.ndarray:
    return values.astype(BFLOAT16).astype(FLOAT32)


def _split(values: np.ndarray, rounded, parts: int) -> list[np.ndarray]:
    """values as a sum of that many short numbers, the largest first."""
    out = []
    for _ in range(parts):
        out.append(rounded(values))
        values = values - out[-1]
    return out


@np.errstate(all="ignore")
def dot_scaled(lhs, lhs_scale, rhs, rhs_scale, acc: np.ndarray, compute: np.dtype) -> np.ndarray:
    """(lhs * lhs_scale) @ (rhs * rhs_scale) + acc, scaled operands rounded to `compute` (bfloat16 or float16).

    Args:
        lhs, rhs: float32 of [..., M, K] and [..., K, N], already unpacked.
        lhs_scale, rhs_scale: None, or scales of [..., M, K / group] and [..., N, K / group] (so for rhs, too).
        acc: [..., M, N] float32.
    """
    if lhs_scale is not None:
        scale = scale_values(lhs_scale)
        lhs = lhs * np.repeat(scale, lhs.shape[-1] // scale.shape[-1], axis=-1)
    if rhs_scale is not None:
        scale = scale_values(rhs_scale)
        rhs = rhs * np.swapaxes(np.repeat(scale, rhs.shape[-2] // scale.shape[-1], axis=-1), -1, -2)
    return np.matmul(round_to(compute, lhs).astype(FLOAT32), round_to(compute, rhs).astype(FLOAT32)) + acc


def scale_values(codes: np.ndarray) -> np.ndarray:
    """Block scales as float32: E8M0 bytes (2**(code - 127), 255 is NaN) or fp8 numbers."""
    if codes.dtype == E4M3:
        return codes.astype(FLOAT32)
    exponent = codes.view(np.uint8).astype(np.int32)
    return np.where(exponent == 255, np.float32(np.nan), np.ldexp(np.float32(1), exponent - 127))


def unpack_e2m1(codes: np.ndarray, axis: int) -> np.ndarray:
    """fp4 pairs (uint8, the low nibble first) as float32, twice as long along `axis`."""
    pairs = np.moveaxis(codes, axis, -1)
    out = np.stack([_E2M1[pairs & 0x0F], _E2M1[pairs >> 4]], axis=-1)
    return np.moveaxis(out.reshape(*pairs.shape[:-1], -1), -1, axis)
