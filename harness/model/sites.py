"""Sites: what traced programs did, access by access and tensor by tensor. numpy only, no torch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Site:
    """One access of the source, summed over the programs that ran in full, weighted."""

    line: int
    column: int
    kind: str
    argument: str
    storage: int
    item: int
    tile: bool
    bypasses: bool  # cp.async and TMA: L1 is not asked
    executions: float = 0.0
    instructions: float = 0.0  # of each warp
    requests: float = 0.0
    sectors: float = 0.0
    cycles: float = 0.0  # of L1
    units: float = 0.0
    partial: float = 0.0
    lanes: float = 0.0
    distinct: float = 0.0  # sectors, each once an execution
    distinct_units: float = 0.0
    missed: float = 0.0  # sectors that L1 did not hold
    missed_units: float = 0.0
    hottest: float = 0.0
    addresses: float = 0.0
    width: int = 0


@dataclass
class Program:
    """What one program did: the distinct sectors it touched, by storage and kind, with how much each stands for."""

    number: int
    touched: dict[tuple[int, str], list[tuple[np.ndarray, float]]] = field(default_factory=dict)
    places: set[tuple[int, int]] = field(default_factory=set)
    accesses: int = 0
    work: float = 0.0  # weighted sectors, to see how unlike the programs are


def shared(programs: list[Program], storage: int, kind: str) -> list[int]:
    """How many of the programs touched the tensor, their sectors one by one, and how many of them are distinct."""
    each = [[s for s, _ in p.touched[storage, kind]] for p in programs if (storage, kind) in p.touched]
    sets = [np.unique(np.concatenate(parts)) for parts in each]
    if not sets:
        return [0, 0, 0]
    return [len(sets), sum(map(len, sets)), len(np.unique(np.concatenate(sets)))]


def run(programs: list[Program], storage: int, kind: str) -> float:
    """Mean length, in sectors, of the contiguous runs that the first accesses of these programs make together."""
    parts = [p.touched[storage, kind][0][0] for p in programs if (storage, kind) in p.touched]
    if not parts:
        return 1e6
    sectors = np.unique(np.concatenate(parts))
    return len(sectors) / (1 + int((np.diff(sectors) > 1).sum()))


def weighed(touched: list[tuple[np.ndarray, float]]) -> float:
    """Distinct sectors, each standing for as much as the access that touched it first."""
    if not touched:
        return 0.0
    sectors = np.concatenate([s for s, _ in touched])
    weights = np.repeat([w for _, w in touched], [len(s) for s, _ in touched])
    return float(weights[np.unique(sectors, return_index=True)[1]].sum())
