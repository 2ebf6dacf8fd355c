"""Triton's interpreter made trustworthy: the one module that touches Triton's private names.

``prepare()`` runs once in the fork server, before any learner's code: it patches the language, the arithmetic
(``numerics``) and the launch. ``Machine`` is one call's worth of state: the checked memory, the order of the programs,
the log of launches. Import this module only where ``TRITON_INTERPRET=1`` was set before triton was imported.
"""

from __future__ import annotations

import dataclasses
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from harness.interpreted import descriptors, launches
from harness.interpreted.launches import Launch
from harness.interpreted.rewrite import rewritten
from harness.interpreted.sanitizer import Memory, Stop

GRID_LIMITS = (2**31 - 1, 65535, 65535)  # CUDA C++ Programming Guide, table of technical specifications

# (object of triton.runtime.interpreter, attribute) that the patches below need; doctor asks for what is missing
SEAMS = (
    ("", "InterpretedFunction"), ("", "InterpreterBuilder"), ("", "interpreter_builder"), ("", "_patch_lang"),
    ("", "_implicit_cvt"), ("", "TensorHandle"), ("", "TensorDescHandle"), ("", "_get_np_dtype"), ("", "ReduceOps"),
    ("TensorDescHandle", "validate"), ("TensorDescHandle", "materialize_pointers"),
    ("InterpretedFunction", "run"), ("InterpretedFunction", "__call__"), ("InterpreterBuilder", "create_masked_load"),
    ("InterpreterBuilder", "create_masked_store"), ("InterpreterBuilder", "create_atomic_rmw"),
    ("InterpreterBuilder", "create_atomic_cas"), ("InterpreterBuilder", "create_dot"),
    ("InterpreterBuilder", "create_splat"), ("InterpreterBuilder", "set_grid_idx"),
    ("InterpreterBuilder", "set_grid_dim"), ("InterpreterBuilder", "binary_op"),
)  # fmt: skip


def missing_seams() -> list[str]:
    """Return the private names of Triton's interpreter that this module needs and that this Triton lacks."""
    import triton.runtime.interpreter as interp

    missing = []
    for owner, name in SEAMS:
        holder = getattr(interp, owner, None) if owner else interp
        if holder is None or not hasattr(holder, name):
            missing.append(f"{owner}.{name}" if owner else name)
    return missing


class KernelError(Exception):
    """A kernel raised while it was interpreted; the message is the learner's, with the line in it."""


class StaticAssert(KernelError):
    """``tl.static_assert`` failed: a compiler would refuse this configuration."""


@dataclass
class Machine:
    """One call of the entry: its memory, its launches, and how programs are ordered.

    Attributes:
        memory: the checked memory.
        order: seed of the order in which programs run; None runs them in Triton's order.
        ghost: launches do nothing (is the answer right even without the kernels?).
        sample: run at most this many programs a launch, neighbours, from the middle; 0 runs all.
        share: what share of the programs ran, of the launch that was cut most.
    """

    memory: Memory
    order: int | None = None
    ghost: bool = False
    sample: int = 0
    share: float = 1.0
    launches: list[Launch] = field(default_factory=list)
    failure: str | None = None
    leaked: str | None = None
    unchecked: dict[str, None] = field(default_factory=dict)
    asm_fill: int = 0
    running: bool = False
    epoch: int = 0
    ran: int = 0

    def programs(self, grid: tuple[int, int, int]) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """Yield (flat number, (x, y, z)) of the programs to run, x fastest, in this machine's order."""
        total = grid[0] * grid[1] * grid[2]
        numbers = range(total)
        if self.sample and total > self.sample:
            first = (total - self.sample) // 2
            numbers = range(first, first + self.sample)
            self.share = min(self.share, self.sample / total)
        if self.order is not None:
            numbers = random.Random(self.order).sample(numbers, len(numbers))
        for n in numbers:
            yield n, (n % grid[0], n // grid[0] % grid[1], n // (grid[0] * grid[1]))

    def begin(self, kernel: Any, values: dict[str, Any], constants: set[str], grid: tuple[int, int, int]) -> None:
        """A launch of the plain function ``kernel`` starts; ``values`` are its arguments by name."""

    def run(self, body: Callable[..., Any], passed: dict[str, Any]) -> None:
        """Run one program."""
        body(**passed)


_machine: Machine | None = None
_bodies: dict[Any, Callable[..., Any]] = {}
_originals: dict[str, Any] = {}  # Triton's own functions that were replaced


def current() -> Machine:
    """Return the machine of the call in progress. Raises RuntimeError when a kernel is launched outside of a call."""
    if _machine is None:
        raise KernelError("a kernel was launched while the file was being imported; launch it inside the entry")
    return _machine


def use(machine: Machine | None) -> None:
    """Make ``machine`` the one that launches go to."""
    global _machine
    _machine = machine


def learner_line() -> int:
    """Return the line of the innermost frame that belongs to code under test."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in launches.source_files:
            return frame.f_lineno
        frame = frame.f_back
    return 0


def prepare() -> None:
    """Patch Triton's interpreter, once, before any learner's code is imported."""
    import triton.language as tl
    import triton.runtime.interpreter as interp

    from harness.interpreted import numerics

    def language() -> None: ...

    scope = {"tl": tl, "core": tl.core}
    interp._patch_lang(type(language)(language.__code__, scope))  # for good: this process only interprets
    interp._patch_lang = lambda fn: _Nothing()
    _originals["cvt"] = interp._implicit_cvt
    numerics.install(interp)
    _patch_memory(interp)
    _patch_language(interp, tl)
    _patch_functions(interp, tl)
    _patch_descriptors(interp, tl)
    for name in ("sum", "max", "min", "zeros", "zeros_like", "cdiv", "softmax", "sigmoid", "argmax", "cumsum", "ravel"):
        fn = getattr(tl, name, None)
        if isinstance(fn, interp.InterpretedFunction):
            _body(fn)


def judging_classes() -> list[type]:
    """Return the classes of Triton's interpreter on whose methods a verdict rests."""
    import triton.runtime.interpreter as interp

    return [getattr(interp, owner or name) for owner, name in SEAMS if isinstance(getattr(interp, owner or name), type)]


class _Nothing:
    def restore(self) -> None:
        """Nothing was patched for this launch."""


# -- memory ----------------------------------------------------------------------------------------------------------


def _patch_memory(interp: Any) -> None:
    builder, handle = interp.InterpreterBuilder, interp.TensorHandle

    def load(self, ptrs, mask, other, *rest, **options):
        dtype_tt = ptrs.get_element_ty()
        _same_program(ptrs, mask, other)
        data = current().memory.load(
            ptrs.data, None if mask is None else mask.data, None if other is None else other.data,
            interp._get_np_dtype(dtype_tt),
        )  # fmt: skip
        return handle(data, dtype_tt)

    def store(self, ptrs, value, mask, *rest, **options):
        _same_program(ptrs, value, mask)
        dtype = interp._get_np_dtype(ptrs.get_element_ty())
        current().memory.store(ptrs.data, value.data.astype(dtype, copy=False), None if mask is None else mask.data)

    builder.create_masked_load, builder.create_masked_store = load, store
    builder.create_load = lambda self, ptr, *rest, **options: load(self, ptr, None, None)
    builder.create_store = lambda self, ptr, val, *rest, **options: store(self, ptr, val, None)

    rmw, cas = builder.create_atomic_rmw, builder.create_atomic_cas

    def atomic_rmw(self, op, ptr, val, mask, *rest):
        _same_program(ptr, val, mask)
        real = current().memory.atomic(ptr.data, mask.data, val.data.itemsize)
        if val.data.dtype.kind not in "iufb":
            return _slow_rmw(interp, str(op), real, val, mask)
        active = np.ascontiguousarray(np.broadcast_to(mask.data, real.shape))
        value = np.ascontiguousarray(np.broadcast_to(val.data, real.shape))
        try:
            return rmw(self, op, handle(real, ptr.dtype), handle(value, val.dtype), handle(active, mask.dtype), *rest)
        except ValueError:  # such as an exchange of floats, which the interpreter's C++ lacks
            return _slow_rmw(interp, str(op), real, val, mask)

    def atomic_cas(self, ptr, cmp, val, *rest):
        _same_program(ptr, cmp, val)
        real = current().memory.atomic(ptr.data, None, val.data.itemsize)
        return cas(self, handle(real, ptr.dtype), cmp, val, *rest)

    builder.create_atomic_rmw, builder.create_atomic_cas = atomic_rmw, atomic_cas
    _watch_operands(builder)


def _watch_operands(builder: Any) -> None:
    """A tile kept from another program may reach memory only through arithmetic: look at its operands, too."""
    dot, binary = builder.create_dot, builder.binary_op

    def create_dot(self, a, b, acc, *rest):
        _same_program(a, b, acc)
        return dot(self, a, b, acc, *rest)

    def binary_op(self, lhs, rhs, op):
        _same_program(lhs, rhs)
        return binary(self, lhs, rhs, op)

    builder.create_dot, builder.binary_op = create_dot, binary_op


def _patch_descriptors(interp: Any, tl: Any) -> None:
    def number(part: Any) -> int:
        return int(np.asarray(part.data).reshape(-1)[0])

    def itemsize(desc: Any) -> int:
        return desc.base.dtype.element_ty.primitive_bitwidth // 8

    def validate(self):
        problem = descriptors.fault(number(self.base), [number(s) for s in self.strides], itemsize(self))
        if problem:
            raise KernelError(f"line {learner_line()}: {problem}")

    def materialize_pointers(self, offsets):
        numbers = [[number(part) for part in parts] for parts in (self.shape, self.strides, offsets)]
        where, inside = descriptors.addresses(
            number(self.base), numbers[0], numbers[1], self.block_shape, numbers[2], itemsize(self)
        )
        return interp.TensorHandle(where, self.base.dtype.scalar), interp.TensorHandle(inside, tl.int1)

    interp.TensorDescHandle.validate = validate
    interp.TensorDescHandle.materialize_pointers = materialize_pointers


def _slow_rmw(interp: Any, op: str, real: np.ndarray, val: Any, mask: Any) -> Any:
    """An atomic on a type that numpy does not know (bfloat16), lane by lane."""
    from harness.interpreted.sanitizer import real_bytes

    combine = {"FADD": np.add, "MAX": np.maximum, "MIN": np.minimum, "XCHG": lambda old, new: new}
    step = next((f for name, f in combine.items() if name in op.upper()), None)
    if step is None:
        raise NotImplementedError(f"tl.atomic {op} on {val.dtype} is not known to this interpreter; a GPU decides")
    values = np.broadcast_to(val.data, real.shape).reshape(-1)
    active = np.broadcast_to(mask.data, real.shape).reshape(-1)
    out = np.zeros(real.size, val.data.dtype)
    for i in np.flatnonzero(active):
        cell = real_bytes(int(real.reshape(-1)[i]), values.itemsize).view(values.dtype)
        out[i] = cell[0]
        cell[0] = step(cell[0], values[i])
    return interp.TensorHandle(out.reshape(real.shape), val.dtype)


def _same_program(*handles: Any) -> None:
    """Programs of a grid share nothing but memory: a value that outlived its program gives a cheat away."""
    machine = current()
    for h in handles:
        if h is not None and getattr(h, "epoch", 0) not in (0, machine.epoch):
            machine.leaked = machine.leaked or (
                f"line {learner_line()}: a value that another program computed is used in program "
                f"{machine.memory.program_id}; on a GPU, programs share nothing but memory"
            )


# -- language --------------------------------------------------------------------------------------------------------


def _patch_language(interp: Any, tl: Any) -> None:
    builder, handle = interp.InterpreterBuilder, interp.TensorHandle
    made = handle.__post_init__

    def stamped(self):
        made(self)
        self.epoch = _machine.epoch if _machine is not None else 0

    handle.__post_init__ = stamped

    def splat(self, ty, arg):
        # keeps the type of the data: a scalar condition stays a condition when it is spread over a block
        return handle(np.full(ty.shape, arg.data.reshape(-1)[0], dtype=arg.data.dtype), arg.dtype.scalar)

    builder.create_splat = splat

    def truth(self):
        if self.handle.data.size == 1:
            return bool(self.handle.data.reshape(-1)[0])
        if sys._getframe(1).f_code.co_filename not in launches.source_files:
            return True  # Triton's own code asks `if other`, meaning "was it given"
        raise KernelError(
            f"line {learner_line()}: `if`, `while`, `and` or `bool()` needs one value, but this is a block of shape "
            f"{list(self.handle.data.shape)}; use tl.where, or reduce it first (tl.max, tl.sum)"
        )

    def static_assert(cond, msg="", **_):
        if not getattr(cond, "value", cond):
            raise StaticAssert(f"line {learner_line()}: tl.static_assert failed: {getattr(msg, 'value', msg)}")

    tl.static_assert = tl.core.static_assert = static_assert
    tl.tensor.__bool__ = truth
    tl.tensor.__index__ = lambda self: int(self.handle.data.reshape(-1)[0])
    tl.tensor.__int__ = tl.tensor.__index__
    tl.tensor.__hash__ = object.__hash__

    def assertion(self, condition, message, *rest):
        if not np.all(condition.data):
            raise KernelError(f"line {learner_line()}: tl.device_assert failed: {message}")

    builder.create_assert = assertion

    def inline_asm(self, asm, constraints, values, types, pure, pack):
        machine = current()
        machine.unchecked[f"line {learner_line()}: inline PTX cannot run here; what it computes was not checked"] = None
        rng = np.random.default_rng(machine.asm_fill)
        return _AsmResult([_arbitrary(interp, t, rng) for t in (types if isinstance(types, list | tuple) else [types])])

    builder.create_inline_asm = inline_asm


class _AsmResult:
    """What the builder returns for inline PTX: an operation with results."""

    def __init__(self, results: list[Any]) -> None:
        self.results = results

    def get_result(self, i: int) -> Any:
        return self.results[i]


def _arbitrary(interp: Any, ty: Any, rng: np.random.Generator) -> Any:
    """Return values that depend on the machine's ``asm_fill``: results that change with it were computed by the asm."""
    scalar, shape = ty.scalar, tuple(getattr(ty, "shape", None) or (1,))
    dtype = interp._get_np_dtype(scalar)
    data = rng.integers(0, 100, shape).astype(dtype) if dtype.kind in "iu" else rng.random(shape).astype(dtype)
    return interp.TensorHandle(data, scalar)


# -- functions and launches ------------------------------------------------------------------------------------------


class ConstInt(int):
    """A constexpr argument: an int that also answers ``.value``, as in compiled code."""

    @property
    def value(self) -> int:
        return int(self)


def _patch_functions(interp: Any, tl: Any) -> None:
    to_tensor = interp.interpreter_semantic.to_tensor if hasattr(interp, "interpreter_semantic") else None
    if to_tensor is None:
        from triton.language.semantic import TritonSemantic

        to_tensor = TritonSemantic(interp.interpreter_builder).to_tensor

    def join(name: str, stop: bool, values: tuple[Callable[[], Any], ...]) -> Any:
        result = values[0]()
        for later in values[1:]:
            if isinstance(result, tl.tensor):
                result = getattr(result, name)(later())
            elif bool(result) is stop:
                return result
            else:
                result = later()
        return result

    _helpers.update(
        {
            "tensor": lambda value: to_tensor(value, False),
            "and": lambda *values: join("logical_and", False, values),
            "or": lambda *values: join("logical_or", True, values),
            "not": lambda value: value.__not__() if isinstance(value, tl.tensor) else not value,
        }
    )

    def run(self, *args, grid, warmup=False, **kwargs):
        if warmup:
            return launches.StandInKernel(self, args, kwargs)
        return _launch(interp, tl, self, grid, args, kwargs)

    def call(self, *args, **kwargs):
        if _machine is None or not _machine.running:
            raise KernelError(f"{self.fn.__name__} is a @triton.jit function: start it as {self.fn.__name__}[grid](…)")
        return _body(self)(*args, **kwargs)

    interp.InterpretedFunction.run = run
    interp.InterpretedFunction.__call__ = call
    interp.InterpretedFunction.warmup = lambda self, *args, grid=None, **kwargs: launches.StandInKernel(
        self, args, kwargs
    )


_helpers: dict[str, Callable[..., Any]] = {}


def _body(kernel: Any) -> Callable[..., Any]:
    fn = kernel.fn
    if fn not in _bodies:
        _bodies[fn] = rewritten(fn, _helpers)
    return _bodies[fn]


def _launch(interp: Any, tl: Any, kernel: Any, grid: Any, args: tuple, kwargs: dict[str, Any]) -> None:
    machine = current()
    signature = inspect.signature(kernel.fn)
    known = {k: v for k, v in kwargs.items() if k in signature.parameters}
    options = {k: v for k, v in kwargs.items() if k not in known}
    for hook in kernel.pre_run_hooks:
        hook(*args, **kwargs)
    try:
        bound = signature.bind(*args, **known)
    except TypeError as error:
        raise TypeError(f"{kernel.fn.__name__}: {error}") from None
    bound.apply_defaults()
    values = dict(bound.arguments)
    shape = launches.full_grid(grid(values) if callable(grid) else grid)
    constants = {n for n, a in kernel.fn.__annotations__.items() if "constexpr" in str(a)}
    machine.launches.append(launches.describe(kernel.fn, shape, values, constants, options))
    if machine.ghost or 0 in shape:
        return
    machine.begin(kernel.fn, values, constants, shape)
    memory = machine.memory
    memory.begin_launch()
    memory.where = learner_line
    machine.epoch = 0
    for name, value in values.items():
        if not isinstance(value, torch.Tensor):
            memory.handed(memory.launch, name, value)
    passed = {
        name: _constant(value) if name in constants else _argument(interp, tl, memory, name, value)
        for name, value in values.items()
    }
    body = _body(kernel)
    builder = interp.interpreter_builder
    builder.set_grid_dim(*shape)
    debug = bool(options.get("debug") or kernel.kwargs.get("debug"))
    builder.options = dataclasses.replace(builder.options, debug=debug)  # else tl.device_assert says nothing
    machine.running = True
    base = machine.ran
    try:
        with np.errstate(all="ignore"):
            for number, (x, y, z) in machine.programs(shape):
                base += 1
                machine.epoch, memory.program, memory.program_id = base, number, (x, y, z)
                builder.set_grid_idx(x, y, z)
                machine.run(body, passed)
    except StaticAssert:
        machine.launches.pop()  # an autotuner takes another configuration; nobody launched this one
        raise
    except (Stop, KernelError):
        raise
    except RecursionError:
        machine.failure = (
            f"line {learner_line()}: a @triton.jit function calls itself; Triton does not compile recursion"
        )
        raise KernelError(machine.failure) from None
    except Exception as error:
        machine.failure = f"{type(error).__name__}: {error}"
        raise
    finally:
        machine.running = False
        memory.end_launch()
        machine.ran = base
        machine.epoch = 0


def _constant(value: Any) -> Any:
    return (
        ConstInt(value)
        if type(value) is int
        else getattr(value, "value", value)
        if type(value).__name__ == "constexpr"
        else value
    )


def _argument(interp: Any, tl: Any, memory: Memory, name: str, value: Any) -> Any:
    """Return what the kernel's parameter holds: a made-up address for a tensor, an fp32 scalar for a float, …"""
    if isinstance(value, torch.Tensor):
        out = _originals["cvt"](value)
        label = next((n for n, t in memory.known if t is value or _same_view(t, value)), "")
        shown = name if not label or label == name else f"{name} ({label})"
        out.handle.data = np.array([memory.pointer(shown, value)], np.uint64)
        return out
    if isinstance(value, bool):  # 3.6 and 3.7 make a 32-bit number of it, which their int1 refuses
        return tl.tensor(interp.TensorHandle(np.array([value], np.bool_), tl.int1), tl.int1)
    if isinstance(value, float):
        return tl.tensor(interp.TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)
    if isinstance(value, tuple):
        parts = [_argument(interp, tl, memory, f"{name}[{i}]", v) for i, v in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value).__name__ == "TensorDescriptor":
        return _descriptor(interp, tl, memory, name, value)
    if type(value).__name__ == "TensorWrapper":
        out = _originals["cvt"](value)
        out.handle.data = np.array([memory.pointer(name, value.base)], np.uint64)
        return out
    return _originals["cvt"](value)


def _descriptor(interp: Any, tl: Any, memory: Memory, name: str, value: Any) -> Any:
    original = _originals["cvt"]

    def convert(part: Any) -> Any:
        return _argument(interp, tl, memory, name, part) if isinstance(part, torch.Tensor) else original(part)

    interp._implicit_cvt = convert  # _implicit_cvt calls itself by its global name for the parts of a descriptor
    try:
        return original(value)
    finally:
        interp._implicit_cvt = original


def _same_view(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.numel() > 0
