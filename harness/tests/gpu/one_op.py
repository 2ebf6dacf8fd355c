"""Kernels with one operation each, run by whatever triton is in this process: compiled, or interpreted.

As a program (with TRITON_INTERPRET=1 set by the caller) it interprets the named operations with the harness's
numerics and saves the results: python -m harness.tests.gpu.one_op FOLDER SECOND KEY [KEY …]
"""

import pathlib
import sys

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from harness.tests.gpu.patterns import COMPARISONS, DOTS, DTYPES, OPS, Dot, Op, dot_operands, operands

TORCH = {
    "bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64,
    "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2, "i1": torch.bool, "i8": torch.int8, "u8": torch.uint8,
    "i16": torch.int16, "i32": torch.int32, "u32": torch.uint32, "i64": torch.int64, "u64": torch.uint64,
}  # fmt: skip
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def unary(x_ptr, out_ptr, OP: tl.constexpr, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i)
    if OP == "cast":
        r = a.to(TO)
    elif OP == "rtz":
        r = a.to(TO, fp_downcast_rounding="rtz")
    elif OP == "abs":
        r = tl.abs(a)
    elif OP == "floor":
        r = tl.floor(a)
    elif OP == "ceil":
        r = tl.ceil(a)
    elif OP == "sqrt_rn":
        r = tl.sqrt_rn(a)
    elif OP == "exp":
        r = tl.exp(a)
    elif OP == "exp2":
        r = tl.exp2(a)
    elif OP == "log":
        r = tl.log(a)
    elif OP == "log2":
        r = tl.log2(a)
    elif OP == "sqrt":
        r = tl.sqrt(a)
    elif OP == "rsqrt":
        r = tl.rsqrt(a)
    elif OP == "sin":
        r = tl.sin(a)
    elif OP == "cos":
        r = tl.cos(a)
    elif OP == "erf":
        r = tl.erf(a)
    else:
        tl.static_assert(False, "unknown operation")
    tl.store(out_ptr + i, r)


@triton.jit
def library(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i)
    b = tl.load(y_ptr + i)
    if OP == "libdevice.tanh":
        r = libdevice.tanh(a)
    elif OP == "libdevice.log1p":
        r = libdevice.log1p(a)
    elif OP == "libdevice.expm1":
        r = libdevice.expm1(a)
    elif OP == "libdevice.rint":
        r = libdevice.rint(a)
    elif OP == "libdevice.round":
        r = libdevice.round(a)
    elif OP == "libdevice.trunc":
        r = libdevice.trunc(a)
    elif OP == "libdevice.cbrt":
        r = libdevice.cbrt(a)
    elif OP == "libdevice.fast_expf":
        r = libdevice.fast_expf(a)
    elif OP == "libdevice.acos":
        r = libdevice.acos(a)
    elif OP == "libdevice.sinh":
        r = libdevice.sinh(a)
    elif OP == "libdevice.isnan":
        r = libdevice.isnan(a).to(tl.int32)
    elif OP == "libdevice.pow":
        r = libdevice.pow(a, b)
    elif OP == "libdevice.fmod":
        r = libdevice.fmod(a, b)
    elif OP == "libdevice.copysign":
        r = libdevice.copysign(a, b)
    elif OP == "libdevice.atan2":
        r = libdevice.atan2(a, b)
    elif OP == "libdevice.hypot":
        r = libdevice.hypot(a, b)
    elif OP == "libdevice.fast_dividef":
        r = libdevice.fast_dividef(a, b)
    else:
        tl.static_assert(False, "unknown operation")
    tl.store(out_ptr + i, r)


@triton.jit
def binary(x_ptr, y_ptr, z_ptr, out_ptr, OP: tl.constexpr, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i)
    b = tl.load(y_ptr + i)
    if OP == "add":
        r = a + b
    elif OP == "sub":
        r = a - b
    elif OP == "mul":
        r = a * b
    elif OP == "div":
        r = a / b
    elif OP == "idiv":
        r = a // b
    elif OP == "mod":
        r = a % b
    elif OP == "div_rn":
        r = tl.div_rn(a, b)
    elif OP == "fma":
        r = tl.fma(a, b, tl.load(z_ptr + i))
    elif OP == "max":
        r = tl.maximum(a, b)
    elif OP == "min":
        r = tl.minimum(a, b)
    elif OP == "maxnan":
        r = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "minnan":
        r = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "where":
        r = tl.where(a > b, a, b)
    elif OP == "lt":
        r = a < b
    elif OP == "le":
        r = a <= b
    elif OP == "gt":
        r = a > b
    elif OP == "ge":
        r = a >= b
    elif OP == "eq":
        r = a == b
    elif OP == "ne":
        r = a != b
    else:
        tl.static_assert(False, "unknown operation")
    tl.store(out_ptr + i, r.to(TO))


@triton.jit
def rowwise(x_ptr, out_ptr, OP: tl.constexpr, TO: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, N)
    a = tl.load(x_ptr + row * N + i)
    if OP == "sum":
        r = tl.broadcast_to(tl.sum(a, 0, keep_dims=True), (N,))
    elif OP == "reduce_max":
        r = tl.broadcast_to(tl.max(a, 0, keep_dims=True), (N,))
    elif OP == "reduce_min":
        r = tl.broadcast_to(tl.min(a, 0, keep_dims=True), (N,))
    elif OP == "cumsum":
        r = tl.cumsum(a, 0)
    else:
        tl.static_assert(False, "unknown operation")
    tl.store(out_ptr + row * N + i, r.to(TO))


@triton.jit
def dot(a_ptr, b_ptr, out_ptr, PRECISION: tl.constexpr, ACC: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
        K: tl.constexpr):  # fmt: skip
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(out_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision=PRECISION, out_dtype=ACC))


def to_torch(array: np.ndarray, dtype: str, device: str) -> torch.Tensor:
    """A numpy array of a Triton dtype as a tensor, bit for bit."""
    plain = array.view(np.uint8 if array.itemsize == 1 else f"i{array.itemsize}")
    return torch.from_numpy(np.ascontiguousarray(plain)).to(device).view(TORCH[dtype])


def to_numpy(tensor: torch.Tensor, dtype: str) -> np.ndarray:
    """The reverse of `to_torch`."""
    return tensor.view(_BITS[tensor.element_size()]).cpu().numpy().view(DTYPES[dtype])


def evaluate(op: Op, arrays: list[np.ndarray], device: str) -> np.ndarray:
    """Runs one operation on the device ("cpu" interprets) and returns its result."""
    ins = [to_torch(a, t, device) for a, t in zip(arrays, op.ins, strict=True)]
    n, to = ins[0].numel(), getattr(tl, _LANGUAGE[op.out])
    out = _zeros((n,), "u8" if op.out == "i1" else op.out, device)
    block = min(n, 1 << 16 if device == "cpu" else 1024)
    grid = (n // block,)
    if op.name in ("sum", "cumsum") or op.name.startswith("reduce_"):
        rowwise[(n // 128,)](ins[0], out, op.name, to, 128)
    elif op.name.startswith("libdevice."):
        library[grid](ins[0], ins[-1], out, op.name, block)
    elif len(ins) == 1:
        unary[grid](ins[0], out, op.name, to, block)
    else:
        binary[grid](ins[0], ins[1], ins[-1], out, op.name, tl.uint8 if op.name in COMPARISONS else to, block)
    return to_numpy(out, op.out)


_LANGUAGE = {
    "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64", "fp8e4nv": "float8e4nv",
    "fp8e5": "float8e5", "i1": "int1", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "u32": "uint32",
    "i64": "int64", "u64": "uint64",
}  # fmt: skip


def evaluate_dot(case: Dot, device: str) -> np.ndarray:
    """Runs one tl.dot on the device and returns its [M, N] result."""
    a, b = dot_operands(case)
    out = _zeros((case.shape[0], case.shape[1]), case.acc, device)
    x, y = to_torch(a, case.kind, device), to_torch(b, case.kind, device)
    dot[(1,)](x, y, out, case.precision or None, getattr(tl, _LANGUAGE[case.acc]), *case.shape)
    return to_numpy(out, case.acc)


def _zeros(shape: tuple[int, ...], dtype: str, device: str) -> torch.Tensor:
    return torch.zeros(shape, dtype=_BITS[DTYPES[dtype].itemsize], device=device).view(TORCH[dtype])


def result(key: str, second: int, device: str) -> np.ndarray:
    """The result of the operation or dot of that name."""
    return evaluate_dot(DOTS[key], device) if key in DOTS else evaluate(OPS[key], operands(OPS[key], second), device)


def interpret_with_numerics() -> None:
    """Installs the harness's arithmetic in this process's interpreter."""
    import triton.runtime.interpreter as interpreter

    from harness.interpreted import numerics

    numerics.install(interpreter)


def main(folder: str, second: str, *keys: str) -> None:
    interpret_with_numerics()
    for key in keys:
        out = result(key, int(second), "cpu")
        # as bits: numpy cannot save the narrow formats; under its name only when it is whole
        part = pathlib.Path(folder) / f"part-{key}.npy"
        np.save(part, out.view(f"u{out.itemsize}"))
        part.rename(part.with_name(f"{key}.npy"))


if __name__ == "__main__":
    main(*sys.argv[1:])
