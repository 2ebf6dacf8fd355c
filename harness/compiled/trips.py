"""Trips: how often each instruction of a traced launch runs, averaged over some of its programs. No torch."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from harness.compiled import control
from harness.compiled.control import Executed
from harness.compiled.kernelfacts import KernelFacts
from harness.compiled.sassvalue import MASK

MOST_PROGRAMS = 9  # of the traced ones; they were chosen to lie all over the grid
MANY = 64  # where programs do unlike work, so many are followed through the code, which costs little
UNLIKE = 1.15  # the busiest traced program over their mean, from which on their work counts as unlike
_MEMORY = ("LDG", "LD", "LDGSTS", "UTMALDG", "UBLKCP", "STG", "ST", "UTMASTG")


def executed(facts: KernelFacts, trace: Mapping[str, Any]) -> tuple[Executed, float]:
    """Return the executions of each instruction for one CTA (all its warps), and how much the trace stands for.

    They are the mean over the traced programs, or, where these do unlike work (a triangular loop), over many more: the
    mean of a few would be off by a tenth and more. The second value is then the memory instructions of these over those
    of the traced ones, else 1.

    Args:
        facts: of the kernel that was launched.
        trace: a launch as ``harness.model.trace`` writes it; read are ``grid``, ``samples``, ``scalars``, ``sites`` and
            ``unlike``.
    """
    grid = (*trace["grid"], 1, 1)[:3]
    threads = max(facts.threads, 32)
    words = arguments(facts, trace.get("scalars") or {})
    bank = control.constant_bank(facts.sm, words, grid, threads, facts.arguments_at)
    counter = control.Counter(facts.program, threads // 32, traced(trace.get("sites") or ()))

    def follow(numbers: Sequence[int]) -> Executed:
        return mean(
            [counter.counts(bank, grid, _place(number, grid), whole=i == 0) for i, number in enumerate(numbers)]
        )

    sampled = follow(_some(trace.get("samples") or [0]))
    if trace.get("unlike", 1.0) < UNLIKE:
        return sampled, 1.0
    many = follow(_spread(math.prod(grid)))
    few, more = _memory(facts, sampled), _memory(facts, many)
    return many, more / few if few and more else 1.0


def _memory(facts: KernelFacts, counts: Executed) -> float:
    """Return how many memory instructions were executed."""
    pairs = zip(facts.program.instructions, counts.instructions, strict=True)
    return sum(n for i, n in pairs if i.base in _MEMORY)


def _spread(total: int) -> list[int]:
    """Return MANY program numbers, one out of each of as many equal stretches of the grid, at golden-ratio places."""
    if total <= MANY:
        return list(range(total))
    return [min(total - 1, int((i + (0.5 + 0.618034 * i) % 1.0) / MANY * total)) for i in range(MANY)]


def mean(runs: Sequence[Executed]) -> Executed:
    """Return the mean of several programs' counts, and all their undecided lines."""
    n = len(runs)
    instructions = tuple(sum(column) / n for column in zip(*(r.instructions for r in runs), strict=True))
    loops = tuple(sum(column) / n for column in zip(*(r.loops for r in runs), strict=True))
    unknown = {line for r in runs for line in r.unknown}
    return Executed(instructions, loops, tuple(sorted(unknown)), all(r.complete for r in runs))


def arguments(facts: KernelFacts, scalars: Mapping[str, Any]) -> dict[int, int]:
    """Return the words of the kernel's parameters, {byte offset: 32 bits}; pointers are made up and aligned."""
    words: dict[int, int] = {}
    for index, parameter in enumerate(facts.parameters):
        value = scalars.get(parameter.name)
        if parameter.size > 8:
            continue  # a descriptor: the branches of a kernel do not read it
        if value is None:
            value = (index + 1) << 32 if parameter.size == 8 else None
        elif isinstance(value, float):
            value = struct.unpack("<I", struct.pack("<f", value))[0]
        if value is not None:
            for at in range(0, max(parameter.size, 4), 4):
                words[parameter.offset - parameter.offset % 4 + at] = int(value) >> (8 * at) & MASK
    return words


def traced(sites: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """Return {line: memory instructions that a warp executes there in one program}."""
    hints: dict[int, float] = {}
    for site in sites:
        if site.get("line"):
            hints[site["line"]] = hints.get(site["line"], 0.0) + float(site.get("instructions", 0.0))
    return hints


def _some(samples: Sequence[int]) -> list[int]:
    """Return at most MOST_PROGRAMS of them, evenly chosen, the last one among them."""
    if len(samples) <= MOST_PROGRAMS:
        return list(samples)
    step = (len(samples) - 1) / (MOST_PROGRAMS - 1)
    return [samples[round(i * step)] for i in range(MOST_PROGRAMS)]


def _place(number: int, grid: Sequence[int]) -> tuple[int, int, int]:
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])
