"""Trace: some programs of a bench-shape launch, run in the interpreter to see which memory they touch.

A few programs, spread over the grid, run in full; some of one wave run a few accesses each, to see what programs that
run at the same time share. A long loop runs its first, some middle and its last iterations, of which the
middle ones stand for those left out. Arithmetic on floats is skipped: only addresses, masks and integers are real.
"""

from __future__ import annotations

import builtins
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.compiled import aot
from harness.interpreted import interpreter, launches, matrix
from harness.interpreted.interpreter import Machine
from harness.model import skim
from harness.model.witness import EndOfProgram, Witness
from harness.runner.loader import find_entry, load_source, raised
from harness.runner.standin import CudaIsCpu
from harness.spec import Spec

PROGRAMS = 8  # run in full, spread evenly over the grid
IN_A_ROW, ANYWHERE = 64, 128  # programs of one wave that run their first accesses only
# work of one launch, in elements of blocks (an operation counts for OPERATION of them), so that a trace repeats exactly
FULL_WORK, NEIGHBOUR_WORK = 6_000_000, 4_000_000
OPERATION = 2000
SECONDS = 6.0  # of CPU time, from which on no further configuration is traced
FEWEST = 4  # programs that run in full, whatever they cost
WHOLE_LOOP, HEAD, MIDDLE, TAIL = 40, 6, 16, 6  # iterations; a loop longer than the first is sampled
_GOLDEN = 0.6180339887498949


class Tracer(Machine):
    """The machine of a traced call: chooses programs, gives loops their weights, keeps one trace a launch."""

    def __init__(self, layouts: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(Witness(4, {}, 0.0))
        self.layouts = layouts
        self.traces: list[dict[str, Any]] = []
        self.dots: dict[tuple, float] = {}
        self.scalars: dict[str, Any] = {}
        self.concurrent = 0

    def begin(self, kernel: Any, values: Mapping[str, Any], constants: set[str], grid: tuple[int, int, int]) -> None:
        """A launch starts: take the compiled accesses that belong to it."""
        number = len(self.launches) - 1
        known = self.layouts[number] if number < len(self.layouts) else {}
        accesses: dict[tuple[int, str], list] = {}
        for access in known.get("accesses", ()):
            accesses.setdefault((access["line"], access["kind"]), []).append(access)
        options = self.launches[number].options
        warps = int(known.get("warps") or options.get("num_warps", 4))
        self.memory = Witness(warps, accesses, float(known.get("l1_bytes", 0.0)), math.prod(grid))
        self.concurrent = int(known.get("concurrent", 1024))
        self.dots = {}
        skim.operations = 0
        self.scalars = {
            k: v for k, v in values.items()
            if k not in constants and isinstance(v, int | float) and not isinstance(v, bool)
        }  # fmt: skip

    def programs(self, grid: tuple[int, int, int]) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """Yield the programs to run: the full ones first, then the neighbours."""
        total = math.prod(grid)
        memory = self.memory
        scout = total // 2
        if total > PROGRAMS:  # what does a program cost? Not counted: a middle one
            memory.begin(scout, True)
            yield scout, _place(scout, grid)
            memory.forget()
            self.dots.clear()
        afford = int(FULL_WORK / max(1, self._work()))
        for number in spread(total, max(FEWEST, min(PROGRAMS, afford))):
            memory.begin(number, True)
            yield number, _place(number, grid)
        wave = max(1, min(total, self.concurrent))
        first = (total - wave) // 2
        for group, numbers in enumerate(together(first, wave)):
            before = self._work()
            for number in numbers:
                if self._work() - before > NEIGHBOUR_WORK / 2:
                    break
                memory.begin(number, False, group)
                yield number, _place(number, grid)
        self.traces.append(self._summary(total))

    def _work(self) -> int:
        return self.memory.work + OPERATION * skim.operations

    def run(self, body: Any, passed: Mapping[str, Any]) -> None:
        """Run one program, to its end or to where it is cut."""
        try:
            body(**passed)
        except EndOfProgram:
            pass

    def dot(self, a: np.ndarray, b: np.ndarray, acc: np.ndarray, precision: str = "TF32") -> np.ndarray:
        """Note a matrix product, and return the accumulator."""
        if self.memory.full:
            batch = math.prod(a.shape[:-2])
            key = (*a.shape[-2:], b.shape[-1], a.dtype.name, b.dtype.name, precision)
            self.dots[key] = self.dots.get(key, 0.0) + self.memory.weight * batch
        return acc

    def loop(self, *bounds: Any, **_: Any) -> Any:
        """``range`` inside of a kernel: all of a short loop; of a long one some iterations, with weights."""
        whole = builtins.range(*(int(getattr(b, "value", b)) for b in bounds))
        if not self.running or len(whole) <= WHOLE_LOOP:
            return whole
        return self._sampled(whole)

    def _sampled(self, whole: range) -> Iterator[int]:
        memory, before, n = self.memory, self.memory.weight, len(whole)
        stands_for = (n - HEAD - TAIL) / MIDDLE
        try:
            for i in (*builtins.range(HEAD + MIDDLE), *builtins.range(n - TAIL, n)):
                many = stands_for if HEAD <= i < HEAD + MIDDLE else 1.0
                memory.weight, fetched = before * many, memory.l1.fetched
                yield whole[i]
                if many > 1:
                    memory.l1.skip((many - 1) * (memory.l1.fetched - fetched) / memory.weight)
        finally:
            memory.weight = before

    def _summary(self, total: int) -> dict[str, Any]:
        memory, launch = self.memory, self.launches[-1]
        n = max(1, len(memory.programs))
        sites = [{k: v / n if isinstance(v, float) else v for k, v in vars(s).items()} for s in memory.sites.values()]
        return launch.to_json() | {
            "programs": total,
            "samples": [p.number for p in memory.programs],
            "wave": min(total, self.concurrent),
            "scalars": self.scalars,
            "warps": memory.warps,
            "sites": sites,
            "tensors": memory.tensors(),
            "dots": [
                {"shape": k[:3], "a": k[3], "b": k[4], "precision": k[5], "count": v / n} for k, v in self.dots.items()
            ],
            "cut": memory.cut,
            "unlike": memory.unlike(),
            "work": memory.work_done(),
        }


def spread(total: int, count: int) -> Iterator[int]:
    """Yield program numbers, one out of each of ``count`` equal stretches of the grid, at golden-ratio places in them.

    Even places would fall on the same column of a flattened grid again and again.
    """
    if total <= count:
        yield from builtins.range(total)
        return
    golden = _GOLDEN if total > 4 * count else 0.0
    for stratum in builtins.range(count):
        yield min(total - 1, int((stratum + (0.5 + stratum * golden) % 1.0) / count * total))


def together(first: int, wave: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return programs of the wave that begins with program ``first``: some in a row, and others anywhere in it."""
    start = first + max(0, (wave - IN_A_ROW) // 2)
    anywhere = random.Random(wave).sample(builtins.range(first, first + wave), min(ANYWHERE, wave))
    return builtins.range(start, start + min(IN_A_ROW, wave)), anywhere


def _place(number: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    return number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])


def trace_calls(
    spec: Spec, file: Path, args: tuple[Any, ...], layouts: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """Load ``file`` and trace its entry once for each configuration of its autotuned kernels.

    For a process that ends afterwards: arithmetic stays switched off.

    Args:
        args: lazily backed.
        layouts: for each configuration, for each launch, what is known of the compiled kernel
            (``rehearsal.layouts_of``).

    Returns:
        ``runs``: for each configuration (the first ones, where there are many) the traces of its launches; ``raised``
        when the code stopped.
    """
    launches.source_files.add(str(file))
    seen: dict[str, Any] = {"runs": []}
    skim.install()
    try:
        with CudaIsCpu():
            module = load_source(file, f"kata_{spec.id}")
            entry = find_entry(module, spec.entry, [a.name for a in spec.args])
        started = time.process_time()
        for number, known in enumerate(layouts):
            if number and time.process_time() - started > SECONDS:
                break  # of an autotuned kernel as many configurations as there is time for
            seen["runs"].append(trace_call(module, entry, args, known, number))
    except BaseException as error:
        seen["raised"] = raised(error, file).to_json()
    return seen


def trace_call(
    module: Any, entry: Any, args: tuple[Any, ...], layouts: Sequence[Mapping[str, Any]] = (), choice: int = 0
) -> list[dict[str, Any]]:
    """Trace one call of ``entry``, with configuration ``choice`` of every autotuned kernel."""
    aot.choose(choice)
    tracer = Tracer(layouts)
    skim.loops(module, tracer.loop)
    matrix.dot = tracer.dot
    interpreter.use(tracer)
    try:
        with CudaIsCpu():
            entry(*args)
    finally:
        interpreter.use(None)
    return tracer.traces
