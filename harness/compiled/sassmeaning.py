"""The meaning of each integer opcode, by name: ``meaning`` returns a function of the state, or None. No torch here."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.compiled.sassarith import Run, cut, iadd, imad, isetp, lea, minmax, reader, sgxt, shf
from harness.compiled.sassvalue import MASK, Operand, State, Value, as_float, float_bits, operand, select, signed

_PREDICATE = re.compile(r"!?U?P(\d|T)$")
_COMPARE = {
    "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b,
}  # fmt: skip
# an opcode in a form that nobody described (another count of operands, another modifier) has an unknown result
_SURPRISES = (IndexError, KeyError, StopIteration, TypeError, ValueError)
_TWO_PREDICATES = ("ISETP", "UISETP", "FSETP", "PLOP3", "UPLOP3", "DSETP", "HSETP2", "PSETP", "ICMP")


def results(base: str, texts: list[str]) -> int:
    """Return how many of the operands, from the left, are written."""
    if base in _TWO_PREDICATES:
        return min(2, len(texts))
    if base in ("VOTE", "VOTEU"):
        return max(1, len(texts) - 1)
    if base in ("SHFL", "SYNCS", "ELECT", "LDS", "ATOM", "ATOMG", "ATOMS", "MATCH", "REDUX", "USYNCS"):
        return sum(1 for _ in _leading(texts, 2))
    if texts and _PREDICATE.match(texts[0]) and len(texts) > 1:
        return 2  # LOP3 and R2UR may write a predicate first
    count = 1
    while count < len(texts) and base in ("IADD3", "UIADD3", "LEA", "ULEA", "IMAD", "UIMAD", "VIADD", "IADD"):
        if not _PREDICATE.match(texts[count]):
            break
        count += 1
    return min(count, len(texts))


def _leading(texts: list[str], most: int):
    """Yield the first operands while they are predicates, and the one after them unless it is an address."""
    for text in texts[:most]:
        if "[" in text:
            return
        yield text
        if not _PREDICATE.match(text):
            return


def meaning(instruction: Any, texts: list[str], count: int) -> Run | None:
    """Return what the instruction computes, as a function that gives a value for each register written; or None."""
    op, base = instruction.op, instruction.base
    plain = base[1:] if base.startswith("U") and base[1:] in _MAKERS else base
    maker = _MAKERS.get(plain)
    if maker is None:
        return None
    written = [operand(t) for t in texts[:count]]
    try:
        made = maker(op, [operand(t) for t in texts[count:]], written, texts)
    except _SURPRISES:
        return None
    if made is None:
        return None
    keep = [i for i, w in enumerate(written) if w.register]

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        try:
            values = made(state, machine)
            return None if values is None else tuple(v for i in keep for v in _pair(values[i]))
        except _SURPRISES:
            return None

    return run


def _pair(value: Value) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,)


def _mov(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    if ".64" in op:
        return _load(op, sources, written, texts)
    return reader(sources[:1], lambda a: (a,))


def _load(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    """LDC, ULDC, LDCU and CS2R: words of the constant bank, or zeros."""
    words = 4 if ".128" in op else 2 if ".64" in op else 1
    if "CS2R" in op:
        words = 1 if ".32" in op else 2
    if re.search(r"\.(U8|S8|U16|S16)", op) or not sources:
        return None
    source = sources[0]

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        return (tuple(source.read(state, machine.constants, i) for i in range(words)),)

    return run


def _lop3(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    numbers = [s for s in sources if not s.predicate]
    if len(numbers) < 4 or numbers[3].number is None:
        return None
    a, b, c, table = *numbers[:3], numbers[3].number
    first_is_predicate = written[0].predicate

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        values = [o.read(state, machine.constants) for o in (a, b, c)]
        result = _lookup(table, values)
        if result is None:
            return None
        return (result != 0, result) if first_is_predicate else (result,)

    return run


def _lookup(table: int, values: list[Value]) -> Value:
    """Return the bitwise function that the eight bits of ``table`` describe; inputs that do not matter may be None."""
    for i, value in enumerate(values):
        if value is None:
            weight = 4 >> i
            if any((table >> k & 1) != (table >> (k ^ weight) & 1) for k in range(8)):
                return None
            values[i] = 0
    a, b, c = values
    result: Value = 0
    for k in range(8):
        if table >> k & 1:
            result = result | ((a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c))
    return result & MASK


def _plop3(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    tables = [s.number for s in sources if not s.predicate]
    inputs = [s for s in sources if s.predicate][:3]
    if len(inputs) < 3 or len(tables) < 1:
        return None

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        values = [s.read(state, machine.constants) for s in inputs]
        return tuple(_truth(table, list(values)) for table in (tables + tables)[:2])

    return run


def _truth(table: int | None, values: list[Value]) -> Value:
    bits = [None if v is None else select(v, MASK, 0) for v in values]
    found = None if table is None else _lookup(table, bits)
    return None if found is None else (found & 1) != 0


def _sel(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    a, b, predicate = sources[:3]

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        values = [o.read(state, machine.constants) for o in (predicate, a, b)]
        if isinstance(values[0], bool | int):
            return (values[1] if values[0] else values[2],)
        return None if any(v is None for v in values) else (select(*values),)

    return run


def _prmt(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    if op.count(".") or sources[1].number is None:
        return None
    chosen = sources[1].number

    def permute(a: Value, c: Value) -> tuple[Value, ...]:
        result: Value = 0
        for i in range(4):
            pick = chosen >> 4 * i & 15
            byte = (a if pick & 4 == 0 else c) >> 8 * (pick & 3) & 255
            result = result | ((select(byte & 128 != 0, 255, 0) if pick & 8 else byte) << 8 * i)
        return (result,)

    return reader([sources[0], sources[2]], permute)


def _special(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    name = texts[-1]
    return lambda state, machine: None if machine.special(name) is None else (machine.special(name),)


def _same(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    """Copies: R2UR, and votes and shuffles whose input is the same in all lanes."""
    spare = len(written) - 1
    return reader(sources[:1], lambda a: (*[None] * spare, a))


def _shfl(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    return reader(sources[:1], lambda a: (True, a) if len(written) > 1 else (a,)) if ".IDX" in op else None


def _vote(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        held = sources[-1].read(state, machine.constants)
        if held is None or isinstance(held, np.ndarray):
            return None
        return tuple(bool(held) if w.predicate else MASK if held else 0 for w in written)

    return run


def _elect(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    def run(state: State, machine: Any) -> tuple[Value, ...]:
        lane = machine.special("SR_LANEID")
        return tuple(lane == 0 if w.predicate else 1 for w in written)

    return run


def _sync(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    """A try at a barrier in shared memory: it succeeds; how long that takes is the simulation's question."""
    return (lambda state, machine: tuple(True if w.predicate else None for w in written)) if "TRYWAIT" in op else None


def _i2f(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    if "F64" in op or ".F16" in op or ".BF16" in op:
        return None

    def convert(a: int) -> tuple[Value, ...] | None:
        if not isinstance(a, int):
            return None
        exact = a if "U32" in op or ("S32" not in op and "I2FP" not in op and ".S" not in op) else signed(a)
        bits = float_bits(exact)
        if ".RP" in op and as_float(bits) < exact:
            bits += 1
        return (bits,)

    return reader(sources[:1], convert)


def _rcp(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    if not op.endswith(".RCP"):
        return None

    def reciprocal(a: int) -> tuple[Value, ...] | None:
        x = as_float(a) if isinstance(a, int) else 0.0
        return (float_bits(1.0 / x),) if x and math.isfinite(x) else None

    return reader(sources[:1], reciprocal)


def _f2i(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    if "TRUNC" not in op or "64" in op:
        return None

    def convert(a: int) -> tuple[Value, ...] | None:
        x = as_float(a) if isinstance(a, int) else math.nan
        return (cut(min(max(int(x), 0 if "U32" in op else -(2**31)), MASK)),) if math.isfinite(x) else None

    return reader(sources[:1], convert)


def _hfma2(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    """``HFMA2 R0, -RZ, RZ, high, low``: how compilers write a constant on the half-precision unit."""
    if [t.lstrip("-") for t in texts[1:3]] != ["RZ", "RZ"] or len(texts) != 5:
        return None
    try:
        high, low = (struct.unpack("<H", struct.pack("<e", float(t)))[0] for t in texts[3:])
    except (ValueError, OverflowError):
        return None
    return lambda state, machine: (high << 16 | low,)


def _unary(function: Callable[[int], int]) -> Callable[..., Run]:
    def run(a: Value) -> tuple[Value, ...] | None:
        return (function(a),) if isinstance(a, int) else None

    return lambda op, sources, written, texts: reader(sources[-1:], run)


_MAKERS: dict[str, Callable[..., Run | None]] = {
    "MOV": _mov, "LDC": _load, "LDCU": _load, "CS2R": _load, "IMAD": imad, "IADD3": iadd, "IADD": iadd,
    "VIADD": iadd, "LEA": lea, "SHF": shf, "LOP3": _lop3, "ISETP": isetp, "PLOP3": _plop3, "SEL": _sel,
    "FSEL": _sel, "VIMNMX": minmax, "IMNMX": minmax, "PRMT": _prmt, "S2R": _special, "S2UR": _special, "R2UR": _same,
    "SHFL": _shfl, "VOTE": _vote, "VOTEU": _vote, "ELECT": _elect, "SYNCS": _sync, "I2F": _i2f, "I2FP": _i2f,
    "MUFU": _rcp, "F2I": _f2i, "IABS": _unary(lambda a: abs(signed(a)) & MASK), "SGXT": sgxt, "HFMA2": _hfma2,
    "POPC": _unary(lambda a: a.bit_count()), "FLO": _unary(lambda a: (a & MASK).bit_length() - 1 & MASK),
}  # fmt: skip
