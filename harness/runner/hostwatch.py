"""What torch does between (and during) the launches: it may allocate, view and copy; the kernel must compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.runner.ledger import Ledger

# names of aten operators that move or describe data and compute nothing
_ALLOCATE = {
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted",
}  # fmt: skip
# … that write every element, from nothing
FILLS = {
    "new_zeros", "zeros", "zeros_like", "ones", "ones_like", "new_ones", "full", "full_like", "new_full", "arange",
    "scalar_tensor", "linspace", "eye", "fill_", "zero_",
}  # fmt: skip
# … that move elements, which is the work itself where a kata says torch_copies = false
MOVES = {
    "clone", "copy_", "copy", "_to_copy", "to", "contiguous", "cat", "stack", "constant_pad_nd", "repeat", "roll",
    "flip", "pad", "tile",
}  # fmt: skip
_FREE = _ALLOCATE | FILLS | MOVES | {
    "lift_fresh", "lift", "_local_scalar_dense", "set_",
    "view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "expand", "permute", "transpose", "t",
    "squeeze", "unsqueeze", "slice", "select", "split", "split_with_sizes", "unbind", "chunk", "alias", "detach",
    "narrow", "diagonal", "unfold", "movedim", "view_as", "swapaxes", "flatten", "unflatten", "resize_", "expand_as",
    "broadcast_tensors", "is_pinned", "_pin_memory", "sym_size", "sym_stride", "sym_numel", "is_same_size",
    "record_stream", "_efficientzerotensor",
}  # fmt: skip
SMALL = 64  # elements: a table or a scalar that a launcher prepares is not the work
PIECES = 16  # … but more than so many such pieces in a call are


class HostWatch(TorchDispatchMode):
    """Records the torch operators that compute, and poisons fresh memory.

    Attributes:
        computed: operator name -> most elements that one call of it produced.
        during_kernel: operators that ran while a kernel was being interpreted.
        allocated: tensors that the launcher allocated (kept alive for the length of the call).
        ledger: learns what torch put where; None on a GPU, whose cases were all interpreted first.
    """

    def __init__(
        self, poison: int, in_kernel: Callable[[], bool], copies: bool = True, ledger: Ledger | None = None
    ) -> None:
        super().__init__()
        self.ledger = ledger
        self.free = _FREE if copies else _FREE - MOVES
        self.poison, self.in_kernel = poison, in_kernel
        self.computed: dict[str, int] = {}
        self.during_kernel: dict[str, int] = {}
        self.allocated: list[torch.Tensor] = []
        self.origins: dict[int, set[str]] = {}  # storage -> the inputs whose data it holds, as far as torch moved it
        self._small: dict[str, int] = {}
        self.read_back = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler at the first call, which takes a second

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if (own := _own_function(func)) is not None:
            with self:  # what an operator of the learner's does is looked at, not its name
                return own(*args, **(kwargs or {}))
        name = func.__name__.split(".")[0]
        given = list(tensors_in((args, kwargs)))
        known = self.ledger is not None and name in self.free and self.ledger.knows(_on_cpu(given))
        out = func(*args, **(kwargs or {}))
        self._inherit((args, kwargs), out)
        size = max((t.numel() for t in tensors_in(out)), default=0)
        if self.in_kernel():
            self.during_kernel[name] = max(size, self.during_kernel.get(name, 0))
        elif name in _ALLOCATE:
            if isinstance(out, torch.Tensor):
                out = self.placed(out)
                fill(out, self.poison)
                self.allocated.append(out)
        elif name not in self.free:
            consumed = max((t.numel() for t in tensors_in((args, kwargs))), default=0)
            yes_or_no = all(t.dtype == torch.bool for t in tensors_in(out))  # a check of the input is not the work
            self._small[name] = self._small.get(name, 0) + size  # many small pieces are the work, too
            if max(size, consumed, self._small[name] // PIECES) > SMALL and not yes_or_no:
                self.computed[name] = max(size, consumed, self.computed.get(name, 0))
        elif name == "_local_scalar_dense":
            self.read_back = True
        if name.endswith("_") and args and isinstance(args[0], torch.Tensor):
            self.wrote(args[0])
        if self.ledger is not None:
            self.ledger.ran(name, known, _on_cpu(given), _on_cpu(list(tensors_in(out))))
        return out

    def came_from(self, name: str, tensor: torch.Tensor) -> None:
        """Note that ``tensor`` is the input ``name``."""
        self.origins.setdefault(tensor.untyped_storage().data_ptr(), set()).add(name)

    def _inherit(self, given: Any, out: Any) -> None:
        names = {n for t in tensors_in(given) for n in self.origins.get(t.untyped_storage().data_ptr(), ())}
        if names:
            for t in tensors_in(out):
                self.origins.setdefault(t.untyped_storage().data_ptr(), set()).update(names)

    def wrote(self, tensor: torch.Tensor) -> None:
        """An operator wrote into ``tensor`` in place."""

    def placed(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the fresh tensor that the launcher gets instead of ``tensor``."""
        return tensor


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among an operator's arguments, or in what it returned."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def _own_function(func: Any) -> Callable[..., Any] | None:
    """Return the Python function behind an operator made by torch.library's ``custom_op`` or ``triton_op``, or None."""
    if func.namespace == "aten":
        return None
    from torch._library import custom_ops

    definition = getattr(custom_ops, "OPDEFS", {}).get(f"{func.namespace}::{func.__name__.split('.')[0]}")
    return getattr(definition, "_init_fn", None)


def _on_cpu(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Those whose elements lie in this process's memory."""
    return [t for t in tensors if t.device.type == "cpu" and t.layout == torch.strided]


# two bit patterns per element size; read as floats both are NaN with a payload, as integers large and odd
_PATTERNS = {
    1: (0x7F, 0x5B), 2: (0x7FDB, 0x7FB5), 4: (0x7FC05A5B, 0x7FD1B5A7), 8: (0x7FF85A5B5A5B5A5B, 0x7FF9B5A7B5A7B5A7),
}  # fmt: skip
_INTS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def poison_pattern(dtype: torch.dtype, which: int) -> int:
    """Return the bits that poisoned memory of this dtype holds; ``which`` selects one of two."""
    size = torch.empty(0, dtype=dtype).element_size()
    if dtype == torch.float16:
        return (0x7E5B, 0x7EB5)[which]
    if dtype.is_floating_point and size == 1:
        return (0x7F, 0xFF)[which]
    return _PATTERNS[min(size, 8)][which]


def fill(tensor: torch.Tensor, which: int) -> None:
    """Fill fresh memory with a poison."""
    if tensor.numel() == 0 or tensor.dtype == torch.bool or tensor.dtype.is_complex or not tensor.is_contiguous():
        if tensor.numel() and not tensor.is_contiguous() and not tensor.dtype.is_complex:
            value = float("nan") if tensor.dtype.is_floating_point else 77
            tensor.fill_(value)
        return
    size = tensor.element_size()
    pattern = poison_pattern(tensor.dtype, which)
    tensor.view(_INTS[size]).fill_(pattern - 256 if size == 1 and pattern > 127 else pattern)
