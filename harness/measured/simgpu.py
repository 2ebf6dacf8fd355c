"""A simulated GPU with one kernel on it, whose duration is known to the simulator alone. No torch here.

It has two clocks: the host's, which goes on while work is queued, and the GPU's, which follows. ``SimGpu`` stands in
the process that judges and knows the truth; ``Device`` and ``Launch`` stand in the process that measures, and know
nothing but how to ask. Work is sent as letters, many in one message; only synchronize() and clock() wait for an answer.

A trap makes one thing behave as it does on real machines; without any, the naive measurement is right:

=========== ==========================================================================================================
``queue``   short kernels, a slow host: a GPU that has run out of work waits, and events see it wait
``compile`` the first launch compiles, for up to seconds
``tuning``  the first launches try other configurations of the kernel, each of them slower
``warm``    inputs that are still in the L2 are read faster
``zeros``   inputs that were never filled hold zeros, which cost less power and so run at a higher clock
``clock``   an idle GPU runs at a part of its clock, and speeds up while it works
``outliers`` one launch in some ten or twenty is disturbed and takes several times as long
``tick``    events tell the time in steps that are a good part of the kernel
``noise``   launches differ by some percent
=========== ==========================================================================================================
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection
from typing import Any

from harness.errors import KataError, did_you_mean

TRAPS = ("queue", "compile", "tuning", "warm", "zeros", "clock", "outliers", "tick", "noise")
BATCH = 4096  # letters that the measuring process collects before it sends them
IDLE = 2e-3  # s without work after which the clock begins to fall
WORK = 50_000_000  # letters after which the simulator gives up on a measurement


class SimGpu:
    """The truth. Times in seconds.

    Args:
        draw: where all its numbers come from.
        traps: names from ``TRAPS``. Raises KataError for another name.
    """

    def __init__(self, draw: random.Random, traps: Collection[str]) -> None:
        for name in traps:
            if name not in TRAPS:
                raise KataError(f"trap={name!r} is none of {', '.join(TRAPS)}.{did_you_mean(name, TRAPS)}")
        has, between = set(traps).__contains__, draw.uniform
        low, high = (4e-6, 30e-6) if has("queue") else (40e-6, 150e-6) if has("tick") else (100e-6, 1e-3)
        self.truth = low * (high / low) ** draw.random()  # the median of a launch: cold, tuned, at full clock
        self.draw = draw
        self.launch_cost = between(6e-6, 25e-6) if has("queue") else 1e-6  # of the host
        self.sync_cost = 5e-6
        self.tick = self.truth / between(2.0, 6.0) if has("tick") else 1e-7
        self.sigma = between(0.02, 0.03) if has("noise") else 0.004
        self.compile_cost = between(0.3, 2.0) if has("compile") else 0.0
        self.configurations = draw.randint(8, 30) if has("tuning") else 0
        self.warm_factor = between(0.35, 0.7) if has("warm") else 1.0
        self.zero_factor = between(0.80, 0.90) if has("zeros") else 1.0
        self.idle_clock = between(0.35, 0.6) if has("clock") else 1.0  # as a share of the full one
        self.ramp = between(0.01, 0.03)
        self.outlier_share = between(0.04, 0.10) if has("outliers") else 0.0
        self.host = self.gpu = between(1.0, 1e3)
        self.clock_share = self.idle_clock
        self.in_l2 = self.filled = False
        self.launches = self.letters = 0
        self.waited = 0.0  # s of the host for compilers, which a measurement cannot help
        self.events: list[float] = []
        self.started = self.host

    @property
    def used(self) -> float:
        """Seconds of the host since the start, compiling left out."""
        return self.host - self.started - self.waited

    def handle(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do the work of one message, and answer with the host's time and the events since ``message["seen"]``."""
        steps = {"l": self._launch, "f": self._flush, "r": self._refill, "e": self._event, "s": self._synchronize}
        self.letters += len(message["do"])
        if self.letters > WORK:
            raise KataError(f"more than {WORK:,} calls of the device in one measurement.")
        for letter in message["do"]:
            steps[letter]()
        # what the GPU has not reached yet stays unknown
        seen = [t if t <= self.host else None for t in self.events[message.get("seen", len(self.events)) :]]
        return {"clock": self.host, "events": [t and self._shown(t) for t in seen]}

    def _shown(self, at: float) -> float:
        return math.floor(at / self.tick) * self.tick

    def _launch(self) -> None:
        self.launches += 1
        seconds = self.truth * math.exp(self.draw.gauss(0.0, self.sigma))
        if self.launches == 1:
            self._compile(self.compile_cost)
        if self.launches <= self.configurations:
            self._compile(0.05)
            seconds *= self.draw.uniform(1.3, 4.0)
        if self.in_l2:
            seconds *= self.warm_factor
        if not self.filled:
            seconds *= self.zero_factor
        if self.draw.random() < self.outlier_share:
            seconds *= self.draw.uniform(3.0, 10.0)
        self._queue(seconds)
        self.in_l2 = True

    def _compile(self, seconds: float) -> None:
        self.host += seconds
        self.waited += seconds

    def _flush(self) -> None:
        self._queue(self.draw.uniform(220e-6, 270e-6))
        self.in_l2 = False

    def _refill(self) -> None:
        self._queue(self.draw.uniform(220e-6, 270e-6))
        self.in_l2 = self.filled = True

    def _queue(self, seconds: float) -> None:
        self.host += self.launch_cost
        start = max(self.host, self.gpu)
        if start - self.gpu > IDLE:
            self.clock_share = self.idle_clock + (self.clock_share - self.idle_clock) * math.exp(
                -(start - self.gpu) / self.ramp
            )
        took = seconds / self.clock_share
        self.gpu = start + took
        self.clock_share = 1 - (1 - self.clock_share) * math.exp(-took / self.ramp)

    def _event(self) -> None:
        self.host += 0.2e-6
        self.events.append(max(self.host, self.gpu))

    def _synchronize(self) -> None:
        # a host wakes up when it pleases, so the next start falls anywhere between two ticks
        self.host = max(self.host, self.gpu) + self.sync_cost + self.draw.uniform(0.0, 2 * self.tick)

    def mistakes(self) -> dict[str, tuple[float, float]]:
        """Return, for each way to be wrong that this GPU has, the range of what one then takes for the duration."""
        t, cost = self.truth, self.launch_cost
        found = {
            "the time that the host takes to queue the kernel: the clock was read before the GPU had done the work": (
                0.0, 1.5 * cost + 0.5e-6,
            ),
            "the kernel with its inputs still in the L2": (t * self.warm_factor,) * 2,
            "the kernel on inputs that hold zeros": (t * self.zero_factor,) * 2,
            "the kernel and the wait of an idle GPU for the host": (t + 0.7 * cost, t + 1.6 * cost + self.sync_cost),
            "the kernel at the clock of a GPU that was idle": (t / self.idle_clock * 0.95, t / self.idle_clock),
            "a mean: some launches were disturbed and took several times as long": (
                t * (1 + 3 * self.outlier_share), t * (1 + 9 * self.outlier_share),
            ),
            "launches that tried other configurations of the kernel": (t * 1.3, t * 4),
        }  # fmt: skip
        has = (True, self.warm_factor < 1, self.zero_factor < 1, True, self.idle_clock < 1, self.outlier_share > 0,
               self.configurations > 0)  # fmt: skip
        return {text: values for (text, values), there in zip(found.items(), has, strict=True) if there}


class Event:
    """A mark in the GPU's queue. ``Device.elapsed`` tells the time between two."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Device:
    """What a measurement can ask of the GPU. Times in seconds.

    Attributes:
        tick: the steps in which events tell the time.
    """

    def __init__(self, ask: Callable[[dict[str, Any]], dict[str, Any]], tick: float) -> None:
        self.tick = tick
        self._ask = ask
        self._letters: list[str] = []
        self._marks: list[float | None] = []
        self._count = 0

    def clock(self) -> float:
        """Return the host's time. The GPU may be far behind."""
        return self._send()

    def synchronize(self) -> None:
        """Wait until the GPU has done all that was queued."""
        self._queue("s")
        self._send()

    def event(self) -> Event:
        """Queue a mark: the GPU notes its time when it gets there."""
        self._queue("e")
        self._count += 1
        return Event(self._count - 1)

    def elapsed(self, start: Event, end: Event) -> float:
        """Return the time from ``start`` to ``end``. Raises RuntimeError when the GPU is not there yet."""
        marks = self._marks
        if max(start.number, end.number) >= len(marks) or None in (marks[start.number], marks[end.number]):
            raise RuntimeError("the GPU has not reached this event yet: call device.synchronize() before elapsed()")
        return marks[end.number] - marks[start.number]

    def flush(self) -> None:
        """Queue a write to a buffer larger than the L2, which leaves nothing else in it."""
        self._queue("f")

    def refill(self) -> None:
        """Queue new random numbers for the inputs of the kernel; they hold zeros at first."""
        self._queue("r")

    def _queue(self, letter: str) -> None:
        self._letters.append(letter)
        if len(self._letters) >= BATCH:
            self._send()

    def _send(self) -> float:
        waits = bool(self._marks) and self._marks[-1] is None  # the GPU reaches them in order
        known = self._marks.index(None) if waits else len(self._marks)
        answer = self._ask({"do": "".join(self._letters), "seen": known})
        self._marks[known:] = answer["events"]
        self._letters.clear()
        return answer["clock"]


class Launch:
    """``launch()`` queues the kernel once, on the same inputs each time."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __call__(self) -> None:
        """Queue the kernel."""
        self._device._queue("l")
