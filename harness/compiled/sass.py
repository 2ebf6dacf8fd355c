"""SASS: the text of a disassembler -> instructions with the learner's lines, the compiler's own schedule, and loops.

Since Volta each 128-bit instruction carries what its compiler decided about time: how many cycles until the next one
may issue, which of six scoreboards its result (or its reading of registers) holds, and which ones it waits for. NVIDIA
does not document these bits; their places are the ones that public assemblers for Volta to Hopper use (bits 105 to 121:
stall 4, yield 1, write barrier 3, read barrier 3, wait mask 6). No torch here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from harness.compiled import sassops
from harness.compiled.cubin import SassError
from harness.compiled.flow import Loop, find_loops
from harness.compiled.ptxlines import places

_LINE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_LABEL = re.compile(r"\s*([.$\w]+):\s*$")
_INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_ENCODING = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_TARGET = re.compile(r"`\(([^)]+)\)")
NO_CONTROL = -1


@dataclass(frozen=True)
class Instruction:
    """One instruction: ``op`` with modifiers, ``operands`` and ``guard`` ("", "@P0", "@!UP1") as text.

    ``line`` and ``column`` are the learner's (0 unknown); ``target`` is the index that a branch goes to (-1: none);
    ``control`` holds the 21 bits of the schedule (-1: not known); ``conflict``: shared-memory
    transactions per ideal one.
    """

    op: str
    operands: str
    guard: str
    line: int
    column: int = 0
    target: int = -1
    control: int = NO_CONTROL
    conflict: float = 1.0

    @property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.op.split(".", 1)[0]

    @property
    def width(self) -> int:
        """How many 32-bit registers a thread moves: 1, 2 or 4."""
        return sassops.width(self.op)

    @property
    def pipe(self) -> str:
        """Which unit does it; see ``harness.compiled.sassops.PIPES``."""
        return sassops.pipe(self.base)

    @property
    def stall(self) -> int:
        """Cycles until the next instruction of this warp may issue."""
        return self.control & 15 if self.control >= 0 else sassops.DEFAULT_STALL

    @property
    def write_barrier(self) -> int:
        """The scoreboard that clears when its result is there, -1 for none."""
        return _barrier(self.control, 5)

    @property
    def read_barrier(self) -> int:
        """The scoreboard that clears when its operands were read, -1 for none."""
        return _barrier(self.control, 8)

    @property
    def waits(self) -> int:
        """The scoreboards that must be clear before it issues, one bit each."""
        return self.control >> 11 & 63 if self.control >= 0 else 0


def _barrier(control: int, shift: int) -> int:
    found = control >> shift & 7
    return found if control >= 0 and found < 6 else -1


@dataclass(frozen=True)
class Program:
    """A kernel's instructions and loops, and where each partition of a warp-specialised kernel stands.

    ``partitions``: (first, last, warps) of each; empty for ordinary kernels.
    """

    instructions: tuple[Instruction, ...]
    loops: tuple[Loop, ...]
    partitions: tuple[tuple[int, int, int], ...] = ()

    @functools.cached_property
    def innermost(self) -> tuple[int, ...]:
        """For each instruction the index of the innermost loop around it, -1 for none."""
        found = [-1] * len(self.instructions)
        for index in sorted(range(len(self.loops)), key=lambda i: self.loops[i].first - self.loops[i].last):
            loop = self.loops[index]
            found[loop.first : loop.last + 1] = [index] * (loop.last - loop.first + 1)
        return tuple(found)

    def innermost_of(self, index: int) -> int:
        """Return the innermost loop around an instruction, -1 for none."""
        return self.innermost[index]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Opcodes without a description, sorted; they count as ``misc`` with the default latency."""
        return tuple(sorted({i.base for i in self.instructions if not sassops.known(i.base)}))

    def to_json(self) -> dict[str, Any]:
        """Return plain values, one list an instruction."""
        rows = [list(vars(i).values()) for i in self.instructions]
        loops = [[x.first, x.last, x.parent] for x in self.loops]
        return {"instructions": rows, "loops": loops, "partitions": [list(p) for p in self.partitions]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Program:
        """Return the program that ``to_json`` wrote."""
        return cls(
            tuple(Instruction(*row) for row in data["instructions"]),
            tuple(Loop(*row) for row in data["loops"]),
            tuple(tuple(p) for p in data["partitions"]),
        )


def parse(text: str, kernel: str, files: Collection[str] = (), ptx: str = "") -> Program:
    """Return the program of ``kernel`` in the disassembler's ``text``.

    ``ptx`` is what the kernel was assembled from; it gives the lines in ``files`` (see ``ptxlines.places``).

    Raises:
        SassError: the text holds no instruction of this kernel.
    """
    rows, labels = _rows(text, kernel)
    where = places(ptx, files) if ptx else []
    targets = [_target(row[2], labels, len(rows)) for row in rows]
    end = next((i for i, row in enumerate(rows) if row[0] == "BRA" and targets[i] == i), len(rows))
    if not end:
        raise SassError(f"The disassembly holds no instruction of kernel {kernel!r}; its speed cannot be modelled.")
    found = []
    for (op, guard, operands, ptx_line, control), target in zip(rows[:end], targets[:end], strict=True):
        line, column = where[ptx_line - 1] if 0 < ptx_line <= len(where) else (0, 0)
        found.append(Instruction(op, operands, guard, line, column, target if target < end else -1, control))
    return Program(tuple(found), find_loops(found))


def _rows(text: str, kernel: str) -> tuple[list[tuple[str, str, str, int, int]], dict[str, int]]:
    """Return op, guard, operands, PTX line and control bits of each instruction, and the index each label stands at."""
    start = text.find(f".text.{kernel}:")
    rows: list[tuple[str, str, str, int, int]] = []
    labels: dict[str, int] = {}
    line = 0
    for row in text[max(start, 0) :].splitlines():
        encoding = _ENCODING.match(row)
        if encoding:
            if rows and rows[-1][4] == NO_CONTROL:
                rows[-1] = (*rows[-1][:4], int(encoding.group(1), 16) >> 41 & 0x1FFFFF)
            continue
        named, label = _LINE.match(row), _LABEL.match(row)
        if named:
            line = int(named.group(2)) if "ptx" in named.group(1) else 0
        elif label:
            labels[label.group(1)] = len(rows)
        elif row.lstrip().startswith((".section", "//-----")) and rows:
            break
        else:
            match = _INSTRUCTION.match(row)
            if match:
                rows.append((match.group(2), match.group(1) or "", match.group(3), line, NO_CONTROL))
    return rows, labels


def _target(operands: str, labels: Mapping[str, int], size: int) -> int:
    named = _TARGET.search(operands)
    return labels.get(named.group(1), -1) if named else -1
