"""Ahead-of-time compilation: each launch is compiled for the named GPU, on a machine that has none.

The launcher runs as it would on the GPU, with Triton's own specialisation of the arguments; only the launch itself is
left out, so outputs hold nothing. What the interpreter accepts and no GPU does (an ``if`` on a block, a Python helper,
a dot of eight) ends here with the compiler's words.
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.compiled import blocks
from harness.device import Device
from harness.interpreted import launches
from harness.interpreted.launches import Launch, StandInKernel
from harness.runner.loader import find_entry, load_source, raised
from harness.spec import Spec

# what doctor asks for: (module, attribute path)
SEAMS = (
    ("triton.runtime.jit", "JITFunction.run"), ("triton.runtime.autotuner", "Autotuner.run"),
    ("triton.runtime.autotuner", "Autotuner.prune_configs"), ("triton.compiler", "ASTSource"),
    ("triton.backends.compiler", "GPUTarget"), ("triton.runtime.driver", "set_active"),
    ("triton.runtime._allocation", "_allocator"), ("triton.runtime._allocation", "NullAllocator"),
)  # fmt: skip


class Compiler:
    """What one compiled run of the launcher asked for, and what the compiler said."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.launches: list[Launch] = []
        self.compiled: dict[str, dict[str, Any]] = {}
        self.failed: str | None = None
        self.last_failed = False
        self.unsupported = False  # this Triton has no compiler for the GPU, whatever the kernel
        self.files: set[str] | None = None  # whose lines the facts of compiled kernels name; None: no facts
        self.facts: dict[str, dict[str, Any]] = {}  # by Triton's hash of the compiled kernel


_compiler: Compiler | None = None


def use(compiler: Compiler | None) -> None:
    """Make ``compiler`` the one that launches go to."""
    global _compiler
    _compiler = compiler


def prepare() -> None:
    """Patch the launch, once, before any learner's code is imported."""
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def run(self, *args, grid, warmup=False, **kwargs):
        if _compiler is None:
            raise RuntimeError("a kernel was launched while the file was being imported; launch it inside the entry")
        return _launch(_compiler, original, self, args, kwargs, grid, warmup)

    JITFunction.run = run


def warm() -> None:
    """Do before any fork what each compile begins with: Triton hashes all of its own files, half a second of a child.

    It is only time that is won: where a Triton has moved these names, each child does it for itself.
    """
    with contextlib.suppress(ImportError, AttributeError):
        import triton.experimental.gluon  # noqa: F401 - imported for the forks, by Triton when it looks at an argument
        from triton.runtime.cache import triton_key

        triton_key()
    with contextlib.suppress(Exception):
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend

        make_backend(GPUTarget("cuda", 90, 32)).hash()


def _launch(compiler: Compiler, original: Any, kernel: Any, args: tuple, kwargs: dict, grid: Any, warmup: bool) -> Any:
    signature = inspect.signature(kernel.fn)
    known = {k: v for k, v in kwargs.items() if k in signature.parameters}
    options = {k: v for k, v in kwargs.items() if k not in known}
    bound = signature.bind(*args, **known)
    bound.apply_defaults()
    values = dict(bound.arguments)
    constants = {n for n, a in kernel.fn.__annotations__.items() if "constexpr" in str(a)}
    if grid is None and warmup:
        grid = (1,)
    shape = launches.full_grid(grid(values) if callable(grid) else grid)
    launch = launches.describe(kernel.fn, shape, values, constants, options)
    if not warmup:
        compiler.launches.append(launch)
    if not blocks.huge(kernel.fn, launch.constants):  # else the launch is only recorded
        _compile(compiler, original, kernel, args, kwargs, launch)
    return StandInKernel(kernel, args, kwargs) if warmup else None


def _compile(compiler: Compiler, original: Any, kernel: Any, args: tuple, kwargs: dict, launch: Launch) -> None:
    started = time.perf_counter()
    compiler.last_failed = False
    try:
        made = original(kernel, *args, grid=launch.grid, warmup=True, **kwargs)
        if hasattr(made, "result") and not hasattr(made, "metadata"):
            made = made.result()
        shared, limit = made.metadata.shared, compiler.device.shared_per_block_optin_bytes
        if shared > limit:
            from triton.runtime.errors import OutOfResources

            raise OutOfResources(shared, limit, "shared memory")
        _workspace(made.metadata)
    except BaseException as error:
        if isinstance(error, unfit()):
            compiler.launches = [x for x in compiler.launches if x is not launch]  # an autotuner takes another one
        else:
            compiler.failed = compiler.failed or f"{type(error).__name__}: {error}"
        compiler.last_failed = True
        compiler.unsupported |= "is not defined for option 'gpu-name'" in str(error)  # ptxas's words
        raise
    if compiler.files is not None:
        launch.facts = _facts(compiler, made)
    compiler.compiled.setdefault(
        launch.key(),
        {
            "kernel": launch.kernel,
            "shared": shared,
            "num_warps": made.metadata.num_warps,
            "seconds": round(time.perf_counter() - started, 3),
        },
    )


def _workspace(metadata: Any) -> None:
    """Fail as a launch would where the kernel makes descriptors and the launcher has set no allocator for them.

    A file that speaks of set_allocator sets it where there is a GPU, if not here (`if x.is_cuda`).
    """
    speaks = any("set_allocator" in line for file in launches.source_files for line in linecache.getlines(file))
    if (size := getattr(metadata, "global_scratch_size", 0)) and not speaks:
        from triton.runtime import _allocation

        allocate = _allocation._allocator.get()
        if isinstance(allocate, _allocation.NullAllocator):
            allocate(size, metadata.global_scratch_align, None)


def _facts(compiler: Compiler, made: Any) -> str:
    """Read the compiled kernel once, and return the name under which its facts stand."""
    from harness.compiled import kernelfacts

    name = str(made.hash)
    if name not in compiler.facts:
        try:
            compiler.facts[name] = kernelfacts.extract(made, compiler.device, compiler.files or ()).to_json()
        except Exception as error:  # what cannot be read is not modelled; correctness does not hang on it
            compiler.facts[name] = {"failed": f"{type(error).__name__}: {error}"}
    return name


def compile_calls(
    spec: Spec, file: Path, args: tuple[Any, ...], device: Device, model_seconds: float = 0.0
) -> dict[str, Any]:
    """Load ``file``, run its entry once with every launch compiled, and return what was seen, as plain values.

    Args:
        model_seconds: above 0, the facts of every compiled kernel are returned too, and further configurations of
            autotuned kernels are compiled while this time lasts: ``model`` holds ``runs`` and ``facts``.
    """
    from harness.runner.standin import CudaIsCpu

    compiler = Compiler(device)
    compiler.files = {str(file)} if model_seconds else None
    launches.source_files.add(str(file))
    seen: dict[str, Any] = {}
    use(compiler)
    try:
        with CudaIsCpu():
            entry = find_entry(load_source(file, f"kata_{spec.id}"), spec.entry, spec.names)
            entry(*args)
            if model_seconds:
                seen["model"] = _for_the_model(compiler, lambda: entry(*args), model_seconds)
    except BaseException as error:
        seen["raised"] = raised(error, file).to_json() | {"compiling": compiler.last_failed}
    seen["launches"] = [launch.to_json() for launch in compiler.launches]
    seen["compiled"] = compiler.compiled
    seen["failed"] = compiler.failed
    seen["unsupported"] = compiler.unsupported
    return seen


def _for_the_model(compiler: Compiler, call: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """``every_configuration``, or ``failed``: the launches were compiled already, so no verdict hangs on this."""
    launched, failed, last_failed = compiler.launches, compiler.failed, compiler.last_failed
    try:
        return every_configuration(compiler, call, seconds)
    except Exception as error:
        compiler.failed, compiler.last_failed = failed, last_failed
        return {"failed": f"called again for the model, it stopped: {type(error).__name__}: {error}".split("\n")[0]}
    finally:
        compiler.launches = launched


def every_configuration(compiler: Compiler, call: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """Call with each configuration of the autotuned kernels, and return ``runs`` (launches) and ``facts`` (by name).

    ``left``: configurations that ``seconds`` had no room for. ``torch``: what torch moved in the first call.
    """
    from harness.compiled.torchmoves import TorchMoves  # needs torch, and doctor reads SEAMS without it

    moves = TorchMoves()
    started, runs, of, number = time.perf_counter(), [], 1, 0
    before = compiler.launches
    while number < of and (not number or time.perf_counter() - started < seconds):
        compiler.launches = []
        choose(number)
        with moves if not number else contextlib.nullcontext():
            call()
        runs.append([launch.to_json() for launch in compiler.launches])
        of = max([of, *(x.tuned["of"] for x in compiler.launches if x.tuned)])
        number += 1
    compiler.launches = before
    return {"runs": runs, "facts": compiler.facts, "left": of - number, "torch": moves.to_json()}


def unfit() -> tuple[type[BaseException], ...]:
    """Return the errors at which Triton's autotuner skips a configuration instead of failing."""
    from triton.compiler import errors as compiling
    from triton.runtime import errors as running

    from harness.interpreted.interpreter import StaticAssert

    names = ("OutOfResources", "PTXASError", "CompileTimeAssertionFailure")
    found = [getattr(place, name, None) for name in names for place in (running, compiling)]
    return (StaticAssert, *(e for e in found if e is not None))


def patch_autotuner() -> None:
    """Let an autotuned kernel run one of its configurations (another one each case) instead of timing them all.

    Works for both servers. On a GPU the autotuner skips configurations that do not fit; so does this.
    """
    from triton.runtime import autotuner

    refused = unfit()

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        configs = list(self.prune_configs(kwargs))
        first = choice % len(configs)
        for i, config in enumerate(configs[first:] + configs[:first]):
            self.best_config = config
            try:
                if config.pre_hook is not None:
                    config.pre_hook({**self.nargs, **kwargs, **config.all_kwargs()})
                launches.tuned = {"index": (first + i) % len(configs), "of": len(configs), "config": str(config)}
                return self.fn.run(*args, **kwargs, **config.all_kwargs())
            except refused:
                if i == len(configs) - 1:
                    raise
            finally:
                launches.tuned = None
        return None

    autotuner.Autotuner.run = run


choice = 0


def choose(number: int) -> None:
    """Select which configuration autotuned kernels run with, for this process."""
    global choice
    choice = number
