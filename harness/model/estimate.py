"""Model: how long a launch takes on a GPU that is not there, and what it waits for. No torch here.

Compiled facts say what a program executes, the trace says what memory it touches; the device says how fast each of them
goes. Each term is the time that one resource needs when nothing else is in the way: DRAM, L2, the SMs (issue, tensor
cores, shared memory, latency), starting programs, atomics. Overlap is never perfect: the terms join as a 4-norm, so two
equal ones take 19 % longer than one.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.compiled import trips
from harness.compiled.kernelfacts import SPECIALISED, KernelFacts
from harness.compiled.sass import Instruction
from harness.device import Device
from harness.model import patience, warpsim
from harness.model.constants import Constants, constants
from harness.model.findings import Weighed, findings
from harness.model.rehearsal import l1_share, resident
from harness.model.terms import atomics, dram, l2, tensor_cycles
from harness.model.traffic import Reach, Traffic, scaled, traffic

NORM = 4.0
BAND, WIDE_BAND = 0.1, 0.2  # half the width of a share's band: calibrated device, scaled one
MOST_PLACED = 20_000
WAVES = 6  # with fewer waves than this the last, partly filled one counts whole


class NoModel(Exception):
    """A launch cannot be modelled; the message is one sentence."""


class NotCompiled(NoModel):
    """A kernel was left out by the compile server: its block is too large to compile in reasonable time."""


@dataclass(frozen=True)
class LaunchTime:
    """One launch.

    Attributes:
        seconds: modelled.
        terms: seconds that each resource needs, by name.
        parts: what the SMs' time is made of, by name (seconds): issue, tensor cores, shared memory, latency.
        config: of an autotuned kernel, the configuration.
        findings: what is worth changing, each with the seconds that it costs.
    """

    kernel: str
    seconds: float
    terms: Mapping[str, float]
    parts: Mapping[str, float]
    config: str = ""
    findings: Sequence[Weighed] = ()

    @property
    def binds(self) -> str:
        """The resource that the launch waits for most."""
        worst = max(self.terms, key=self.terms.__getitem__)
        return max(self.parts, key=self.parts.__getitem__) if worst == "SM" and self.parts else worst


@dataclass(frozen=True)
class Estimate:
    """One call: its launches in order, each with its best configuration."""

    launches: Sequence[LaunchTime]
    calibrated: bool
    notes: Sequence[str] = ()

    @property
    def seconds(self) -> float:
        """The modelled time of the call."""
        return sum(x.seconds for x in self.launches)

    @property
    def band(self) -> float:
        """Half the width of the band around a share that is made of two such times."""
        return BAND if self.calibrated else WIDE_BAND

    def bars(self) -> dict[str, float]:
        """Return the seconds of every term, summed over the launches; the SMs' time by its parts."""
        found: dict[str, float] = {}
        for launch in self.launches:
            for name, seconds in {**launch.terms, **launch.parts}.items():
                if name != "SM":
                    found[name] = found.get(name, 0.0) + seconds
        return found

    @property
    def binds(self) -> str:
        """What the longest launch waits for."""
        return max(self.launches, key=lambda x: x.seconds).binds


def estimate(model: Mapping[str, Any], traces: Sequence[Sequence[Mapping[str, Any]]], device: Device) -> Estimate:
    """Return the modelled time of a call.

    Args:
        model: ``runs`` and ``facts`` of the compiled launches (``aot.every_configuration``).
        traces: for each configuration the traces of its launches (``trace.trace_calls``).
        device: the GPU.

    Raises:
        NoModel: a launch has no facts, the two sides launched different kernels, or a loop's end is not known.
    """
    known: dict[str, KernelFacts] = {}
    runs: list[list[LaunchTime]] = []
    started = time.process_time()
    for launches, traced in zip(model["runs"], traces, strict=False):
        if len(launches) != len(traced):
            raise NoModel(f"{len(launches)} launches were compiled, {len(traced)} traced")
        if runs and time.process_time() - started > patience.SECONDS:
            break  # of an autotuned kernel as many configurations as there is time for
        runs.append([
            _patiently(_facts(known, model["facts"], compiled), seen, device, first=not i)
            for i, (compiled, seen) in enumerate(zip(launches, traced, strict=True))
        ])  # fmt: skip
    if not runs or not runs[0]:
        raise NoModel("the entry launched no kernel at the bench shape")
    if len({len(r) for r in runs}) > 1:
        best = min(runs, key=lambda run: sum(x.seconds for x in run))
    else:  # configurations of different kernels do not hang together: the best of each
        best = [min(same, key=lambda x: x.seconds) for same in zip(*runs, strict=True)]
    found = constants(device)
    best = [*torch_time(model.get("torch", {}), found), *best]
    left = model.get("left", 0) + len(model["runs"]) - len(runs)
    notes = [f"{left} further configurations of the autotuner were not modelled"] if left > 0 else []
    return Estimate(best, found.calibrated, notes)


def torch_time(moves: Mapping[str, int], c: Constants) -> list[LaunchTime]:
    """Return what torch's own copies and fills take, at the rate of a copy; nothing where there are none."""
    if not moves.get("calls"):
        return []
    seconds = moves["bytes_read"] / c.dram_read + moves["bytes_written"] / c.dram_write + moves["calls"] * c.gap
    amount = moves["bytes_read"] + moves["bytes_written"]
    text = f"torch copies or fills before your kernel runs: {amount / 1e6:,.0f} MB"
    return [LaunchTime("torch", seconds, {"DRAM": seconds}, {}, findings=[(seconds, text)])]


def _patiently(facts: KernelFacts, trace: Mapping[str, Any], device: Device, first: bool) -> LaunchTime:
    try:
        with patience.within(patience.SECONDS):
            return launch_time(facts, trace, device, first)
    except patience.Impatient:
        raise NoModel(f"the model of {trace['kernel']} takes longer than {patience.SECONDS:.0f} s") from None


def _facts(known: dict[str, KernelFacts], facts: Mapping[str, Any], launch: Mapping[str, Any]) -> KernelFacts:
    data = facts.get(launch["facts"])
    if data is None:
        raise NotCompiled(f"{launch['kernel']} was not compiled")
    if "failed" in data:
        raise NoModel(f"the code of {launch['kernel']} cannot be read ({data['failed']})")
    if launch["facts"] not in known:
        known[launch["facts"]] = KernelFacts.from_json(data)
    return known[launch["facts"]]


def launch_time(facts: KernelFacts, trace: Mapping[str, Any], device: Device, first: bool = True) -> LaunchTime:
    """Return the modelled time of one launch."""
    if trace["cut"]:
        raise NoModel(f"a loop of {trace['kernel']} ends where data says so, and there is no data at the bench shape")
    if SPECIALISED in facts.notes:
        raise NoModel(f"{trace['kernel']} uses {SPECIALISED}")
    c = constants(device)
    programs = trace["programs"]
    blocks = resident(facts, programs, device)
    l1 = l1_share(facts.shared_bytes, blocks, device)
    executed, stands_for = trips.executed(facts, trace)
    if not executed.complete:
        raise NoModel(f"the way of {trace['kernel']}'s threads through its code is too long to follow")
    trace = scaled(trace, stands_for)
    moved = traffic(trace, trace["wave"], device.sms, blocks, l1, c.l2_holds)
    path = _simulated(facts, executed, moved, device, c, programs, blocks)
    tensor = sum(
        n * tensor_cycles(i, device, c) for i, n in zip(facts.program.instructions, executed.instructions, strict=True)
    )
    passed = _read(facts, trace) * _merged(facts, executed, trace) + _passed(facts, executed)
    lookups = math.ceil(programs / device.sms) * passed
    sm = max(_cycles(path, programs, device.sms, blocks) * _uneven(trace, device.sms * blocks), lookups) / c.clock
    terms = {
        "DRAM": dram(moved, c),
        "L2": 0.0,
        "SM": sm,
        "programs": programs * c.program,
        "atomics": atomics(trace, c),
    }
    spilled = 0.0 if _stays(facts, blocks, device) else path.local_bytes * programs
    terms["L2"] = l2(moved, spilled, c, max(terms.values()))
    seconds = sum(t**NORM for t in terms.values()) ** (1 / NORM) + (c.launch if first else c.gap)
    parts = _parts(path, lookups, tensor, terms["SM"], programs, device, c)
    return LaunchTime(
        trace["kernel"], seconds, terms, parts, (trace.get("tuned") or {}).get("config", ""),
        findings(facts, trace, terms, parts, seconds, device),
    )  # fmt: skip


def _cycles(path: warpsim.Path, programs: int, sms: int, blocks: int) -> float:
    """How long the busiest SM works: it fills up with programs again and again; the first time takes longer."""
    rounds = programs / (sms * blocks)
    rounds = math.ceil(rounds - 1e-9) if rounds < WAVES else rounds
    return path.first + max(0.0, rounds - 1) * path.cycles


def _read(facts: KernelFacts, trace: Mapping[str, Any]) -> float:
    """Cycles of L1's data stage for one program's loads and stores, at least one for four sectors.

    What goes past L1 (TMA, copies of 16 bytes to shared memory) is no lookup.
    """
    near = {(i.line, i.column) for i in facts.program.instructions if i.base == "LDGSTS" and "BYPASS" not in i.op}
    asked = [
        s for s in trace["sites"]
        if s["kind"] != "atomic" and (not s["bypasses"] or (s["line"], s["column"]) in near)
    ]  # fmt: skip
    return max(sum(s["cycles"] for s in asked), sum(s["sectors"] for s in asked) / 4)


def _passed(facts: KernelFacts, executed: Any) -> float:
    """Cycles of L1's data stage for the rest of one program: shared memory, spills, shuffles, operands of products."""
    return sum(n * warpsim.passes(i) for i, n in zip(facts.program.instructions, executed.instructions, strict=True))


def _merged(facts: KernelFacts, executed: Any, trace: Mapping[str, Any]) -> float:
    """What share of the traced loads is executed: the compiler joins those of one thread that overlap."""
    done = sum(
        n for i, n in zip(facts.program.instructions, executed.instructions, strict=True) if i.base in ("LDG", "LD")
    )
    asked = sum(s["instructions"] for s in trace["sites"] if s["kind"] == "load" and not s["bypasses"])
    return min(1.0, done / (asked * facts.num_warps)) if asked and done else 1.0


def _uneven(trace: Mapping[str, Any], slots: int) -> float:
    """How much longer the last program ends than it would if all did the same work, started in order in ``slots``.

    The work of all programs follows from the traced ones: linear in the place in the grid (triangular loops).
    """
    work, grid = trace["work"], trace["grid"]
    if trace["unlike"] < trips.UNLIKE or len(work) < 4:
        return 1.0
    places = np.array([[n % grid[0] / grid[0], n // grid[0] % grid[1] / grid[1]] for n, _ in work])
    done = np.array([w for _, w in work])
    table = np.c_[np.ones(len(work)), places]
    fit = np.linalg.lstsq(table, done, rcond=None)[0]
    count = min(trace["programs"], MOST_PLACED)
    n = np.arange(count) + (trace["programs"] - count)
    each = np.maximum(fit[0] + fit[1] * (n % grid[0] / grid[0]) + fit[2] * (n // grid[0] % grid[1] / grid[1]), 0.0)
    free = [0.0] * min(slots, count)
    for w in each.tolist():
        heapq.heapreplace(free, free[0] + w)
    even = each.mean() * math.ceil(count / slots) if count < WAVES * slots else each.sum() / slots
    return max(1.0, max(free) / max(1e-12, even))


def _simulated(facts, executed, moved: Traffic, device: Device, c: Constants, programs: int, blocks: int):
    """Follow the warps of the programs that share an SM through their instructions."""
    active = min(device.sms, programs)
    # an SM's share of the bandwidth; for a while it may take more than an even share
    far_rate = min(c.sm_fill, 2.0 * c.dram_read / c.clock / active)
    near_rate = min(c.sm_fill, 1.2 * c.l2_requests * 64 / c.clock / active)
    times: dict[tuple[int, int], float] = {}
    turn = _turns(facts)
    for instruction, count in zip(facts.program.instructions, executed.instructions, strict=True):
        if _loads(instruction):
            place = (instruction.line, instruction.column)
            times[place] = times.get(place, 0.0) + count

    written = moved.dram_written / max(1.0, moved.dram_written + moved.dram_read)
    far = c.latency_dram + c.latency_written * written

    def hop(instruction: Instruction) -> Any:
        reach = _reach(moved, instruction)
        if reach is None:
            return warpsim.Hop(far)
        # of several loads at one place, which are waited for together, the first ones are those that miss
        first, of = turn.get(id(instruction), (0, 1))
        dram = min(1.0, max(0.0, reach.dram * of - first))
        l2 = min(1.0 - dram, max(0.0, (reach.dram + reach.l2) * of - first - dram))
        near_latency = c.latency_l2 + reach.late * max(0.0, far - c.latency_l2)
        latency = dram * far + l2 * near_latency + (1 - dram - l2) * c.latency_l1
        beyond = max(1e-9, reach.dram + reach.l2)
        near = min(c.sm_fill, near_rate * (1 + (c.shared_gain - 1) * reach.shared))
        cycles = (reach.dram / far_rate + reach.l2 / near) / beyond
        each = reach.bytes / max(1.0, times.get((instruction.line, instruction.column), 1.0))
        return warpsim.Hop(latency, each * cycles)

    local = _local_latency(facts, blocks, device, c)
    return warpsim.simulate(
        facts.program, executed, facts.threads // 32, hop, tensor=lambda i: tensor_cycles(i, device, c),
        residents=blocks, costs=replace(warpsim.Costs.of(facts.sm), local=local, program=c.program_cycles),
    )  # fmt: skip


def _turns(facts: KernelFacts) -> dict[int, tuple[int, int]]:
    """For each load instruction its number among those of the same place and loop, and how many they are."""
    groups: dict[tuple[int, int, int], list[Instruction]] = {}
    for index, instruction in enumerate(facts.program.instructions):
        if instruction.base in ("LDG", "LD"):
            key = (instruction.line, instruction.column, facts.program.innermost_of(index))
            groups.setdefault(key, []).append(instruction)
    return {id(i): (n, len(group)) for group in groups.values() for n, i in enumerate(group)}


def _local_latency(facts: KernelFacts, blocks: int, device: Device, c: Constants) -> float:
    """Cycles of a spilled register's way back: from L1 while all of them fit into half of it, else from L2."""
    return c.latency_l1 if _stays(facts, blocks, device) else c.latency_l2


def _stays(facts: KernelFacts, blocks: int, device: Device) -> bool:
    """Whether the spilled registers of an SM's programs stay in L1: they fit into half of it."""
    held = l1_share(facts.shared_bytes, blocks, device) * blocks
    return 2 * facts.spill_bytes * facts.threads * blocks <= held


def _loads(instruction: Instruction) -> bool:
    return instruction.base in ("LDG", "LD", "LDGSTS", "UTMALDG", "UBLKCP")


def _reach(moved: Traffic, instruction: Instruction) -> Reach | None:
    """Where the data of a load lies: by line and column, else by line."""
    found = moved.reach.get((instruction.line, instruction.column))
    if found is not None:
        return found
    same = [r for (line, _), r in moved.reach.items() if line == instruction.line]
    return max(same, key=lambda r: r.bytes, default=None)


def _parts(
    path: warpsim.Path, lookups: float, tensor: float, seconds: float, programs: int, device: Device, c: Constants
) -> dict[str, float]:
    """What the SMs' time is made of: what each unit needs; the rest, when none comes near, is latency."""
    each = math.ceil(programs / device.sms) / c.clock
    busy = {
        "issue": path.instructions / 4 * each,
        "tensor cores": tensor * each / 4,
        "shared memory": path.shared_cycles * each,
        "L1": lookups / c.clock,
    }
    return busy | {"latency": seconds if max(busy.values()) < 0.7 * seconds else 0.0}
