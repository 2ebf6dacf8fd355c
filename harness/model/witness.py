"""Witness: memory that notes which addresses a traced program asks for, and holds nothing.

Inputs of bench shapes are reserved, not filled, so values mean nothing: loads give constants, stores are dropped. What
is real are addresses, masks, and the integers of small tensors, which steer programs.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import torch

from harness.interpreted import launches
from harness.interpreted.sanitizer import FIRST_REGION, REGION_BITS, Memory, Region, real_bytes
from harness.model.memory import (
    L1,
    LINE,
    Requests,
    Threads,
    block_requests,
    default_threads,
    threads_of,
    whole_requests,
)
from harness.model.sites import Program, Site, run, shared, weighed
from harness.runner.inputs import STEERS_BYTES, span_bytes

MOST_ACCESSES = 20_000  # of one program; a loop that needs more has an end that depends on data
FIRST_ACCESSES = 6  # of a neighbour: about what programs that start together have in flight together
_HALF = 1 << (REGION_BITS - 1)


_SUMMED = ("instructions", "requests", "sectors", "cycles", "units", "partial", "lanes", "hottest", "addresses")


class EndOfProgram(BaseException):
    """Ends one program early; not an Exception, so that code under test does not catch it."""


class Witness(Memory):
    """Memory that notes every access and holds nothing.

    Args:
        warps: of a program.
        layouts: the compiled accesses of this launch, by (line, kind): [(column, threads or None, how, widths)].
        l1_bytes: a program's share of L1.
    """

    def __init__(
        self,
        warps: int,
        layouts: dict[tuple[int, str], list[dict[str, Any]]],
        l1_bytes: float,
        grid_programs: int = 1,
    ) -> None:
        super().__init__([])
        self.warps, self.layouts, self.l1_bytes, self.grid_programs = warps, layouts, l1_bytes, grid_programs
        self.sites: dict[tuple, Site] = {}  # type: ignore[assignment]
        self.programs: list[Program] = []
        self.together: tuple[list[Program], list[Program]] = ([], [])  # of one wave: in a row, anywhere
        self.group = 0
        self.weight, self.full, self.limit = 1.0, True, 0
        self.storages: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.counted: dict[tuple, int] = {}
        self.cut = False
        self.work = 0
        self._patterns: dict[tuple, Requests] = {}
        self._positions: dict[tuple[Any, int], tuple[int, int]] = {}
        self.l1 = L1(l1_bytes)

    # -- arguments -----------------------------------------------------------------------------------------------

    def pointer(self, name: str, tensor: torch.Tensor) -> int:
        """Register a tensor; it begins where the GPU's allocator would let it begin, at a multiple of 512 bytes."""
        for region in self.regions:
            if region.tensor is tensor:
                return region.base
        storage = tensor.untyped_storage()
        number = self.storages.setdefault(storage.data_ptr(), len(self.storages))
        self.sizes[number] = max(self.sizes.get(number, 0), _elements_bytes(tensor))
        self.names.setdefault(number, name)
        offset = tensor.data_ptr() - storage.data_ptr()
        base = ((FIRST_REGION + len(self.regions)) << REGION_BITS) + _HALF + offset
        raw = real_bytes(tensor.data_ptr(), span_bytes(tensor))
        self.regions.append(Region(name, tensor, base, span_bytes(tensor), raw, lambda off, width: off >= 0, number))
        return base

    # -- programs ------------------------------------------------------------------------------------------------

    def begin(self, number: int, full: bool, group: int = 0) -> None:
        """Start the program with this flat number; one that is not full belongs to a ``group`` of the wave."""
        self.full, self.weight, self.limit = full, 1.0, MOST_ACCESSES if full else FIRST_ACCESSES
        self.group = group
        (self.programs if full else self.together[group]).append(Program(number))
        self.l1 = L1(self.l1_bytes)
        self.counted = {}

    def forget(self) -> None:
        """Drop what the last full program did."""
        self.programs.pop()
        self.sites.clear()

    @property
    def now(self) -> Program:
        """The program that runs."""
        return (self.programs if self.full else self.together[self.group])[-1]

    # -- accesses ------------------------------------------------------------------------------------------------

    def load(self, ptrs: np.ndarray, mask: np.ndarray | None, other: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
        """Note a load; integers of small tensors are real, everything else is made up."""
        region = self._note("load", ptrs, mask, dtype.itemsize)
        if dtype.kind in "iub" and region is not None:
            if region.nbytes <= STEERS_BYTES and dtype.itemsize <= region.tensor.element_size():
                held = region.view(dtype)
                at = (ptrs.astype(np.int64) - region.base) // dtype.itemsize
                return held[np.clip(at, 0, len(held) - 1)]
            if dtype.itemsize == 1 and dtype.kind != "b":
                return ((ptrs * np.uint64(2654435761)) >> np.uint64(13)).astype(np.uint8).view(dtype)
            return np.zeros(ptrs.shape, dtype)
        return np.full(ptrs.shape, 0.25).astype(dtype)

    def store(self, ptrs: np.ndarray, values: np.ndarray, mask: np.ndarray | None) -> None:
        """Note a store; nothing is written."""
        self._note("store", ptrs, mask, values.itemsize)

    def atomic(self, ptrs: np.ndarray, mask: np.ndarray | None, width: int) -> np.ndarray:
        """Note an atomic and return addresses of cells that hold what a program would find: see ``_cells``."""
        self._note("atomic", ptrs, mask, width)
        self._held = self._cells(ptrs, width)
        address = self._held.ctypes.data + np.arange(ptrs.size, dtype=np.uint64) * np.uint64(width)
        address = address.reshape(ptrs.shape)
        return address if mask is None else np.where(np.broadcast_to(mask, ptrs.shape), address, np.uint64(0))

    def _cells(self, ptrs: np.ndarray, width: int) -> np.ndarray:
        """A counter that hands out work is taken in turns: a program's k-th call gets k * programs + its number."""
        cells = np.zeros(max(1, ptrs.size), f"i{width}" if width > 1 else "i1")
        if ptrs.size == 1:
            key = int(ptrs.reshape(-1)[0])
            turn = self.counted[key] = self.counted.get(key, -1) + 1
            cells[0] = min(turn * self.grid_programs + self.now.number, 2 ** (8 * width - 1) - 1)
        return cells

    def _note(self, kind: str, ptrs: np.ndarray, mask: np.ndarray | None, item: int) -> Region | None:
        address = np.asarray(ptrs).astype(np.int64).reshape(-1)
        active = np.ones(address.size, bool) if mask is None else np.broadcast_to(mask, ptrs.shape).reshape(-1)
        now = self.now
        now.accesses += 1
        self.work += address.size
        on = np.flatnonzero(active[:1]) if active[:1].all() else np.flatnonzero(active)[:1]
        first = int(address[on[0]]) if len(on) else int(address[0])
        number = (first >> REGION_BITS) - FIRST_REGION
        region = self.regions[number] if 0 <= number < len(self.regions) else None
        start = region.base - (region.tensor.data_ptr() - region.tensor.untyped_storage().data_ptr()) if region else 0
        if len(on):
            self._count(kind, ptrs, address - start, active, item, region)
        if now.accesses >= self.limit:
            self.cut = self.cut or self.full
            raise EndOfProgram
        return region

    def _count(self, kind, ptrs, address, active, item, region) -> None:
        storage = region.storage if region else -1
        base = int(address[0]) & -LINE
        relative = address - base
        position = self._position()
        if not self.full and self.group and position in self.now.places:
            raise EndOfProgram  # a loop came round: of programs anywhere in the wave, each access once will do
        self.now.places.add(position)
        pattern = (position, kind, storage, item, ptrs.shape, relative.tobytes(), active.tobytes())
        found = self._patterns.get(pattern)
        if found is None:
            found = self._patterns[pattern] = self._requests(kind, position, relative, active, item, ptrs.shape)
        sectors = found.unique + base // 32
        self.now.touched.setdefault((storage, kind), []).append((sectors, self.weight))
        if self.full:
            self._add(position, kind, storage, item, region, found, sectors, ptrs.shape)

    def _requests(self, kind, position, relative, active, item, shape) -> Requests:
        access = self._access(position, kind, shape)
        tile = access is not None and access["how"] == "tma"
        if relative.size == 1 or tile:
            return whole_requests(relative, active, item, kind, self.warps, tile)
        threads = default_threads(relative.size, self.warps)
        if access is not None and access["layout"] is not None and math.prod(access["shape"]) == relative.size:
            threads = _threads(access["layout"])
        widths = frozenset(access["widths"]) if access else frozenset()
        return block_requests(relative, active, item, kind, threads, widths)

    def _access(self, position: tuple[int, int], kind: str, shape: tuple[int, ...]) -> dict[str, Any] | None:
        """The compiled access at this place: the same line and kind, of the same shape, the next column.

        Triton names the column of an argument of the call, Python that of the call itself, which comes before it.
        """
        known = self.layouts.get((position[0], kind), [])

        def distance(access: dict[str, Any]) -> tuple[bool, int]:
            ahead = access["column"] - position[1]
            return math.prod(access["shape"]) != math.prod(shape), ahead if ahead >= 0 else 1000 - ahead

        return min(known, key=distance, default=None)

    def _add(self, position, kind, storage, item, region, found: Requests, sectors: np.ndarray, shape) -> None:
        key, w = (*position, kind, storage), self.weight
        site = self.sites.get(key)
        if site is None:
            access = self._access(position, kind, shape)
            how = access["how"] if access else "direct"
            column = access["column"] if access else position[1]
            name = region.name if region else "?"
            site = Site(position[0], column, kind, name, storage, item, how == "tma", how != "direct")
            self.sites[key] = site
        missed = len(sectors)
        if kind == "load" and not site.bypasses:
            missed = self.l1.load(sectors + (storage << 40), w)
        units = len(np.unique(sectors // 2))
        site.executions += w
        for name in _SUMMED:
            setattr(site, name, getattr(site, name) + w * getattr(found, name))
        site.distinct += w * len(sectors)
        site.distinct_units += w * units
        site.missed += w * missed
        site.missed_units += w * units * missed / max(1, len(sectors))
        site.width = max(site.width, found.width)
        self.now.work += w * len(sectors)

    def _position(self) -> tuple[int, int]:
        """Line and column (1-based) of the access in the source, from the frame of the innermost function of it."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename not in launches.source_files:
            frame = frame.f_back
        if frame is None:
            return 0, 0
        key = (frame.f_code, frame.f_lasti)
        if key not in self._positions:
            spots = list(frame.f_code.co_positions())
            line, _, column, _ = spots[frame.f_lasti // 2]
            self._positions[key] = (line or frame.f_lineno, (column or 0) + 1)
        return self._positions[key]

    # -- results -------------------------------------------------------------------------------------------------

    def tensors(self) -> list[dict[str, Any]]:
        """Return, for each storage and kind of access, the distinct sectors of one program and what programs share.

        ``own``: of a program, mean of the full ones. ``row``, ``anywhere``, ``samples``: of the programs of a wave in a
        row, of those anywhere in it, and of the full ones: how many touched the tensor, the sum of their sectors each
        for itself, and how many of these are distinct. ``run``: sectors that lie side by side, mean, in what programs
        in a row touch with their first access.
        """
        groups = {"row": self.together[0], "anywhere": self.together[1], "samples": self.programs}
        everyone = [p for g in groups.values() for p in g]
        found = []
        for storage, kind in dict.fromkeys(k for p in everyone for k in p.touched):
            own = [weighed(p.touched.get((storage, kind), [])) for p in self.programs]
            seen = {name: shared(programs, storage, kind) for name, programs in groups.items()}
            found.append({
                "storage": storage, "kind": kind, "argument": self.names.get(storage, "?"),
                "bytes": self.sizes.get(storage, 0), "own": sum(own) / max(1, len(own)),
                "run": run(self.together[0], storage, kind), **seen,
            })  # fmt: skip
        return found

    def work_done(self) -> list[tuple[int, float]]:
        """Return, for each full program, its number and its work (sectors, weighted)."""
        return [(p.number, p.work) for p in self.programs]

    def unlike(self) -> float:
        """Return the largest work of a full program over their mean: 1 when all do the same."""
        work = [p.work for p in self.programs]
        return max(work) * len(work) / sum(work) if sum(work) else 1.0


def _threads(layout: list[Any]) -> Threads:
    """The layout as JSON brought it: shape and the bases of registers, lanes and warps."""
    shape, *bases = layout
    return threads_of(tuple(shape), *(tuple(map(tuple, part)) for part in bases))


def _elements_bytes(tensor: torch.Tensor) -> int:
    """Bytes of the elements that the view really has (a stride of 0 repeats them)."""
    return math.prod(n for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s) * tensor.element_size()
