"""Layout: which thread of a CTA holds which element of a tensor, read from the encodings of Triton's TTGIR. No torch.

Every encoding becomes one linear layout: bit b of the register, lane or warp number moves the coordinate by a basis
vector, and the vectors of all set bits are XORed. The construction follows Triton's
``lib/Dialect/TritonGPU/IR/LinearLayoutConversions.cpp``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Vector = tuple[int, ...]
Bases = tuple[Vector, ...]
Parts = tuple[Bases, Bases, Bases]  # register, lane, warp


@dataclass(frozen=True)
class Layout:
    """A linear layout of a tensor of ``shape``; ``register``, ``lane`` and ``warp`` hold one basis vector for each bit.

    A zero vector means that threads (or registers) which differ in that bit hold the same element.
    """

    shape: Vector
    register: Bases
    lane: Bases
    warp: Bases

    def to_json(self) -> dict[str, Any]:
        """Return lists and whole numbers."""
        return {k: _lists(getattr(self, k)) for k in ("shape", "register", "lane", "warp")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Layout:
        """Return the layout that ``to_json`` wrote."""
        return cls(tuple(data["shape"]), *(tuple(map(tuple, data[k])) for k in ("register", "lane", "warp")))

    def owners(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return warp, lane and register of one owner of each element, int32, in C order of ``shape``.

        Of several owners the one with the lowest warp, then lane, then register is returned.
        """
        return _owners(self)

    def replicas(self) -> int:
        """Return how many threads hold each element: 1 when no thread repeats another's work."""
        return 2 ** sum(not any(v) for v in (*self.lane, *self.warp))


@functools.lru_cache(maxsize=256)
def _owners(layout: Layout) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size = math.prod(layout.shape)
    strides = [math.prod(layout.shape[i + 1 :]) for i in range(len(layout.shape))]
    parts = [_places(getattr(layout, name), len(layout.shape)) for name in ("register", "lane", "warp")]
    counts = [len(p) for p in parts]
    flat = np.zeros((counts[2], counts[1], counts[0]), np.int64)
    for dim, (extent, stride) in enumerate(zip(layout.shape, strides, strict=True)):
        register, lane, warp = (p[:, dim] for p in parts)
        flat += ((warp[:, None, None] ^ lane[:, None] ^ register) % extent) * stride
    owner = np.full(size, -1, np.int64)
    order = np.arange(flat.size)[::-1]
    owner[flat.reshape(-1)[::-1]] = order  # the last write wins: the lowest warp, lane, register
    warp, rest = np.divmod(owner, counts[1] * counts[0])
    lane, register = np.divmod(rest, counts[0])
    found = tuple(a.astype(np.int32) for a in (warp, lane, register))
    for array in found:
        array.flags.writeable = False
    return found


def _places(bases: Bases, rank: int) -> np.ndarray:
    """Return the coordinate, [2 ** len(bases), rank] int64, of every number that these bits write."""
    places = np.zeros((1, rank), np.int64)
    for vector in bases:
        places = np.concatenate([places, places ^ np.array(vector, np.int64)])
    return places


def parse_encoding(text: str, shape: Iterable[int], aliases: Mapping[str, str]) -> Layout | None:
    """Return the layout of a tensor of ``shape`` with the encoding ``text`` (``#blocked1`` or ``#ttg...``), or None.

    ``aliases`` maps the names of a TTGIR module to their definitions. None: an encoding that we do not know.
    """
    shape = tuple(shape)
    made = _encoding(text.strip(), shape, aliases)
    return None if made is None else Layout(shape, *made)


def _encoding(text: str, shape: Vector, aliases: Mapping[str, str]) -> Parts | None:
    if text in aliases:
        return _encoding(aliases[text].strip(), shape, aliases)
    kind = re.match(r"#(?:ttg\.)?(\w+)<", text)
    reader = _READERS.get(kind.group(1)) if kind else None
    return reader(text, shape, aliases) if reader else None


def _blocked(text: str, shape: Vector, _: Mapping[str, str]) -> Parts:
    order, covered, parts = numbers(text, "order"), [1] * len(shape), []
    for key in ("sizePerThread", "threadsPerWarp", "warpsPerCTA"):
        sizes = numbers(text, key)
        parts.append(_standard(sizes, order, covered))
        covered = [c * s for c, s in zip(covered, sizes, strict=True)]
    return _fit(shape, order, parts, covered)


def _slice(text: str, shape: Vector, aliases: Mapping[str, str]) -> Parts | None:
    inner = re.match(r"#(?:ttg\.)?slice<\{dim = (\d+), parent = (.*)\}>$", text)
    if not inner:
        return None
    dim = int(inner.group(1))
    parent = _encoding(inner.group(2).strip(), (*shape[:dim], 1, *shape[dim:]), aliases)
    if parent is None:
        return None
    register, lane, warp = (tuple((*v[:dim], *v[dim + 1 :]) for v in part) for part in parent)
    return tuple(v for v in register if any(v)), lane, warp


def _linear(text: str, shape: Vector, _: Mapping[str, str]) -> Parts:
    def bases(key: str) -> list[Vector]:
        found = re.search(key + r" = \[((?:\[[^\]]*\](?:,\s*)?)*)\]", text)
        return [tuple(_ints(v)) for v in re.findall(r"\[([^\]]*)\]", found.group(1))] if found else []

    parts = [bases("register"), bases("lane"), bases("warp")]
    covered = [1 << max((v[dim].bit_length() for part in parts for v in part), default=0) for dim in range(len(shape))]
    return _fit(shape, _last_fastest(shape), parts, covered)


def _mma(text: str, shape: Vector, _: Mapping[str, str]) -> Parts | None:
    version, warps, instr = (numbers(text, k) for k in ("versionMajor", "warpsPerCTA", "instrShape"))
    rank = len(shape)
    if version[0] not in (2, 3) or len(instr) < 2 or rank < 2 or len(warps) != rank:
        return None
    columns = instr[1] if version[0] == 3 else instr[-1]

    def at(row: int, column: int) -> Vector:
        return (0,) * (rank - 2) + (row, column)

    # one instruction: 8 rows of 4 threads, 2 neighbouring columns each; then 8 rows below, then 8 columns on
    register = [at(0, 1), at(8, 0), *(at(0, c) for c in _powers(8, columns))]
    lane = [at(0, 2), at(0, 4), at(1, 0), at(2, 0), at(4, 0)]
    tile = [1] * (rank - 2) + [16, columns]
    warp = _standard(warps, _last_fastest(shape) if version[0] == 2 else range(rank), tile)
    covered = [t * w for t, w in zip(tile, warps, strict=True)]
    return _fit(shape, _last_fastest(shape), [register, lane, warp], covered)


_READERS = {"blocked": _blocked, "slice": _slice, "linear": _linear, "nvidia_mma": _mma}


def _last_fastest(shape: Vector) -> Vector:
    return tuple(reversed(range(len(shape))))


def _standard(sizes: Sequence[int], order: Iterable[int], start: Sequence[int]) -> list[Vector]:
    """Return the bases of an identity of these sizes, fastest dimension first, with steps of ``start``."""
    rank = len(sizes)
    return [_along(dim, step * start[dim], rank) for dim in order for step in _powers(1, sizes[dim])]


def _fit(shape: Vector, order: Iterable[int], parts: list[list[Vector]], covered: Sequence[int]) -> Parts:
    """Cut what reaches beyond ``shape`` (those bits repeat), and let registers take what the bases do not cover."""
    register, lane, warp = (
        [tuple(c if c < extent else 0 for c, extent in zip(v, shape, strict=True)) for v in part] for part in parts
    )
    for dim in order:
        register += [_along(dim, step, len(shape)) for step in _powers(min(covered[dim], shape[dim]), shape[dim])]
    return tuple(register), tuple(lane), tuple(warp)


def _along(dim: int, step: int, rank: int) -> Vector:
    return tuple(step if i == dim else 0 for i in range(rank))


def _powers(low: int, high: int) -> list[int]:
    """Return low, 2 * low, … below high."""
    found = []
    while low < high:
        found.append(low)
        low *= 2
    return found


def _ints(text: str) -> list[int]:
    return [int(x) for x in re.findall(r"-?\d+", text)]


def numbers(text: str, key: str) -> Vector:
    """Return the whole numbers of ``key = 3`` or ``key = [1, 2]`` in ``text``; empty when it is not there."""
    found = re.search(r"\b" + key + r" = (\[[^\]]*\]|\d+)", text)
    return tuple(_ints(found.group(1))) if found else ()


def _lists(value: Any) -> Any:
    return [_lists(v) for v in value] if isinstance(value, tuple) else value
