"""Made: a kernel's instructions as the simulated scheduler wants them, plain numbers only. No torch.

The intervals at which a pipe takes instructions are the distances that the compiler itself keeps between two
instructions of one kind: 2 cycles on the integer pipe, 4 for memory, 8 for special functions, 1 or 2 for float32.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.compiled.control import Executed
from harness.compiled.sass import Instruction, Program

# what an instruction does beside taking its turn
PLAIN, VARIABLE, LOAD, ASYNC, COMMIT, DEPBAR, BARRIER, WGMMA = range(8)
WGWAIT, HMMA, TMA_LOAD, EXPECT, TMA_WAIT, TMA_STORE, FLUSH, FENCE = range(8, 16)
_KINDS = {
    "LDG": LOAD, "LD": LOAD, "ATOM": LOAD, "ATOMG": LOAD, "LDGMC": LOAD, "LDGSTS": ASYNC, "LDGDEPBAR": COMMIT,
    "DEPBAR": DEPBAR, "BAR": BARRIER, "UTMALDG": TMA_LOAD, "UBLKCP": TMA_LOAD, "UTMASTG": TMA_STORE,
    "UTMAREDG": TMA_STORE, "UTMACMDFLUSH": FLUSH, "MEMBAR": FENCE, "FENCE": FENCE,
}  # fmt: skip
# fmt: skip
_TENSOR = ("tensor", "wgmma", "tcgen05")


@dataclass
class Made:
    """An instruction ready for the loop: plain numbers only."""

    kind: int
    pipe: str
    interval: float  # cycles its pipe is busy
    stall: int
    write: int
    read: int
    waits: tuple[int, ...]
    latency: float
    occupy: float
    shared: float  # cycles of the shared-memory pipe
    share: float  # of a CTA's warps that execute it
    once: bool  # one thread of the CTA does it, whatever the other warps issue
    line: int
    target: int = 0  # DEPBAR: how many may be outstanding; HMMA: its accumulator
    last: bool = False  # WGMMA: closes a group


def ready_made(
    program: Program,
    executed: Executed,
    warps: int,
    hop: Callable[[Instruction], Any],
    tensor: Callable[[Instruction], float],
    costs: Any,
    shared: Callable[[Instruction], float],
) -> list[Made]:
    """Return the instructions as the scheduler wants them."""
    found = []
    for index, instruction in enumerate(program.instructions):
        loop = program.innermost[index]
        most = max(1.0, executed.loops[loop]) if loop >= 0 else 1.0
        share = min(1.0, executed.instructions[index] / (warps * most))
        found.append(_made(instruction, share, hop, tensor, costs, shared(instruction)))
    return found


def _made(instruction: Instruction, share: float, hop: Callable, tensor: Callable, costs: Any, shared: float) -> Made:
    base, op, pipe = instruction.base, instruction.op, instruction.pipe
    off = instruction.guard == "@!PT"
    kind = PLAIN if off else _kind(instruction)
    latency = occupy = 0.0
    if kind in (LOAD, ASYNC, TMA_LOAD):
        here = hop(instruction)
        latency, occupy = here.latency, here.occupy
    elif kind in (VARIABLE, FENCE):
        latency = _latency(instruction, costs)
    interval = tensor(instruction) if pipe in _TENSOR else _interval(instruction, costs)
    number = re.search(r"(?:SB\d|gsb0), 0x(\w+)", instruction.operands)
    target = int(number.group(1), 16) if number else 0
    if kind == HMMA:
        accumulator = re.search(r"R(\d+)", instruction.operands)
        target = int(accumulator.group(1)) if accumulator else 0
    return Made(
        kind, "memory" if pipe in ("lsu", "mio") else pipe, 0.0 if off else interval, max(1, instruction.stall),
        instruction.write_barrier, instruction.read_barrier, tuple(b for b in range(6) if instruction.waits >> b & 1),
        latency, occupy, shared,
        share, pipe == "tma" or (base == "SYNCS" and "ARRIVE" in op), instruction.line, target,
        "gsb0" in instruction.operands,
    )  # fmt: skip


def _interval(instruction: Instruction, costs: Any) -> float:
    """Return for how many cycles its pipe takes nothing else."""
    base, op, pipe = instruction.base, instruction.op, instruction.pipe
    if base in ("IMAD", "IMAD32I") and (".WIDE" in op or ".HI" in op):
        return 2.0 * costs.imad
    if base == "LDC":
        return costs.ldc
    if base == "FFMA" and len(re.findall(r"(?<![A-Z])R\d+", instruction.operands)) > 3:
        return costs.ffma
    return costs.memory if pipe in ("lsu", "mio") else getattr(costs, pipe, 1.0)


def _kind(instruction: Instruction) -> int:
    base, op, pipe = instruction.base, instruction.op, instruction.pipe
    if pipe == "wgmma":
        return WGMMA
    if pipe == "tensor":
        return HMMA
    if base == "WARPGROUP":
        return WGWAIT if "DEPBAR" in op else PLAIN
    if base == "SYNCS":
        if "TRYWAIT" in op:
            return TMA_WAIT
        return EXPECT if "ARRIVE.TRANS64" in op and "A1T0" not in op else VARIABLE
    if base in _KINDS:
        return _KINDS[base]
    return VARIABLE if instruction.write_barrier >= 0 else PLAIN


def _latency(instruction: Instruction, costs: Any) -> float:
    base, pipe = instruction.base, instruction.pipe
    if base in ("LDS", "LDSM", "ATOMS"):
        return costs.shared + 2.0 * instruction.width
    if base == "LDL":
        return costs.local
    if base in ("SHFL", "REDUX", "MATCH"):
        return costs.shuffle
    if base in ("LDC", "ULDC", "LDCU"):
        return costs.constant
    if pipe in ("xu", "fp64"):
        return costs.special
    return costs.fence if pipe == "control" else costs.register
