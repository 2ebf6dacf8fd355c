"""The child process: loads the learner's file and calls its entry on a CPU, under the checked interpreter.

It knows the inputs and nothing else: no expected values, no tolerance. What it saw goes to the keeper as plain data,
and every conclusion is drawn there, after this process is dead.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from harness.interpreted import interpreter, launches
from harness.interpreted.interpreter import KernelError, Machine
from harness.interpreted.sanitizer import Memory, Stop
from harness.runner.hostwatch import HostWatch
from harness.runner.inputs import bits, named_tensors
from harness.runner.ledger import Ledger
from harness.runner.loader import find_entry, load_source, raised
from harness.runner.seal import seal
from harness.runner.standin import CudaIsCpu
from harness.spec import Spec

COUNTED_PROGRAMS = 1024  # of each launch of the traffic case; the counts of more are scaled up from these


@dataclass(frozen=True)
class Plan:
    """One call to make: on the first or the second contents, in which order, with which poison."""

    contents: int = 0
    order: int | None = None
    poison: int = 0
    masked_fill: str = "poison"
    asm_fill: int = 0
    counting: bool = False
    ghost: bool = False


@dataclass
class Blobs:
    """Arrays on their way to the keeper: raw bytes beside the JSON."""

    parts: list[bytes] = field(default_factory=list)

    def add(self, array: np.ndarray) -> dict[str, Any]:
        self.parts.append(np.ascontiguousarray(array).tobytes())
        return {"blob": len(self.parts) - 1, "dtype": array.dtype.str, "shape": list(array.shape)}


def run_calls(
    spec: Spec, file: Path, contents: list[tuple[Any, ...]], plans: list[Plan], blobs: Blobs, seconds: float = math.inf
) -> dict[str, Any]:
    """Load ``file``, make the planned calls and return what was seen.

    Args:
        contents: one or two sets of arguments with the same layouts; the call always gets the tensors of the first,
            overwritten in place, so that the addresses stay and the values change.
        seconds: the time there is; a slow kernel gets fewer calls rather than none that ends.
    """
    started = time.monotonic()
    launches.source_files.add(str(file))
    pristine = [[bits(t) for _, t in named_tensors(spec, args)] for args in contents]
    seen: dict[str, Any] = {"calls": []}
    kept: list[torch.Tensor] = []
    ledger, broken = Ledger(), seal(interpreter.judging_classes())
    try:
        with CudaIsCpu():
            module = load_source(file, f"kata_{spec.id}")
            entry = find_entry(module, spec.entry, spec.names)
    except BaseException as error:
        seen["raised"] = raised(error, file).to_json()
        return seen
    copies = [[(t, t.clone()) for _, t in named_tensors(spec, args)] for args in contents] if len(contents) > 1 else []
    for plan in plans:
        if len(contents) > 1:
            for (target, _), (_, source) in zip(copies[0], copies[plan.contents], strict=True):
                _restore(target, source)
        call = _one_call(spec, file, entry, contents[0], plan, pristine[plan.contents], blobs, kept, ledger)
        seen["calls"].append(call)
        if call.get("raised") or call.get("violation"):
            break
        if time.monotonic() - started > seconds / (len(plans) + 1):
            break
    seen["replaced"] = broken()
    return seen


def _restore(target: torch.Tensor, source: torch.Tensor) -> None:
    if target.dim() and 0 in target.stride():
        axis = [slice(0, 1) if s == 0 else slice(None) for s in target.stride()]
        target[tuple(axis)].copy_(source[tuple(axis)])
    else:
        target.copy_(source)


def _one_call(spec, file, entry, args, plan: Plan, before, blobs: Blobs, kept: list, ledger: Ledger) -> dict[str, Any]:
    tensors = named_tensors(spec, args)
    memory = Memory(list(tensors), plan.masked_fill, plan.counting)
    machine = Machine(memory, plan.order, plan.ghost, COUNTED_PROGRAMS if plan.counting else 0, asm_fill=plan.asm_fill)
    ledger.begin(t for _, t in tensors)
    watch = HostWatch(plan.poison, lambda: machine.running, spec.torch_copies, ledger)
    memory.handed, memory.left = ledger.launched, ledger.settle
    watch.wrote = memory.host_wrote
    inputs = [(name, t) for name, t in tensors if name in {a.name for a in spec.args} and t.numel()]
    for name, t in inputs:
        watch.came_from(name, t)
    memory.known_later = watch.allocated
    interpreter.use(machine)
    seen: dict[str, Any] = {"plan": vars(plan)}
    out: Any = None
    try:
        with CudaIsCpu(), watch:
            out = entry(*args)
    except Stop:
        pass
    except BaseException as error:
        seen["raised"] = raised(error, file).to_json()
        seen["swallowed_line"] = isinstance(error, KernelError)
    finally:
        interpreter.use(None)
    seen |= {
        "launches": [launch.to_json() for launch in machine.launches],
        "violation": vars(memory.violation) if memory.violation else None,
        "race": memory.race,
        "leaked": machine.leaked,
        "failure": machine.failure,
        "computed": watch.computed,
        "during_kernel": watch.during_kernel,
        "findings": list(memory.findings),
        "unmasked_fill": sorted(memory.unmasked_fill),
        "unchecked": list(machine.unchecked),
        "read_back": watch.read_back,
        "books": ledger.to_json(),
        "unread": _unread(inputs, watch, memory) if machine.launches and not plan.ghost else [],
    }
    if plan.counting:
        seen["counters"] = memory.counters(machine.share)
        seen["sampled"] = machine.share < 1
    for (name, tensor), was in zip(tensors, before, strict=True):
        if not torch.equal(bits(tensor), was):
            seen["mutated"] = name
            break
    if not seen.get("raised") and not memory.violation:
        seen["output"] = describe_output(out, tensors, kept, memory, blobs)
    return seen


def _unread(inputs: list, watch: HostWatch, memory: Memory) -> list[str]:
    """Return the inputs that no kernel loaded from, neither where they are nor where torch had copied them."""
    held = {name for storage in memory.read for name in watch.origins.get(storage, ())}
    return [name for name, _ in inputs if name not in held]


def describe_output(out: Any, tensors: list, kept: list, memory: Memory | None, blobs: Blobs) -> dict[str, Any]:
    """Return what the entry returned, as plain values and blobs; ``kept`` holds all results so far."""
    if type(out) is not torch.Tensor:
        return {
            "problem": f"the entry returned {_kind(out)}; expected a plain torch.Tensor",
            "subclass": isinstance(out, torch.Tensor),
        }
    seen: dict[str, Any] = {"shape": list(out.shape), "torch_dtype": str(out.dtype).removeprefix("torch.")}
    seen["strides"], seen["contiguous"] = list(out.stride()), out.is_contiguous()
    storage = out.untyped_storage().data_ptr()
    if out.numel():
        seen["aliases"] = next((n for n, t in tensors if t.untyped_storage().data_ptr() == storage), "")
        seen["reused"] = any(k.untyped_storage().data_ptr() == storage for k in kept)
    kept.append(out)
    seen["values"] = blobs.add(bits(out).cpu().numpy())
    seen["altered"] = memory.altered(out) if memory is not None else 0
    written = memory.written_by(out) if memory is not None else None
    if written is not None:
        seen["written"], seen["writers"] = blobs.add(written[0]), blobs.add(written[1])
    return seen


def _kind(value: Any) -> str:
    return (
        "None" if value is None else f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    )
