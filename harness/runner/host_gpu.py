"""The child process of a host-side kata on a real GPU: the learner's code drives it, and we measure the truth after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.runner.host_child import plain
from harness.runner.loader import find_entry, load_source, raised

if TYPE_CHECKING:
    from harness.runner.keeper import Job


def run_calls(job: Job) -> dict[str, Any]:
    """Call the entry on every ``reference.gpu_kernels(case)`` and return results and truths, or what was raised."""
    import torch

    torch.cuda.init()
    seen: dict[str, Any] = {"results": [], "truths": [], "looked": []}
    try:
        entry = find_entry(load_source(job.file, f"kata_{job.spec.id}"), job.spec.entry, job.spec.names)
        for launch, device, truth in job.reference.gpu_kernels(job.case):
            seen["results"].append(plain(entry(launch, device)))
            seen["truths"].append(truth())
    except BaseException as error:
        seen["raised"] = raised(error, job.file).to_json()
    return seen | {"gpu": torch.cuda.get_device_name()}
