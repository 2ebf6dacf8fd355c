"""Warpsim: how long the warps that share an SM take, instruction by instruction. No torch.

One of an SM's four schedulers is followed with its share of all resident warps. Each cycle it issues one instruction of
a warp that is ready. When that is, the compiler decided: every instruction holds the next one back for its stall count
and may wait for up to six scoreboards, which variable-latency instructions (memory, special functions, conversions)
hold until their result is there. What warps share is modelled as queues: the arithmetic pipes and the tensor core of
the scheduler; the shared-memory pipe and the way to L2 and DRAM of the whole SM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.compiled.control import Executed
from harness.compiled.sass import Instruction, Program
from harness.model.made import ready_made
from harness.model.schedule import Scheduler
from harness.model.tensorcore import operand_bytes

GENERATIONS = 4  # CTAs that follow each other in every slot of the SM
SHORT, LONG = 2, 5  # rounds of a loop that are simulated; the difference is what one more round costs
SELDOM = 0.5  # warp executions in a round of its loop: what is executed less often happens in few rounds only
MOST_ISSUES = 60_000  # instructions simulated at a time: about 0.2 s


@dataclass(frozen=True)
class Hop:
    """What a global-memory instruction of one warp costs, in cycles.

    ``latency``: until its data is there when nothing else is in the way. ``occupy``: how long it keeps the SM's way to
    L2 and DRAM busy; others queue behind it.
    """

    latency: float
    occupy: float = 0.0


@dataclass(frozen=True)
class Costs:
    """Cycles that do not depend on the kernel. Latencies in the first group, issue intervals of pipes in the second."""

    shared: float = 29.0
    shuffle: float = 24.0
    special: float = 24.0
    constant: float = 30.0
    register: float = 20.0  # S2R, R2UR and the like
    local: float = 40.0
    barrier: float = 20.0
    fence: float = 25.0
    wgmma: float = 60.0  # from the last product to its result
    # an issue where wgmma uses the registers' ports too: an H200's counters show 0.37 to 0.39 cycles of dispatch stall
    # for each instruction of three attention kernels
    beside_products: float = 1.3
    hmma: float = 33.0  # from an mma.sync to the next one on the same accumulator
    tma_store: float = 250.0  # until shared memory may be used again
    program: float = 450.0  # between two CTAs in one slot
    fma: float = 1.0
    ffma: float = 4.0 / 3.0  # of three registers: 96 a cycle and SM were measured on an H200, where 128 are advertised
    imad: float = 2.0
    alu: float = 2.0
    xu: float = 8.0
    fp64: float = 2.0
    uniform: float = 2.0
    memory: float = 4.0
    ldc: float = 8.0

    @classmethod
    def of(cls, sm: int) -> Costs:
        """Return the costs of a capability (90 for 9.0): what differs is how many float units a scheduler has."""
        halved = {70: 2.0, 72: 2.0, 75: 2.0, 80: 2.0}  # 16 float32 units for each scheduler, later 32
        doubles = {70: 4.0, 80: 4.0, 90: 2.0, 100: 2.0}  # elsewhere two float64 units for a whole SM
        fma = halved.get(sm, 1.0)
        return cls(fma=fma, ffma=max(fma, cls.ffma), fp64=doubles.get(sm, 64.0))


@dataclass(frozen=True)
class Path:
    """What one round of CTAs takes (as many as are resident at once).

    Attributes:
        cycles: a round when many follow each other; ``first``: of the first round alone, from launch to the last end.
        issued: warp instructions of one CTA by pipe; ``instructions``: all of them.
        shared_cycles: that one CTA keeps the shared-memory pipe busy.
        local_bytes: spills and other local memory that one CTA moves.
        hgmma, hmma: tensor instructions of one CTA, per warp.
        stalls: {line: cycles that a warp waited for what this line started}, for one CTA.
    """

    cycles: float
    issued: dict[str, float]
    instructions: float
    shared_cycles: float
    local_bytes: float
    hgmma: float
    hmma: float
    stalls: dict[int, float] = field(default_factory=dict)
    first: float = 0.0


def shared_wavefronts(instruction: Instruction) -> float:
    """Return the cycles that one warp's instruction keeps the SM's shared-memory pipe busy."""
    if instruction.guard == "@!PT":
        return 0.0
    base = instruction.base
    if base in ("LDS", "STS", "LDSM", "STSM", "ATOMS", "LDGSTS"):
        return instruction.width * instruction.conflict
    if base in ("LDL", "STL", "LDG", "STG", "LD", "ST"):
        return float(instruction.width)
    return 1.0 if base in ("SHFL", "REDUX", "ATOM", "ATOMG", "RED", "MATCH") else 0.0


def passes(instruction: Instruction) -> float:
    """Return the cycles that one warp's instruction keeps L1's data stage busy, for what is no lookup of a line.

    Global loads and stores pass once for each line, which the trace counts. A copy to shared memory that goes past L1
    passes once; another one writes all of its words there. Products read their operands.
    """
    base = instruction.base
    if base in ("LDG", "STG", "LD", "ST"):
        return 0.0
    if base == "LDGSTS" and "BYPASS" in instruction.op:
        return 1.0
    if instruction.pipe == "wgmma" and base[1:] == "GMMA":
        return operand_bytes(instruction) / 128
    return shared_wavefronts(instruction)


def counts(program: Program, executed: Executed) -> Path:
    """Return what one CTA executes, without a time."""
    issued: dict[str, float] = {}
    shared = local = hgmma = hmma = 0.0
    for instruction, times in zip(program.instructions, executed.instructions, strict=True):
        pipe = instruction.pipe
        issued[pipe] = issued.get(pipe, 0.0) + times
        shared += shared_wavefronts(instruction) * times
        if instruction.base in ("LDL", "STL"):
            local += 128.0 * instruction.width * times
        hgmma += times if pipe == "wgmma" else 0.0
        hmma += times if pipe == "tensor" else 0.0
    return Path(0.0, issued, sum(executed.instructions), shared, local, hgmma, hmma)


def simulate(
    program: Program,
    executed: Executed,
    warps: int,
    hop: Callable[[Instruction], Hop],
    *,
    tensor: Callable[[Instruction], float] = lambda _: 0.0,
    residents: int = 1,
    costs: Costs | None = None,
) -> Path:
    """Return how long ``residents`` CTAs of ``warps`` warps take on one SM.

    Args:
        executed: from ``trips.executed`` or ``control.counts``.
        hop: of an instruction that goes to global memory.
        tensor: cycles that an instruction of one warp keeps its scheduler's tensor core busy.
        residents: CTAs that the SM holds at once; 1 gives the critical path of one CTA.
    """
    costs = costs or Costs()
    total = counts(program, executed)
    executed, seldom = without_seldom(program, executed, warps)
    made = ready_made(program, executed, warps, hop, tensor, costs, shared_wavefronts)
    loops = [i for i, trips in enumerate(executed.loops) if trips > LONG]
    rounds = dict.fromkeys(loops, SHORT)
    base = _run(program, executed, made, warps, residents, costs, rounds)
    first, steady, stalls = base.first + seldom, base.steady + seldom, dict(base.stalls)
    for index in loops:
        longer = _run(program, executed, made, warps, residents, costs, {**rounds, index: LONG})
        entries = _entries(program, executed, rounds, index)
        more = (executed.loops[index] - SHORT * entries) / ((LONG - SHORT) * entries)
        first += max(0.0, longer.first - base.first) * more
        steady += max(0.0, longer.steady - base.steady) * more
        for line, cycles in longer.stalls.items():
            stalls[line] = stalls.get(line, 0.0) + max(0.0, cycles - base.stalls.get(line, 0.0)) * more
    return replace(total, cycles=steady, first=first, stalls=stalls)


def without_seldom(program: Program, executed: Executed, warps: int) -> tuple[Executed, float]:
    """Take out what a loop does in few of its rounds, and return the cycles that this takes one warp of the CTA.

    A loop over the tiles of a persistent program that was joined with the one inside stores its result behind a branch,
    once in many rounds. In the few rounds that are followed it would come every time. What less than one warp does in
    two rounds is meant: less than that is no part of the warps.
    """
    kept, cycles = list(executed.instructions), 0.0
    whole = _now_and_then(program, executed, warps)
    for index, (instruction, times) in enumerate(zip(program.instructions, executed.instructions, strict=True)):
        loop = program.innermost[index]
        if index in whole or loop >= 0 and 0 < times < SELDOM * max(1.0, executed.loops[loop]):
            kept[index] = 0.0
            cycles += times / warps * max(1, instruction.stall)
    return replace(executed, instructions=tuple(kept)), cycles


def _now_and_then(program: Program, executed: Executed, warps: int) -> set[int]:
    """Return the instructions of a loop that all warps execute together, in fewer than half of its rounds.

    A barrier among instructions that are executed equally often says that no warp is left out.
    """
    found: set[int] = set()
    run: list[int] = []
    for index, times in enumerate(executed.instructions):
        if run and (times != executed.instructions[run[-1]] or program.innermost[index] != program.innermost[run[-1]]):
            run = []
        run.append(index)
        loop = program.innermost[index]
        if loop < 0 or not 0 < times < SELDOM * warps * executed.loops[loop]:
            continue
        if index in found or program.instructions[index].base == "BAR" or run[0] in found:
            found.update(run)
    return found


def _entries(program: Program, executed: Executed, rounds: dict[int, int], index: int) -> float:
    """Return how often loop ``index`` is entered in a simulated CTA: the rounds of the loops around it."""
    entries, around = 1.0, program.loops[index].parent
    while around >= 0:
        entries *= rounds.get(around, max(1.0, round(executed.loops[around])))
        around = program.loops[around].parent
    return entries


def _run(program, executed, made: Sequence[Any], warps: int, residents: int, costs: Costs, rounds: dict[int, int]):
    way = unrolled(program, executed, rounds)
    per_scheduler = max(1, round(warps * residents / 4))
    generations = GENERATIONS if len(way) * per_scheduler * GENERATIONS <= MOST_ISSUES else 3
    scheduler = Scheduler(made, way, warps, residents, costs)
    return scheduler.run(generations)


def unrolled(program: Program, executed: Executed, rounds: dict[int, int]) -> list[int]:
    """Return the instructions of one CTA's way in order, each loop in ``rounds`` only so many times."""

    def body(first: int, last: int, around: int) -> list[int]:
        way: list[int] = []
        index = first
        while index <= last:
            inner = next((i for i in inside[around] if program.loops[i].first == index), None)
            if inner is None:
                if executed.instructions[index] > 0:
                    way.append(index)
                index += 1
                continue
            loop = program.loops[inner]
            outer = max(1.0, executed.loops[around]) if around >= 0 else 1.0
            times = rounds.get(inner, round(executed.loops[inner] / outer))
            once = body(loop.first, loop.last, inner)
            way += once * int(times)
            index = loop.last + 1
        return way

    inside: dict[int, list[int]] = {i: [] for i in range(-1, len(program.loops))}
    for i, loop in enumerate(program.loops):
        inside[loop.parent].append(i)
    return body(0, len(program.instructions) - 1, -1)
