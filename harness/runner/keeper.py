"""The keeper: one trusted process for each client and kind of server; builds inputs, cages the learner's code, judges.

Everything that decides stands here: the child sees only the inputs, and the reference is computed after it is dead.
"""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.course import ROOT
from harness.device import find_device
from harness.errors import KataError
from harness.model import rehearsal
from harness.runner import cage, wire
from harness.runner.inputs import make_inputs
from harness.spec import Case, Spec, load_spec


def preload(kind: str) -> None:
    """Import, before any fork, what the keepers of this kind need."""
    from harness.compiled import aot

    if kind == "interpret":
        from harness.interpreted import interpreter  # noqa: F401 - imported for the forks
        from harness.runner import judge  # noqa: F401 - imported for the forks

        interpreter.prepare()
        aot.patch_autotuner()
        _warm()
    elif kind == "compile":
        import triton.compiler  # noqa: F401 - imported for the forks

        aot.prepare()
        aot.patch_autotuner()
        aot.warm()
    else:
        import triton  # noqa: F401 - imported for the forks

        from harness.runner import judge  # noqa: F401 - imported for the forks


def _warm() -> None:
    """Run a tiny kernel through all of the machinery: what is loaded now is shared by every child."""
    import torch

    from harness.interpreted import interpreter, launches
    from harness.interpreted.sanitizer import Memory
    from harness.runner import child, standin, warm
    from harness.runner.hostwatch import HostWatch

    launches.source_files.add(warm.__file__)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.ones(9, dtype=dtype)
        machine = interpreter.Machine(Memory([("x", x)]), order=1)
        interpreter.use(machine)
        with standin.CudaIsCpu(), HostWatch(0, lambda: False):
            out = warm.warm(x)
        machine.memory.written_by(out)
        child.bits(out)
    interpreter.use(None)
    launches.source_files.clear()


def serve(kind: str, connection: socket.socket) -> None:
    """Answer requests until the client hangs up. A KataError becomes the answer's ``fault``."""
    from harness.measured import gpu_keeper

    handle: Callable[[dict[str, Any]], dict[str, Any]] = {
        "interpret": interpret, "compile": compile_ahead, "cuda": gpu_keeper.Keeper().measure,
    }[kind]  # fmt: skip
    while (request := wire.receive(connection)) is not None:
        try:
            answer = handle(request)
        except KataError as error:
            answer = {"fault": str(error)}
        except Exception as error:
            import traceback

            answer = {"fault": f"the harness failed: {error!r}\n{traceback.format_exc()[-3000:]}"}
        wire.send(connection, answer)


ORDERS = 3  # one case in so many is called once more, on the first contents in another order of programs

_loaded: dict[str, tuple[float, ModuleType]] = {}


def load_reference(folder: Path) -> ModuleType:
    """Return the kata's ``reference.py`` as a module, loaded anew when the file changed."""
    path = folder / "reference.py"
    stamp = path.stat().st_mtime
    if str(path) not in _loaded or _loaded[str(path)][0] != stamp:
        spec = importlib.util.spec_from_file_location(f"reference_{folder.name}", path)
        if spec is None or spec.loader is None:
            raise KataError(f"{path} cannot be loaded as Python.")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _loaded[str(path)] = (stamp, module)
    return _loaded[str(path)][1]


class Job:
    """A request, unpacked: the kata, the file, the case and its inputs."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.folder = Path(request["kata"])
        self.file = Path(request["file"])
        self.spec: Spec = load_spec(self.folder)
        self.reference = load_reference(self.folder)
        self.case = Case.from_json(request["case"])
        self.device = find_device(request["gpu"])
        self.seconds = float(request.get("seconds", self.spec.time_limit))

    def inputs(self, shift: int = 0) -> tuple[Any, ...]:
        """Return the arguments; ``shift`` selects other values of the same layouts."""
        try:
            return make_inputs(self.spec, self.reference, self.case.with_seed(self.case.seed + shift))
        except KataError:
            raise
        except Exception as error:
            raise KataError(
                f"{self.folder.name}: the inputs of case {self.case.id!r} cannot be made: {error!r}."
            ) from error

    def cost(self) -> dict[str, int]:
        """Return the kata's ``cost()`` for this case."""
        return self.reference.cost(dict(self.case.dims), self.case.dtype, **self.case.options)._asdict()


def interpret(request: dict[str, Any]) -> dict[str, Any]:
    """Run one case in the checked interpreter and return the facts about it."""
    from harness.runner import judge
    from harness.runner.child import Plan

    if "zoo" in request:
        return rehearsal.zoo_traced(request)
    job = Job(request)
    if "layouts" in request:
        return rehearsal.traced(job, request["layouts"])
    if job.spec.side == "host":
        from harness.runner import host_keeper

        return host_keeper.interpret(job)
    contents = [job.inputs(0), job.inputs(1)]
    order = job.case.seed
    if job.case.role == "traffic":
        plans = [Plan(counting=True)]
    else:
        plans = [Plan(order=order), Plan(contents=1, order=order + 1, poison=1)]
        if order % ORDERS == 0:
            plans.append(Plan(order=order + 2, poison=1))
    return judge.cpu_facts(job, contents, lambda changes: _caged(job, contents, plans, changes))


def _caged(job: Job, contents: list[tuple[Any, ...]], plans: list[Any], changes: dict[str, Any]) -> cage.Outcome:
    import dataclasses

    from harness.compiled import aot
    from harness.runner import standin
    from harness.runner.child import Blobs, run_calls
    from harness.runner.tampering import forbid_tampering

    changed = [dataclasses.replace(p, **changes) for p in plans]

    def work() -> bytes:
        aot.choose(job.case.seed)
        standin.install(job.device)
        attempts = forbid_tampering(ROOT, job.file)
        os.chdir(job.file.parent)
        blobs = Blobs()
        seen = run_calls(job.spec, job.file, contents, changed, blobs, job.seconds)
        return wire.pack(seen | {"tampering": attempts}, blobs.parts)

    return cage.run(work, job.seconds)


def compile_ahead(request: dict[str, Any]) -> dict[str, Any]:
    """Run the launcher once on one case with every launch compiled for the named GPU."""
    from harness.compiled import aot
    from harness.runner import judge, standin
    from harness.runner.tampering import forbid_tampering

    if "zoo" in request:
        return rehearsal.zoo_compiled(request)
    job = Job(request)
    args = job.inputs(0)

    def work() -> bytes:
        aot.choose(job.case.seed)
        standin.install(job.device)
        forbid_tampering(ROOT, job.file)
        seen = aot.compile_calls(job.spec, job.file, args, job.device, float(request.get("model", 0)))
        return wire.pack(seen, [])

    return judge.compile_facts(job, cage.run(work, max(job.seconds, 60.0)))
