"""`tl.reduce` and `tl.associative_scan` as trees, each step rounded to the dtype of its operands.

A GPU folds a block pairwise (within a thread, across the lanes of a warp, across warps), so a bfloat16 sum is rounded
log2(n) times and not n times. The exact tree depends on the layout that the compiler picks; ours halves the block. The
learner's own combine functions get neighbouring elements in order, because they are promised to be associative only.
"""

import dis
import operator
from collections.abc import Callable

import numpy as np

from harness.interpreted.elementary import maxnum, minnum
from harness.interpreted.rounding import is_float, round_to, widen

Parts = list[np.ndarray]  # one array for each of the tensors that are reduced together
Combine = Callable[[Parts, Parts], Parts]


def fold(parts: Parts, combine: Combine, ordered: bool) -> Parts:
    """Reduces the last axis to nothing.

    Args:
        parts: arrays of one shape [..., n], n > 0.
        combine: takes the left and the right operands, returns as many results.
        ordered: combine neighbours (0 with 1, 2 with 3, …) instead of halves (0 with n / 2, …).
    """
    n = parts[0].shape[-1]
    while n > 1:
        half = n // 2
        left, right = slice(half), slice(half, 2 * half)
        if ordered:
            left, right = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        done = combine([p[..., left] for p in parts], [p[..., right] for p in parts])
        if n % 2:
            done = [np.concatenate([d, p[..., -1:]], axis=-1) for d, p in zip(done, parts, strict=True)]
        parts, n = done, half + n % 2
    return [p[..., 0] for p in parts]


def scan(parts: Parts, combine: Combine) -> Parts:
    """All running results along the last axis, in log2(n) steps of doubling distance (Hillis and Steele), in order."""
    n, distance = parts[0].shape[-1], 1
    while distance < n:
        # whole rows, because a block of Triton has a power of two of elements; the first ones are thrown away
        done = combine([np.roll(p, distance, axis=-1) for p in parts], parts)
        parts = [
            np.concatenate([p[..., :distance], d[..., distance:]], axis=-1) for d, p in zip(done, parts, strict=True)
        ]
        distance *= 2
    return parts


def rounded(op: Callable[..., np.ndarray]) -> Combine:
    """A combine function of one tensor, from a numpy function of two arrays; narrow floats are rounded each time."""

    def combine(left: Parts, right: Parts) -> Parts:
        dtype = left[0].dtype
        out = op(widen(left[0]), widen(right[0]))
        return [round_to(dtype, out) if is_float(dtype) else out.astype(dtype, copy=False)]

    return combine


def pick(better: Callable[..., np.ndarray], leftmost: bool) -> Combine:
    """The combine function of tl.argmax and tl.argmin: (value, index) pairs."""

    def combine(left: Parts, right: Parts) -> Parts:
        (v1, i1), (v2, i2) = left, right
        a, b = widen(v1), widen(v2)
        keep = better(a, b) | ((a == b) & (i1 < i2)) if leftmost else better(a, b)
        return [np.where(keep, v1, v2), np.where(keep, i1, i2)]

    return combine


def largest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The larger of each pair; of floats as `maxnum`."""
    return maxnum(a, b) if is_float(a.dtype) else np.maximum(a, b)


def smallest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller of each pair; of floats as `minnum`."""
    return minnum(a, b) if is_float(a.dtype) else np.minimum(a, b)


def install(interp) -> None:
    """Replaces how Triton's interpreter reduces and scans. `interp`: the module triton.runtime.interpreter."""
    known, standard = _standard(interp.tl.standard)

    def by_learner(self) -> Combine | None:
        """The learner's combine function on whole arrays; None where it decides (`if`, `and`) on single values."""
        if _branches(self.combine_fn.fn, interp.InterpretedFunction):
            return None

        def combine(left: Parts, right: Parts) -> Parts:
            tensors = [self.to_tensor(p, d) for p, d in zip([*left, *right], self.dtypes * 2, strict=True)]
            out = self.combine_fn.fn(*tensors)
            out = out if isinstance(out, tuple | interp.tl.tuple) else (out,)
            out = [o.handle.data if isinstance(o, interp.tl.tensor) else np.asarray(o) for o in out]
            return [np.broadcast_to(o, p.shape).astype(p.dtype) for o, p in zip(out, left, strict=True)]

        return combine

    def chosen(self, tensors) -> Combine | None:
        self.dtypes = [t.dtype for t in tensors]
        return known.get(self.combine_fn) or by_learner(self)

    slow_reduce, slow_scan = interp.ReduceOps.generic_reduce, interp.ScanOps.generic_scan

    def reduce(self, tensors):
        data = [t.handle.data for t in tensors]
        place = self.axis = _whole(self.axis, data[0].ndim)
        combine = chosen(self, tensors)
        if combine is None:
            return slow_reduce(self, tensors)
        if place is None:
            data, place = [d.reshape(-1) for d in data], tuple(range(data[0].ndim))
        else:
            data = [np.moveaxis(d, place, -1) for d in data]
        with np.errstate(all="ignore"):
            out = fold(data, combine, ordered=self.combine_fn not in standard)
        out = [np.expand_dims(o, place) for o in out] if self.keep_dims else out
        return [self.to_tensor(o, d) for o, d in zip(out, self.dtypes, strict=True)]

    def associative_scan(self, tensors):
        axis = self.axis = _whole(self.axis, tensors[0].handle.data.ndim)
        data = [np.moveaxis(t.handle.data, axis, -1) for t in tensors]
        data = [d[..., ::-1] for d in data] if self.reverse else data
        combine = chosen(self, tensors)
        if combine is None:
            turned = [np.ascontiguousarray(np.moveaxis(d, -1, axis)) for d in data]
            turned = [self.to_tensor(t, d) for t, d in zip(turned, self.dtypes, strict=True)]
            data = [np.moveaxis(t.handle.data, axis, -1) for t in slow_scan(self, turned)]
        else:
            with np.errstate(all="ignore"):
                data = scan(data, combine)
        data = [d[..., ::-1] for d in data] if self.reverse else data
        out = [np.ascontiguousarray(np.moveaxis(d, -1, axis)) for d in data]
        return [self.to_tensor(o, d) for o, d in zip(out, self.dtypes, strict=True)]

    interp.ReduceOps.apply_impl = reduce
    interp.ScanOps.apply_impl = associative_scan


def _whole(axis, rank: int) -> int | None:
    axis = getattr(axis, "value", axis)  # a constexpr holds its number there
    return None if axis is None else operator.index(axis) % rank


def _standard(standard) -> tuple[dict, set]:
    """Triton's own combine functions with ours for them; and those whose order does not matter."""
    ours = {
        "_sum_combine": rounded(np.add),
        "_prod_combine": rounded(np.multiply),
        "_elementwise_max": rounded(largest),
        "_elementwise_min": rounded(smallest),
        "_xor_combine": rounded(np.bitwise_xor),
        "_or_combine": rounded(np.bitwise_or),
        "_argmax_combine_tie_break_left": pick(np.greater, True),
        "_argmax_combine_tie_break_fast": pick(np.greater, False),
        "_argmin_combine_tie_break_left": pick(np.less, True),
        "_argmin_combine_tie_break_fast": pick(np.less, False),
    }
    known = {getattr(standard, name): combine for name, combine in ours.items() if hasattr(standard, name)}
    return known, set(known)


def _branches(function: Callable, jitted: type, seen: frozenset = frozenset()) -> bool:
    """Whether a function, or a @triton.jit function that it calls, looks at the truth of a value."""
    if function in seen:
        return False
    if any("JUMP" in i.opname or i.opname == "FOR_ITER" for i in dis.get_instructions(function)):
        return True
    names = function.__code__.co_names
    spaces = [function.__globals__, *(vars(m) for n in names if hasattr(m := function.__globals__.get(n), "__dict__"))]
    called = [space[n] for n in names for space in spaces if isinstance(space.get(n), jitted)]
    return any(_branches(c.fn, jitted, seen | {function}) for c in called)
