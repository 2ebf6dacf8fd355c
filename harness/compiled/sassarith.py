"""The meaning of SASS's integer arithmetic and comparisons; the rest is in ``sassmeaning``. No torch here.

Each function takes an instruction's opcode, sources and written operands, and returns what computes it, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from harness.compiled.sassvalue import MASK, Operand, State, Value, logical_not, product, select, signed

Run = Callable[[State, Any], "tuple[Value, ...] | None"]
_COMPARE = {
    "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b,
}  # fmt: skip
# fmt: skip


def reader(sources: list[Operand], function: Callable[..., Value]) -> Run:
    """Return a run that reads all sources and is unknown where one is."""

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        values = [s.read(state, machine.constants) for s in sources]
        return None if any(v is None for v in values) else function(*values)

    return run


def cut(value: Value) -> Value:
    return value & MASK


def imad(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    a, b, c = sources[:3]
    unsigned = ".U32" in op
    if ".X" in op:
        carry = sources[3] if len(sources) > 3 else Operand(number=0, predicate=True)
        return reader([a, b, c, carry], lambda x, y, z, p: (cut(x * y + z + p),))
    if ".WIDE" not in op and ".HI" not in op:
        return reader([a, b, c], lambda x, y, z: _sums(len(written), product(x, y, False)[0], z))

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        values = [o.read(state, machine.constants) for o in (a, b, c)]
        upper = c.read(state, machine.constants, 1)
        if upper is None or any(v is None for v in values):
            return None
        low, high = product(values[0], values[1], not unsigned)
        total = low + values[2]
        high = cut(high + upper + (total >> 32))
        return (high,) if ".HI" in op else ((cut(total), high), *[(total >> 32) != 0] * (len(written) - 1))

    return run


def _sums(written: int, *terms: Value) -> tuple[Value, ...]:
    total = sum(terms[1:], terms[0])
    return (cut(total), *((total >> 32) > i for i in range(written - 1)))


def iadd(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    if ".64" in op:
        return _wide_add(sources, written)
    numbers = [s for s in sources if not s.predicate]
    # a negated operand is added as ~x + 1, so that x = 0 carries
    signs = [s.negative for s in numbers]
    numbers = [replace(s, negative=False) for s in numbers]
    carries = [s for s in sources if s.predicate] if ".X" in op else []

    def add(*values: Value) -> tuple[Value, ...]:
        terms = [MASK + 1 - v if negative else v for v, negative in zip(values, signs, strict=False)]
        return _sums(len(written), *terms, *(p + 0 for p in values[len(signs) :]))

    return reader(numbers + carries, add)


def _wide_add(sources: list[Operand], written: list[Operand]) -> Run:
    numbers = [s for s in sources if not s.predicate]

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        low = [s.read(state, machine.constants) for s in numbers]
        high = [s.read(state, machine.constants, 1) for s in numbers]
        if any(v is None for v in low + high):
            return None
        total = sum(low[1:], low[0])
        # a negated pair is ~low + 1 and ~high: where low is 0 the carry of that + 1 goes up
        lost = sum((select(v == 0, 1, 0) for v, s in zip(low, numbers, strict=True) if s.negative), 0)
        return ((cut(total), cut(sum(high[1:], high[0]) + (total >> 32) + lost)), *[None] * (len(written) - 1))

    return run


def lea(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    numbers = [s for s in sources if not s.predicate]
    carry = next((s for s in sources if s.predicate), Operand(number=0, predicate=True))
    carry = carry if ".X" in op else Operand(number=0, predicate=True)
    if ".HI" not in op:
        return reader([*numbers[:3], carry], lambda a, b, s, p: _sums(len(written), cut(a << (s & 31)), b, p + 0))
    if ".SX32" in op:
        a, b, shift = numbers[:3]
        return reader([a, b, shift, carry], lambda x, y, s, p: _sums(len(written), cut(signed(x) << s >> 32), y, p + 0))
    a, b, upper, shift = numbers[:4]
    return reader(
        [a, b, upper, shift, carry],
        lambda x, y, u, s, p: _sums(len(written), cut((u << s) | (x >> (32 - s) if s else 0)), y, p + 0),
    )


def shf(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    left, high, is_signed = ".L" in op, ".HI" in op, ".S32" in op or ".S64" in op

    def shift(lower: Value, count: Value, upper: Value) -> tuple[Value, ...] | None:
        if not isinstance(count, int):
            return None
        count = count & 31 if ".W" in op else min(count, 63 if "64" in op else 32)
        if left:
            carried = lower << count >> 32
            return (cut((upper << count) | carried),) if high else (cut(lower << count),)
        upper = signed(upper) if is_signed else upper
        return (cut(upper >> count),) if high else (cut((lower | upper << 32) >> count),)

    return reader(sources[:3], shift)


def isetp(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    parts = op.split(".")
    compare = next((_COMPARE[p] for p in parts if p in _COMPARE), None)
    join = next((p for p in ("AND", "OR", "XOR") if p in parts), "AND")
    if compare is None or len(sources) < 3:
        return None
    unsigned, extended = "U32" in parts, "EX" in parts
    equality = ["EQ" in parts] if {"EQ", "NE"} & set(parts) else []
    strict = {"LE": "LT", "GE": "GT"}.get(next(p for p in parts if p in _COMPARE))

    def run(state: State, machine: Any) -> tuple[Value, ...] | None:
        wide = "64" in parts or "S64" in parts or "U64" in parts
        a, b, with_ = (s.read(state, machine.constants) for s in sources[:3])
        if a is None or b is None or with_ is None:
            return None
        if wide:
            upper = [s.read(state, machine.constants, 1) for s in sources[:2]]
            if None in upper:
                return None
            a, b = (a | signed(upper[0]) << 32), (b | signed(upper[1]) << 32)
        elif not unsigned:
            a, b = signed(a), signed(b)
        held = compare(a, b)
        if equality and machine.signs is not None:
            held = _crossed(machine.signs, sources, a, b) == equality[0]
        if extended:
            low = sources[3].read(state, machine.constants)
            if low is None:
                return None
            held = _extended(op, a, b, low, _COMPARE[strict] if strict else compare)
        return _joined(join, held, with_), _joined(join, logical_not(held), with_)

    return run


def _crossed(signs: dict[int, int], key: object, a: int, b: int) -> bool:
    """Return whether a has reached b, coming from the side where it was first seen.

    A loop that runs while ``i != n`` ends at one value of i; who looks far ahead must not step over it.
    """
    difference = signed((a - b) & MASK)
    side = (difference > 0) - (difference < 0)
    first = signs.setdefault(id(key), side)
    return first == 0 or side != first


def _extended(op: str, a: Value, b: Value, low: Value, strict: Callable[[Value, Value], Value]) -> Value:
    """Return a comparison of 64 bits, from its upper halves and the result ``low`` of its lower ones."""
    if ".EQ" in op:
        return (a == b) & low
    if ".NE" in op:
        return (a != b) | low
    return strict(a, b) | ((a == b) & low)


def _joined(how: str, a: Value, b: Value) -> Value:
    return a & b if how == "AND" else a | b if how == "OR" else a ^ b


def minmax(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    unsigned = ".U32" in op

    def pick(a: Value, b: Value, smaller: Value) -> tuple[Value, ...]:
        x, y = (a, b) if unsigned else (signed(a), signed(b))
        return (select(select(smaller, x < y, x > y), a, b),)

    return reader([*[s for s in sources if not s.predicate][:2], next(s for s in sources if s.predicate)], pick)


def sgxt(op: str, sources: list[Operand], written: list[Operand], texts: list[str]) -> Run | None:
    def extend(a: Value, bits: int) -> tuple[Value, ...]:
        kept = a & ((1 << bits) - 1)
        return (kept,) if ".U32" in op else (cut((kept ^ (1 << (bits - 1))) - (1 << (bits - 1))),)

    return reader(sources[:2], extend)
