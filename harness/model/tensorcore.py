"""Tensor core: the asynchronous products (``wgmma``) of one scheduler's warps, which take turns on it. No torch.

A product runs by itself once it is issued. Of several warps that have products waiting, none goes first: were it so,
programs on one SM would fall out of step, one in its products while the other is in its softmax, and such kernels
would be faster than they are.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from harness.compiled.sass import Instruction


def operand_bytes(instruction: Instruction) -> float:
    """Return what one warp's part of a ``wgmma`` reads from shared memory: a quarter of n rows of 32 bytes, and of 64.

    Of the 64 rows of the first operand only when it is in shared memory, not in registers.
    """
    n = int(instruction.op.split(".")[1].split("x")[1])
    first = 64 if "gdesc" in instruction.operands.split(",")[1] else 0
    return (n + first) * 32 / 4


@dataclass
class Groups:
    """The groups of products of one warp: how many it has closed, and when each was ready, in order."""

    closed: int = 0
    ready: list[float] = field(default_factory=list)


class TensorCore:
    """A queue for each warp and the product that is running."""

    def __init__(self, warps: int) -> None:
        self.queues: list[deque[tuple[float, Groups, bool]]] = [deque() for _ in range(warps)]
        self.last = 0
        self.running: tuple[int, Groups, bool] | None = None

    def add(self, warp: int, cycles: float, groups: Groups, closes: bool) -> None:
        """Let a product of ``cycles`` wait; ``closes``: it is the last one of a group."""
        self.queues[warp].append((cycles, groups, closes))
        groups.closed += closes

    def begin(self) -> float | None:
        """Start the next product, when none runs, and return its cycles; None when there is nothing to start."""
        if self.running is not None:
            return None
        count = len(self.queues)
        for step in range(1, count + 1):
            warp = (self.last + step) % count
            if self.queues[warp]:
                cycles, groups, closes = self.queues[warp].popleft()
                self.last, self.running = warp, (warp, groups, closes)
                return cycles
        return None

    def finish(self, ready: float) -> tuple[int, Groups]:
        """End the running product, whose result is ``ready`` then, and return its warp and that warp's groups."""
        assert self.running is not None
        warp, groups, closes = self.running
        self.running = None
        if closes:
            groups.ready.append(ready)
        return warp, groups
