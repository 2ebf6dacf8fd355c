"""Torch moves: the bytes that torch itself copies and fills in a call; a GPU does that in kernels of its own."""

from __future__ import annotations

import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.runner.hostwatch import FILLS, MOVES, tensors_in


class TorchMoves(TorchDispatchMode):
    """Counts while it is entered.

    Attributes:
        calls: operators that moved or filled something.
        bytes_read, bytes_written: what they move at least; an element that was expanded is read once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.bytes_read = self.bytes_written = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler at the first call, which takes a second

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.__name__.split(".")[0]
        if isinstance(out, torch.Tensor) and out.numel() and name in MOVES | FILLS:
            self.calls += 1
            self.bytes_written += out.numel() * out.element_size()
            if name in MOVES:
                sources = tensors_in(args[1:] if name == "copy_" else args)
                self.bytes_read += sum(_distinct(t) * t.element_size() for t in sources)
        return out

    def to_json(self) -> dict[str, int]:
        """Return plain values."""
        return {"calls": self.calls, "bytes_read": self.bytes_read, "bytes_written": self.bytes_written}


def _distinct(tensor: torch.Tensor) -> int:
    return math.prod(n for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s)
