"""Memory as a kernel must see it: every access is checked against the view that was passed, before it happens.

Each tensor of a launch gets its own stretch of made-up addresses, far from all others, so a stray pointer can neither
reach another tensor nor crash the process, and an access always knows which argument it went through. Only after the
check is an address turned into an offset into the real storage.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from harness.runner.inputs import span_bytes

REGION_BITS = 44  # each tensor owns 2**44 addresses, its first element in the middle: strides may run either way
FIRST_REGION = 16  # real user-space addresses lie below 2**47, so they can be told from ours
SECTOR = 32  # bytes: what one request fetches from DRAM or L2 on every NVIDIA GPU since Volta
_SEARCHED = 2**26  # bytes of the largest storage in which what was stored to is found by looking at all of it
_HALF = 1 << (REGION_BITS - 1)


class Stop(BaseException):
    """Ends a launch at the first forbidden access. Not an Exception: a learner's ``except`` must not eat it."""


@dataclass
class Violation:
    """A forbidden access, in words: which argument, which index, which program, which line."""

    kind: str  # out-of-bounds | misaligned
    text: str


@dataclass
class Shadow:
    """What happened to the bytes of one storage during one call."""

    start: int
    # both are made of zeros: of a view that spans gigabytes, only the pages that are stored to come into being
    written: np.ndarray  # bool per byte
    writer: np.ndarray  # int64 per byte: (launch << 32 | program) + 1 of the last store; -2: everybody; 0: nobody
    tensor: torch.Tensor
    stored_in: int = -1  # the last launch that stored here; every one, once everybody did
    everybody: bool = False
    stores: list[np.ndarray] = field(default_factory=list)  # where, in a storage that is too large to be searched
    places: np.ndarray | None = None  # the bytes that were stored to, and what the last launch left there
    kernel_left: np.ndarray | None = None

    def note(self, first: np.ndarray, width: int) -> None:
        """Note a store of ``width`` bytes at each of these offsets."""
        for byte in range(width):
            self.written[first + byte] = True
        if len(self.written) > _SEARCHED:
            self.stores.append(np.add.outer(first, np.arange(width)).reshape(-1))

    def stored_to(self) -> np.ndarray:
        """Return the offsets of all bytes that were stored to."""
        if len(self.written) <= _SEARCHED:
            return np.flatnonzero(self.written)
        self.stores = [np.unique(np.concatenate(self.stores))] if self.stores else []
        return self.stores[0] if self.stores else np.zeros(0, np.int64)


@dataclass
class Site:
    """One load or store of the source, counted over a launch."""

    line: int
    kind: str
    argument: str
    executions: int = 0
    lanes: int = 0
    bytes: int = 0
    sectors: int = 0


@dataclass
class Region:
    """One tensor argument of one launch."""

    name: str
    tensor: torch.Tensor
    base: int
    nbytes: int
    raw: np.ndarray
    valid: Callable[[np.ndarray, int], np.ndarray]
    storage: int = 0  # where the tensor's storage begins
    _views: dict[str, np.ndarray] = field(default_factory=dict)

    def view(self, dtype: np.dtype) -> np.ndarray:
        if dtype.str + dtype.name not in self._views:
            usable = len(self.raw) // dtype.itemsize * dtype.itemsize
            self._views[dtype.str + dtype.name] = self.raw[:usable].view(dtype)
        return self._views[dtype.str + dtype.name]


def real_bytes(address: int, nbytes: int) -> np.ndarray:
    """Return the process's memory at ``address`` as a writable array of bytes."""
    if nbytes <= 0:
        return np.empty(0, np.uint8)
    return np.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), np.uint8)


def valid_offsets(tensor: torch.Tensor) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return a test for byte offsets: does every byte of an access of this width lie in elements that the view has?"""
    size, span = tensor.element_size(), span_bytes(tensor)
    if tensor.is_contiguous():
        return lambda off, width: (off >= 0) & (off <= span - width)
    offsets = np.zeros(min(1, tensor.numel()), np.int64)
    for n, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if n > 1 and stride and len(offsets):
            offsets = (offsets[:, None] + np.arange(n, dtype=np.int64) * stride * size).reshape(-1)
    offsets = np.unique(offsets)
    gap = np.flatnonzero(np.diff(offsets) > size)  # elements that touch are one stretch
    starts = offsets[np.concatenate([[0], gap + 1])] if len(offsets) else offsets
    ends = offsets[np.concatenate([gap, [len(offsets) - 1]])] + size if len(offsets) else offsets

    def inside(off: np.ndarray, width: int) -> np.ndarray:
        if not len(starts):
            return np.zeros(off.shape, bool)
        at = np.searchsorted(starts, off, side="right") - 1
        return (at >= 0) & (off + width <= ends[np.maximum(at, 0)])

    return inside


class Memory:
    """All memory of one call: the regions of the current launch, and what the stores did to each storage."""

    def __init__(
        self, known: list[tuple[str, torch.Tensor]], masked_fill: str = "poison", counting: bool = False
    ) -> None:
        self.known = known
        self.masked_fill, self.counting = masked_fill, counting
        self.regions: list[Region] = []
        self.shadows: dict[int, Shadow] = {}
        self.launch = -1
        self.program = 0
        self.program_id: tuple[int, int, int] = (0, 0, 0)
        self.violation: Violation | None = None
        self.race: str | None = None
        self.findings: dict[str, None] = {}
        self.unmasked_fill: set[int] = set()
        self.read: set[int] = set()  # storages that a kernel loaded from
        self.sites: dict[tuple[int, str, str], Site] = {}
        self.touched: dict[tuple[int, str], np.ndarray] = {}
        self.where: Callable[[], int] = lambda: 0
        self.known_later: list[torch.Tensor] = []  # what the launcher allocates during the call
        self.handed: Callable[[int, str, Any], None] = lambda launch, name, value: None
        self.left: Callable[[torch.Tensor], None] = lambda tensor: None

    def begin_launch(self) -> None:
        """Forget the regions of the launch before."""
        self.launch += 1
        self.regions = []
        self.program = -1

    def pointer(self, name: str, tensor: torch.Tensor) -> int:
        """Register one tensor argument and return the address that the kernel sees."""
        for i, region in enumerate(self.regions):
            if region.tensor is tensor:
                return self.regions[i].base
        self.handed(self.launch, name, tensor)
        address, nbytes = tensor.data_ptr(), span_bytes(tensor)
        base = ((FIRST_REGION + len(self.regions)) << REGION_BITS) + _HALF + (address & 0xFF)
        storage = tensor.untyped_storage().data_ptr()
        self.regions.append(
            Region(name, tensor, base, nbytes, real_bytes(address, nbytes), valid_offsets(tensor), storage)
        )
        return base

    def end_launch(self) -> None:
        """Remember what the launch left in the storages that it stored into."""
        for shadow in self.shadows.values():
            if shadow.everybody or shadow.stored_in == self.launch:
                self.refresh(shadow)

    def refresh(self, shadow: Shadow) -> None:
        """What the storage holds now is accounted for."""
        shadow.places = shadow.stored_to()
        shadow.kernel_left = real_bytes(shadow.start, len(shadow.written))[shadow.places]
        self.left(shadow.tensor)

    def host_wrote(self, tensor: torch.Tensor) -> None:
        """torch wrote into ``tensor`` in plain sight: moved data, which is judged elsewhere."""
        shadow = self.shadows.get(tensor.untyped_storage().data_ptr())
        if shadow is not None:
            self.refresh(shadow)

    # -- accesses ------------------------------------------------------------------------------------------------

    def load(self, ptrs: np.ndarray, mask: np.ndarray | None, other: np.ndarray | None, dtype: np.dtype) -> np.ndarray:
        """Return the values at ``ptrs``; lanes that ``mask`` switches off get ``other``, or poison."""
        if mask is None:
            return self._gather(ptrs.reshape(-1), dtype).reshape(ptrs.shape)
        mask = np.broadcast_to(mask, ptrs.shape)
        if other is None:
            if not mask.all():
                self.unmasked_fill.add(self.where())
            out = np.full(ptrs.shape, poison(dtype) if self.masked_fill == "poison" else np.zeros((), dtype), dtype)
        else:
            out = np.array(np.broadcast_to(other, ptrs.shape), dtype=dtype)
        if mask.any():
            out[mask] = self._gather(ptrs[mask], dtype)
        return out

    def _gather(self, addresses: np.ndarray, dtype: np.dtype) -> np.ndarray:
        region, offsets = self._resolve(addresses, dtype.itemsize, "load")
        if region is None:
            return np.concatenate([self._gather(addresses[i : i + 1], dtype) for i in range(len(addresses))])
        return region.view(dtype)[offsets // dtype.itemsize]

    def store(self, ptrs: np.ndarray, values: np.ndarray, mask: np.ndarray | None) -> None:
        """Write ``values`` to ``ptrs`` where ``mask`` says so."""
        values = np.broadcast_to(values, ptrs.shape)
        if mask is not None:
            mask = np.broadcast_to(mask, ptrs.shape)
            if not mask.any():
                return
            ptrs, values = ptrs[mask], values[mask]
        self._scatter(ptrs.reshape(-1), np.ascontiguousarray(values).reshape(-1))

    def _scatter(self, addresses: np.ndarray, values: np.ndarray) -> None:
        region, offsets = self._resolve(addresses, values.itemsize, "store")
        if region is None:
            for i in range(len(addresses)):
                self._scatter(addresses[i : i + 1], values[i : i + 1])
            return
        flat, index = region.view(values.dtype), offsets // values.itemsize
        self._note_store(region, offsets, flat[index], values)
        flat[index] = values
        if flat[index].tobytes() != values.tobytes():
            self.race = self.race or (
                f"line {self.where()}: one store of program {self.program_id} writes different values to the same "
                f"element of {region.name}; which one stays is undefined"
            )

    def atomic(self, ptrs: np.ndarray, mask: np.ndarray | None, width: int) -> np.ndarray:
        """Check an atomic access, mark it as written, and return real addresses (switched-off lanes: 0)."""
        mask = np.ones(ptrs.shape, bool) if mask is None else np.broadcast_to(mask, ptrs.shape)
        out = np.zeros(ptrs.shape, np.uint64)
        if mask.any():
            region, offsets = self._resolve(ptrs[mask], width, "atomic")
            if region is None:
                flat = [self.atomic(p.reshape(1), None, width) for p in ptrs[mask]]
                out[mask] = np.concatenate(flat)
                return out
            shadow = self._shadow(region)
            first = offsets + (region.tensor.data_ptr() - shadow.start)
            shadow.note(first, width)
            shadow.writer[first], shadow.everybody = -2, True  # no program is named for it
            out[mask] = (offsets + region.tensor.data_ptr()).astype(np.uint64)
        return out

    # -- checks --------------------------------------------------------------------------------------------------

    def _resolve(self, addresses: np.ndarray, width: int, kind: str) -> tuple[Region | None, np.ndarray]:
        """Return the region and the checked byte offsets; (None, …) when the lanes go to several regions."""
        ids = addresses >> np.uint64(REGION_BITS)
        if len(ids) > 1 and not (ids == ids[0]).all():
            return None, addresses
        number = int(ids[0]) - FIRST_REGION
        if number < 0:
            region = self._real_region(addresses, kind)
        elif number < len(self.regions):
            region = self.regions[number]
        else:
            region = (
                self.regions[min(range(len(self.regions)), key=lambda i: abs(i - number))] if self.regions else None
            )
            self._forbid("out-of-bounds", region, addresses, None, width, kind)
        offsets = (addresses - np.uint64(region.base)).view(np.int64)
        ok = region.valid(offsets, width)
        if not ok.all():
            self._forbid("out-of-bounds", region, addresses, offsets[~ok], width, kind)
        if ((offsets + region.tensor.data_ptr()) % width).any() or (offsets % width).any():
            self._forbid("misaligned", region, addresses, offsets[(offsets % width) != 0], width, kind)
        if kind != "store":
            self.read.add(region.storage)
        if self.counting:
            self._count(region, offsets, width, kind)
        return region, offsets

    def _real_region(self, addresses: np.ndarray, kind: str) -> Region:
        """A pointer that came out of memory (``data_ptr()`` in a tensor): find the tensor it belongs to."""
        first = int(addresses[0])
        for name, tensor in [*self.known, *(("a tensor of the launcher", t) for t in self.known_later)]:
            start = tensor.untyped_storage().data_ptr()
            if start <= first < start + tensor.untyped_storage().nbytes():
                self.handed(self.launch, name, tensor)
                nbytes = span_bytes(tensor)
                address = tensor.data_ptr()
                return Region(name, tensor, address, nbytes, real_bytes(address, nbytes), valid_offsets(tensor), start)
        self.violation = self.violation or Violation(
            "out-of-bounds",
            f"line {self.where()}: program {self.program_id} {kind}s at address {first:#x}, which belongs to no tensor "
            "that was passed. A pointer that was never set, or an empty tensor's?",
        )
        raise Stop

    def _forbid(
        self, what: str, region: Region | None, addresses: np.ndarray, bad: np.ndarray | None, width: int, kind: str
    ) -> None:
        if self.violation is None:
            self.violation = Violation(what, self._describe(what, region, bad, len(addresses), width, kind))
        raise Stop

    def _describe(
        self, what: str, region: Region | None, bad: np.ndarray | None, lanes: int, width: int, kind: str
    ) -> str:
        verb = {"load": "reads", "store": "writes", "atomic": "updates"}[kind]
        head = f"line {self.where()}: program {self.program_id} {verb}"
        if region is None or bad is None or not len(bad):
            return f"{head} at an address that belongs to no argument of the launch."
        size = region.tensor.element_size()
        first = int(bad[0])
        index, numel, shape = first // size, region.tensor.numel(), list(region.tensor.shape)
        if what == "misaligned":
            return f"{head} {width} bytes at byte {first} of {region.name}: not a multiple of {width}; a GPU refuses."
        text = f"{head} element {index:,} of {region.name}"
        if numel == 0:
            return f"{text}, which is an empty tensor {shape}: there is nothing to read or write."
        end = region.nbytes // size
        plural = "" if numel == 1 else "s"
        where = f"it has {numel:,} element{plural}, shape {shape}, strides {list(region.tensor.stride())}"
        if 0 <= index < end:
            why = "that address lies between the elements of the view, so it is somebody else's data"
        # an index of 32 bits never reaches 2**31: what lies beyond was computed in 64 and is out for another reason
        elif 2**30 <= abs(index) < 2**31 and region.nbytes >= 2**30 or index < -(2**27):
            why = "so far off looks like 32-bit overflow: make the index int64 before it is multiplied by a stride"
        elif index < 0:
            why = "that is before its start"
        else:
            why = f"the last one is {end - 1:,}"
        return f"{text}, but {where}; {why} ({len(bad):,} of {lanes:,} lanes are outside)."

    def _shadow(self, region: Region) -> Shadow:
        storage = region.tensor.untyped_storage()
        key = storage.data_ptr()
        if key not in self.shadows:
            n = storage.nbytes()
            self.shadows[key] = Shadow(key, np.zeros(n, bool), np.zeros(n, np.int64), region.tensor)
        return self.shadows[key]

    def _note_store(self, region: Region, offsets: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
        shadow = self._shadow(region)
        first = offsets + (region.tensor.data_ptr() - shadow.start)
        stamp = (self.launch << 32) | self.program
        before = shadow.writer[first] - 1
        again = (before >= 0) & (before >> 32 == self.launch) & (before != stamp)
        if again.any():
            raw = f"u{new.itemsize}"
            differ = again & (old.view(raw) != new.view(raw))
            if differ.any():
                at = int(np.flatnonzero(differ)[0])
                self.race = self.race or (
                    f"line {self.where()}: programs {int(before[at] & 0xFFFFFFFF)} and {self.program} both store to "
                    f"element {int(offsets[at]) // new.itemsize:,} of {region.name}, with different values "
                    f"({old[at]!s} and {new[at]!s}); on a GPU either may win"
                )
            else:
                self.findings[
                    f"line {self.where()}: several programs store the same values to {region.name}: work done twice"
                ] = None
        shadow.note(first, new.itemsize)
        shadow.writer[first], shadow.stored_in = stamp + 1, self.launch

    def _count(self, region: Region, offsets: np.ndarray, width: int, kind: str) -> None:
        key = (self.where(), kind, region.name)
        site = self.sites.setdefault(key, Site(*key))
        real = offsets + region.tensor.data_ptr()
        sectors = np.unique(
            np.concatenate([real // SECTOR, (real + width - 1) // SECTOR]) if width > 1 else real // SECTOR
        )
        site.executions += 1
        site.lanes += len(offsets)
        site.bytes += len(offsets) * width
        site.sectors += len(sectors)
        storage = region.tensor.untyped_storage()
        mark = self.touched.setdefault(
            (storage.data_ptr(), "read" if kind == "load" else "write"),
            np.zeros(storage.nbytes() // SECTOR + 3, bool),
        )
        mark[sectors - storage.data_ptr() // SECTOR] = True

    # -- results -------------------------------------------------------------------------------------------------

    def altered(self, tensor: torch.Tensor) -> int:
        """Return how many bytes of the storage changed behind the back of every launch and of torch."""
        shadow = self.shadows.get(tensor.untyped_storage().data_ptr())
        if shadow is None or shadow.places is None:
            return 0
        return int((real_bytes(shadow.start, len(shadow.written))[shadow.places] != shadow.kernel_left).sum())

    def written_by(self, tensor: torch.Tensor) -> tuple[np.ndarray, np.ndarray] | None:
        """Return, per element of ``tensor``, whether a store reached it and the program that stored last.

        None when no kernel stored into the tensor's storage at all.
        """
        shadow = self.shadows.get(tensor.untyped_storage().data_ptr())
        if shadow is None or tensor.numel() == 0:
            return None
        size = tensor.element_size()
        steps = [s * size for s in tensor.stride()]
        first = np.full(tuple(tensor.shape), tensor.data_ptr() - shadow.start, np.int64)
        for axis, step in enumerate(steps):
            shape = [1] * tensor.dim()
            shape[axis] = tensor.shape[axis]
            first = first + (np.arange(tensor.shape[axis], dtype=np.int64) * step).reshape(shape)
        written = np.ones(first.shape, bool)
        for byte in range(size):
            written &= shadow.written[first + byte]
        stamps = shadow.writer[first] - 1
        return written, np.where(stamps >= 0, stamps & 0xFFFFFFFF, -1).astype(np.int32)

    def counters(self, share: float = 1.0) -> dict[str, Any]:
        """Return what was counted: bytes from and to memory (each sector once), sectors requested, the sites.

        ``share`` of the programs ran; totals are scaled up to all of them.
        """
        unique = {k: sum(int(m.sum()) for (_, kind), m in self.touched.items() if kind == k) for k in ("read", "write")}
        return {
            "bytes_read": round(unique["read"] * SECTOR / share),
            "bytes_written": round(unique["write"] * SECTOR / share),
            "sectors": round(sum(s.sectors for s in self.sites.values()) / share),
            "sites": [vars(s) for s in self.sites.values()],
        }


def poison(dtype: np.dtype) -> np.generic:
    """Return the value that fresh memory and switched-off lanes hold: a NaN with a payload, or a large odd integer."""
    if dtype == np.dtype(bool):
        return np.bool_(True)
    if dtype.name.startswith("float8"):
        return np.array([0x7F], np.uint8).view(dtype)[0]
    pattern = {1: 0x5B, 2: 0x7E5B, 4: 0x7FC0_5A5B, 8: 0x7FF8_5A5B_5A5B_5A5B}[dtype.itemsize]
    if dtype.kind == "f" and dtype.itemsize == 2:
        pattern = 0x7E5B
    elif dtype.kind not in "iuf":  # ml_dtypes: bfloat16 and the float8 kinds
        pattern = {1: 0x7F, 2: 0x7FDB}[dtype.itemsize]
    return np.array([pattern], f"u{dtype.itemsize}").view(dtype)[0]
