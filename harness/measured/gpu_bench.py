"""The child process of an experiment: the bench shape on this GPU, beside its limit and its baselines."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from harness.measured import gpu_child, timing
from harness.measured.limit import limit_of
from harness.runner.inputs import make_inputs, map_tensors
from harness.runner.loader import find_entry, load_source, raised

if TYPE_CHECKING:
    from harness.runner.keeper import Job

SECONDS = 8.0  # an experiment may take longer than a grade


def experiment(job: Job, beside: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Measure the bench shape of ``job``: raw samples, clocks, what was discarded, environment, baselines.

    A kata's ``reference.py`` may name baselines: ``baselines(*args)`` returns name -> function without arguments.

    Args:
        beside: name -> path of further files, whose entry runs in turns with ours.
    """
    gpu_child.wire_up()
    torch.set_num_threads(8)  # the contents of a real layer are drawn on the CPU
    full = make_inputs(job.spec, job.reference, dataclasses.replace(job.case, role="small"))
    last: list[Any] = [None, None]
    file = job.file
    try:
        entry = _entry(job, file)
        sets = [tuple(map_tensors(a, gpu_child.moved) for a in full) for _ in range(2)]

        def call(i: int) -> None:
            last[i] = entry(*sets[i])

        limit = limit_of(job.cost(), job.case.dtype, job.device)
        others = {"limit": limit.work} | _baselines(job, sets[0], limit.kind)
        for name, path in (beside or {}).items():
            file = Path(path)
            others[name] = functools.partial(_entry(job, file), *sets[0])
            others[name]()  # what it raises is told with its own lines
        file = job.file
        rules = dataclasses.replace(limit.rules, seconds=SECONDS)
        with gpu_child.unrecorded():
            samples = timing.contest([lambda: call(0), lambda: call(1)], others, rules, {"limit": limit.scale})
        problem = next((p for i in range(2) if (p := gpu_child.sampled_problem(job, sets[i], last[i]))), "")
    except BaseException as error:
        return {"raised": raised(error, file).to_json()}
    seen = samples.to_json() | {"limit": limit.to_json(job.cost()), "environment": environment()}
    return {
        "timing": seen | {"rules": dataclasses.asdict(rules)}, "problem": problem,
        "gpu": torch.cuda.get_device_name(),
    }  # fmt: skip


def _entry(job: Job, file: Path) -> Any:
    return find_entry(load_source(file, f"kata_{job.spec.id}_{file.stem}"), job.spec.entry, job.spec.names)


def _baselines(job: Job, args: tuple[Any, ...], limit: str) -> dict[str, Any]:
    """Return a copy of as many bytes, if that is not the limit, and what the kata names and this machine can run."""
    cost = job.cost()
    named = getattr(job.reference, "baselines", lambda *_: {})(*args)
    found = {"copy": timing.copy_of(cost["bytes_read"] + cost["bytes_written"])} if limit != "copy" else {}
    for name, work in named.items():
        with contextlib.suppress(RuntimeError, ImportError, NotImplementedError):
            work()
            found[name] = work
    return found


def environment() -> dict[str, Any]:
    """Return what a reader needs to know about the machine."""
    import triton

    properties = torch.cuda.get_device_properties(0)
    return {
        "gpu": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "sms": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "memory_bytes": properties.total_memory,
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    } | timing.driver().facts()
