"""The child process on a real GPU: compiled kernels, guarded buffers, two poisons, the first call judged too."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from harness.diagnosis.compare import compare
from harness.interpreted import launches
from harness.interpreted.launches import Launch
from harness.measured import timing
from harness.measured.limit import limit_of
from harness.runner.child import Blobs, Plan, describe_output
from harness.runner.hostwatch import HostWatch
from harness.runner.inputs import bits, make_inputs, map_tensors, named_tensors, span_bytes
from harness.runner.loader import find_entry, load_source, raised
from harness.spec import Spec

if TYPE_CHECKING:
    from harness.runner.keeper import Job

GUARD = 4096  # bytes of poison before and after each buffer
_GUARD_BYTE = 0x5B

_modules: dict[str, ModuleType] = {}
_seen: list[Launch] = []
_wired = False
_recording = True


class Guards:
    """Buffers with a guard band on either side; a store that runs over an end shows in it."""

    def __init__(self) -> None:
        self.bands: list[tuple[str, torch.Tensor, int]] = []

    def place(self, name: str, like: torch.Tensor, copy: bool) -> torch.Tensor:
        """Return a tensor on the GPU with the shape and strides of ``like`` inside guard bands."""
        nbytes = span_bytes(like)
        raw = torch.empty(nbytes + 2 * GUARD + 16, dtype=torch.uint8, device=timing.DEVICE)
        if nbytes <= 2**28:
            raw.fill_(_GUARD_BYTE)
        else:  # untouched memory between far apart elements stays as it is
            raw[:GUARD].fill_(_GUARD_BYTE)
            raw[GUARD + nbytes :].fill_(_GUARD_BYTE)
        shift = like.data_ptr() % 16 if copy else 0  # an unaligned view stays unaligned
        start = (GUARD + shift) // like.element_size()
        flat = raw[: (len(raw) // like.element_size()) * like.element_size()].view(like.dtype)
        out = flat.as_strided(tuple(like.shape), like.stride(), start)
        if copy and like.numel():
            _fill_view(out, like)
        self.bands.append((name, raw, GUARD + shift + nbytes))
        return out

    def broken(self) -> str:
        """Return which buffer was overrun, or an empty string."""
        for name, raw, end in self.bands:
            if bool((raw[:GUARD] != _GUARD_BYTE).any()):
                return f"a store went to memory before the start of {name}"
            if bool((raw[end:] != _GUARD_BYTE).any()):
                return f"a store went to memory behind the end of {name}"
        return ""


def moved(like: torch.Tensor) -> torch.Tensor:
    """Return a copy of ``like`` on the GPU with its strides and alignment; `.to` would close a slice's gaps."""
    return Guards().place("an input", like, copy=True)


def _fill_view(out: torch.Tensor, values: torch.Tensor) -> None:
    axis = tuple(slice(0, 1) if s == 0 and n > 1 else slice(None) for s, n in zip(out.stride(), out.shape, strict=True))
    out[axis].copy_(values[axis])


class GuardedWatch(HostWatch):
    """Also puts what the launcher allocates on the GPU between guard bands."""

    def __init__(self, poison: int, guards: Guards) -> None:
        super().__init__(poison, lambda: False)
        self.guards = guards

    def placed(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type != "cuda" or tensor.numel() == 0 or span_bytes(tensor) > 2**31:
            return tensor
        return self.guards.place("a tensor that the launcher allocated", tensor, copy=False)


def run_calls(spec: Spec, file: Path, contents: list[tuple[Any, ...]], blobs: Blobs) -> dict[str, Any]:
    """Load ``file`` (once), call its entry three times on the GPU and return what was seen."""
    wire_up()
    launches.source_files.add(str(file))
    seen: dict[str, Any] = {"calls": []}
    try:
        if str(file) not in _modules:
            _modules[str(file)] = load_source(file, f"kata_{spec.id}")
        entry = find_entry(_modules[str(file)], spec.entry, spec.names)
    except BaseException as error:
        _modules.pop(str(file), None)
        seen["raised"] = raised(error, file).to_json()
        return seen
    guards = Guards()
    names = {id(t): n for n, t in named_tensors(spec, contents[0])}
    args = tuple(
        map_tensors(a, lambda t: guards.place(names.get(id(t), "an input"), t, copy=True)) for a in contents[0]
    )
    targets = named_tensors(spec, args)
    kept: list[torch.Tensor] = []
    for plan in (Plan(), Plan(contents=1, poison=1), Plan(poison=1)):
        for (_, target), (_, source) in zip(targets, named_tensors(spec, contents[plan.contents]), strict=True):
            _fill_view(target, source.to("cuda"))
        before = [bits(t) for _, t in targets]
        call = _one_call(file, entry, args, targets, before, plan, guards, blobs, kept)
        seen["calls"].append(call)
        if call.get("raised") or call.get("violation") or call.get("device_error"):
            break
    return seen


def time_calls(job: Job) -> dict[str, Any]:
    """Time the bench shape of ``job`` with real contents, and look at what the timed calls returned."""
    wire_up()
    torch.set_num_threads(8)  # the contents of a real layer are drawn on the CPU
    full = make_inputs(job.spec, job.reference, dataclasses.replace(job.case, role="small"))
    try:
        if str(job.file) not in _modules:
            _modules[str(job.file)] = load_source(job.file, f"kata_{job.spec.id}")
        entry = find_entry(_modules[str(job.file)], job.spec.entry, job.spec.names)
        sets = [tuple(map_tensors(a, moved) for a in full) for _ in range(2)]
        last: list[Any] = [None, None]

        def caller(i: int) -> Callable[[], None]:
            def call() -> None:
                last[i] = entry(*sets[i])

            return call

        limit = limit_of(job.cost(), job.case.dtype, job.device)
        scale = {"limit": limit.scale}
        with unrecorded():
            found = timing.contest([caller(0), caller(1)], {"limit": limit.work}, limit.rules, scale)
        problem = next((p for i in range(2) if (p := sampled_problem(job, sets[i], last[i]))), "")
    except BaseException as error:
        return {"raised": raised(error, job.file).to_json()}
    plain = found.to_json()
    timed = {"ours_s": found.seconds["ours"], "limit_s": found.seconds["limit"], "limit": limit.to_json(job.cost())}
    timed |= {k: plain[k] for k in ("share", "low", "high", "stopped", "discarded", "trusted")}
    return {"timing": timed, "problem": problem, "gpu": torch.cuda.get_device_name()}


def sampled_problem(job: Job, args: tuple[Any, ...], out: Any, samples: int = 2**20) -> str:
    """Compare a million elements of a timed result with the reference, computed here: it is too big for a CPU.

    Where the reference needs more memory than a GPU has, the kata's ``part(out, *args)`` cuts out a part of the call.
    """
    other = "a timed call returned something else than the small cases did"
    if type(out) is not torch.Tensor:
        return other
    if part := getattr(job.reference, "part", None):
        try:
            out, args = part(out, *args)
        except (IndexError, ValueError, RuntimeError):
            return other
    expected = job.reference.reference(*args)
    bound = getattr(job.reference, "error_bound", lambda *_: 0.0)(expected, *args)
    if out.shape != expected.shape:
        return other
    at = torch.randint(0, out.numel(), (min(samples, out.numel()),), device=out.device)

    def pick(t: Any) -> Any:
        return t.reshape(-1)[at].cpu() if isinstance(t, torch.Tensor) and t.numel() > 1 else t

    mismatch = compare(pick(expected), pick(out), bound=pick(bound), ulp=job.spec.ulp, nan_allowed=False)
    return (
        ""
        if mismatch is None
        else f"{mismatch.count:,} of {mismatch.total:,} sampled elements of a timed call are wrong"
    )


def _one_call(
    file, entry, args, targets, before, plan: Plan, guards: Guards, blobs: Blobs, kept: list
) -> dict[str, Any]:
    _seen.clear()
    watch = GuardedWatch(plan.poison, guards)
    seen: dict[str, Any] = {
        "plan": vars(plan), "violation": None, "race": None, "leaked": None, "failure": None, "during_kernel": {},
        "findings": [], "unmasked_fill": [], "unchecked": [],
    }  # fmt: skip
    out: Any = None
    try:
        with watch:
            out = entry(*args)
        torch.cuda.synchronize()
        over = guards.broken()
        if over:
            seen["violation"] = {"kind": "out-of-bounds", "text": over + "."}
        for (name, tensor), was in zip(targets, before, strict=True):
            if not torch.equal(bits(tensor), was):
                seen["mutated"] = name
                break
        if not over:
            seen["output"] = describe_output(out, targets, kept, None, blobs)
    except BaseException as error:
        text = str(error)
        if "CUDA error" in text or "Triton Error [CUDA]" in text:
            seen["device_error"] = text.splitlines()[0]
        else:
            seen["raised"] = raised(error, file).to_json()
    seen |= {"launches": [x.to_json() for x in _seen], "computed": watch.computed, "read_back": watch.read_back}
    return seen


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Launches in here are not looked at: that takes the host longer than launching."""
    global _recording
    _recording = False
    try:
        yield
    finally:
        _recording = True


def wire_up() -> None:
    """Record launches: the kernel runs as Triton runs it."""
    global _wired
    if _wired:
        return
    _wired = True
    torch.cuda.init()
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def run(self, *args, grid, warmup, **kwargs):
        if not warmup and _recording:
            _record(self, grid, args, kwargs)
        return original(self, *args, grid=grid, warmup=warmup, **kwargs)

    JITFunction.run = run


def _record(kernel: Any, grid: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    signature = inspect.signature(kernel.fn)
    known = {k: v for k, v in kwargs.items() if k in signature.parameters}
    try:
        bound = signature.bind(*args, **known)
    except TypeError:
        return  # Triton says what is wrong with it
    bound.apply_defaults()
    values = dict(bound.arguments)
    constants = {n for n, a in kernel.fn.__annotations__.items() if "constexpr" in str(a)}
    options = {k: v for k, v in kwargs.items() if k not in known}
    shape = launches.full_grid(grid(values) if callable(grid) else grid)
    _seen.append(launches.describe(kernel.fn, shape, values, constants, options))
