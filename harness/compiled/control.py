"""Control: how often each instruction of a kernel runs, for chosen programs of a launch. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.compiled.decider import Decider, Place, Thread
from harness.compiled.sass import Program
from harness.compiled.sassvalue import MASK, split
from harness.compiled.walk import Walk

# where the driver puts the kernel's arguments, the CTA's and the grid's size into constant bank 0
ARGUMENTS = {75: 0x160, 80: 0x160, 86: 0x160, 89: 0x160, 90: 0x210, 100: 0x380, 103: 0x380, 120: 0x380}
CTA_SIZE = {100: 0x360, 103: 0x360, 120: 0x360}  # before Blackwell: 0x0
GRID = {100: 0x370, 103: 0x370, 120: 0x370}  # before Blackwell: 0xc


@dataclass(frozen=True)
class Executed:
    """How often each instruction runs in one CTA, summed over warps, and each loop's body, for a warp that enters it.

    ``unknown``: lines of branches that depend on data and were decided by hints or by default. ``complete``: no thread
    was given up because its way is too long to follow.
    """

    instructions: tuple[float, ...]
    loops: tuple[float, ...]
    unknown: tuple[int, ...] = ()
    complete: bool = True


def constant_bank(
    sm: int, arguments: Mapping[int, int], grid: Sequence[int], threads: int, base: int = 0
) -> dict[int, int]:
    """Return constant bank 0 as {offset: 32-bit word}.

    ``arguments``: {offset behind the first: word}; ``base``: where the first lies, 0 for where this ``sm`` has it.
    """
    base, cta, at = base or ARGUMENTS.get(sm, 0x210), CTA_SIZE.get(sm, 0), GRID.get(sm, 0xC)
    words = {base + offset: value & MASK for offset, value in arguments.items()}
    words |= {cta: threads, cta + 4: 1, cta + 8: 1} | {at + 4 * i: n for i, n in enumerate(grid)}
    return words


def regions(program: Program) -> list[tuple[int, int]]:
    """Return (first, last) of each stretch whose end is where lanes that parted inside of it meet again."""
    found, code = [], program.instructions
    for index, instruction in enumerate(code):
        if instruction.base == "BSSY":
            name = split(instruction.operands)[0]
            ends = (i for i in range(index, len(code)) if code[i].base == "BSYNC" and code[i].operands == name)
            found += [(index, end) for end in [next(ends, None)] if end is not None]
    return found


class Counter:
    """Counts the instructions of programs of one launch, one program after the other.

    Where threads of a CTA may go different ways, the lowest and the highest lane of each warp are walked; by how much
    the sum differs from one thread's way is kept, so that later programs need one walk (``whole=False``).
    """

    def __init__(self, program: Program, warps: int, hints: Mapping[int, float] | None = None) -> None:
        self.program, self.decider, self.warps, self.hints = program, Decider(program), warps, hints or {}
        self._sizes = [last - first + 1 for first, last in self.decider.blocks]
        self._regions = regions(program)
        self._by_thread = self.decider.uses_thread()
        self._complete = True
        self._seen: tuple[list[int], list[float], list[float]] | None = None

    def counts(
        self, constants: Mapping[int, int], grid: Sequence[int], pid: Sequence[int], whole: bool = True
    ) -> Executed:
        """Return how often each instruction of program ``pid`` runs."""
        place = Place(tuple(pid), tuple(grid), self.warps)
        if self._by_thread and (whole or self._seen is None):
            return self._every_warp(constants, place)
        walk = self._walk(constants, place)
        instructions = self._by_instruction(walk.counts)
        if self._seen is None:
            most, instructions = instructions, [self.warps * n for n in instructions]
        else:
            one, all_of_it, highest = self._seen
            here = self._by_instruction(walk.counts)
            # what the first program never reached says nothing about other threads: all warps go this one's way
            before = self._by_instruction(one)
            pairs = list(zip(here, before, strict=True))
            instructions = [a * n / o if o else self.warps * n for a, (n, o) in zip(all_of_it, pairs, strict=True)]
            most = [h * n / o if o else n for h, (n, o) in zip(highest, pairs, strict=True)]
        return self._executed(instructions, most, walk.unknown)

    def _every_warp(self, constants: Mapping[int, int], place: Place) -> Executed:
        total = [0.0] * len(self.program.instructions)
        most, unknown, one = list(total), set(), None
        for warp in range(self.warps):
            walks = [self._walk(constants, replace(place, warp=warp, lane=lane)) for lane in (0, 31)]
            one = one or walks[0].counts
            unknown |= walks[0].unknown | walks[1].unknown
            here = self._of_lanes(*(self._by_instruction(w.counts) for w in walks))
            total = [a + b for a, b in zip(total, here, strict=True)]
            most = [max(a, b) for a, b in zip(most, here, strict=True)]
        self._seen = (one or [], total, most)
        return self._executed(total, most, unknown)

    def _of_lanes(self, low: list[float], high: list[float]) -> list[float]:
        """Return how often a warp issues each instruction when its lanes run it so often.

        Lanes that part inside of a region (BSSY to BSYNC) run on apart until its end, and each part issues for itself.
        """
        found = [max(a, b) for a, b in zip(low, high, strict=True)]
        for first, last in self._regions:
            parted = next((i for i in range(first, last + 1) if low[i] != high[i]), None)
            if parted is not None:
                for i in range(parted, last + 1):
                    found[i] = low[i] + high[i]
        return found

    def _walk(self, constants: Mapping[int, int], place: Place) -> Walk:
        walk = Walk(self.decider, Thread(constants, place), self.hints)
        walk.run()
        self._complete &= walk.steps_left > 0
        return walk

    def _by_instruction(self, blocks: Sequence[float]) -> list[float]:
        return [float(n) for n, size in zip(blocks, self._sizes, strict=True) for _ in range(size)]

    def _executed(self, instructions: list[float], most: list[float], unknown: set[int]) -> Executed:
        loops = tuple(most[x.first] for x in self.program.loops)
        return Executed(tuple(instructions), loops, tuple(sorted(unknown)), self._complete)
