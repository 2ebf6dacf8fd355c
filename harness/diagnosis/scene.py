"""Scene: everything that is known about a call whose answer was wrong, as plain numpy.

The detectors of ``hints_moved``, ``hints_values`` and ``hints_softmax`` look at it and at nothing else, so that a test
builds one in a line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

# relative distance between neighbouring numbers, and the smallest number, of what a kata can return
EPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e5m2": 2.0**-2,
    "float8_e4m3fn": 2.0**-3,
}
TINY = {"float16": 2.0**-24, "float8_e5m2": 2.0**-16, "float8_e4m3fn": 2.0**-9}

Hint = str | None


@dataclass(frozen=True, eq=False)
class Scene:
    """A failed call.

    Attributes:
        got: what the kernel returned; bfloat16 and fp8 as any wider float.
        expected: the same shape.
        wrong: bool, the same shape: which elements are outside the allowed error.
        dtype: the output's dtype, such as ``bfloat16``.
        inputs: the tensors of the call, in the order of the parameters.
        names: their names; where missing, the keys of ``layouts`` if there are as many, else ``argument 1`` …
        layouts: how each input lies in memory (a name of ``spec.LAYOUTS``); contiguous where missing.
        options: the case's options, such as ``blocksize``.
        fills: what each input was filled with.
        writers: int, the output's shape: the flat number of the program that wrote the element last, -1 if unknown.
        grid: one to three sizes; program (x, y, z) has the flat number x + gx * (y + gy * z).
        blocks: the kernel's compile-time sizes that look like tiles, such as ``{"BLOCK_N": 64}``.
        kernel: the kernel's name.
        rerun: the reference on other inputs: takes a tuple like ``inputs``, returns an array like ``expected``. With
            it, hints try their explanation instead of guessing; an exception from it drops the hint.
    """

    got: np.ndarray
    expected: np.ndarray
    wrong: np.ndarray
    dtype: str = "float32"
    inputs: tuple[np.ndarray, ...] = ()
    names: tuple[str, ...] = ()
    layouts: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    fills: Mapping[str, str] = field(default_factory=dict)
    writers: np.ndarray | None = None
    grid: tuple[int, ...] = ()
    blocks: Mapping[str, int] = field(default_factory=dict)
    kernel: str = ""
    rerun: Callable[[tuple[np.ndarray, ...]], np.ndarray] | None = None

    @cached_property
    def g(self) -> np.ndarray:
        """What was got, as float64."""
        return np.asarray(self.got).astype(np.float64)

    @cached_property
    def e(self) -> np.ndarray:
        """What was expected, as float64."""
        return np.asarray(self.expected).astype(np.float64)

    @cached_property
    def w(self) -> np.ndarray:
        """Which elements are wrong, as an array."""
        return np.asarray(self.wrong, dtype=bool)

    @property
    def is_float(self) -> bool:
        """Whether the output has a floating-point dtype."""
        return self.dtype in EPS

    @property
    def slack(self) -> float:
        """The relative difference at which two numbers of the output's dtype count as the same."""
        return {"float64": 2.0**-40, "float32": 2.0**-17}.get(self.dtype, min(0.25, 2 * EPS.get(self.dtype, 0.0)))

    def name(self, i: int) -> str:
        """Return the name of input ``i``."""
        if len(self.names) == len(self.inputs):
            return self.names[i]
        keys = tuple(self.layouts)
        return keys[i] if len(keys) == len(self.inputs) else f"argument {i + 1}"

    def same(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return where ``a`` and ``b`` are the same number, as far as the output's dtype can tell."""
        near = np.abs(a - b) <= self.slack * np.maximum(np.abs(a), np.abs(b)) + 2 * TINY.get(self.dtype, 0.0)
        near &= np.isfinite(a) & np.isfinite(b)
        return near | (a == b) | (np.isnan(a) & np.isnan(b))

    def explains(self, predicted: np.ndarray, where: np.ndarray | None = None, cover: float = 0.98) -> bool:
        """Return whether ``predicted`` is what the kernel computed.

        Strong evidence only: at least four wrong elements with at least three different expected values, all clearly
        wrong; ``where`` holds ``cover`` of them; and the prediction fails (on right elements, too) no more often than
        for 2 in 100 wrong ones.

        Args:
            predicted: the output's shape.
            where: bool, the output's shape: the elements that are predicted; all when None.
            cover: the share of the wrong elements that must be predicted.
        """
        where = np.ones(self.w.shape, dtype=bool) if where is None else where
        hit = self.w & where
        count = int(hit.sum())
        if count < 4 or count < cover * self.w.sum() or len(np.unique(self.e[hit])) < 3:
            return False
        clearly = ~self.same(self.g[hit], self.e[hit])
        misses = int((~self.same(predicted, self.g) & where).sum())
        return bool(clearly.mean() >= 0.9 and misses <= 0.02 * count)

    def again(self, changed: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return what the reference says with some inputs changed; NaN, which fits nothing, when it refuses."""
        try:
            result = self.rerun(tuple(changed.get(i, x) for i, x in enumerate(self.inputs)))
            return np.asarray(result).astype(np.float64).reshape(self.e.shape)
        except Exception:  # noqa: BLE001 - a reference need not bear inputs that nobody promised it
            return np.full(self.e.shape, np.nan)

    @cached_property
    def ratio(self) -> np.ndarray:
        """got / expected where both are finite and the divisor is clearly not 0, NaN elsewhere."""
        usable = np.isfinite(self.g) & np.isfinite(self.e) & (np.abs(self.e) > 64 * TINY.get(self.dtype, 2.0**-149))
        return np.where(usable, self.g / self.e, np.nan)

    @property
    def packed(self) -> bool:
        """Whether an input holds two elements of the output in a byte."""
        return any(x.dtype == np.uint8 and x.size == (self.e.size + 1) // 2 for x in self.inputs)


def plain(value: float | int, digits: int = 6) -> str:
    """Return a number in few digits."""
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value) if isinstance(value, bool) else f"{value:,}"
