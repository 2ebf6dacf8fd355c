"""Memory traffic of one access: how a block of addresses becomes warp requests, sectors, lines and L1 misses.

A GPU serves a load warp by warp: the 32 lanes of one instruction make one request, which costs one L1 lookup for each
128-byte line and one transfer for each 32-byte sector that its lanes touch. Which lane holds which element is the
compiler's layout; the addresses come from the interpreter. numpy only, no torch and no Triton.
Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"; sectors and lines as Nsight Compute counts.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SECTOR, UNIT, LINE = 32, 64, 128  # bytes: fetched at once, requested of L2 at once, one tag of L1
BANKS, WORD = 32, 4  # of L1's data, which is shared memory's: each bank gives one word a cycle
TAGS = 2  # lines that L1 looks up in a cycle
_NONE = np.int64(-1)


@dataclass(frozen=True)
class Threads:
    """Which element each thread holds in each of its registers: a linear layout, unrolled.

    Attributes:
        elements: [registers, warps, 32] flat element numbers (C order), without registers that repeat others.
        first: [warps, 32] whether this thread is the first of those that hold the same elements (the one that acts).
    """

    elements: np.ndarray
    first: np.ndarray


@functools.lru_cache(maxsize=512)
def threads_of(
    shape: tuple[int, ...], register: tuple[tuple[int, ...], ...], lane: tuple[tuple[int, ...], ...],
    warp: tuple[tuple[int, ...], ...],
) -> Threads:  # fmt: skip
    """Unroll the bases of a linear layout: the bits of a register, lane and warp number each XOR one coordinate vector.

    Source: Triton, include/triton/Tools/LinearLayout.h.
    """
    strides = np.cumprod((1, *shape[::-1][:-1]))[::-1].astype(np.int64)

    def spread(bases: Sequence[tuple[int, ...]]) -> np.ndarray:
        coordinates = np.zeros((1, len(shape)), np.int64)
        for base in bases:
            coordinates = np.concatenate([coordinates, coordinates ^ np.array(base, np.int64)])
        return coordinates

    registers = spread([b for b in register if any(b)])
    warps, lanes = spread(warp), spread(lane)
    all_of = registers[:, None, None] ^ warps[None, :, None] ^ lanes[None, None]
    elements = (all_of % np.array(shape, np.int64)) @ strides
    flat = elements[0].reshape(-1)
    first = np.zeros(flat.size, bool)
    first[np.unique(flat, return_index=True)[1]] = True
    return Threads(elements, first.reshape(elements.shape[1:]))


@functools.lru_cache(maxsize=512)
def default_threads(size: int, warps: int) -> Threads:
    """Neighbouring elements in neighbouring lanes, up to four a thread: what Triton picks for one dimension."""
    each = max(1, min(4, size // (32 * warps)))
    step = 32 * warps * each
    n = np.arange(max(1, -(-size // step)) * step, dtype=np.int64) % max(1, size)
    elements = n.reshape(-1, warps, 32, each).transpose(0, 3, 1, 2).reshape(-1, warps, 32)
    first = (np.arange(32 * warps) * each < size).reshape(warps, 32)
    return Threads(elements, first)


@dataclass(frozen=True)
class Requests:
    """What one execution of one access asks of the memory system, all warps of the program together.

    Attributes:
        instructions: memory instructions that each warp executes.
        requests: those that have an active lane, over all warps.
        sectors, lines, units: distinct 32-, 128- and 64-byte pieces, summed over the requests.
        cycles: of L1 for these requests.
        partial: pieces of 32 bytes that a request writes in part only (stores, atomics).
        lanes: active elements.
        width: elements that one instruction moves for each thread.
        unique: [n] distinct sectors of the whole execution, relative to the line of the first address.
        hottest: most lanes of this execution on one address; addresses: distinct addresses (atomics).
    """

    instructions: int
    requests: int
    sectors: int
    lines: int
    units: int
    partial: int
    lanes: int
    width: int
    unique: np.ndarray
    hottest: int = 1
    addresses: int = 1
    cycles: float = 0.0


def block_requests(
    address: np.ndarray, active: np.ndarray, item: int, kind: str, threads: Threads, widths: frozenset[int]
) -> Requests:
    """Return what a block of addresses asks for.

    Args:
        address: [n] byte addresses relative to a multiple of LINE.
        active: [n] bool.
        item: bytes of one element.
        kind: load, store or atomic.
        threads: who holds which element.
        widths: bytes that the compiled instructions of this line move for each thread; empty when unknown.
    """
    where, on = address[threads.elements], active[threads.elements] & threads.first
    if kind == "load":
        where, on = _merged(where, on)
    width = _width(where, item, widths) if kind != "atomic" else 1
    first, on = where[::width], on.reshape(-1, width, *on.shape[1:]).any(1)
    flat = np.where(on, first, _NONE).reshape(-1, 32)  # [requests, lanes]
    busy = (flat >= 0).any(1)
    sectors = _distinct(flat[busy], SECTOR)
    partial = hottest = addresses = 0
    if kind != "load" and busy.any():
        partial = _partial(flat[busy], item * width)
        counts = np.unique(address[active], return_counts=True)[1]
        hottest, addresses = int(counts.max()), len(counts)
    touched = address[active]
    lines = _distinct(flat[busy], LINE)
    return Requests(
        instructions=first.shape[0],
        requests=int(busy.sum()),
        sectors=int(sectors.sum()),
        lines=int(lines.sum()),
        cycles=float(_read_cycles(flat[busy], lines, item * width).sum() if kind == "load" else lines.sum()),
        units=int(_distinct(flat[busy], UNIT).sum()),
        partial=partial,
        lanes=int(active.sum()),
        width=width,
        unique=np.unique(np.concatenate([touched // SECTOR, (touched + item - 1) // SECTOR])),
        hottest=hottest,
        addresses=addresses,
    )


def whole_requests(address: np.ndarray, active: np.ndarray, item: int, kind: str, warps: int, tile: bool) -> Requests:
    """Return what a scalar access or a tile moved by the TMA unit asks for: no lanes take part one by one."""
    touched = address[active]
    unique = np.unique(np.concatenate([touched // SECTOR, (touched + item - 1) // SECTOR]))
    each = warps if not tile and kind == "load" else 1  # a scalar is loaded by every warp, and stored by one thread
    lines = len(np.unique(unique // (LINE // SECTOR)))
    units = len(np.unique(unique // (UNIT // SECTOR)))
    partial = int(not tile and kind != "load" and len(touched) > 0)
    return Requests(
        1, each * bool(len(touched)), each * len(unique), each * lines, each * units, partial, len(touched), 1, unique,
        hottest=1, addresses=len(touched), cycles=float(each * lines),
    )  # fmt: skip


def _merged(where: np.ndarray, on: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop registers that hold the same addresses as another one in every thread: the compiler loads them once."""
    if where.shape[0] == 1 or not (where[0] == where[1]).all():
        return where, on
    keep = sorted({row.tobytes(): i for i, row in reversed(list(enumerate(where)))}.values())
    return where[keep], on[keep]


def _width(where: np.ndarray, item: int, widths: frozenset[int]) -> int:
    """How many neighbouring registers one instruction moves: as many as lie side by side and the compiler knows of."""
    best = 1
    for width in (2, 4, 8, 16):
        if width * item > 16 or where.shape[0] % width:
            break
        groups = where.reshape(-1, width, *where.shape[1:])
        if not (np.diff(groups, axis=1) == item).all() or (groups[:, 0] % (width * item)).any():
            break
        best = width
    known = [w // item for w in widths if item <= w <= best * item]
    return max(known) if known else best


def _distinct(flat: np.ndarray, size: int) -> np.ndarray:
    """Return for each row how many different pieces of ``size`` bytes its addresses touch; negative ones are off."""
    pieces = np.sort(np.where(flat >= 0, flat // size, _NONE), axis=1)
    return (np.diff(pieces, axis=1) != 0).sum(1) + (pieces[:, 0] >= 0)


def _read_cycles(flat: np.ndarray, lines: np.ndarray, nbytes: int) -> np.ndarray:
    """Return for each request the cycles in which L1 reads it.

    The data of several lines come in one cycle when they lie in different banks; the tags are looked up TAGS at a time.
    Addresses a power of two apart lie in one bank: a cycle for each, as an H200's counters say.
    """
    if not len(flat):
        return lines
    words = (flat // WORD)[:, :, None] + np.arange(max(1, nbytes // WORD))
    words = np.sort(np.where(flat[:, :, None] >= 0, words, _NONE).reshape(len(flat), -1), axis=1)
    new = np.c_[np.ones(len(flat), bool), np.diff(words, axis=1) != 0] & (words >= 0)
    rows = np.broadcast_to(np.arange(len(flat))[:, None], words.shape)
    busy = np.bincount(rows[new] * BANKS + words[new] % BANKS, minlength=len(flat) * BANKS).reshape(-1, BANKS).max(1)
    return np.maximum(busy, lines / TAGS)


def _partial(flat: np.ndarray, width: int) -> int:
    row = np.broadcast_to(np.arange(len(flat), dtype=np.int64)[:, None], flat.shape)[flat >= 0]
    unique = np.unique(np.stack([row, flat[flat >= 0]]), axis=1)  # lanes that write one address count once
    _, counts = np.unique((unique[0] << 40) + unique[1] // SECTOR, return_counts=True)
    return int((counts * width < SECTOR).sum())


class L1:
    """The L1 cache as one program sees it: least recently used lines go first; a sector is fetched when it is touched.

    Args:
        capacity: bytes, this program's share of the SM's.

    Attributes:
        fetched: bytes that were brought in, each times the weight of the access.
    """

    def __init__(self, capacity: float) -> None:
        self.capacity, self.held, self.fetched = capacity, 0.0, 0.0
        self.lines: OrderedDict[int, tuple[int, float]] = OrderedDict()  # line -> sectors held (bits), bytes
        self.recent: dict[int, None] = {}  # lines that were touched since ``skip``
        self._skipped = 0

    def load(self, sectors: np.ndarray, weight: float) -> int:
        """Return how many of these (sorted, distinct) sectors miss."""
        lines, missed = self.lines, 0
        at = sectors // 4
        starts = np.flatnonzero(np.r_[True, at[1:] != at[:-1]])
        masks = np.bitwise_or.reduceat(1 << (sectors % 4), starts)
        for line, mask in zip(at[starts].tolist(), masks.tolist(), strict=True):
            known = lines.get(line)
            if known is None:
                missed += mask.bit_count()
                lines[line] = (mask, LINE)
                self.held += LINE
            else:
                missed += (mask & ~known[0]).bit_count()
                lines[line] = (known[0] | mask, known[1])
                lines.move_to_end(line)
            self.recent[line] = None
        self.fetched += missed * SECTOR * weight
        self._shrink()
        return missed

    def skip(self, nbytes: float) -> None:
        """Iterations that are left out have brought in so many bytes; what the last one touched, they touched too."""
        if nbytes >= LINE:
            self._skipped -= 1
            self.lines[self._skipped] = (0, nbytes)
            self.held += nbytes
            for line in self.recent:
                if line in self.lines:
                    self.lines.move_to_end(line)
        self._shrink()
        self.recent = {}

    def _shrink(self) -> None:
        while self.held > self.capacity and self.lines:
            line, (mask, size) = next(iter(self.lines.items()))
            if line < 0 and self.held - size < self.capacity:  # a part of what was left out still lies there
                self.lines[line] = (mask, size - (self.held - self.capacity))
                self.held = self.capacity
                return
            del self.lines[line]
            self.held -= size
