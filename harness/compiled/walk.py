"""Walk: one thread's way through a kernel, found by executing the integer code that decides its branches. No torch.

Loop bounds, masks of whole programs and the rests of unrolled loops follow from the kernel's arguments, the program's
and the thread's number. Only the instructions that a branch depends on are executed; a loop whose state moves by the
same step each time is counted without walking it. Where a branch depends on loaded data, traced memory instructions
decide (``hints``).
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.compiled import flow
from harness.compiled.decider import Decider, Thread
from harness.compiled.sassvalue import MASK, State
from harness.model import patience

MOST_STEPS = 100_000  # instructions executed for one thread before we give up: about half a second
_ASK = 256  # blocks between two looks at the clock
_VISITS = 4  # of a loop's head before we try to jump ahead


@dataclass
class _Mark:
    """What was seen at the last visits of a loop's head."""

    state: tuple | None = None
    counts: list[int] = field(default_factory=list)
    step: tuple | None = None
    path: list[int] = field(default_factory=list)
    visits: int = 0
    wait: int = _VISITS


class Walk:
    """One thread's way through the program."""

    def __init__(self, decider: Decider, thread: Thread, hints: Mapping[int, float]) -> None:
        self.decider, self.thread, self.hints = decider, thread, hints
        self.counts = [0] * len(decider.blocks)
        self.unknown: set[int] = set()
        self.calls: list[int] = []
        self.steps_left = MOST_STEPS
        self.marks: dict[int, _Mark] = {}
        self.state: State = {}
        self.undecided = False

    def run(self) -> None:
        """Walk from the first instruction to the end."""
        block: int | None = 0
        for visits in itertools.count():
            if block is None or self.steps_left <= 0:
                return
            if not visits % _ASK:
                patience.check()
            block = self._enter(block)

    def _enter(self, block: int) -> int | None:
        decider = self.decider
        if block in decider.heads:
            self._jump_ahead(block)
        self.counts[block] += 1
        for index in decider.needed[block]:
            decider.run_step(index, self.state, self.thread)
        self.steps_left -= len(decider.needed[block]) + 1
        return self._next(block)

    def _next(self, block: int) -> int | None:
        """Return the block that follows, None at the end."""
        first, last = self.decider.blocks[block]
        here = self.decider.program.instructions[last]
        fall = self.decider.number.get(last + 1)
        if here.base not in flow.JUMPS | flow.ENDS | flow.CALLS:
            return fall
        taken = False if ".DIV" in here.op else self._taken(last)
        if not taken:
            return fall
        if here.base == "CALL" and here.target >= 0:
            self.calls.append(last + 1)
            return self.decider.number[here.target]
        if here.base == "RET" and self.calls:
            return self.decider.number.get(self.calls.pop())
        if here.base in flow.ENDS:
            return None
        if here.target >= 0:
            return self.decider.number[here.target]
        self._note(last)
        return fall

    def _taken(self, index: int) -> bool:
        held = [c.read(self.state, self.thread.constants) for c in self.decider.conditions[index]]
        if any(h is not None and not h for h in held):
            return False
        if None not in held:
            return True
        self._note(index)
        return self._guess(index)

    def _note(self, index: int) -> None:
        self.undecided = True
        self.unknown.add(self.decider.program.instructions[index].line)

    def _guess(self, index: int) -> bool:
        """Decide a branch that depends on data: go where traced memory instructions are still to be executed."""
        target = self.decider.program.instructions[index].target
        if target < 0:
            return False
        back = target <= index
        span = range(target, index + 1) if back else range(index + 1, target)
        due = self._due(span)
        if due is not None:
            return due if back else not due
        # nothing was traced there: a loop ends, a piece that could be skipped runs, unless it skips what is due
        before = self.decider.program.instructions[target - 1]
        around = before.base == "BRA" and not before.guard and before.target > target
        return not back and around and bool(self._due(range(target, before.target)))

    def _due(self, span: range) -> bool | None:
        """Return whether memory instructions in ``span`` have not run as often as traced; None: it holds none."""
        inside: dict[int, int] = {}
        code = self.decider.program.instructions
        for index in span:
            if index in self._hinted:
                inside[code[index].line] = inside.get(code[index].line, 0) + 1
        if not inside:
            return None
        done = dict.fromkeys(inside, 0.0)
        for index, line in self._hinted.items():
            if line in done:
                done[line] += self.counts[self._block_of(index)]
        return any(self.hints[line] - done[line] >= 0.5 * count for line, count in inside.items())

    @functools.cached_property
    def _hinted(self) -> dict[int, int]:
        """The memory instructions at traced lines, {index: line}."""
        code = self.decider.program.instructions
        return {k: i.line for k, i in enumerate(code) if i.pipe in ("lsu", "tma") and i.line in self.hints}

    def _block_of(self, index: int) -> int:
        return bisect.bisect_right(self.decider.starts, index) - 1

    def _jump_ahead(self, head: int) -> None:
        """At a loop's head: when the last two rounds went the same way by the same steps, skip those that will too."""
        mark = self.marks.setdefault(head, _Mark())
        mark.visits += 1
        names = self.decider.names[head]
        state = tuple(self.state.get(n) for n in names)
        path = [a - b for a, b in zip(self.counts, mark.counts, strict=False)]
        step = _difference(mark.state, state)
        if step is not None and step == mark.step and path == mark.path and mark.visits >= mark.wait:
            rounds = self._known_rounds(head, names, state, step, path)
            mark.wait = mark.visits * 2
            if rounds:
                state = _advanced(state, step, rounds)
                self.state.update(zip(names, state, strict=True))
                self.counts = [c + rounds * p for c, p in zip(self.counts, path, strict=True)]
                mark.wait = mark.visits + 2
        mark.state, mark.counts, mark.step, mark.path = state, list(self.counts), step, path

    def _known_rounds(self, head: int, names: list[str], state: tuple, step: tuple, path: list[int]) -> int:
        """As ``_same_rounds``; threads of a program that agree in what decides a loop's branches share the answer."""
        deciding = self.decider.deciding(head)
        seen = tuple(x for n, *x in zip(names, state, step, strict=True) if n in deciding)
        key = (head, self.thread.place.program, repr(seen), tuple(path))
        if key not in self.decider.jumps:
            self.decider.jumps[key] = self._same_rounds(head, names, state, step, path)
        return min(self.decider.jumps[key], _before_wrap(state, step))

    def _same_rounds(self, head: int, names: list[str], state: tuple, step: tuple, path: list[int]) -> int:
        """Return how many rounds from ``state`` on go the same way: doubling, then halving (bounds are monotone)."""
        before, self.thread.signs = self.thread.signs, {}
        try:
            return self._search(head, names, state, step, path)
        finally:
            self.thread.signs = before

    def _search(self, head: int, names: list[str], state: tuple, step: tuple, path: list[int]) -> int:
        low, high, most = 0, 1, _before_wrap(state, step)
        while high <= most and self._goes_on(head, names, _advanced(state, step, high - 1), step, path):
            low, high = high, high * 2
        high = min(high, most + 1)
        while high - low > 1:
            middle = (low + high) // 2
            if self._goes_on(head, names, _advanced(state, step, middle - 1), step, path):
                low = middle
            else:
                high = middle
        return low

    def _goes_on(self, head: int, names: list[str], state: tuple, step: tuple, path: list[int]) -> bool:
        """Return whether one round from ``state`` comes back to ``head`` by ``path`` and with ``step``."""
        probe = Walk(self.decider, self.thread, self.hints)
        probe.state = dict(self.state) | dict(zip(names, state, strict=True))
        probe.calls, probe.steps_left = list(self.calls), min(self.steps_left, MOST_STEPS // 8)
        block: int | None = head
        first = True
        while block is not None and (first or block != head):
            if probe.steps_left <= 0 or probe.counts[block] >= path[block]:
                return False
            if first:
                probe.marks[head] = _Mark(wait=1 << 60)
            first = False
            block = probe._enter(block)
        self.steps_left -= MOST_STEPS // 8 - probe.steps_left if probe.steps_left > 0 else MOST_STEPS // 8
        if block is None or probe.undecided or probe.counts != path:
            return False
        return _difference(state, tuple(probe.state.get(n) for n in names)) == step


def _difference(old: tuple | None, new: tuple) -> tuple | None:
    """Return by how much each number moved (0 for what stayed); None when something changed that is no number."""
    if old is None:
        return None
    found = []
    for a, b in zip(old, new, strict=True):
        if type(a) is int and type(b) is int:
            found.append((b - a) & MASK)
        elif a is None and b is None or a == b:
            found.append(0)
        else:
            return None
    return tuple(found)


def _before_wrap(state: tuple, step: tuple) -> int:
    """Return how many rounds leave every number within its half of the 32 bits.

    What wraps may carry into another register, and to a comparison it jumps from the highest to the lowest.
    """
    most = 2**31
    for value, move in zip(state, step, strict=True):
        if move:
            left = 0x7FFFFFFF - (value & 0x7FFFFFFF)
            most = min(most, (value & 0x7FFFFFFF) // (MASK + 1 - move) if move >> 31 else left // move)
    return most


def _advanced(state: tuple, step: tuple, rounds: int) -> tuple:
    return tuple(v if not d else (v + d * rounds) & MASK for v, d in zip(state, step, strict=True))
