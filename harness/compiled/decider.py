"""Decider: the part of a kernel that decides its branches, and the machine as one thread sees it. No torch.

A branch depends on few instructions: the counter of a loop, a comparison with an argument. They are found by following
registers backwards from the predicates of the branches, through the graph of basic blocks.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.compiled import flow
from harness.compiled.sass import Program
from harness.compiled.sassvalue import State, Step, Value, operand, prepare, split

_THREAD = ("SR_TID", "SR_LANEID", "SR_WARPID", "SR_VIRTID", "SR_EQMASK")


@dataclass(frozen=True)
class Place:
    """Which thread asks: program ids, grid, warps of the CTA, warp and lane."""

    program: tuple[int, int, int]
    grid: tuple[int, int, int]
    warps: int
    warp: int = 0
    lane: int = 0


class Thread:
    """The machine as one thread sees it: constant bank and special registers."""

    def __init__(self, constants: Mapping[int, int], place: Place) -> None:
        self.constants, self.place = constants, place
        self.signs: dict[int, int] | None = None  # while we look ahead: on which side of its bound a counter was

    def special(self, name: str) -> Value:
        """Return the special register ``SR_...``, None when it is not known."""
        place = self.place
        known = {
            "SR_TID.X": place.warp * 32 + place.lane, "SR_TID.Y": 0, "SR_TID.Z": 0, "SR_LANEID": place.lane,
            "SR_CTAID.X": place.program[0], "SR_CTAID.Y": place.program[1], "SR_CTAID.Z": place.program[2],
            "SR_CgaCtaId": 0, "SR_SWINHI": 0, "SR_WARPID": place.warp, "SRZ": 0,
        }  # fmt: skip
        return known.get(name)


class Decider:
    """The part of a program that decides its branches."""

    def __init__(self, program: Program) -> None:
        self.program = program
        code = program.instructions
        self.steps: list[Step] = [prepare(i) for i in code]
        self.starts, self.blocks, after = flow.blocks_of(code)
        self.number = {s: i for i, s in enumerate(self.starts)}
        self.after = self._with_calls(after)
        self.ahead: list[set[int]] = [set() for _ in self.blocks]
        for block, following in enumerate(self.after):
            for b in following:
                self.ahead[b].add(block)
        self._deciding: dict[int, set[str]] = {}
        self.jumps: dict[tuple, int] = {}  # how many rounds of a loop go the same way, from what state on
        self.conditions = {last: self._condition(last) for _, last in self.blocks}
        self.needed, self.live = self.slice_of({})
        self.names = [sorted(names) for names in self.live]
        self.heads = {self.number[x.first]: i for i, x in enumerate(program.loops)}

    def _with_calls(self, after: list[list[int]]) -> list[list[int]]:
        code = self.program.instructions
        returns = [self.number[k + 1] for k, i in enumerate(code) if i.base == "CALL" and k + 1 in self.number]
        for block, (_, last) in enumerate(self.blocks):
            if code[last].base == "CALL" and code[last].target >= 0:
                after[block] = [self.number[code[last].target]]
            elif code[last].base == "RET":
                after[block] = after[block] + returns
        return after

    def _condition(self, index: int) -> list:
        """Return the predicates that must all hold for the branch at ``index`` to be taken."""
        here = self.program.instructions[index]
        if here.base not in flow.JUMPS | flow.ENDS | flow.CALLS:
            return []
        guards = [operand(here.guard.removeprefix("@"))] if here.guard else []
        return guards + [o for o in map(operand, split(here.operands)) if o.predicate]

    def slice_of(
        self, roots: Mapping[int, set[str]], within: range | None = None
    ) -> tuple[list[list[int]], list[set[str]]]:
        """Return for each block what branches and ``roots`` depend on: instructions, and registers live at it.

        ``within``: only these blocks, and only their branches, count.
        """
        live: list[set[str]] = [set() for _ in self.blocks]
        marked: set[int] = set()
        pending = set(within if within is not None else range(len(self.blocks)))
        everywhere = set(pending)
        while pending:
            block = max(pending)
            pending.discard(block)
            behind = set().union(*(live[b] for b in self.after[block] if b in everywhere))
            now = self._before(block, behind, roots, marked)
            if now != live[block]:
                live[block] = now
                pending |= self.ahead[block] & everywhere
        return [[i for i in range(a, b + 1) if i in marked] for a, b in self.blocks], live

    def _before(self, block: int, now: set[str], roots: Mapping[int, set[str]], marked: set[int]) -> set[str]:
        """Return the registers live before a block, given those live behind it; mark what writes them."""
        first, last = self.blocks[block]
        now |= {c.register for c in self.conditions[last] if c.register}
        for index in range(last, first - 1, -1):
            if index in roots:
                now |= roots[index]
            step = self.steps[index]
            if now.isdisjoint(step.writes):
                continue
            marked.add(index)
            if step.guard is None:
                now.difference_update(step.writes)
            if step.run is not None:
                now.update(step.reads)
        return now

    def deciding(self, head: int) -> set[str]:
        """Return the registers at a loop's head that the branches inside of the loop depend on."""
        if head not in self._deciding:
            loop = self.program.loops[self.heads[head]]
            inside = range(head, bisect.bisect_right(self.starts, loop.last))
            self._deciding[head] = self.slice_of({}, inside)[1][head]
        return self._deciding[head]

    def uses_thread(self) -> bool:
        """Return whether threads of one CTA may go different ways."""
        code = self.program.instructions
        chosen = (code[i] for block in self.needed for i in block)
        return any(i.base == "ELECT" or any(name in i.operands for name in _THREAD) for i in chosen)

    def run_step(self, index: int, state: State, thread: Thread) -> None:
        """Execute one instruction; what is not known becomes None."""
        step = self.steps[index]
        held: Value = True
        if step.guard is not None:
            held = step.guard.read(state, thread.constants)
            if isinstance(held, np.ndarray) and (held.all() or not held.any()):
                held = bool(held.all())
            if held is not None and not isinstance(held, np.ndarray) and not held:
                return
        values = step.run(state, thread) if step.run and held is not None else None
        for i, name in enumerate(step.writes):
            value = values[i] if values is not None and i < len(values) else None
            if isinstance(held, np.ndarray):
                old = state.get(name)
                value = None if value is None or old is None else np.where(held, value, old)
            state[name] = value
