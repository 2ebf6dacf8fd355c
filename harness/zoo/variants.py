"""Zoo: kernels whose times are known, good and bad, to hold the speed model against.

``records/reference/zoo/*/*.py`` each define ``FAMILIES``: families of variants that compute the same result. The times
stand in ``h200_triton_*.csv`` above them, one table for each compiler that was timed. A variant is one or more launches
on named tensors. torch is imported when asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import KataError
from harness.runner.loader import load_source


@dataclass(frozen=True)
class Tensor:
    """A tensor of a family: shape, dtype by name, and what it holds.

    Attributes:
        fill: normal (standard normal times ``scale``), empty, zeros, bytes (any value of a uint8), table (``values``),
            below (integers from 0 to ``below``), turned (the transpose of the tensor ``of``).
    """

    shape: tuple[int, ...]
    dtype: str
    fill: str = "normal"
    below: int = 0
    values: tuple[float, ...] = ()
    scale: float = 1.0
    of: str = ""


@dataclass(frozen=True)
class Tiles:
    """A host-made tensor descriptor of the tensor ``name``, for tiles of shape ``block``."""

    name: str
    block: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """One launch: strings among ``args`` name tensors; ``options`` are further launch options."""

    kernel: Any
    grid: tuple[int, ...]
    args: Sequence[Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    warps: int = 4
    stages: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """Variants that compute the same.

    Attributes:
        tensors: by name.
        variants: by name, the launches in order.
        result: the tensor that holds the result; ``expected``: what it should hold, from all tensors by name, in float.
        zeroed: tensors that are zeroed before a run whose correctness is checked (results of atomics).
        tolerance: largest relative error, as the norm of the difference over the norm of the expected result.
    """

    tensors: Mapping[str, Tensor]
    variants: Mapping[str, Sequence[Call]]
    result: str
    expected: Callable[[Mapping[str, Any]], Any] | None = None
    zeroed: tuple[str, ...] = ()
    tolerance: float = 0.01


def families(path: Path) -> dict[str, Family]:
    """Return the families that the file ``path`` defines. Raises KataError when it defines none."""
    found = getattr(load_source(path, module_name(path)), "FAMILIES", None)
    if not found:
        raise KataError(f"{path} defines no FAMILIES; a file of the zoo holds a dict of them.")
    return found


def module_name(path: Path) -> str:
    """Return the name under which ``families`` loads the file."""
    return f"zoo_{path.parent.name}_{path.stem}"


def build(tensor: Tensor, device: str = "cpu", lazy: bool = True) -> Any:
    """Return the tensor. ``lazy``: only what steers kernels (integers that are indices) is filled."""
    import torch

    dtype = getattr(torch, tensor.dtype)
    if tensor.fill == "table":
        return torch.tensor(tensor.values, device=device).to(dtype)
    if tensor.fill == "below":
        draw = torch.Generator(device=device).manual_seed(math.prod(tensor.shape))
        return torch.randint(0, tensor.below, tensor.shape, device=device, generator=draw, dtype=torch.int64).to(dtype)
    if tensor.fill == "zeros":
        return torch.zeros(tensor.shape, dtype=dtype, device=device)
    if lazy or tensor.fill == "empty":
        return torch.empty(tensor.shape, dtype=dtype, device=device)
    if tensor.fill == "bytes":
        return torch.randint(0, 256, tensor.shape, dtype=torch.uint8, device=device)
    values = torch.randn(tensor.shape, device=device, dtype=torch.float32) * tensor.scale
    return values.to(dtype)


def tensors(family: Family, names: Collection[str] | None, device: str = "cpu", lazy: bool = True) -> dict[str, Any]:
    """Return the family's tensors by name; only those in ``names``, when that is given."""
    made: dict[str, Any] = {}
    for name, tensor in family.tensors.items():
        if names is not None and name not in names:
            continue
        if tensor.fill == "turned" and not lazy:
            made[name] = made[tensor.of].t().contiguous()
        else:
            made[name] = build(tensor, device, lazy)
    return made


def launch(call: Call, made: Mapping[str, Any]) -> None:
    """Start one launch."""
    call.kernel[call.grid](
        *arguments(call, made), **call.constants, num_warps=call.warps, num_stages=call.stages, **call.options
    )


def arguments(call: Call, made: Mapping[str, Any]) -> list[Any]:
    """Return the arguments of a launch: names become tensors, ``Tiles`` become descriptors."""
    out: list[Any] = []
    for arg in call.args:
        if isinstance(arg, Tiles):
            from triton.tools.tensor_descriptor import TensorDescriptor

            out.append(TensorDescriptor.from_tensor(made[arg.name], list(arg.block)))
        else:
            out.append(made[arg] if isinstance(arg, str) else arg)
    return out


def entry(family: Family, variant: str) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """Return a function that runs the variant and its arguments, lazily backed."""
    calls = family.variants[variant]
    needed = {a.name if isinstance(a, Tiles) else a for c in calls for a in c.args if isinstance(a, str | Tiles)}
    made = tensors(family, needed)

    def run() -> None:
        for call in calls:
            launch(call, made)

    return run, ()
