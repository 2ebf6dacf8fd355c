"""Launch: what a launcher asked the GPU to do, recorded alike by the interpreter and by the ahead-of-time compiler."""

from __future__ import annotations

import inspect
import operator
from dataclasses import asdict, dataclass
from typing import Any

import torch

source_files: set[str] = set()  # files whose lines are "the learner's line" in messages
tuned: dict[str, Any] | None = None  # the configuration that an autotuner is running just now


@dataclass
class Launch:
    """One launch: kernel, grid, the dtypes of its tensors, its constexprs and its options (num_warps, …)."""

    kernel: str
    grid: tuple[int, int, int]
    dtypes: dict[str, str]
    constants: dict[str, str]
    options: dict[str, str]
    tuned: dict[str, Any] | None = None  # of an autotuned kernel: which configuration of how many, in words
    facts: str = ""  # where the facts of the compiled kernel stand, when they were asked for

    @property
    def programs(self) -> int:
        """How many programs the grid has."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def key(self) -> str:
        """What a compiler would compile anew for: everything but the grid."""
        return repr((self.kernel, self.dtypes, self.constants, self.options))

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"key": self.key()}


def full_grid(grid: Any) -> tuple[int, int, int]:
    """Return the grid as three whole numbers.

    Raises:
        TypeError: it is no tuple or list, or an entry is no whole number; Triton's own words for that help nobody.
        ValueError: it has more than three entries, or one that is negative or above CUDA's limit.
    """
    if not isinstance(grid, tuple | list):
        raise TypeError(f"grid = {grid!r} is no tuple or list; write kernel[({grid!r},)](…)")
    try:
        sizes = [operator.index(getattr(g, "value", g)) for g in grid]
    except TypeError:
        raise TypeError(f"grid = {grid!r}: the number of programs is a whole number; use // or triton.cdiv") from None
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"grid = {grid!r} has {len(sizes)} entries; a grid has one to three")
    for axis, (size, limit) in enumerate(zip(sizes, (2**31 - 1, 65535, 65535), strict=False)):
        if not 0 <= size <= limit:
            raise ValueError(f"grid = {tuple(sizes)}: axis {axis} is {size:,}; CUDA allows 0 to {limit:,} there")
    x, y, z = sizes + [1] * (3 - len(sizes))
    return x, y, z


def describe(fn: Any, grid: tuple[int, int, int], values: dict[str, Any], constants: set[str], options: dict) -> Launch:
    """Return the record of one launch of the plain function ``fn`` with these arguments."""
    return Launch(
        kernel=fn.__name__,
        grid=grid,
        dtypes={k: str(v.dtype).removeprefix("torch.") for k, v in values.items() if isinstance(v, torch.Tensor)},
        constants={k: _plain(values[k]) for k in sorted(constants & set(values))},
        options={k: _plain(v) for k, v in sorted(options.items())},
        tuned=tuned,
    )


def _plain(value: Any) -> str:
    value = getattr(value, "value", value)
    return getattr(value, "__name__", None) or repr(value)


class StandInKernel:
    """What ``kernel.warmup(...)`` returns on a machine without a GPU: enough for a launcher that asks for registers.

    The figures are stand-ins (32 registers a thread, no shared memory, no spills): a launcher may size its grid with
    them, and both the interpreter and the compiler see the same grid.
    """

    n_regs, n_spills, n_max_threads = 32, 0, 1024

    def __init__(self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.kernel = kernel
        self.kwargs = {k: v for k, v in kwargs.items() if k != "grid"}
        self.args = args
        self.metadata = _Metadata()
        self.asm: dict[str, str] = {}

    def _init_handles(self) -> None:
        """A compiled kernel loads itself onto the GPU here."""

    def __getitem__(self, grid: Any) -> Any:
        names = list(inspect.signature(self.kernel.fn).parameters)

        def launch(*args: Any, **kwargs: Any) -> Any:
            given = dict(zip(names, args, strict=False)) | kwargs
            return self.kernel.run(grid=grid, warmup=False, **(self.kwargs | given))

        return launch


class _Metadata:
    shared, num_warps, num_stages, num_ctas, tmem_size = 0, 4, 3, 1, 0
