"""What the integer instructions of SASS compute: enough of them to follow branches and addresses without a GPU.

A value is a whole number of 32 bits (a predicate: a bool), the same for all threads asked about or a numpy int64 array
with one entry a thread; None: not known (it came from memory, from a float, or from an opcode that is not here).
NVIDIA documents names of opcodes only (CUDA Binary Utilities, "Instruction Set Reference"); the meanings are those
that hold for code whose result is known, and unknown forms give None, never a guess. No torch here.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MASK = 0xFFFFFFFF
Value = Any  # int, bool, np.ndarray or None
State = dict[str, Value]

_REGISTER = re.compile(r"(?<![\w.])(UR|R|UP|P)(\d+)(?![\w])")
_CONSTANT = re.compile(r"c\[0x(\w+)\]\[(?:0x)?(\w+)\]$")
_NO_RESULT = (
    "ST", "RED", "BAR", "BRA", "EXIT", "UTMA", "UBLK", "LDGSTS", "LDGDEPBAR", "DEPBAR", "WARPGROUP", "NOP", "BSYNC",
    "WARPSYNC", "FENCE", "MEMBAR", "CCTL", "ERRBAR", "CALL", "RET", "JMP", "BRX", "UTCBAR", "NANOSLEEP", "YIELD",
    "ARRIVES", "KILL", "BREAK", "UCGABAR", "CGAERRBAR", "USETMAXREG", "PREEXIT", "ACQBULK",
)  # fmt: skip
_WIDE_RESULT = {"HMMA": 4, "IMMA": 4, "DMMA": 4, "QMMA": 4, "OMMA": 4}


@dataclass(frozen=True)
class Operand:
    """One operand: a register or predicate ("R5", "UP0"), a number, a constant bank's offset, or text nobody reads."""

    register: str = ""
    number: int | None = None
    constant: int | None = None
    negative: bool = False
    inverted: bool = False  # ~ of a register, ! of a predicate
    absolute: bool = False
    predicate: bool = False

    def read(self, state: State, constants: Mapping[int, int], step: int = 0) -> Value:
        """Return its value; ``step`` 1 is the upper half of a 64-bit operand."""
        if self.register:
            value = state.get(_next(self.register, step))
        elif self.constant is not None:
            value = constants.get(self.constant + 4 * step)
        elif self.number is not None:
            value = self.number if self.predicate else (self.number >> (32 * step)) & MASK
        else:
            return None
        return self._modified(value, step)

    def _modified(self, value: Value, step: int) -> Value:
        if value is None:
            return None
        if self.predicate:
            return logical_not(value) if self.inverted else value
        if self.absolute:
            value = select(value & 0x80000000 != 0, -value & MASK, value)
        if self.inverted:
            value = ~value & MASK
        if self.negative:
            value = -value & MASK if not step else ~value & MASK
        return value


def _next(register: str, step: int) -> str:
    if not step:
        return register
    name = register.rstrip("0123456789")
    return f"{name}{int(register[len(name) :]) + step}"


def operand(text: str) -> Operand:
    """Return the operand that ``text`` names."""
    text = text.strip().removesuffix(".reuse")
    negative, inverted, absolute = text.startswith("-"), text.startswith(("~", "!")), "|" in text
    body = text.lstrip("-~!+").strip("|").removesuffix(".reuse").removesuffix(".64")
    if body in ("PT", "UPT"):
        return Operand(number=1, inverted=inverted, predicate=True)
    if body in ("RZ", "URZ", "SRZ"):
        return Operand(number=0, negative=negative, inverted=inverted)
    if re.fullmatch(r"U?P\d", body):
        return Operand(register=body, inverted=inverted, predicate=True)
    if re.fullmatch(r"U?R\d+", body):
        return Operand(register=body, negative=negative, inverted=inverted, absolute=absolute)
    if re.fullmatch(r"0x[0-9a-f]+|\d+", body):
        return Operand(number=int(body, 0) if not negative else -int(body, 0))
    bank = _CONSTANT.match(body)
    if bank and int(bank.group(1), 16) == 0:
        return Operand(constant=int(bank.group(2), 16), negative=negative, inverted=inverted, absolute=absolute)
    return Operand()


def split(operands: str) -> list[str]:
    """Return the operands of an instruction as texts; commas inside brackets do not part them."""
    return [t.strip() for t in re.split(r",(?![^\[]*\])", operands)] if operands.strip() else []


def registers(text: str, width: int = 1) -> list[str]:
    """Return the registers that an operand's text names; a ``.64`` or a ``width`` adds the ones behind."""
    found = []
    for match in _REGISTER.finditer(text):
        name = match.group(1) + match.group(2)
        wide = 1 if "P" in name else max(width, 2 if text[match.end() :].startswith((".64", ".reuse.64")) else 1)
        found += [_next(name, i) for i in range(wide)]
    return found


def select(condition: Value, yes: Value, no: Value) -> Value:
    """Return ``yes`` where the condition holds, else ``no``; plain when nothing is an array."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def logical_not(value: Value) -> Value:
    """Return not ``value``, element by element for arrays."""
    return ~value if isinstance(value, np.ndarray) else not value


def signed(value: Value) -> Value:
    """Return the 32 bits as a signed number."""
    return (value ^ 0x80000000) - 0x80000000


def product(a: Value, b: Value, is_signed: bool) -> tuple[Value, Value]:
    """Return the low and high 32 bits of a * b."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        whole = np.asarray(a).astype(np.uint64) * np.asarray(b).astype(np.uint64)
        low, high = (whole & np.uint64(MASK)).astype(np.int64), (whole >> np.uint64(32)).astype(np.int64)
    else:
        low, high = a * b & MASK, a * b >> 32
    if is_signed:
        high = (high - select(a & 0x80000000 != 0, b, 0) - select(b & 0x80000000 != 0, a, 0)) & MASK
    return low, high


def as_float(value: int) -> float:
    """Return the float32 whose bits are ``value``."""
    return struct.unpack("<f", struct.pack("<I", value & MASK))[0]


def float_bits(value: float) -> int:
    """Return the bits of ``value`` as float32, rounded to nearest."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


@dataclass(frozen=True)
class Step:
    """An instruction made ready: the registers it reads and writes, and ``run(state, machine)`` for what it writes.

    ``run`` is None when nothing is known about the result.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    run: Callable[[State, Any], tuple[Value, ...] | None] | None
    guard: Operand | None


def prepare(instruction: Any) -> Step:
    """Return the step of a ``sass.Instruction``."""
    from harness.compiled import sassmeaning

    texts = split(instruction.operands)
    if instruction.base in ("LDL", "STL"):
        return _local(instruction, texts)
    guard = operand(instruction.guard.removeprefix("@")) if instruction.guard else None
    reads = registers(instruction.guard)
    if instruction.base.startswith(_NO_RESULT):
        return Step(tuple(reads + [r for t in texts for r in registers(t, 2)]), (), None, guard)
    count = sassmeaning.results(instruction.base, texts)
    writes = [r for t in texts[:count] for r in registers(t, _width(instruction))]
    reads += [r for t in texts[count:] for r in registers(t, 2 if _reads_pairs(instruction.op) else 1)]
    run = sassmeaning.meaning(instruction, texts, count)
    return Step(tuple(reads), tuple(writes), run, guard)


def _local(instruction: Any, texts: list[str]) -> Step:
    """Return the step of a spill or of its way back: a place on the stack is a register like any other."""
    guard = operand(instruction.guard.removeprefix("@")) if instruction.guard else None
    loads = instruction.base == "LDL"
    data, place = texts if loads else reversed(texts)
    found = re.fullmatch(r"\[R1(?:\+0x([0-9a-f]+))?\]", place)
    moved = registers(data, instruction.width) or ["RZ"]
    base = int(found.group(1) or "0", 16) if found else 0
    slots = [f"S{base + 4 * i}" for i in range(len(moved))] if found else []
    reads, writes = (slots, moved) if loads else (moved, slots)

    def run(state: State, machine: Any) -> tuple[Value, ...]:
        return tuple(0 if name == "RZ" else state.get(name) for name in reads)

    known = run if found and not re.search(r"\.[US](8|16)", instruction.op) else None
    return Step(tuple(reads + registers(instruction.guard)), tuple(writes), known, guard)


def _width(instruction: Any) -> int:
    """Return how many registers each written operand stands for."""
    op, base = instruction.op, instruction.base
    if base in _WIDE_RESULT:
        return _WIDE_RESULT[base]
    if instruction.pipe == "wgmma":
        shape = re.search(r"64x(\d+)x\d+(\.F16)?", op)  # 64 rows of N columns over 128 threads
        return int(shape.group(1)) // (4 if shape.group(2) else 2) if shape else 1
    if base == "CS2R":
        return 1 if ".32" in op else 2
    if instruction.pipe in ("lsu", "mio", "misc", "uniform") and ".128" in op:
        return max(4, instruction.width)
    if instruction.pipe in ("lsu", "mio") or ".WIDE" in op or ".64" in op:
        return max(instruction.width, 2 if ".WIDE" in op or ".64" in op else 1)
    return 1


def _reads_pairs(op: str) -> bool:
    return any(word in op for word in (".WIDE", ".64", ".HI", ".EX"))
