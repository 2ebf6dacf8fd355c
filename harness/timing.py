"""Timing: how long a call takes on this GPU, beside a copy that moves as many bytes, sample by sample.

Both are timed with device events, with a cold L2, in turns, in one run; so what the clock, the launch and the flush
cost falls out of their ratio. The share of the limit is the copy's median over the call's.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

FLUSH_BYTES = 256 * 2**20  # several times the L2 of any GPU in harness/devices
FLUSHES = 6  # some 70 us each: the GPU is still busy with them while the host prepares the launch
MIN_SAMPLES, MAX_SAMPLES = 30, 400
TARGET = 0.004  # half the width of the share's 95 % interval, relative, at which sampling stops
SECONDS = 4.0
WARM_SECONDS = 1.0  # an idle GPU runs at a fraction of its clock, and takes its time to speed up

# taken before any code under test could replace them
_Event, _elapsed, _synchronize = torch.cuda.Event, torch.cuda.Event.elapsed_time, torch.cuda.synchronize


def measure(calls: Sequence[Callable[[], Any]], bytes_moved: int) -> dict[str, Any]:
    """Time ``calls`` (the same work at different addresses, used in turn) against a copy of ``bytes_moved`` in total.

    Returns:
        ``ours_s`` and ``limit_s`` (raw samples, seconds), ``share`` with ``low`` and ``high`` (95 %, bootstrap),
        ``stopped`` (why sampling ended).
    """
    half = max(16, bytes_moved // 2)
    source = torch.randint(0, 255, (half,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    warm = time.monotonic() + WARM_SECONDS
    for call in calls:  # the first call compiles, which is not work for the GPU
        call()
    while time.monotonic() < warm:
        for call in calls:
            flush.zero_()
            call()
            target.copy_(source)
        _synchronize()
    ours: list[float] = []
    limit: list[float] = []
    started, stopped = time.monotonic(), ""
    while not stopped:
        pair = [(calls[len(ours) % len(calls)], ours), (lambda: target.copy_(source), limit)]
        for work, samples in pair if len(ours) % 2 else reversed(pair):
            samples.append(_one(work, flush))
        if len(ours) >= MAX_SAMPLES:
            stopped = f"{MAX_SAMPLES} samples"
        elif time.monotonic() - started > SECONDS:
            stopped = f"{SECONDS:g} s were over"
        elif len(ours) >= MIN_SAMPLES and len(ours) % 10 == 0:
            low, high = interval(ours, limit)
            if (high - low) / 2 < TARGET * low:
                stopped = f"the interval is narrower than {2 * TARGET:.1%}"
    low, high = interval(ours, limit)
    share = statistics.median(limit) / statistics.median(ours)
    return {"ours_s": ours, "limit_s": limit, "share": share, "low": low, "high": high, "stopped": stopped}


def _one(work: Callable[[], Any], flush: torch.Tensor) -> float:
    start, end = _Event(enable_timing=True), _Event(enable_timing=True)
    for _ in range(FLUSHES):
        flush.zero_()
    start.record()
    work()
    end.record()
    _synchronize()
    return _elapsed(start, end) * 1e-3


def interval(ours: Sequence[float], limit: Sequence[float], rounds: int = 200) -> tuple[float, float]:
    """Return the 95 % interval of median(limit) / median(ours), by bootstrap over the paired samples."""
    draw = random.Random(len(ours))
    n = len(ours)
    shares = []
    for _ in range(rounds):
        picks = [draw.randrange(n) for _ in range(n)]
        shares.append(statistics.median(limit[i] for i in picks) / statistics.median(ours[i] for i in picks))
    shares.sort()
    return shares[int(0.025 * rounds)], shares[int(0.975 * rounds) - 1]
