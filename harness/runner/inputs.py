"""Inputs: a Case becomes tensors, drawn anew from its seed, in the layouts that real callers pass.

Everything is drawn on the CPU, so that the same seed gives the same values on every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from harness.errors import SpecError
from harness.spec import FILLS, LAYOUTS, Case, Spec

HUGE_STRIDE = 2**30
LARGE = 1e4
STEERS_BYTES = 1 << 22  # integers of a lazily backed case that are as small as this steer kernels, and are real


class Build:
    """Makes the tensors of one case; ``make_inputs`` of a kata gets it as ``build``.

    Attributes:
        generator: seeded from the case, on the CPU.
        lazy: bench shapes are launched but never run on a CPU: memory is reserved, not touched; but for small integers,
            which are drawn as ever: lengths and tables of blocks steer loops and addresses.
    """

    def __init__(self, case: Case, fills: dict[str, Callable[..., Any]], lazy: bool = False) -> None:
        self.case, self.fills, self.lazy = case, fills, lazy
        self.generator = torch.Generator().manual_seed(case.seed % 2**63)

    def __call__(self, shape, dtype, layout: str = "contiguous", fill: str = "normal") -> torch.Tensor:
        """Return a tensor.

        Args:
            shape: sizes.
            dtype: a torch dtype or its name.
            layout: how it lies in memory, one of ``spec.LAYOUTS``.
            fill: what it holds, one of ``spec.FILLS`` or a name from the kata's ``FILLS``.

        Raises:
            SpecError: the layout or the fill is unknown.
        """
        dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        view = laid_out(tuple(shape), dtype, layout, self.lazy)
        if self.lazy and (dtype.is_floating_point or view.numel() * dtype.itemsize > STEERS_BYTES):
            return view
        if fill in self.fills:
            values = _drawn(tuple(shape), dtype, "normal", self.generator)
            changed = self.fills[fill](values, self.generator)
            values = values if changed is None else changed
        else:
            values = _drawn(tuple(shape), dtype, fill, self.generator)
        _write(view, values, layout)
        return view


def make_inputs(spec: Spec, reference: ModuleType, case: Case) -> tuple[Any, ...]:
    """Return the positional arguments of one call of the entry."""
    build = Build(case, getattr(reference, "FILLS", {}), lazy=case.role == "bench")
    custom = getattr(reference, "make_inputs", None)
    if custom is not None:
        return tuple(custom(case, build))
    return tuple(
        build(
            arg.sizes(case.dims),
            case.dtype if arg.dtype == "T" else arg.dtype,
            case.layout.get(arg.name, "contiguous"),
            case.fill.get(arg.name, "normal"),
        )
        for arg in spec.args
    )


def laid_out(shape: tuple[int, ...], dtype: torch.dtype, layout: str, lazy: bool = False) -> torch.Tensor:
    """Return a view of this shape whose storage lies as ``layout`` says; the gaps hold NaN (or 77 for integers)."""
    if layout not in LAYOUTS:
        raise SpecError(f"layout {layout!r} is unknown; expected one of {', '.join(LAYOUTS)}.")
    if layout == "huge" and shape:
        # memory that nothing touches costs nothing: only the pages of the elements become real
        return torch.empty(max(0, (shape[0] - 1) * HUGE_STRIDE + math.prod(shape[1:])), dtype=dtype).as_strided(
            shape, (HUGE_STRIDE, *_contiguous(shape)[1:])
        )
    if not shape or layout == "contiguous":
        return _gap(shape, dtype, lazy)
    last = shape[-1]
    if layout == "offset":
        return _gap((math.prod(shape) + 1,), dtype, lazy)[1:].view(shape)
    if layout == "expanded":
        return _gap((1, *shape[1:]), dtype, lazy).expand(shape)
    if layout == "strided" or len(shape) == 1 and layout == "transposed":
        return _gap((*shape[:-1], 2 * last), dtype, lazy)[..., ::2]
    if layout == "transposed":
        return _gap((*shape[:-2], last, shape[-2]), dtype, lazy).transpose(-1, -2)
    return _gap((*shape[:-1], last + 5), dtype, lazy)[..., 2 : 2 + last]  # sliced


def _gap(shape: tuple[int, ...], dtype: torch.dtype, lazy: bool) -> torch.Tensor:
    out = torch.empty(shape, dtype=dtype)
    return out if lazy else out.fill_(float("nan") if dtype.is_floating_point else 77)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _write(view: torch.Tensor, values: torch.Tensor, layout: str) -> None:
    if layout == "expanded" and view.dim():
        view, values = view[:1], values[:1]
    view.copy_(values)


def _drawn(shape: tuple[int, ...], dtype: torch.dtype, fill: str, generator: torch.Generator) -> torch.Tensor:
    if fill not in FILLS:
        raise SpecError(
            f"fill {fill!r} is unknown; expected one of {', '.join(FILLS)} or a name from the kata's FILLS."
        )
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).to(dtype)
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        low, high = (max(info.min, -9), 9) if fill == "integers" else (info.min, info.max)
        return torch.randint(low, min(high + 1, 2**63 - 1), shape, generator=generator, dtype=torch.int64).to(dtype)
    if fill == "integers":
        return torch.randint(-9, 10, shape, generator=generator).to(dtype)
    if fill == "uniform":
        return torch.rand(shape, generator=generator, dtype=torch.float64).to(dtype)
    normal = torch.randn(shape, generator=generator, dtype=torch.float64)
    if fill == "large":
        normal = (normal * LARGE / 3).clamp(-LARGE, LARGE)
    elif fill == "tiny":
        normal = normal * 2.0**-12
    return normal.to(dtype)


def tensors_of(value: Any, name: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor reachable from ``value`` with its name, such as ``("quant_state.absmax", tensor)``."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, tuple | list):
        for i, item in enumerate(value):
            yield from tensors_of(item, f"{name}[{i}]", seen)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_of(item, f"{name}[{key!r}]", seen)
    elif hasattr(value, "__dict__") and not isinstance(value, type | ModuleType) and not callable(value):
        for key, item in vars(value).items():
            yield from tensors_of(item, f"{name}.{key}", seen)


def named_tensors(spec: Spec, args: tuple[Any, ...]) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors of a call's arguments, named after the entry's parameters."""
    names = [a.name for a in spec.args] + [f"argument {i}" for i in range(len(spec.args), len(args))]
    seen: set[int] = set()
    return [pair for name, arg in zip(names, args, strict=False) for pair in tensors_of(arg, name, seen)]


def map_tensors(value: Any, change: Callable[[torch.Tensor], torch.Tensor], memo: dict[int, Any] | None = None) -> Any:
    """Return ``value`` with every reachable tensor replaced by ``change(tensor)``; objects are copied, not altered."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, torch.Tensor):
        out = change(value)
    elif isinstance(value, tuple | list):
        out = type(value)(map_tensors(v, change, memo) for v in value)
    elif isinstance(value, dict):
        out = {k: map_tensors(v, change, memo) for k, v in value.items()}
    elif hasattr(value, "__dict__") and not isinstance(value, type | ModuleType) and not callable(value):
        out = object.__new__(type(value))
        out.__dict__.update({k: map_tensors(v, change, memo) for k, v in vars(value).items()})
    else:
        return value
    memo[id(value)] = out
    return out


def span_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes from the view's first element to the end of its last one."""
    if tensor.numel() == 0:
        return 0
    return (sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1) * tensor.element_size()


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy of the view's bytes, so that NaN compares like any other value."""
    return tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
