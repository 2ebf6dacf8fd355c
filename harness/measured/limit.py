"""Limit: what no kernel for the same work can be faster than, as something to be run beside it in the same minute."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from harness import physics
from harness.measured import timing
from harness.measured.sampling import Rules

if TYPE_CHECKING:
    from harness.device import Device

CLOSE = 2.0  # within this factor of the ridge both limits are timed, and the longer one counts


@dataclass(frozen=True)
class Limit:
    """A copy of as many bytes, or torch's product of as many operations.

    Attributes:
        kind: "copy" or "matmul".
        work: does it once.
        scale: what its seconds are to be multiplied with: a product has sizes of its own.
        rules: how both are sampled: tensor cores at full load need rests.
    """

    kind: str
    work: Callable[[], Any]
    scale: float = 1.0
    rules: Rules = Rules()  # noqa: RUF009 - frozen

    def to_json(self, cost: Mapping[str, int]) -> dict[str, Any]:
        """Return what a record says of it."""
        moved = cost["bytes_read"] + cost["bytes_written"]
        return {"kind": self.kind, "bytes": moved, "flop": cost["flops"], "scale": self.scale}


def limit_of(cost: Mapping[str, int], dtype: str, device: Device) -> Limit:
    """Return the larger of the two limits of a call: its bytes at a copy's rate, its operations at a product's.

    Args:
        cost: bytes_read, bytes_written and flops of the call.
        dtype: of the operands, by which the device knows its peak.
        device: whose datasheet says on which side of the ridge the call lies; near it both are timed.
    """
    moved = cost["bytes_read"] + cost["bytes_written"]
    peak = device.peaks.get(dtype, 0.0)
    copy = Limit("copy", timing.copy_of(moved))
    if not peak:
        return copy
    beyond = physics.intensity(cost["flops"], moved) / physics.ridge(peak, device.mem_bw)
    if beyond < 1 / CLOSE:
        return copy
    work, scale = timing.matmul_of(cost["flops"], getattr(torch, dtype))
    product = Limit("matmul", work, scale, timing.BURSTS)
    if beyond > CLOSE:
        return product
    return max(copy, product, key=_seconds)


def _seconds(limit: Limit) -> float:
    flush = torch.empty(timing.FLUSH_BYTES, dtype=torch.uint8, device=timing.DEVICE)
    times = [timing.once(limit.work, flush) for _ in range(8)]
    return statistics.median(times[3:]) * limit.scale  # the first ones wait for the clock
