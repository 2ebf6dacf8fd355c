"""Mismatch: the computed answer against the expected one, within an error that was computed, not guessed.

An element is right when ``|got - expected| <= bound + ulp * ulp_size(expected)``: ``bound`` is the error that honest
arithmetic may make, ``ulp_size`` the distance between neighbouring numbers of the output's dtype at that value.
NaN is right only where NaN is expected, an infinity only where it is expected or where the expected number is rounded
to one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Format:
    """A floating-point format: stored bits of the mantissa, exponents of the smallest and the largest normal number."""

    mantissa: int
    lowest: int
    highest: int
    largest: float
    infinite: bool = True

    @property
    def beyond(self) -> float:
        """The number that would follow the largest one: an infinity stands in its place."""
        return 2.0 * 2.0**self.highest if self.highest < 1023 else math.inf

    @property
    def threshold(self) -> float:
        """From this magnitude on, a number is rounded to infinity (half way between ``largest`` and ``beyond``)."""
        return (self.largest + self.beyond) / 2 if self.infinite else math.inf


def _ieee(mantissa: int, lowest: int, highest: int) -> Format:
    return Format(mantissa, lowest, highest, (2 - 2.0**-mantissa) * 2.0**highest)


FORMATS = {
    "float64": _ieee(52, -1022, 1023),
    "float32": _ieee(23, -126, 127),
    "float16": _ieee(10, -14, 15),
    "bfloat16": _ieee(7, -126, 127),
    "float8_e5m2": _ieee(2, -14, 15),
    # no infinity: GPUs round what lies beyond to the largest number, whose last bit is spent on NaN
    "float8_e4m3fn": Format(3, -6, 8, 448.0, infinite=False),
}


@dataclass(frozen=True)
class Example:
    """One wrong element: where, what was found, what was expected and how far off it might have been."""

    index: tuple[int, ...]
    got: float | int
    expected: float | int
    allowed: float


@dataclass(frozen=True, eq=False)
class Mismatch:
    """What is wrong with an answer.

    Attributes:
        count: wrong elements.
        total: elements.
        wrong: bool, the output's shape.
        examples: the first three wrong elements in row-major order.
        worst: the element whose error is the largest multiple of what it may be (NaN where a number belongs is worst).
        max_ulp: the largest error of a wrong element, in units in the last place (for integers: the difference).
    """

    count: int
    total: int
    wrong: np.ndarray
    examples: tuple[Example, ...]
    worst: Example
    max_ulp: float


def ulp_size(expected64: torch.Tensor, dtype_name: str) -> torch.Tensor:
    """Return the distance from ``expected64`` to the next larger magnitude of a dtype.

    Between two neighbours it is their distance; below the smallest normal number it is the smallest subnormal one;
    beyond the largest number (and at infinity) it stays what it is there; at NaN it is NaN. For whole numbers it is 1.

    Args:
        expected64: any shape, float64.
        dtype_name: such as ``float16``.

    Returns:
        float64, the same shape.

    Raises:
        ValueError: the dtype is none that a kata can have.
    """
    return torch.from_numpy(_ulp(_numpy(expected64), dtype_name))


def compare(
    expected: torch.Tensor, got: torch.Tensor, *, bound: torch.Tensor | float, ulp: float, nan_allowed: bool
) -> Mismatch | None:
    """Return what is wrong with ``got``, or None when every element is right.

    Args:
        expected: float64 (or whole numbers or bools: then every element must be equal).
        got: the same shape, in the kata's output dtype, any strides.
        bound: float64, broadcastable to that shape, or a number: the error allowed before the last rounding.
        ulp: units in the last place of got's dtype, allowed on top.
        nan_allowed: whether a NaN in ``expected`` is meant.

    Raises:
        ValueError: the reference is at fault: a NaN that nobody asked for, a bound that is negative or no number, or
            a shape that differs.
    """
    if expected.shape != got.shape:
        raise ValueError(f"the reference has shape {list(expected.shape)} and the answer {list(got.shape)}")
    e, g, name = _numpy(expected), _numpy(got), _name(got)
    if not expected.is_floating_point():
        allowed = np.zeros(e.shape)
        size = _ulp(e, name)
        wrong = ~(e == g)
    else:
        if not nan_allowed:
            _refuse(np.isnan(e), "the reference is NaN")
        size = _ulp(e, name)
        allowed = np.where(np.isfinite(e), _bound(bound, ulp, e) + ulp * size, 0.0)
        wrong = ~_right(g, e, allowed, FORMATS.get(name))
    return _mismatch(wrong, g, e, allowed, size) if wrong.any() else None


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    """Return the values: floats as float64 (exact), whole numbers as they are, since float64 cannot hold all int64."""
    tensor = tensor.detach().cpu()
    return (tensor.to(torch.float64) if tensor.is_floating_point() else tensor).numpy()


def _ulp(values: np.ndarray, dtype_name: str) -> np.ndarray:
    form = FORMATS.get(dtype_name)
    if form is None:
        if not dtype_name.startswith(("int", "uint", "bool")):
            raise ValueError(f"dtype {dtype_name!r} has no known unit in the last place; expected {', '.join(FORMATS)}")
        return np.ones(values.shape)
    size = np.abs(values.astype(np.float64))
    exponent = np.where(size == 0, form.lowest, np.frexp(size)[1] - 1)
    exponent = np.where(np.isinf(size), form.highest, exponent).clip(form.lowest, form.highest)
    return np.where(np.isnan(size), np.nan, np.ldexp(1.0, exponent - form.mantissa))


def _bound(bound: torch.Tensor | float, ulp: float, expected: np.ndarray) -> np.ndarray:
    """Return the bound for every element; a bound that would accept anything is a fault of the reference."""
    if not 0 <= ulp < math.inf:
        raise ValueError(f"the tolerance is ulp = {ulp}; expected a finite number, 0 or more")
    values = _numpy(bound) if isinstance(bound, torch.Tensor) else np.asarray(float(bound))
    try:
        values = np.broadcast_to(values, expected.shape)
    except ValueError:
        raise ValueError(f"the error bound has shape {list(values.shape)}; expected {list(expected.shape)}") from None
    _refuse(np.isfinite(expected) & ~((values >= 0) & np.isfinite(values)), "the error bound is negative or not finite")
    return values


def _refuse(bad: np.ndarray, what: str) -> None:
    if bad.any():
        raise ValueError(f"{what} at index {[int(i) for i in np.argwhere(bad)[0]]}")


def _right(got: np.ndarray, expected: np.ndarray, allowed: np.ndarray, form: Format | None) -> np.ndarray:
    """Return which elements are right (float64 in, bool out)."""
    if form is not None and not form.infinite:
        expected = expected.clip(-form.largest, form.largest)
    with np.errstate(invalid="ignore"):  # inf - inf, settled by the branches below
        near = np.abs(got - expected) <= allowed
    if form is not None and form.infinite:
        size = np.abs(expected)
        over = (size >= form.threshold) | (form.beyond - size <= allowed)
        near |= np.isinf(got) & (np.sign(got) == np.sign(expected)) & np.isfinite(expected) & over
    return np.where(np.isnan(expected), np.isnan(got), np.where(np.isinf(expected), got == expected, near))


def _mismatch(
    wrong: np.ndarray, got: np.ndarray, expected: np.ndarray, allowed: np.ndarray, size: np.ndarray
) -> Mismatch:
    wrong = np.asarray(wrong)  # without a dimension, numpy's operators return scalars
    where = np.argwhere(wrong)
    g, e, a = (values[wrong] for values in (got, expected, allowed))
    with np.errstate(all="ignore"):  # NaN and inf are answers here
        exact = object if g.dtype.kind in "biu" and e.dtype.kind in "biu" else np.float64  # int64 needs Python's ints
        error = np.abs(g.astype(exact) - e.astype(exact)).astype(np.float64)
        units = error / size[wrong]
        excess = error / np.maximum(a, size[wrong])
    units[np.isnan(units)] = excess[np.isnan(excess)] = np.inf  # nothing is further off than NaN

    def example(i: int) -> Example:
        return Example(tuple(int(k) for k in where[i]), g[i].item(), e[i].item(), float(a[i]))

    examples = tuple(example(i) for i in range(min(3, len(where))))
    worst = example(int(excess.argmax()))
    return Mismatch(len(where), wrong.size, wrong, examples, worst, float(units.max()))
