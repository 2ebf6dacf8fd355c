"""Skim: kernels run for their addresses only; arithmetic on floats keeps shapes and dtypes and computes nothing.

Installed in a process that traces and ends; comparisons and everything on integers stay exact, since they steer masks,
loops and addresses.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.interpreted import reduction
from harness.interpreted.rounding import is_float

operations = 0  # that kernels did since somebody set this to 0


def _count() -> None:
    global operations
    operations += 1


def install() -> None:
    """Switch the arithmetic on floats off, for the life of this process."""
    import triton.runtime.interpreter as interp

    builder, handle = interp.InterpreterBuilder, interp.TensorHandle
    binary, unary, cast = builder.binary_op, builder.unary_op, builder.cast_impl
    fold, scan = reduction.fold, reduction.scan
    compares = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
        _count()
        if is_float(lhs.data.dtype) and (op in compares or lhs.data.size == 1):
            return binary(self, lhs, rhs, op)
        return handle(lhs.data, lhs.dtype.scalar) if is_float(lhs.data.dtype) else binary(self, lhs, rhs, op)

    def unary_op(self: Any, arg: Any, op: Any) -> Any:
        _count()
        if is_float(arg.data.dtype) and arg.data.size > 1:
            return handle(arg.data, arg.dtype.scalar)
        return unary(self, arg, op)

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        _count()
        dtype = interp._get_np_dtype(dst_type)
        if is_float(src.data.dtype) and is_float(dtype) and src.data.size > 1:
            return handle(np.zeros(src.data.shape, dtype), dst_type.scalar)
        return cast(self, src, dst_type)

    def skimmed_fold(parts: list[np.ndarray], combine: Any, ordered: bool) -> list[np.ndarray]:
        if all(is_float(p.dtype) for p in parts):
            return [p[..., 0] for p in parts]
        return fold(parts, combine, ordered)

    def skimmed_scan(parts: list[np.ndarray], combine: Any) -> list[np.ndarray]:
        return list(parts) if all(is_float(p.dtype) for p in parts) else scan(parts, combine)

    builder.binary_op, builder.unary_op, builder.cast_impl = binary_op, unary_op, cast_impl
    builder.create_fma = lambda self, x, y, z: handle(z.data, z.dtype.scalar)
    reduction.fold, reduction.scan = skimmed_fold, skimmed_scan


def loops(module: types.ModuleType, counter: Callable[..., Any]) -> None:
    """Let ``range``, ``tl.range`` and ``tl.static_range`` in the kernels of ``module`` be ``counter``."""
    import triton.language as tl

    module.__dict__["range"] = counter
    tl.range = tl.static_range = tl.core.range = tl.core.static_range = counter
