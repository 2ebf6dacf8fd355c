"""Timing: how long a call takes on this GPU, beside a copy that moves as many bytes, sample by sample.

All contenders are timed with device events, with a cold L2, in turns, in one run; so what the clock, the launch and the
flush cost falls out of their ratio. The share of the limit is the limit's median over the call's. What counts and when
to stop is decided in ``sampling``; here is the GPU's part.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from harness.measured.nvml import Nvml
from harness.measured.sampling import Rules, Samples, collect

FLUSH_BYTES = 256 * 2**20  # several times the L2 of any GPU in harness/devices
FLUSHES = 6  # some 70 us each: the GPU is still busy with them while the host prepares the launch
WARM_SECONDS = 1.0  # an idle GPU runs at a fraction of its clock, and takes its time to speed up
DEVICE = "cuda"  # tests without a GPU put another here
# tensor cores at full load reach the power limit within a fraction of a second: short bursts, then a rest
BURSTS = Rules(burst=10, pause=0.25, seconds=10.0)

# taken before any code under test could replace them
_Event, _elapsed, _synchronize = torch.cuda.Event, torch.cuda.Event.elapsed_time, torch.cuda.synchronize


def contest(
    calls: Sequence[Callable[[], Any]],
    others: Mapping[str, Callable[[], Any]],
    rules: Rules | None = None,
    scale: Mapping[str, float] | None = None,
) -> Samples:
    """Time ``calls``, in turn, as ``ours`` against ``others``, among which is ``limit``; warms the GPU up before.

    Args:
        scale: what the seconds of a contender are multiplied with, when it does another amount of work.
    """
    scale = scale or {}
    with alone():
        return _contest(calls, others, rules or Rules(), scale)


def _contest(calls: Any, others: Any, rules: Rules, scale: Mapping[str, float]) -> Samples:
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=DEVICE)
    works = {"ours": itertools.cycle(calls)} | {name: itertools.repeat(work) for name, work in others.items()}
    for work in (*calls, *others.values()):  # the first call compiles, which is not work for the GPU
        work()
    warm = time.monotonic() + (WARM_SECONDS if not rules.burst else WARM_SECONDS / 4)
    while time.monotonic() < warm:
        for work in works.values():
            flush.zero_()
            next(work)()
        _synchronize()
    timed = {name: functools.partial(_one, work, flush, scale.get(name, 1.0)) for name, work in works.items()}
    return collect(timed, rules, driver().state)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of this GPU: two of our measurements on one GPU wait for each other."""
    name = driver().uuid or "gpu"
    with open(Path(tempfile.gettempdir()) / f"kernel-kata-{name}.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def copy_of(bytes_moved: int) -> Callable[[], Any]:
    """Return a copy that reads and writes ``bytes_moved`` bytes together."""
    half = max(16, bytes_moved // 2)
    source = torch.randint(0, 255, (half,), dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def matmul_of(flop: int, dtype: torch.dtype) -> tuple[Callable[[], Any], float]:
    """Return torch's product of two square matrices of about ``flop``, and what its time is to be multiplied with.

    At least 4096 cubed: of smaller ones many sizes leave half of the GPU idle in the last wave, which is no limit.
    """
    n = min(16384, max(4096, round((flop / 2) ** (1 / 3) / 1024) * 1024))
    a, b = (torch.randn(n, n, device=DEVICE).to(dtype) for _ in range(2))
    return lambda: a @ b, flop / (2 * n**3)


@functools.cache
def driver() -> Nvml:
    """Return the driver's view of this process's GPU."""
    return Nvml(str(getattr(torch.cuda.get_device_properties(0), "uuid", "")) if torch.cuda.is_available() else "")


def _one(works: Any, flush: torch.Tensor, scale: float = 1.0) -> float:
    return once(next(works), flush) * scale


def once(work: Callable[[], Any], flush: torch.Tensor | None) -> float:
    """Return the seconds that ``work`` takes on the GPU, once; with a ``flush`` buffer its inputs are not in the L2."""
    start, end = _Event(enable_timing=True), _Event(enable_timing=True)
    if flush is not None:
        for _ in range(FLUSHES):
            flush.zero_()
    start.record()
    work()
    end.record()
    _synchronize()
    return _elapsed(start, end) * 1e-3


__all__ = ["BURSTS", "alone", "contest", "copy_of", "driver", "matmul_of", "once"]
