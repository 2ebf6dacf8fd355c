"""A real GPU behind the interface of ``simgpu``, with kernels whose duration is known or measured by us.

Loaded only in the process that owns the GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
import triton
import triton.language as tl

from harness.measured.timing import FLUSH_BYTES

TICK = 5e-7  # s; CUDA promises events no finer: https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__EVENT.html


@triton.jit
def _now():
    return tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def spin_kernel(out_ptr, nanoseconds):
    """Wait for ``nanoseconds`` by the GPU's own wall clock, whatever its frequency."""
    start = _now()
    now = start
    while now - start < nanoseconds:
        now = _now()
    tl.store(out_ptr, now)


class CudaDevice:
    """``clock``, ``synchronize``, ``event``, ``elapsed``, ``flush``, ``refill`` and ``tick`` of a CUDA device, in s.

    Args:
        inputs: what the kernel reads; float tensors on the GPU.
    """

    def __init__(self, inputs: tuple[torch.Tensor, ...] = ()) -> None:
        self.tick = TICK
        self._inputs = inputs
        self._buffer = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def clock(self) -> float:
        """Return the host's time. The GPU may be far behind."""
        return time.perf_counter()

    def synchronize(self) -> None:
        """Wait until the GPU has done all that was queued."""
        torch.cuda.synchronize()

    def event(self) -> torch.cuda.Event:
        """Queue a mark: the GPU notes its time when it gets there."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed(self, start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        """Return the time from ``start`` to ``end``. Raises RuntimeError when the GPU is not there yet."""
        if not (start.query() and end.query()):
            raise RuntimeError("the GPU has not reached this event yet: call device.synchronize() before elapsed()")
        return start.elapsed_time(end) * 1e-3

    def flush(self) -> None:
        """Queue a write to a buffer larger than the L2, which leaves nothing else in it."""
        self._buffer.zero_()

    def refill(self) -> None:
        """Queue new random numbers for the inputs of the kernel; they hold zeros at first."""
        for tensor in self._inputs:
            tensor.normal_()


def spin(seconds: float) -> tuple[Callable[[], None], CudaDevice]:
    """Return a kernel that takes ``seconds``, beside what any launch costs, and its device."""
    out = torch.zeros(1, dtype=torch.int64, device="cuda")
    return lambda: spin_kernel[(1,)](out, round(seconds * 1e9), num_warps=1), CudaDevice()


def copy(nbytes: int) -> tuple[Callable[[], None], CudaDevice]:
    """Return a kernel that reads and writes ``nbytes`` each, so that an L2 which holds them makes it fast."""
    source = torch.zeros(nbytes // 4, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source), CudaDevice((source,))


def truth(launch: Callable[[], None], device: CudaDevice, samples: int = 200) -> float:
    """Return the median duration of a cold launch, after a second of work, by the harness's own protocol, in s."""
    device.refill()
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        for _ in range(20):
            device.flush()
            launch()
        device.synchronize()
    marks = []
    for _ in range(samples):
        for _ in range(3):  # the GPU is still busy while the host queues the launch
            device.flush()
        start = device.event()
        launch()
        marks.append((start, device.event()))
        device.synchronize()
    return statistics.median(device.elapsed(a, b) for a, b in marks)
