"""From what a child saw to facts: one verdict word for one case, with the reason in a learner's words.

Runs in the keeper, after the child is dead. The order of the checks is the order of the verdict words: the first that
applies is said, because it is the cause of those that follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness.diagnosis.compare import compare
from harness.diagnosis.diagnose import Scene, describe
from harness.errors import HarnessFault
from harness.runner import wire
from harness.runner.cage import Outcome
from harness.runner.hostwatch import MOVES, poison_pattern
from harness.runner.ledger import made_elsewhere

if TYPE_CHECKING:
    from harness.runner.keeper import Job

Facts = dict[str, Any]
SHOWN_ELEMENTS = 2**20  # inputs up to this size help to say what went wrong
RERUN_ELEMENTS = 2**14  # results up to this size may be computed anew, to try an explanation


def fact(word: str, reason: str = "", **more: Any) -> Facts:
    """Return the facts of one case."""
    return {"word": word, "reason": reason, "findings": [], "not_checked": [], **more}


def cpu_facts(job: Job, contents: list[tuple], call: Callable[[dict[str, Any]], Outcome]) -> Facts:
    """Judge one case that the interpreter ran.

    Args:
        contents: the sets of arguments, untouched by the child.
        call: runs the planned calls in a cage, with changes to every plan.
    """
    facts, seen = _once(job, contents, call({}))
    if facts["word"] == "wrong" and seen.get("unmasked_fill"):
        again, _ = _once(job, contents, call({"masked_fill": "zero"}))
        if again["word"] == "pass":
            lines = ", ".join(str(n) for n in seen["unmasked_fill"])
            again["findings"].append(
                f"line {lines}: a masked load without `other=`: Triton leaves such lanes undefined. NVIDIA GPUs "
                "give 0, and with 0 the result is right; write other= to be safe"
            )
            facts = again
    if facts["word"] == "wrong" and any(np.prod(x["grid"]) > 1 for x in facts.get("launches", [])):
        again, _ = _once(job, contents, call({"order": None}))
        if again["word"] == "pass":
            reason = "right when the programs run in one order, wrong in another; a GPU keeps to none.\n"
            facts = facts | {"word": "racy", "reason": reason + facts["reason"]}
    if facts["word"] == "wrong" and seen.get("unchecked"):
        facts = _asm_free(job, contents, call, facts)
    if facts["word"] == "pass" and facts.pop("derived", False):
        facts = _ghost(job, contents, call, facts)
    facts["not_checked"] += seen.get("unchecked", [])
    return facts


def gpu_facts(job: Job, contents: list[tuple], outcome: Outcome) -> Facts:
    """Judge one case that ran compiled on a GPU."""
    facts, _ = _once(job, contents, outcome)
    facts.pop("derived", None)
    return facts


def timed_facts(job: Job, outcome: Outcome) -> Facts:
    """Judge one bench shape that was timed on a GPU."""
    ended = _ended(job, outcome)
    if ended is not None:
        return ended
    try:
        seen, _ = wire.unpack(outcome.report)
    except ValueError as error:
        return fact("error", f"the report of your code's process cannot be read ({error}).")
    if seen.get("raised"):
        return _raised(seen["raised"])
    if seen["problem"]:
        return fact("wrong", seen["problem"] + ".")
    return fact("pass", timing=seen["timing"], gpu=seen["gpu"], cost=job.cost())


def _once(job: Job, contents: list[tuple], outcome: Outcome) -> tuple[Facts, dict[str, Any]]:
    ended = _ended(job, outcome)
    if ended is not None:
        return ended | {"printed": outcome.printed}, {}
    try:
        seen, blobs = wire.unpack(outcome.report)
        facts = _from_seen(job, contents, seen, blobs)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return fact(
            "error", f"the report of your code's process cannot be read ({error}): did it write to its files or fork?"
        ), {}
    calls = seen.get("calls") or [{}]
    facts["launches"] = calls[0].get("launches", [])
    failure = next((c["failure"] for c in calls if c.get("failure")), None)
    if failure and facts["word"] in ("wrong", "unwritten", "racy"):
        facts["reason"] += f"\nYour code caught an error of its own kernel and went on: {failure}."
    facts["findings"] += list(dict.fromkeys(f for c in calls for f in c.get("findings", [])))
    facts["printed"], facts["seconds"] = outcome.printed, round(outcome.seconds, 3)
    facts["read_back"] = any(c.get("read_back") for c in calls)
    merged = {k: sorted({x for c in calls for x in c.get(k, [])}) for k in ("unmasked_fill", "unchecked")}
    return facts, merged


def _ended(job: Job, outcome: Outcome) -> Facts | None:
    """The verdict when the child did not come back with a report."""
    if outcome.ended == "returned":
        return None
    if outcome.ended == "timeout":
        line = _line_in(outcome.stack, str(job.file))
        at = f" It was at line {line}." if line else ""
        return fact("timeout", f"no answer within {job.seconds:g} s.{at} A loop that does not end for these sizes?")
    if outcome.ended == "left":
        return fact("error", "your code started processes that did not end before it. A kernel needs none.")
    if outcome.ended == "memory":
        return fact("error", f"used more than {outcome.memory_limit / 2**30:.2g} GiB of memory and was stopped.")
    if outcome.ended.startswith("signal"):
        return fact(
            "error", f"the process died of {outcome.ended.split()[1]} in your code, outside of any checked access."
        )
    status = outcome.ended.split()[1]
    if status == "70" and "harness: " in outcome.stack:
        raise HarnessFault(f"the harness failed in the child process. {outcome.stack[-1500:]}")
    return fact("error", f"your code ended its process (exit status {status}) before it returned a result.")


def _line_in(stack: str, file: str) -> int:
    match = re.search(rf'File "{re.escape(file)}", line (\d+)', stack)
    return int(match[1]) if match else 0


def _from_seen(job: Job, contents: list[tuple], seen: dict[str, Any], blobs: list[bytes]) -> Facts:
    if seen.get("tampering"):
        return fact("cheat", f"your code tried to change {seen['tampering'][0]}, which belongs to the course.")
    if seen.get("raised"):
        return _raised(seen["raised"])
    if seen.get("replaced"):
        return fact("cheat", f"your code replaced {seen['replaced']}, which belongs to what judges it.")
    calls = seen["calls"]
    for call in calls:
        if call["during_kernel"]:
            return fact("cheat", _torch_inside(call))
        if call.get("device_error"):
            return _device_error(call["device_error"])
        if call["violation"]:
            word = "out-of-bounds" if call["violation"]["kind"] == "out-of-bounds" else "error"
            return fact(word, call["violation"]["text"])
        if call.get("raised"):
            return _raised(call["raised"])
    return _results(job, contents, calls, blobs)


def _raised(info: dict[str, Any]) -> Facts:
    if info["todo"]:
        return fact("todo", info["text"])
    return fact("error", info["text"], ours=info["ours"])


def _device_error(text: str) -> Facts:
    if "illegal memory access" in text:
        return fact(
            "out-of-bounds",
            f"the GPU stopped the kernel: {text}. A load or store left all memory; --device cpu says which.",
            device_error=True,
        )
    return fact("error", f"the GPU stopped the kernel: {text}.", device_error=True)


def _torch_inside(call: dict[str, Any]) -> str:
    name, size = max(call["during_kernel"].items(), key=lambda kv: kv[1])
    return f"torch ran inside the kernel ({name}, {size:,} elements). On a GPU a kernel cannot call back into Python."


def _results(job: Job, contents: list[tuple], calls: list[dict[str, Any]], blobs: list[bytes]) -> Facts:
    """All calls returned: look at what they returned, and how it came about."""
    for call in calls:
        problem = _shape_problem(job, call["output"])
        if problem is not None:
            return problem
    if calls[0].get("sampled"):  # counted, not computed: some programs only
        return fact("pass", counters=calls[0]["counters"], cost=job.cost())
    unwritten = next((f for c in calls if (f := _unwritten(job, c, blobs))), None) or _still_poison(job, calls, blobs)
    if unwritten:
        return unwritten
    for call in calls:
        if call.get("mutated"):
            return fact("mutated-input", f"{call['mutated']} was changed by the call; inputs belong to the caller.")
    for number, call in enumerate(calls):
        if reason := _cheat(job, call, number):
            return fact("cheat", reason)
    values = [_values(job, contents, call, blobs) for call in calls]
    if (reason := made_elsewhere(calls)) and None in values:
        return fact("cheat", reason + ".")
    for call in calls:
        if call["race"]:
            return fact("racy", call["race"] + ".")
    wrong = [v for v in values if v is not None]
    same = [v for c, v in zip(calls, values, strict=True) if c["plan"]["contents"] == 0]
    if wrong and any(v is None for v in same) and any(v is not None for v in same):
        return fact("racy", "right when the programs run in one order, wrong in another.\n" + wrong[0])
    if wrong:
        first = next(c for c, v in zip(calls, values, strict=True) if v is not None)
        again = "in the second call, with new values at the same addresses: " if first["plan"]["contents"] else ""
        return fact("wrong", again + wrong[0])
    unread = next((c["unread"][0] for c in calls if c.get("unread") and np.prod(c["output"]["shape"])), None)
    if unread:  # and yet the result is right
        return fact("cheat", f"no kernel of yours read {unread}, or a copy of it: something else did the work.")
    if any(c["output"].get("reused") for c in calls):
        return fact("wrong", "a second call returned the memory of the first result, so the first result is gone.")
    derived = any("written" not in c["output"] for c in calls) and int(np.prod(calls[0]["output"]["shape"])) > 0
    out = fact("pass", derived=derived and job.case.role != "traffic")
    if "counters" in calls[0]:
        out["counters"], out["cost"] = calls[0]["counters"], job.cost()
    return out


def _shape_problem(job: Job, output: dict[str, Any]) -> Facts | None:
    if "problem" in output:
        word = "cheat" if output.get("subclass") else "error"
        return fact(word, output["problem"] + ".")
    returns = job.spec.returns
    want = job.case.dtype if returns.dtype == "T" else returns.dtype
    if output["torch_dtype"] != want:
        return fact("wrong", f"the result is {output['torch_dtype']}; expected {want}.")
    if "..." not in returns.shape:
        shape = list(returns.sizes(job.case.dims))
        if output["shape"] != shape:
            return fact("wrong", f"the result has shape {output['shape']}; expected {shape}.")
    if job.spec.contiguous and not output["contiguous"]:
        return fact(
            "wrong",
            f"the result has shape {output['shape']} and strides {output['strides']}; expected a contiguous tensor: "
            "this kata is about where the elements lie.",
        )
    return None


def _unwritten(job: Job, call: dict[str, Any], blobs: list[bytes]) -> Facts | None:
    if "written" not in call["output"]:
        return None
    missing = ~wire.array(call["output"]["written"], blobs)
    if not missing.any():
        return None
    return fact("unwritten", _missing(job, missing, call))


def _missing(job: Job, missing: np.ndarray, call: dict[str, Any]) -> str:
    from harness.diagnosis.diagnose import error_map

    first = [[int(i) for i in index] for index in np.argwhere(missing)[:3]]
    launch = call["launches"][-1] if call["launches"] else None
    none = f"not one of the {missing.size:,} elements of the result was written"
    if missing.size == 1:
        none = "the one element of the result was not written"
    if launch and missing.all() and 0 in launch["grid"]:
        return (
            f"{none}: the grid of {launch['kernel']} was "
            f"{tuple(launch['grid'])}, so no program ran. Round the number of programs up (triton.cdiv)."
        )
    if missing.all():
        return f"{none}: no tl.store reached it. Is a TODO of the kernel still open on this path?"
    grid = f" The last launch was {launch['kernel']} with grid {tuple(launch['grid'])}." if launch else ""
    return (
        f"{int(missing.sum()):,} of {missing.size:,} elements of the result were never written: "
        f"{', '.join(map(str, first))}{', …' if missing.sum() > 3 else ''}.{grid} Does the grid cover every tile, the "
        f"last one too? Does each program find a tile of its own, and does the store's mask let these through?\n"
        f"{error_map(missing)}"
    )


def _still_poison(job: Job, calls: list[dict[str, Any]], blobs: list[bytes]) -> Facts | None:
    """The result is a copy of something: elements that hold either poison were never computed."""
    marked = []
    for call in calls:
        raw = wire.array(call["output"]["values"], blobs)
        dtype = getattr(torch, call["output"]["torch_dtype"])
        if "written" in call["output"] or dtype == torch.bool or not raw.size:
            return None
        size = torch.empty(0, dtype=dtype).element_size()
        marked.append(raw.view(f"u{size}") == poison_pattern(dtype, call["plan"]["poison"]))
    missing = np.logical_and.reduce(marked)
    same_contents = len({c["plan"]["poison"] for c in calls}) > 1
    if not missing.any() or not (same_contents or missing.all() and calls[0]["launches"]):
        return None
    return fact("unwritten", _missing(job, missing.reshape(calls[0]["output"]["shape"]), calls[0]))


def _cheat(job: Job, call: dict[str, Any], number: int) -> str | None:
    output, launched = call["output"], len(call["launches"])
    if not int(np.prod(output["shape"])):
        return None
    if call["leaked"]:
        return call["leaked"] + "."
    if call["computed"]:
        name, size = max(call["computed"].items(), key=lambda kv: kv[1])
        failed = f" Your kernel itself failed: {call['failure']}." if call["failure"] else ""
        did = "moved" if name in MOVES else "computed"
        return f"torch {did} this: {name} on {size:,} elements, outside of your kernel.{failed}"
    if not launched:
        if number and output.get("reused"):
            return "the second call launched no kernel and returned the first result; its inputs had changed since."
        return "no kernel of yours was launched in this call."
    if output.get("altered"):
        return (
            f"{output['altered']:,} bytes of the result were changed after your kernel had written them, by neither a "
            "kernel nor torch."
        )
    if output.get("aliases"):
        return f"the result is the memory of the input {output['aliases']}, not a new tensor."
    limit = job.spec.max_launches
    if limit and launched > limit:
        return f"{launched} launches; this kata asks for at most {limit} a call."
    return None


def _ghost(job: Job, contents: list[tuple], call: Callable[[dict[str, Any]], Outcome], facts: Facts) -> Facts:
    """The result was copied together by torch: is it right even when the kernels do nothing?"""
    outcome = call({"ghost": True})
    if outcome.ended != "returned":
        return facts
    seen, blobs = wire.unpack(outcome.report)
    calls = seen.get("calls", [])
    if calls and "output" in calls[0] and "values" in calls[0]["output"]:
        if _shape_problem(job, calls[0]["output"]) is None and _values(job, contents, calls[0], blobs) is None:
            return fact("cheat", "the result is the same when your kernels are not run.")
    return facts


def _expected(job: Job, args: tuple[Any, ...]) -> tuple[torch.Tensor, Any]:
    try:
        expected = job.reference.reference(*args)
        bound = getattr(job.reference, "error_bound", lambda *_: 0.0)(expected, *args)
    except Exception as error:
        raise HarnessFault(f"{job.folder.name}/reference.py failed on case {job.case.id!r}: {error!r}.") from error
    return expected, bound


def _got(call: dict[str, Any], blobs: list[bytes]) -> torch.Tensor:
    output = call["output"]
    dtype = getattr(torch, output["torch_dtype"])
    raw = torch.from_numpy(wire.array(output["values"], blobs).copy())
    return raw.view(dtype).reshape(output["shape"]) if raw.numel() else torch.empty(output["shape"], dtype=dtype)


def _nan_allowed(job: Job) -> bool:
    return any(name in getattr(job.reference, "FILLS", {}) for name in job.case.fill.values())


def _values(
    job: Job, contents: list[tuple], call: dict[str, Any], blobs: list[bytes], ignore: np.ndarray | None = None
) -> str | None:
    """Return None when the values are right, else the description of what is wrong."""
    args = contents[call["plan"]["contents"]]
    expected, bound = _expected(job, args)
    got = _got(call, blobs)
    if list(expected.shape) != list(got.shape):
        raise HarnessFault(
            f"{job.folder.name}/reference.py returned {list(expected.shape)} for a result {list(got.shape)}."
        )
    if ignore is not None:
        got = torch.where(torch.from_numpy(ignore.copy()), expected.to(got.dtype), got)
    try:
        mismatch = compare(expected, got, bound=bound, ulp=job.spec.ulp, nan_allowed=_nan_allowed(job))
    except ValueError as error:
        raise HarnessFault(f"{job.folder.name}/reference.py, case {job.case.id!r}: {error}.") from error
    if mismatch is None:
        return None
    return describe(
        _scene(job, args, call, blobs, expected, got, mismatch.wrong),
        mismatch,
        entry=job.spec.entry,
        case_id=job.case.id,
    )


def _scene(job: Job, args, call, blobs, expected, got, wrong) -> Scene:
    output, last = call["output"], (call["launches"] or [{"grid": (1, 1, 1), "constants": {}, "kernel": ""}])[-1]
    writers = wire.array(output["writers"], blobs) if "writers" in output else None
    places = [i for i, a in enumerate(args) if isinstance(a, torch.Tensor) and a.numel() <= SHOWN_ELEMENTS]

    def rerun(inputs: tuple[np.ndarray, ...]) -> np.ndarray:
        changed = list(args)
        for i, values in zip(places, inputs, strict=True):
            changed[i] = torch.from_numpy(np.ascontiguousarray(values)).to(args[i].dtype)
        return _numpy(job.reference.reference(*changed))

    return Scene(
        got=_numpy(got),
        expected=_numpy(expected),
        wrong=wrong,
        dtype=output["torch_dtype"],
        inputs=tuple(_numpy(args[i]) for i in places),
        names=tuple(job.spec.args[i].name for i in places),
        rerun=rerun if got.numel() <= RERUN_ELEMENTS else None,
        layouts=dict(job.case.layout),
        options=dict(job.case.options),
        fills=dict(job.case.fill),
        writers=writers,
        grid=tuple(last["grid"]),
        blocks={k: int(v) for k, v in last["constants"].items() if v.isdigit()},
        kernel=last["kernel"],
    )


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        tensor = tensor.float()
    return tensor.detach().contiguous().numpy()


def _asm_free(job: Job, contents: list[tuple], call: Callable[[dict[str, Any]], Outcome], facts: Facts) -> Facts:
    """Inline PTX cannot run here. Elements that depend on its invented results are left out; the rest must be right."""
    first, second = call({}), call({"asm_fill": 1})
    if first.ended != "returned" or second.ended != "returned":
        return facts
    one, blobs_one = wire.unpack(first.report)
    two, blobs_two = wire.unpack(second.report)
    for a, b in zip(one["calls"], two["calls"], strict=True):
        left, right = _got(a, blobs_one), _got(b, blobs_two)
        size = left.element_size()
        raw = [t.contiguous().view(torch.uint8).reshape(*t.shape, size) for t in (left, right)]
        depends = (raw[0] != raw[1]).any(-1).numpy()
        problem = _values(job, contents, a, blobs_one, ignore=depends)
        if problem is not None:
            return facts
    counted = {"counters": one["calls"][0]["counters"], "cost": job.cost()} if "counters" in one["calls"][0] else {}
    return facts | {"word": "pass", "reason": "", "derived": False} | counted


def compile_facts(job: Job, outcome: Outcome) -> Facts:
    """Judge one ahead-of-time compiled run of the launcher."""
    ended = _ended(job, outcome)
    if ended is not None:
        if ended["word"] == "timeout":
            return fact(
                "undecided",
                f"compiling took longer than {outcome.seconds:.0f} s; --device cuda decides.",
                launches=[],
                compiled={},
            )
        return ended | {"launches": [], "compiled": {}}
    try:
        seen, _ = wire.unpack(outcome.report)
        launches, compiled = seen["launches"], seen["compiled"]
    except (ValueError, KeyError) as error:
        return fact("error", f"the report of your code's process cannot be read ({error}).", launches=[], compiled={})
    out = fact("pass", launches=launches, compiled=compiled, cost=job.cost(), failed=seen["failed"])
    out["model"] = seen.get("model")
    info = seen.get("raised")
    if seen.get("unsupported"):
        return out | {
            "word": "undecided",
            "reason": f"Triton {metadata.version('triton')} has no compiler for {job.device.name} (capability "
            f"{job.device.sm / 10:.1f}): a newer one may, or --gpu names another GPU.",
        }
    if seen["failed"] and not (info and info["compiling"]):
        if compiled and launches[-1]["key"] in compiled:  # another kernel of the learner's took over: fair
            return out | {"caught": seen["failed"]}
        return out | {"word": "error", "reason": f"does not compile for {job.device.name}: {seen['failed']}"}
    if info and info["compiling"]:
        return out | {"word": "error", "reason": f"does not compile for {job.device.name}: {info['text']}"}
    if info:
        # outputs hold nothing here, so a launcher that looks at them may stumble where it would not on a GPU
        return out | {"stumbled": info["text"], "todo": info["todo"]}
    return out
