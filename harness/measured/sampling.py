"""Sampling: times of several contenders, taken in turns until they are sure enough, with what disturbed them.

No torch here: a contender is any function that does its work once and returns the seconds that it took, so the whole
protocol can be tried with invented ones. Nothing is thrown away for its value. A round is left out of the result only
for a cause that was seen beside it (the clock was held down, somebody else used the GPU), and stays in the raw samples.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

POWER_LIMIT = "power limit"  # the one cause that full load brings with it


@dataclass(frozen=True)
class State:
    """What the GPU was doing around a round; None where nobody can tell."""

    sm_mhz: int | None = None
    held_down: tuple[str, ...] = ()  # why its clock was lower than it could be
    others: int | None = None  # processes beside ours that use it

    def disturbance(self) -> str:
        """Return why a round beside this state does not count, or an empty string."""
        if self.held_down:
            return f"throttled: {', '.join(self.held_down)}"
        if self.others:
            return f"outside load: {self.others} other process{'es' if self.others > 1 else ''} on the GPU"
        return ""


@dataclass(frozen=True)
class Rules:
    """When to stop and when to rest.

    Attributes:
        least, most: rounds.
        target: half the width of the 95 % interval of the share, relative, that is narrow enough.
        seconds: that sampling may take.
        burst, pause: after so many rounds the GPU rests for so many seconds; 0 rounds: never.
    """

    least: int = 30
    most: int = 400
    target: float = 0.004
    seconds: float = 4.0
    burst: int = 0
    pause: float = 0.25


@dataclass(frozen=True)
class Samples:
    """All rounds, in order, and what follows from those that count."""

    seconds: Mapping[str, list[float]]  # by contender, one a round, disturbed ones too
    states: Sequence[State]
    discarded: Mapping[int, str]  # round -> why it does not count
    stopped: str
    share: float  # median of the limit over median of ours
    low: float
    high: float
    trusted: bool = True  # False: too few rounds were undisturbed, so all of them were used
    notes: Sequence[str] = field(default_factory=tuple)

    def counted(self, name: str) -> list[float]:
        """Return the samples of one contender that count."""
        return [s for i, s in enumerate(self.seconds[name]) if i not in self.discarded or not self.trusted]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "seconds": dict(self.seconds), "sm_mhz": [s.sm_mhz for s in self.states],
            "discarded": [{"round": i, "why": why} for i, why in sorted(self.discarded.items())],
            "stopped": self.stopped, "share": self.share, "low": self.low, "high": self.high, "trusted": self.trusted,
        }  # fmt: skip


def collect(
    contenders: Mapping[str, Callable[[], float]],
    rules: Rules = Rules(),  # noqa: B008 - frozen
    look: Callable[[], State] = State,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Samples:
    """Time ``contenders`` in turns, forwards and backwards alternately, until the share is sure or time is up.

    Args:
        contenders: name -> does the work once and returns its seconds; ``ours`` and ``limit`` must be among them.
        look: what the GPU is doing now.
    """
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    states: list[State] = []
    discarded: dict[int, str] = {}
    started = clock()
    while True:
        for name in names if len(states) % 2 else reversed(names):
            seconds[name].append(contenders[name]())
        states.append(look())
        if why := states[-1].disturbance():
            discarded[len(states) - 1] = why
        stopped = _stopped(seconds, discarded, rules, clock() - started)
        if stopped:
            break
        if rules.burst and len(states) % rules.burst == 0:
            sleep(rules.pause)
    trusted = len(states) - len(discarded) >= min(rules.least, len(states) // 2 + 1)
    kept = _kept(seconds, discarded if trusted else {})
    low, high = interval(kept["ours"], kept["limit"])
    share = statistics.median(kept["limit"]) / statistics.median(kept["ours"])
    return Samples(seconds, states, discarded, stopped, share, low, high, trusted)


def _kept(seconds: Mapping[str, list[float]], discarded: Mapping[int, str]) -> dict[str, list[float]]:
    return {name: [s for i, s in enumerate(times) if i not in discarded] for name, times in seconds.items()}


def _stopped(seconds: Mapping[str, list[float]], discarded: Mapping[int, str], rules: Rules, elapsed: float) -> str:
    """Return why sampling ends now, or an empty string."""
    rounds = len(seconds["ours"])
    if rounds >= rules.most:
        return f"{rules.most} rounds"
    if elapsed > rules.seconds:
        return f"{rules.seconds:g} s were over"
    kept = _kept(seconds, discarded)
    if len(kept["ours"]) >= rules.least and len(kept["ours"]) % 10 == 0:
        low, high = interval(kept["ours"], kept["limit"])
        if (high - low) / 2 < rules.target * low:
            return f"the interval is narrower than {2 * rules.target:.1%}"
    return ""


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


def quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    """Return the first quartile, the median and the third quartile."""
    if len(times) < 2:
        return (times[0],) * 3
    return tuple(statistics.quantiles(times, n=4, method="inclusive"))  # type: ignore[return-value]
