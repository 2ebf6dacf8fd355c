"""Flow: which instruction may follow which, and the loops of that graph. No torch.

A branch backwards is a loop only when every way to it passes its target (natural loops): rarely taken pieces that a
compiler moves to the end of a kernel jump back too, and loop nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ENDS = {"EXIT", "RET", "KILL", "BPT"}
JUMPS = {"BRA", "JMP", "BRX", "JMX"}
CALLS = {"CALL"}


@dataclass(frozen=True)
class Loop:
    """A loop: its first instruction and its last branch backwards, as indices, and the loop around it or -1."""

    first: int
    last: int
    parent: int = -1


def followers(instructions: Sequence[Any], index: int) -> list[int]:
    """Return the indices that may run after ``index``."""
    here = instructions[index]
    following = [index + 1] if index + 1 < len(instructions) else []
    if here.base in ENDS:
        return following if here.guard else []
    if here.base in JUMPS:
        always = not here.guard and "P" not in here.operands.split("`")[0]
        target = [here.target] if here.target >= 0 else []
        return target if always and target else following + target
    return following


def find_loops(instructions: Sequence[Any]) -> tuple[Loop, ...]:
    """Return the natural loops, sorted by where they begin, the outer one first; loops with one head are one loop."""
    starts, blocks, after = blocks_of(instructions)
    dominators = _dominators(len(starts), after)
    ends: dict[int, int] = {}
    for block, following in enumerate(after):
        for head in following:
            if head in dominators[block]:
                ends[head] = max(ends.get(head, 0), block)
    spans = sorted(((starts[h], blocks[e][1]) for h, e in ends.items()), key=lambda s: (s[0], -s[1]))
    return tuple(Loop(a, b, _parent(spans, i)) for i, (a, b) in enumerate(spans))


def _parent(spans: list[tuple[int, int]], index: int) -> int:
    first, last = spans[index]
    around = [i for i, (a, b) in enumerate(spans) if i != index and a <= first and last <= b]
    return max(around, key=lambda i: spans[i][0] - spans[i][1], default=-1)


def blocks_of(instructions: Sequence[Any]) -> tuple[list[int], list[tuple[int, int]], list[list[int]]]:
    """Return where basic blocks start, their (first, last), and which blocks follow each."""
    leaders = {0} | {i.target for i in instructions if i.target >= 0}
    leaders |= {k + 1 for k, i in enumerate(instructions[:-1]) if i.base in JUMPS | ENDS | CALLS}
    starts = sorted(leaders)
    blocks = list(zip(starts, [s - 1 for s in starts[1:]] + [len(instructions) - 1], strict=True))
    number = {s: i for i, s in enumerate(starts)}
    after = [[number[f] for f in followers(instructions, last) if f in number] for _, last in blocks]
    return starts, blocks, after


def _dominators(count: int, after: list[list[int]]) -> list[set[int]]:
    """Return for each block the blocks that every way from block 0 to it passes; empty for unreachable ones."""
    before: list[list[int]] = [[] for _ in range(count)]
    for block, following in enumerate(after):
        for f in following:
            before[f].append(block)
    found: list[set[int] | None] = [None] * count
    found[0] = {0}
    changed = True
    while changed:
        changed = False
        for block in range(1, count):
            known = [found[b] for b in before[block] if found[b] is not None]
            if known:
                new = set.intersection(*known) | {block}
                if new != found[block]:
                    found[block], changed = new, True
    return [f or set() for f in found]
