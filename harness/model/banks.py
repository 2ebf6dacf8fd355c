"""Banks: how many transactions each shared-memory instruction of a warp needs, from its addresses. No torch, no GPU.

Shared memory has 32 banks of 4 bytes. A transaction serves each bank once; lanes that want different words of one bank
wait for each other, lanes that want the same word do not. Lanes of 8 bytes are served by half warps, of 16 bytes by
quarters; ``LDSM`` and ``STSM`` take one matrix of 8 rows of 16 bytes at a time (CUDA C++ Programming Guide, "Shared
Memory"; PTX ISA, "ldmatrix"). The addresses come from executing the integer code that computes them, once for a warp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from harness.compiled import flow
from harness.compiled.decider import Decider, Place, Thread
from harness.compiled.sass import Instruction, Program
from harness.compiled.sassvalue import MASK, Value, operand
from harness.compiled.walk import Walk
from harness.model.memory import BANKS, WORD

SHARED = ("LDS", "STS", "LDSM", "STSM", "ATOMS", "LDGSTS")  # LDGSTS copies to its first address
ROUNDS = 2  # of a loop that are followed: the first may be a special case
MOST_VISITS = 4_000  # blocks entered for one warp
_ADDRESS = re.compile(r"\[([^\]]*)\]")


def with_conflicts(program: Program, warps: int) -> tuple[Program, int]:
    """Return the program with ``conflict`` set, and for how many shared-memory instructions no address was found."""
    places = [i for i, x in enumerate(program.instructions) if x.base in SHARED and x.guard != "@!PT"]
    if not places:
        return program, 0
    found: dict[int, list[float]] = {i: [] for i in places}
    walker = _Walker(program, places)
    for warp in sorted({0, warps - 1}):
        for index, addresses, active in walker.addresses(warp, warps):
            found[index].append(transactions(program.instructions[index], addresses, active))
    changed = list(program.instructions)
    for index, counts in found.items():
        if counts:
            ideal = float(changed[index].width)
            changed[index] = replace(changed[index], conflict=round(sum(counts) / len(counts) / ideal, 4))
    return replace(program, instructions=tuple(changed)), sum(not c for c in found.values())


def transactions(instruction: Instruction, addresses: np.ndarray, active: np.ndarray) -> float:
    """Return the transactions of one warp.

    Args:
        addresses: [32] int64, bytes.
        active: [32] bool, the lanes that take part.
    """
    width = instruction.width
    if instruction.base in ("LDSM", "STSM"):
        rows, words = addresses[: 8 * width].reshape(width, 8), 4
        groups = [_words(row, words) for row in rows]
        return float(sum(_worst(group) for group in groups))
    lanes = BANKS // width
    groups = []
    for first in range(0, BANKS, lanes):
        chosen = addresses[first : first + lanes][active[first : first + lanes]]
        groups.append(_words(chosen, width))
    if instruction.base == "ATOMS":
        same = np.unique(addresses[active] // WORD, return_counts=True)[1]
        return float(max(1, sum(map(_worst, groups)), same.max() if len(same) else 1))
    return float(max(1, sum(map(_worst, _merged(groups)))))


def _words(addresses: np.ndarray, words: int) -> np.ndarray:
    """Return the words that these lanes touch, each once."""
    return np.unique(addresses[:, None] // WORD + np.arange(words))


def _worst(words: np.ndarray) -> int:
    """Return how many different words the busiest bank has to give."""
    return int(np.bincount(words % BANKS).max()) if len(words) else 0


def _merged(groups: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Join parts of a warp that fit into one transaction, as when all lanes read the same words."""
    found: list[np.ndarray] = []
    for group in groups:
        both = np.union1d(found[-1], group) if found else group
        if found and _worst(both) <= 1:
            found[-1] = both
        else:
            found.append(group)
    return found


class _Plenty(dict):
    """A constant bank whose words are all big, aligned and positive: no loop is empty, no program is the last one."""

    def get(self, key: int, default: int | None = None) -> int:
        return 1 << 20


class _Warp(Thread):
    """The machine as the 32 lanes of one warp see it."""

    def special(self, name: str) -> Value:
        lanes = np.arange(32, dtype=np.int64)
        if name == "SR_TID.X":
            return self.place.warp * 32 + lanes
        return lanes if name == "SR_LANEID" else super().special(name)


class _Walker:
    """Follows a warp through the program and reports the addresses of chosen instructions."""

    def __init__(self, program: Program, places: Sequence[int]) -> None:
        self.program, self.decider = program, Decider(program)
        self.parts = {i: _parts(program.instructions[i]) for i in places}
        roots = {i: {o.register for o, _ in parts if o.register} for i, parts in self.parts.items()}
        for index in places:
            guard = self.decider.steps[index].guard
            roots[index] |= {guard.register} if guard and guard.register else set()
        self.decider.needed, self.decider.live = self.decider.slice_of(roots)
        self.report = set(places)

    def addresses(self, warp: int, warps: int):
        """Yield index, addresses and active lanes of the chosen instructions, each time one is met."""
        walk = _Lanes(self.decider, _Warp(_Plenty(), Place((0, 0, 0), (1 << 20, 1, 1), warps, warp)), {})
        block: int | None = 0
        visits = 0
        while block is not None and visits < MOST_VISITS:
            visits += 1
            first, last = self.decider.blocks[block]
            walk.counts[block] += 1
            walk.enter(first)
            needed = set(self.decider.needed[block])
            for index in range(first, last + 1):
                if index in self.report:
                    yield from self._here(index, walk)
                if index in needed:
                    self.decider.run_step(index, walk.state, walk.thread)
            block = walk._next(block)

    def _here(self, index: int, walk: _Lanes):
        total: Value = 0
        for part, scale in self.parts[index]:
            value = part.read(walk.state, walk.thread.constants)
            if value is None:
                return
            total = total + value * scale
        active = walk.active.copy()
        guard = self.decider.steps[index].guard
        if guard is not None:
            held = guard.read(walk.state, walk.thread.constants)
            active &= np.broadcast_to(np.asarray(True if held is None else held, bool), 32)
        if active.any():
            yield index, np.broadcast_to(np.asarray(total & MASK, np.int64), 32), active


class _Lanes(Walk):
    """A walk of all lanes at once: where they part, both sides are walked, the near one first."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.active = np.ones(32, bool)
        self.parted: list[tuple[int, np.ndarray]] = []  # where lanes come back, and which were active before

    def enter(self, index: int) -> None:
        """Let the lanes that jumped to ``index`` take part again."""
        while self.parted and self.parted[-1][0] <= index:
            self.active = self.parted.pop()[1]

    def _taken(self, index: int) -> bool:
        code = self.decider.program.instructions[index]
        held: Value = True
        for condition in self.decider.conditions[index]:
            value = condition.read(self.state, self.thread.constants)
            held = None if value is None or held is None else np.logical_and(held, value)
        if code.target >= 0 and code.target <= index:
            back = self.counts[self.decider.number[code.target]] < ROUNDS
            return back and (held is None or bool(np.any(held)))
        if held is None:
            return False
        held = np.broadcast_to(held, 32)
        if held.all() or not held.any():
            return bool(held.all())
        if code.base in flow.ENDS:
            self.active = self.active & ~held
            return False
        self.parted.append((code.target, self.active))
        self.active = self.active & ~held
        return False


def _parts(instruction: Instruction) -> list[tuple]:
    """Return what a shared-memory address is the sum of: operands and what each is multiplied with."""
    inside = _ADDRESS.search(instruction.operands)
    found = []
    for text in inside.group(1).replace("+-", "+ -").split("+") if inside else ():
        scaled = re.search(r"\.X(\d+)$", text.strip())
        found.append((operand(re.sub(r"\.X\d+$", "", text.strip())), int(scaled.group(1)) if scaled else 1))
    return found
