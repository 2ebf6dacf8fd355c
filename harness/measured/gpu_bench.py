"""The child process of an experiment: the bench shape on this GPU, beside its limit and its baselines."""

from __future__ import annotations

import dataclasses
import platform
from typing import TYPE_CHECKING, Any

import torch

from harness import physics
from harness.measured import gpu_child, timing
from harness.measured.sampling import Rules
from harness.runner.inputs import make_inputs, map_tensors
from harness.runner.loader import find_entry, load_source, raised

if TYPE_CHECKING:
    from harness.runner.keeper import Job

SECONDS = 12.0  # an experiment may take longer than a grade
NEAR_RIDGE = 0.5  # of the ridge: above it the tensor cores, not memory, can be the limit


def experiment(job: Job) -> dict[str, Any]:
    """Measure the bench shape of ``job``: raw samples, clocks, what was discarded, environment, baselines.

    A kata's ``reference.py`` may name baselines: ``baselines(*args)`` returns name -> function without arguments.
    """
    gpu_child._wire_up()
    torch.set_num_threads(8)  # the contents of a real layer are drawn on the CPU
    full = make_inputs(job.spec, job.reference, dataclasses.replace(job.case, role="small"))
    last: list[Any] = [None, None]
    try:
        entry = find_entry(load_source(job.file, f"kata_{job.spec.id}"), job.spec.entry)
        sets = [tuple(map_tensors(a, lambda t: t.to(timing.DEVICE).clone()) for a in full) for _ in range(2)]

        def call(i: int) -> None:
            last[i] = entry(*sets[i])

        others, scale, limit = contenders(job, sets[0])
        rules = dataclasses.replace(timing.BURSTS if limit["kind"] == "matmul" else Rules(), seconds=SECONDS)
        gpu_child._recording = False
        samples = timing.contest([lambda: call(0), lambda: call(1)], others, rules, scale)
        problem = next((p for i in range(2) if (p := gpu_child._sampled_problem(job, sets[i], last[i]))), "")
    except BaseException as error:
        return {"raised": raised(error, job.file).to_json()}
    finally:
        gpu_child._recording = True
    seen = samples.to_json() | {"limit": limit, "environment": environment(), "rules": dataclasses.asdict(rules)}
    return {"timing": seen, "problem": problem, "gpu": torch.cuda.get_device_name()}


def contenders(job: Job, args: tuple[Any, ...]) -> tuple[dict[str, Any], dict[str, float], dict[str, Any]]:
    """Return what runs beside ours, factors for their times, and what the limit is made of."""
    cost = job.cost()
    moved = cost["bytes_read"] + cost["bytes_written"]
    dtype = getattr(torch, job.case.dtype)
    peak = job.device.peaks.get(job.case.dtype, 0.0)
    copy = timing.copy_of(moved)
    others, scale, limit = {"limit": copy}, {}, {"kind": "copy", "bytes": moved, "flop": cost["flops"]}
    if peak and physics.intensity(cost["flops"], moved) > NEAR_RIDGE * physics.ridge(peak, job.device.mem_bw):
        product, factor = timing.matmul_of(cost["flops"], dtype)
        others, scale, limit["kind"] = {"limit": product, "copy": copy}, {"limit": factor}, "matmul"
    named = getattr(job.reference, "baselines", None)
    return others | (named(*args) if named else {}), scale, limit


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
