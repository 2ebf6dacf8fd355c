"""Rehearsal: what the speed model needs to see of a bench shape, on a machine without the GPU.

The launches are traced in the interpreter (``trace``), with the layouts of the compiled kernels at hand; variants of
the zoo are compiled here too (katas are compiled by ``keeper.compile_ahead``). Runs in a keeper; code under test is
caged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.device import Device, find_device
from harness.runner import cage, wire

if TYPE_CHECKING:
    from harness.runner.keeper import Job

Request = dict[str, Any]
SECONDS = 30.0  # for tracing one call, all configurations


def traced(job: Job, layouts: list[Any]) -> dict[str, Any]:
    """Return ``runs`` of the job's case: for each configuration, the traces of its launches; else ``failed``."""
    from harness.course import ROOT
    from harness.model import trace
    from harness.runner import standin
    from harness.runner.tampering import forbid_tampering

    args = job.inputs(0)

    def work() -> bytes:
        standin.install(job.device)
        forbid_tampering(ROOT, job.file)
        return wire.pack(trace.trace_calls(job.spec, job.file, args, layouts), [])

    return _answer(cage.run(work, SECONDS))


def zoo_traced(request: Request) -> dict[str, Any]:
    """Return ``runs`` of one variant of the zoo, as ``traced`` does."""
    file, device = Path(request["zoo"]["file"]), find_device(request["gpu"])

    def work() -> bytes:
        import sys

        from harness.interpreted import launches
        from harness.model import skim, trace
        from harness.runner import standin
        from harness.zoo import variants as zoo

        standin.install(device)
        launches.source_files.add(str(file))
        skim.install()
        entry = _variant(request)
        module = sys.modules[zoo.module_name(file)]
        return wire.pack({"runs": [trace.trace_call(module, entry, (), known) for known in request["layouts"]]}, [])

    return _answer(cage.run(work, SECONDS))


def zoo_compiled(request: Request) -> dict[str, Any]:
    """Return ``runs`` and ``facts`` of one variant of the zoo, compiled for the request's GPU."""
    file, device = Path(request["zoo"]["file"]), find_device(request["gpu"])

    def work() -> bytes:
        from harness.compiled import aot
        from harness.interpreted import launches
        from harness.runner import standin

        standin.install(device)
        launches.source_files.add(str(file))
        compiler = aot.Compiler(device)
        compiler.files = {str(file)}
        aot.use(compiler)
        with standin.CudaIsCpu():
            return wire.pack(aot.every_configuration(compiler, _variant(request), 60.0), [])

    return _answer(cage.run(work, 120.0))


def _variant(request: Request) -> Callable[[], None]:
    from harness.zoo import variants as zoo

    wanted = request["zoo"]
    run, _ = zoo.entry(zoo.families(Path(wanted["file"]))[wanted["family"]], wanted["variant"])
    return run


def _answer(outcome: cage.Outcome) -> dict[str, Any]:
    if outcome.ended != "returned" or not outcome.report:
        last = (outcome.stack or outcome.printed).strip().splitlines()[-1:] or [""]
        return {"failed": f"{outcome.ended} after {outcome.seconds:.0f} s. {last[0]}".strip()}
    try:
        seen, _ = wire.unpack(outcome.report)
    except ValueError as error:
        return {"failed": f"its report cannot be read ({error})"}
    if seen.get("raised"):
        return {"failed": seen["raised"]["text"].split("\n")[0], **seen}
    return seen


def layouts_of(model: dict[str, Any], device: Device) -> list[list[dict[str, Any]]]:
    """Return what a trace needs of the compiled kernels: for each configuration, for each launch."""
    from harness.compiled.kernelfacts import KernelFacts

    read = {k: KernelFacts.from_json(v) for k, v in model["facts"].items() if "failed" not in v}
    accesses = {name: _accesses(facts) for name, facts in read.items()}

    def layout(launch: dict[str, Any]) -> dict[str, Any]:
        facts = read.get(launch["facts"])
        if facts is None:
            return {}
        programs = math.prod(launch["grid"])
        blocks = resident(facts, programs, device)
        return {
            "accesses": accesses[launch["facts"]],
            "warps": facts.num_warps,
            "l1_bytes": l1_share(facts.shared_bytes, blocks, device),
            "concurrent": min(programs, device.sms * facts.blocks_per_sm(device)),
        }

    return [[layout(launch) for launch in run] for run in model["runs"]]


def resident(facts: Any, programs: int, device: Device) -> int:
    """Return how many programs of the launch one SM runs at once."""
    return min(facts.blocks_per_sm(device), max(1, math.ceil(programs / device.sms)))


def l1_share(shared_bytes: int, blocks: int, device: Device) -> float:
    """Return the bytes of L1 that one CTA may count on: what shared memory leaves of the SM's array, divided."""
    return max(4096.0, (l1_bytes(device) - blocks * (shared_bytes + 1024)) / blocks)


def l1_bytes(device: Device) -> int:
    """Return the bytes of the array that L1 and shared memory divide: shared_per_sm_bytes and what is never shared."""
    return {7: 96, 8: 128 if device.capability[1] else 192, 9: 256, 10: 256, 12: 128}[device.capability[0]] * 1024


def _accesses(facts: Any) -> list[dict[str, Any]]:
    widths: dict[tuple[int, int], set[int]] = {}
    for instruction in facts.program.instructions:
        if instruction.base in ("LDG", "STG", "LDGSTS", "LD", "ST"):
            widths.setdefault((instruction.line, instruction.column), set()).add(_bytes(instruction.op))
    accesses = []
    for access in facts.accesses:
        layout = access.layout
        accesses.append({
            "line": access.line, "column": access.column, "kind": access.kind, "how": access.how,
            "shape": list(access.shape), "widths": sorted(widths.get((access.line, access.column), ())),
            "layout": layout and [layout.shape, layout.register, layout.lane, layout.warp],
        })  # fmt: skip
    return accesses


def _bytes(op: str) -> int:
    """Return the bytes that one thread moves: LDG.E.U8 1, .U16 2, .64 8, .128 16, else 4."""
    parts = op.split(".")
    sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    return next((sizes[p] for p in parts if p in sizes), 4)
