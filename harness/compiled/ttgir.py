"""What a kernel's TTGIR says: global-memory operations with their layouts, dots, partitions. No torch.

TTGIR is MLIR text: one operation a line, its types behind the last ``:``, its place in ``loc(...)`` at the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.compiled.layout import Layout, parse_encoding

# a tensor's or memdesc's type: shape, element, encoding (which nests up to three <>)
_ENCODING = r"#(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*?"
_TYPE = re.compile(rf"<([0-9x]+)x(!tt\.ptr<[^<>]*>|[a-zA-Z0-9]+)(?:, ({_ENCODING}))?(?=[,>])")
_BITS = {"f8E4M3FN": "f8e4m3", "f8E5M2": "f8e5m2", "f8E4M3FNUZ": "f8e4m3", "f8E5M2FNUZ": "f8e5m2"}
_POINTERS = {
    "tt.load": "load", "tt.store": "store", "tt.atomic_rmw": "atomic", "tt.atomic_cas": "atomic",
    "tt.atomic_poll": "atomic", "ttg.async_copy_global_to_local": "load",
}  # fmt: skip
_TMA = {
    "async_tma_copy_global_to_local": "load", "async_tma_gather": "load", "descriptor_load": "load",
    "descriptor_gather": "load", "async_tma_copy_local_to_global": "store", "async_tma_scatter": "store",
    "descriptor_store": "store", "descriptor_scatter": "store", "async_tma_reduce": "atomic",
    "descriptor_reduce": "atomic",
}  # fmt: skip
_DOTS = {
    "tt.dot": "mma", "tt.dot_scaled": "mma", "ttng.warp_group_dot": "wgmma", "ttng.tc_gen5_mma": "tcgen05",
    "ttng.tc_gen5_mma_scaled": "tcgen05",
}  # fmt: skip


@dataclass(frozen=True)
class Access:
    """One global-memory operation.

    ``kind``: load, store or atomic. ``how``: direct, async (cp.async) or tma. ``bits`` of one element. ``layout`` is
    None for a scalar pointer, for TMA and for an encoding that we do not know. ``shape`` of the tensor of pointers or
    of the tile, () for a scalar. ``count``: how many such operations stand at this line and column (columns are
    1-based; 0 unknown).
    """

    line: int
    column: int
    kind: str
    how: str
    bits: int
    layout: Layout | None
    shape: tuple[int, ...]
    count: int = 1
    cache: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return vars(self) | {"layout": self.layout and self.layout.to_json(), "shape": list(self.shape)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Access:
        """Return the access that ``to_json`` wrote."""
        layout = data["layout"] and Layout.from_json(data["layout"])
        return cls(**{**data, "layout": layout, "shape": tuple(data["shape"])})


@dataclass(frozen=True)
class Dot:
    """One product of tiles: M, N, K in ``shape``; ``kind``: wgmma, tcgen05, mma (mma.sync) or fma (no tensor core).

    ``a_in``: where the first operand lies, shared, registers or tmem.
    """

    line: int
    column: int
    kind: str
    shape: tuple[int, int, int]
    a_bits: int
    b_bits: int
    a_type: str
    a_in: str
    precision: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return vars(self) | {"shape": list(self.shape)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Dot:
        """Return the dot that ``to_json`` wrote."""
        return cls(**{**data, "shape": tuple(data["shape"])})


@dataclass
class Module:
    """What ``read`` found. ``notes`` names what it could not read."""

    accesses: list[Access] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    partitions: tuple[int, ...] = ()  # warps of each partition of a warp-specialised kernel, the default one first
    num_warps: int = 4
    arguments: list[str] = field(default_factory=list)  # names in the order of the compiled kernel's parameters
    notes: list[str] = field(default_factory=list)


class Files:
    """Which files are the learner's: those that are named, and any other that is not Triton's own.

    A kernel that comes out of Triton's cache has the name of the file that it was first compiled from: the same text,
    line for line, in a file that was copied or renamed since. A path without a folder counts by its name alone.
    """

    def __init__(self, files: Collection[str]) -> None:
        self._paths = {os.path.abspath(f) for f in files}
        self._names = {os.path.basename(f) for f in files}

    def __contains__(self, path: str) -> bool:
        if os.path.abspath(path) in self._paths:
            return True
        if "/" not in path:
            return path in self._names
        return bool(self._paths) and not re.search(r"/triton/(language|tools|experimental)/", path)


def read(text: str, files: Collection[str]) -> Module:
    """Return what the TTGIR ``text`` says, with lines of ``files`` (see ``Files``). Unknown things become notes."""
    module = Module()
    aliases = dict(re.findall(r"^(#\w+) = (#\w+\.\w+<.*)$", text, re.M))
    places = _Places(dict(re.findall(r"^(#loc\w*) = loc\((.*)\)$", text, re.M)), Files(files))
    warps = re.search(r'"ttg\.num-warps" = (\d+)', text)
    module.num_warps = int(warps.group(1)) if warps else 4
    module.arguments = _arguments(text)
    found: dict[tuple, Access] = {}
    for op, line in _operations(text):
        at = places.of(line)
        if op in _DOTS:
            dot = _dot(op, line, at, aliases)
            module.dots.append(dot) if dot else module.notes.append(f"{op} at line {at[0]} could not be read")
        elif op == "ttg.warp_specialize":
            extra = re.search(r"num_warps\(([\d, ]*)\)|partitionNumWarps = array<i32: ([\d, ]*)>", line)
            module.partitions = (module.num_warps, *_ints(extra.group(0).split("array<i32")[-1] if extra else ""))
        else:
            access = _access(op, line, at, aliases, module.notes)
            if access:
                key = (access.line, access.column, access.kind, access.shape)
                found[key] = replace(found[key], count=found[key].count + 1) if key in found else access
    module.accesses = list(found.values())
    return module


def _arguments(text: str) -> list[str]:
    """Return the names of the public function's arguments; a descriptor is followed by its shape and its strides."""
    head = re.search(r"tt\.func public @\S+?\((.*)", text)
    found: list[str] = []
    owner, left = "", []
    for name, kind, place in re.findall(r'%([\w.]+): (!?[\w.]+)[^%]*?loc\("([^"]*)"', head.group(1) if head else ""):
        if left and kind in ("i32", "i64"):
            name = f"{owner}.{left.pop(0)}"
        else:
            name, left = place or name, []
        if kind == "!tt.tensordesc":
            shape = re.search(re.escape(f"%{name}: !tt.tensordesc<") + r"(?:tensor<)?([0-9x]+)x", head.group(1))
            rank = len(_shape(shape.group(1))) if shape else 0
            owner, left = name, [f"{what}.{i}" for what in ("shape", "stride") for i in range(rank)]
        found.append(name)
    return found


def _operations(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each operation."""
    for line in text.splitlines():
        named = re.match(r'\s*(?:%[\w:, %#]+ = )?"?((?:tt|ttg|ttng|nvws)\.\w+)', line)
        if named:
            yield named.group(1), line


def _access(op: str, line: str, at: tuple[int, int], aliases: Mapping[str, str], notes: list[str]) -> Access | None:
    short = op.split(".", 1)[1]
    cache = re.search(r"cacheModifier = (\w+)|evictionPolicy = (\w+)", line)
    word = next(filter(None, cache.groups()), "") if cache else ""
    types = line.rsplit(" loc(", 1)[0]
    if op in _POINTERS:
        how = "async" if "async" in op else "direct"
        pointers = next((m for m in _TYPE.finditer(types) if m.group(2).startswith("!tt.ptr")), None)
        if pointers is None:
            scalar = re.search(r": \(?(!tt\.ptr<[^<>]*>)", types)
            bits = _bits(scalar.group(1)) if scalar else 32
            return Access(*at, _POINTERS[op], how, bits, None, (), cache=word)
        shape = _shape(pointers.group(1))
        layout = parse_encoding(pointers.group(3) or "", shape, aliases)
        if layout is None:
            notes.append(f"line {at[0]}: the layout {aliases.get(pointers.group(3), pointers.group(3))} is not known")
        return Access(*at, _POINTERS[op], how, _bits(pointers.group(2)), layout, shape, cache=word)
    if short in _TMA:
        tile = re.search(r"tensordesc<(?:tensor<)?([0-9x]+)x(\w+)", types)
        shape = _shape(tile.group(1)) if tile else ()
        return Access(*at, _TMA[short], "tma", _bits(tile.group(2)) if tile else 32, None, shape, cache=word)
    return None


def _dot(op: str, line: str, at: tuple[int, int], aliases: Mapping[str, str]) -> Dot | None:
    types = [m for m in _TYPE.finditer(line.rsplit(" loc(", 1)[0].split(" : ", 1)[-1]) if "x" in m.group(1)]
    if len(types) < 2:
        return None
    a, b = types[0], types[1]
    (m, k), n = _shape(a.group(1))[-2:], _shape(b.group(1))[-1]
    kind = _DOTS[op]
    if op in ("tt.dot", "tt.dot_scaled"):
        result = aliases.get(types[-1].group(3) or "", types[-1].group(3) or "")
        kind = "mma" if "nvidia_mma" in result else "fma"
    space = aliases.get((a.group(3) or "").strip(), a.group(3) or "")
    a_in = "tmem" if "tensor_memory" in space or "tmem" in space else "shared" if "shared" in space else "registers"
    precision = re.search(r"inputPrecision = (\w+)", line)
    word = {"0": "tf32", "2": "ieee"}.get(precision.group(1), precision.group(1)) if precision else ""
    kinds = [_BITS.get(t.group(2), t.group(2)) for t in (a, b)]
    a_type = "tf32" if kinds[0] == "f32" and kind != "fma" else kinds[0]
    return Dot(*at, kind, (m, n, k), _bits(kinds[0]), _bits(kinds[1]), a_type, a_in, word)


class _Places:
    """Resolves ``loc(...)`` to line and column in the learner's files: the innermost frame that lies in one."""

    def __init__(self, locations: Mapping[str, str], files: Files) -> None:
        self._locations, self._files = locations, files

    def of(self, line: str) -> tuple[int, int]:
        """Return line and column of an operation's text; (0, 0) when it has none in these files."""
        end = line.rfind(" loc(")
        return (self._resolve(line[end + 5 :].rstrip()[:-1]) if end >= 0 else None) or (0, 0)

    def _resolve(self, text: str, depth: int = 0) -> tuple[int, int] | None:
        text = text.strip()
        if depth > 40:
            return None
        if text.startswith("#loc"):
            return self._resolve(self._locations.get(text, ""), depth + 1)
        where = re.match(r'"([^"]*)":(\d+):(\d+)', text)
        if where:
            return (int(where.group(2)), int(where.group(3))) if where.group(1) in self._files else None
        for pattern in (r"callsite\((\S+) at (\S+)\)", r'"[^"]*"\((.*)\)$', r"fused(?:<.*>)?\[(.*)\]$"):
            inner = re.match(pattern, text)
            if inner:
                parts = [p for group in inner.groups() for p in ([group] if "(" in group else group.split(","))]
                return next(filter(None, (self._resolve(p, depth + 1) for p in parts)), None)
        return None


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(x) for x in text.split("x") if x)


def _bits(text: str) -> int:
    """Return the bits of an element type: bf16, f8e4m3, i1 (stored as a byte), !tt.ptr<f32> (of what it points to)."""
    if text.count("!tt.ptr") > 1:
        return 64
    name = re.sub(r"!tt\.ptr<(\w+).*", r"\1", text)
    digits = re.match(r"(?:bf|f|i|u)(\d+)", name)
    return max(8, int(digits.group(1))) if digits else 32


def _ints(text: str) -> list[int]:
    return [int(x) for x in re.findall(r"\d+", text)]
