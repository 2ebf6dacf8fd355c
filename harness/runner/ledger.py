"""Where the data of a call came from: what neither torch, in sight, nor a kernel put into a tensor is noted.

numpy, a thread, ctypes or another process may fill a tensor that a kernel then only copies. Tables that are made that
way are fine; data that change with the values of the inputs are the work itself, done elsewhere. The ledger notes what
kernels are handed of unknown origin; two calls with different values tell the one from the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import torch

from harness.interpreted.sanitizer import real_bytes

SMALL = 64  # elements, or numbers: a table, or the plan of a launch
LARGEST = 2**28  # bytes of a storage that is looked at

_FROM_ELSEWHERE = {"set_", "resize_"}  # operators that take memory of any origin
_FROM_NUMBERS = {"fill_", "full", "full_like", "new_full", "scalar_tensor"}  # operators that write a number of Python's


class Ledger:
    """The books of one call: a checksum of each storage as torch or a kernel left it."""

    def __init__(self) -> None:
        self.sums: dict[int, int] = {}
        self.begin([])

    def begin(self, inputs: Iterable[torch.Tensor]) -> None:
        """A call begins; the sums stay, because a tensor of the file may be used in every call."""
        for t in inputs:
            self.settle(t)
        self.numbers = 0
        self.handed: dict[str, list[Any]] = {}  # what kernels got of unknown origin: name -> [elements, checksum]
        self.floats: list[str] = []

    def knows(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether all that these tensors' storages hold was put there in sight."""
        for t in tensors:
            if _size(t) <= LARGEST and self.sums.get(_key(t)) != _checksum(t):
                return False
        return True

    def ran(self, name: str, known: bool, given: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """The operator ``name`` made ``made`` of ``given``, of which all was known, or not."""
        if name in _FROM_NUMBERS:
            self.numbers += 1
            known = known and self.numbers <= SMALL
        known = known and name not in _FROM_ELSEWHERE
        before = {_key(t) for t in given}
        for t in made:
            if name.endswith("_") or _key(t) not in before:
                if known:
                    self.settle(t)
                else:
                    self.sums.pop(_key(t), None)

    def settle(self, tensor: torch.Tensor) -> None:
        """What the tensor's storage holds now is accounted for."""
        if _size(tensor) <= LARGEST:
            self.sums[_key(tensor)] = _checksum(tensor)

    def launched(self, number: int, name: str, value: Any) -> None:
        """A kernel is handed ``value``."""
        if isinstance(value, torch.Tensor):
            if value.numel() > SMALL and not self.knows([value]):
                self.handed[f"{number}:{name}"] = [value.numel(), _checksum(value)]
        elif isinstance(value, float) and len(self.floats) < 100 * SMALL:
            self.floats.append(repr(value))
        elif isinstance(value, tuple):
            for part in value:
                self.launched(number, name, part)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"handed": self.handed, "floats": self.floats}


def made_elsewhere(calls: list[dict[str, Any]]) -> str:
    """Return what kernels were handed of unknown origin that changes with the values of the inputs, or an empty text.

    Args:
        calls: what the child saw of each, with ``plan`` and ``books`` (``Ledger.to_json()``).
    """
    books = {c["plan"]["contents"]: c["books"] for c in reversed(calls) if "books" in c}
    if set(books) != {0, 1}:
        return ""
    first, second = books[0], books[1]
    for key, (elements, checksum) in first["handed"].items():
        other = second["handed"].get(key)
        if other is not None and other[1] != checksum:
            return (
                f"a kernel was handed {key.partition(':')[2]}, {elements:,} elements that neither torch nor a kernel "
                "made in this call, and that change with the inputs: something else (numpy, Python, a thread) "
                "computed them"
            )
    changed = sum(a != b for a, b in zip(first["floats"], second["floats"], strict=False))
    if changed > SMALL:
        return f"kernels were handed {changed:,} numbers, one by one, that change with the inputs: Python computed them"
    return ""


def _key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _size(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def _checksum(tensor: torch.Tensor) -> int:
    return zlib.crc32(real_bytes(_key(tensor), _size(tensor)))
