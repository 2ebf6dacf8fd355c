"""Which line of the learner's file each line of a kernel's PTX comes from. No torch.

The disassembler names the PTX line of an instruction; the ``.loc`` directives of the PTX say the rest. Newer LLVMs
write one ``.loc`` for each line inside a block of inline assembly and count the source line up by one each time, so a
load would seem to stand one to four lines too low: those directives are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.compiled.ttgir import Files

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s*"([^"]*)")?')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_FRAME = re.compile(r"([^\s:\[\]@]+):(\d+):(\d+)")
_PARAM = re.compile(r"\s*\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s.*?(?:\[(\d+)\])?\s*,?\s*$")

Place = tuple[int, int]  # line and column, 1-based; (0, 0) unknown


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: its name ("" for those that Triton adds), its offset and size in bytes."""

    name: str
    offset: int
    size: int


def places(ptx: str, files: Collection[str]) -> list[Place]:
    """Return the learner's line and column for each line of ``ptx`` (index 0 is line 1)."""
    known, ours = {}, Files(files)
    for line in ptx.splitlines():
        named = _FILE.match(line)
        if named:
            known[int(named.group(1))] = "/".join(filter(None, named.groups()[1:]))
    inside = {number: path in ours for number, path in known.items()}
    # frames in comments have no folder
    names = {os.path.basename(path) for path in (*files, *(p for number, p in known.items() if inside[number]))}
    resolved: dict[tuple[int, ...], Place] = {}
    found: list[Place] = []
    now, in_asm = (0, 0), False
    for line in ptx.splitlines():
        if "// begin inline asm" in line:
            in_asm = True
        elif "// end inline asm" in line:
            in_asm = False
        loc = None if in_asm else _LOC.match(line)
        if loc:
            numbers = [int(n) for n in loc.groups(default=-1)]
            here, caller = tuple(numbers[:3]), tuple(numbers[3:])
            now = here[1:] if inside.get(here[0]) else resolved.get(caller) or _caller(line, names)
            resolved[here] = now
        found.append(now)
    return found


def _caller(line: str, ours: Collection[str]) -> Place:
    """Return the first frame of ours in the comment ``// f.py:1:2 @[ g.py:3:4 @[ … ] ]``, where older LLVMs keep it."""
    for name, row, column in _FRAME.findall(line.partition("@[")[2]):
        if name in ours:
            return int(row), int(column)
    return 0, 0


def parameters(ptx: str, kernel: str, names: Sequence[str] = (), offsets: Sequence[int] = ()) -> tuple[Parameter, ...]:
    """Return the parameters that the ``.entry`` of ``kernel`` declares, in order.

    ``offsets`` are those of the compiled kernel; without them each lies at the next aligned place.
    """
    head = re.search(r"\.entry\s+" + re.escape(kernel) + r"\s*\((.*?)\n\s*\)", ptx, re.S)
    found: list[Parameter] = []
    at = 0
    for match in filter(None, map(_PARAM.match, head.group(1).splitlines() if head else ())):
        kind = re.match(r"[a-z]+(\d+)", match.group(2))
        unit = int(kind.group(1)) // 8 if kind else 4
        size, align = unit * int(match.group(3) or 1), int(match.group(1) or unit)
        at = offsets[len(found)] if len(found) < len(offsets) else -(-at // align) * align
        found.append(Parameter(names[len(found)] if len(found) < len(names) else "", at, size))
        at += size
    return tuple(found)
