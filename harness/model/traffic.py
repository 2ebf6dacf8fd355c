"""Traffic: what a traced launch asks of L1, L2 and DRAM once all of its programs run. No torch here.

The trace holds a few whole programs and what neighbours touch first. Programs that run at the same time share what they
both touch: it comes from DRAM once. How much they share is seen on the neighbours and carried on to as many programs as
the GPU runs at once; a tensor too large for L2 is read again by those that come later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.model.memory import SECTOR

Trace = Mapping[str, Any]
JOINED = 1.3  # programs that write a sector, on average, from which on they are many
FEW = 2.0  # programs, of those drawn from a wave, that met another: fewer say little
# stores of a few bytes whose parts fill a sector one after the other: so many of them are left of each sector
JOINS = 2.0  # when they meet on their way: the first goes at once, the rest together
FITS = 4.0  # parts that still meet when other warps store too; of more, the share APART is left
APART = 0.8
SHARED = 0.35  # of the sectors of a wave are distinct: below this its programs mostly hit what others fetched


@dataclass(frozen=True)
class Reach:
    """Where the loads of one site find their data, as shares of its sectors, and how many bytes they fetch.

    Attributes:
        dram, l2, l1: shares; they sum to 1.
        bytes: fetched from beyond L1, of one program.
        shared: the share of its requests to L2 that are served together with those of other SMs.
        late: of those that L2 serves, the share that is still on its way from DRAM: programs that run side by side ask
            for the same at the same time, and all of them wait for the one that asked first.
    """

    dram: float
    l2: float
    l1: float
    bytes: float
    shared: float = 0.0
    late: float = 0.0


@dataclass(frozen=True)
class Traffic:
    """Totals of one launch, all programs.

    Attributes:
        dram_read, dram_written: bytes; pieces: contiguous runs that the reads consist of.
        l2_units: 64-byte requests of loads that few others share; shared_units: whole ones that many share.
        store_units, partial_units: 64-byte requests of stores; those that write a part of a sector only.
        calm_units, crowded_units: what is left of the latter when the parts that one store writes one after the other
            are joined on their way; when stores of other warps come in between.
        joined: sectors that several programs write in parts.
        reach: by (line, column) of the loads.
    """

    dram_read: float
    dram_written: float
    pieces: float
    l2_units: float
    shared_units: float
    store_units: float
    partial_units: float
    calm_units: float
    crowded_units: float
    joined: float
    reach: Mapping[tuple[int, int], Reach]


def share(tensor: Mapping[str, Any], concurrent: float, programs: float) -> float:
    """Return which part of the sectors that ``concurrent`` programs touch is distinct.

    Programs drawn from anywhere in the wave say how many different pieces it touches: of D pieces, m programs that take
    one each find D (1 - (1 - 1/D)^m). Where few of them met, those in a row tell what neighbours share.
    """
    m, apart, distinct = tensor["anywhere"]
    if not apart:  # the first accesses do not reach it
        touched = tensor["own"] * SECTOR * min(programs, concurrent)
        return min(1.0, tensor["bytes"] / touched) if touched else 1.0
    row = tensor["row"][2] / max(1, tensor["row"][1])
    met = m * (1 - distinct / apart)
    if m >= concurrent:
        return distinct / apart
    if met < FEW:
        return row
    return min(1.0, max(_pieces(m, distinct / apart) / concurrent, distinct / apart * m / concurrent))


def _pieces(m: int, seen: float) -> float:
    """Solve seen * m = D (1 - (1 - 1/D)^m) for D, by halving."""
    low, high = 1.0, 1e9
    for _ in range(60):
        middle = math.sqrt(low * high)
        if middle * (1 - (1 - 1 / middle) ** m) < seen * m:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)


def traffic(trace: Trace, concurrent: float, sms: int, blocks: int, l1_bytes: float, l2_bytes: float) -> Traffic:
    """Return the traffic of a launch.

    Args:
        concurrent: programs that the GPU runs at once.
        sms: of the GPU.
        blocks: programs that one SM runs at once.
        l1_bytes: a program's share of L1.
        l2_bytes: what of L2 holds data of a kernel.
    """
    programs = trace["programs"]
    shares = {_key(t): share(t, concurrent, programs) for t in trace["tensors"]}
    own = {_key(t): t["own"] for t in trace["tensors"]}
    wave = sum(t["own"] * SECTOR * min(programs, concurrent) * shares[_key(t)] for t in trace["tensors"])
    read = written = pieces = 0.0
    fresh: dict[tuple[int, str], float] = {}  # of what one wave touches, the share that DRAM has to bring
    for tensor in trace["tensors"]:
        moved = _dram(tensor, trace, shares[_key(tensor)], wave, l2_bytes)
        pieces += moved / max(SECTOR, tensor["run"] * SECTOR) if tensor["kind"] == "load" else 0.0
        touched = tensor["own"] * SECTOR * programs * shares[_key(tensor)]
        fresh[_key(tensor)] = min(1.0, moved / touched) if touched else 0.0
        read += moved if tensor["kind"] != "store" else 0.0
        written += min(moved, tensor["bytes"]) if tensor["kind"] == "store" else 0.0
    alone = shared = 0.0
    reach: dict[tuple[int, int], list[tuple[float, Reach]]] = {}
    for site in trace["sites"]:
        if site["kind"] != "load":
            continue
        key = (site["storage"], "load")
        distinct = shares.get(key, 1.0)
        held = _held_by_l1(site, distinct, own.get(key, 0.0) * SECTOR, sms, blocks, l1_bytes)
        beyond = min(1.0, sms * distinct) if held else 1.0  # one program of the SM fetches it for all
        units = site["missed_units"] * beyond
        # only requests for all of their 64 bytes are served together
        whole = site["distinct"] / max(1e-9, site["distinct_units"]) - 1 if distinct < SHARED else 0.0
        alone, shared = alone + units * (1 - whole), shared + units * whole
        reach.setdefault((site["line"], site["column"]), []).append(
            _reach(site, distinct, held, beyond, whole, fresh.get(key, 0.0))
        )
    stores = [s for s in trace["sites"] if s["kind"] == "store"]
    parts = [(min(s["partial"], s["units"]), max(1.0, s["distinct_units"])) for s in stores]
    partial = sum(p for p, _ in parts) * programs
    # neighbours in memory may be rows of the grid apart, so that few of a wave are seen to meet: what all programs
    # write, and does not fit into the tensor, says it too
    writers = {
        _key(t): max(1 / max(1e-9, shares[_key(t)]), t["own"] * SECTOR * programs / max(SECTOR, t["bytes"]))
        for t in trace["tensors"] if t["kind"] == "store"
    }  # fmt: skip
    joined = sum(
        min(s["partial"], s["units"]) * programs / n for s in stores if (n := writers.get(_key(s), 1.0)) > JOINED
    )
    return Traffic(
        dram_read=read,
        dram_written=written,
        pieces=pieces,
        l2_units=alone * programs,
        shared_units=shared * programs,
        store_units=max(0.0, sum(s["units"] for s in stores) * programs - partial),
        partial_units=partial,
        calm_units=sum(min(p, JOINS * d) for p, d in parts) * programs,
        crowded_units=sum(min(p, max(JOINS * d, APART * p if p > FITS * d else 0.0)) for p, d in parts) * programs,
        joined=joined,
        reach={k: _together(v) for k, v in reach.items()},
    )


def scaled(trace: Trace, factor: float) -> Trace:
    """Return the trace of programs that do ``factor`` times the work of the traced ones, alike in everything else."""
    if factor == 1.0:
        return trace
    kept = ("line", "column", "storage", "item", "width")  # what is no amount
    sites = [
        {k: v * factor if isinstance(v, int | float) and not isinstance(v, bool) and k not in kept else v
         for k, v in site.items()}
        for site in trace["sites"]
    ]  # fmt: skip
    tensors = [t | {"own": min(t["own"] * factor, t["bytes"] / SECTOR)} for t in trace["tensors"]]
    return {**trace, "sites": sites, "tensors": tensors}


def _key(tensor: Mapping[str, Any]) -> tuple[int, str]:
    return tensor["storage"], tensor["kind"]


def _dram(tensor: Mapping[str, Any], trace: Trace, distinct: float, wave: float, l2_bytes: float) -> float:
    """Bytes that move between DRAM and L2 for one tensor and kind of access."""
    programs, own, size = trace["programs"], tensor["own"], tensor["bytes"]
    sites = [s for s in trace["sites"] if _key(s) == _key(tensor)]
    each = own
    if wave >= l2_bytes:  # what a program touches a second time has left L2
        again = sum(s["distinct"] for s in sites)
        each = max(own, min(again, sum(s["missed"] for s in sites)) if tensor["kind"] == "load" else min(again, own))
    total = each * SECTOR * programs
    moved = max(total * distinct, min(size, own * SECTOR))
    if size < l2_bytes / 2:
        moved = min(moved, size)
    return min(moved, total)


def _held_by_l1(
    site: Mapping[str, Any], distinct: float, footprint: float, sms: int, blocks: int, l1_bytes: float
) -> bool:
    """Whether a program finds in L1 what another one of its SM has fetched."""
    direct = not site["tile"] and not site.get("bypasses", False)
    return direct and distinct * sms < 0.5 and footprint < 0.6 * l1_bytes * blocks


def _reach(
    site: Mapping[str, Any], distinct: float, held: bool, beyond: float, shared: float, fresh: float
) -> tuple[float, Reach]:
    n = max(1e-9, site["distinct"])
    missed = site["missed"] / n
    fetched = site["missed"] * SECTOR * beyond
    if held:
        return site["executions"], Reach(0.0, 0.0, 1.0, fetched, shared)
    dram = missed if distinct > SHARED else 0.0
    return site["executions"], Reach(dram, missed - dram, 1.0 - missed, fetched, shared, fresh)


def _together(parts: Sequence[tuple[float, Reach]]) -> Reach:
    weight = sum(w for w, _ in parts)
    mean = {k: sum(w * getattr(r, k) for w, r in parts) / weight for k in ("dram", "l2", "l1", "shared", "late")}
    return Reach(**mean, bytes=sum(r.bytes for _, r in parts))
