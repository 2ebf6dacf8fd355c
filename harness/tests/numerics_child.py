"""What the interpreter makes of kernels that need more than one operation; a child process of test_numerics.

    TRITON_INTERPRET=1 python -W error -m harness.tests.numerics_child [FOLDER SECOND KEY …]

prints one JSON object. Named operations are run first, as `gpu/one_op.py` would: that saves an import of torch.

The tests' own process must not import triton, and a process in which triton was imported without TRITON_INTERPRET
cannot interpret any more, so the kernels live here and their results travel as JSON.
"""

import json
import math
import sys

import numpy as np
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime import interpreter

from harness.interpreted import numerics
from harness.tests.gpu import one_op

numerics.install(interpreter)
N = 128


@triton.jit
def folds(x_ptr, out_ptr, N: tl.constexpr):
    a = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + 0, tl.sum(a, 0).to(tl.float32))
    tl.store(out_ptr + 1, tl.max(a, 0).to(tl.float32))
    tl.store(out_ptr + 2, tl.min(a, 0).to(tl.float32))
    tl.store(out_ptr + 3, tl.argmax(a, 0).to(tl.float32))
    tl.store(out_ptr + 4, tl.argmin(a, 0).to(tl.float32))
    rows = tl.reshape(a, (N // 16, 16))
    tl.store(out_ptr + 8 + tl.arange(0, N // 16), tl.max(rows, -1).to(tl.float32))
    tl.store(out_ptr + 32 + tl.arange(0, 16)[None, :], tl.min(rows, 0, keep_dims=True).to(tl.float32))
    tl.store(out_ptr + 5, tl.sum(rows).to(tl.float32))


@triton.jit
def first_larger(a, b):
    if a > b:
        r = a
    else:
        r = b
    return r


@triton.jit
def larger_by_helper(a, b):
    return first_larger(a, b)


@triton.jit
def affine(a1, b1, a2, b2):
    # composition of x -> a x + b: associative, but not commutative
    return a1 * a2, b1 * a2 + b2


@triton.jit
def own_combine(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    tl.store(out_ptr + 0, tl.reduce(a, 0, first_larger))
    tl.store(out_ptr + 1, tl.reduce(a, 0, larger_by_helper))
    scale, shift = tl.reduce((a, a + 1), 0, affine)
    tl.store(out_ptr + 2, scale)
    tl.store(out_ptr + 3, shift)
    tl.store(out_ptr + N + i, tl.associative_scan(a, 0, first_larger))
    scales, shifts = tl.associative_scan((a, a + 1), 0, affine)
    tl.store(out_ptr + 2 * N + i, shifts)
    tl.store(out_ptr + 3 * N + i, tl.cumsum(a, 0, reverse=True))
    tl.store(out_ptr + 4 * N + i, tl.sort(a))
    tl.store(out_ptr + 5 * N + i, tl.flip(a, 0))


@triton.jit
def constants(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    tl.store(out_ptr + i, a * 1e-7)
    tl.store(out_ptr + N + i, tl.full((N,), 1e-5, tl.bfloat16))
    tl.store(out_ptr + 2 * N + i, tl.full((N,), 200, tl.int8).to(tl.bfloat16))
    tl.store(out_ptr + 3 * N + i, tl.where(a > 0, a, -a))
    tl.store(out_ptr + 4 * N + i, tl.broadcast_to(tl.clamp(a, -1.0, 2.0), (N,)))
    tl.store(out_ptr + 5 * N + i, a.to(tl.int16, bitcast=True).to(tl.bfloat16, bitcast=True))


@triton.jit
def scalar_condition(out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    mask = (n > 3) & (i < 5)
    tl.store(out_ptr + i, i + 1, mask=mask)
    tl.store(out_ptr + i, i + 9, mask=mask & (n > 100))
    tl.store(out_ptr + N + i, tl.histogram(i // 2 + tl.where(i > 6, 100, 0), N))
    tl.store(out_ptr + 2 * N + i, tl.histogram(i // 2 - 1, N, mask=i < 5))


@triton.jit
def fp8_sum(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    tl.store(out_ptr + i, a + a)


@triton.jit
def library(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x_ptr + i)
    tl.store(out_ptr + i, libdevice.tanh(a))
    tl.store(out_ptr + N + i, tl.extra.cuda.libdevice.pow(a, 2.0))
    tl.store(out_ptr + 2 * N + i, cuda_libdevice.fast_dividef(a, 3.0))
    tl.store(out_ptr + 3 * N + i, tl.extra.libdevice.isinf(a / 0.0).to(tl.float32))


@triton.jit
def bessel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, libdevice.j0(tl.load(x_ptr + i)))


@triton.jit
def wrong_type(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, libdevice.exp(tl.load(x_ptr + i)))


@triton.jit
def dot_scaled(a_ptr, scale_ptr, b_ptr, out_ptr, M: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    b = tl.load(b_ptr + k[:, None] * M + m[None, :])
    scale = tl.load(scale_ptr + m[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    tl.store(out_ptr + m[:, None] * M + m[None, :], tl.dot_scaled(a, scale, "e2m1", b, None, "bf16"))


def results() -> dict:
    g = torch.Generator().manual_seed(0)
    out = {"triton": triton.__version__, "torch_imported": "torch" in sys.modules}
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp32", torch.float32)):
        x = torch.randn(N, generator=g).to(dtype)
        x[3], x[17], x[18] = math.nan, x.nan_to_num().abs().max() * 2, x.nan_to_num().abs().max() * 2
        got = torch.zeros(64)
        folds[(1,)](x, got, N)
        clean = x.nan_to_num()
        got_clean = torch.zeros(64)
        folds[(1,)](clean, got_clean, N)
        out[f"folds_{name}"] = {"x": x.tolist(), "got": got.tolist(), "clean": got_clean.tolist()}
    ints = torch.arange(-64, 64, dtype=torch.int32)
    got = torch.zeros(64)
    folds[(1,)](ints, got, N)
    out["folds_int"] = got.tolist()

    x = torch.rand(16, generator=g) + 0.5
    got = torch.zeros(6 * 16)
    own_combine[(1,)](x, got, 16)
    out["own_combine"] = {"x": x.tolist(), "got": got.view(6, 16).tolist()}

    x = torch.randn(16, generator=g).bfloat16()
    x[0] = math.nan
    got = torch.zeros(6 * 16, dtype=torch.bfloat16)
    constants[(1,)](x, got, 16)
    out["constants"] = {"x": x.tolist(), "got": got.view(6, 16).tolist()}

    got = torch.zeros(48, dtype=torch.int32)
    scalar_condition[(1,)](got, 7, 16)
    out["scalar_condition"] = got.view(3, 16).tolist()
    two = interpreter.TensorHandle(np.array([1.0, 2.0], np.float32), tl.float32)
    out["comparison"] = str(interpreter.interpreter_builder.create_fcmpOLT(two, two).dtype)

    x = torch.linspace(-2, 2, 16)
    got = torch.zeros(4 * 16)
    library[(1,)](x, got, 16)
    out["library"] = {"x": x.tolist(), "got": got.view(4, 16).tolist()}
    out["bessel"] = refusal(lambda: bessel[(1,)](x, got, 16))
    out["wrong_type"] = refusal(lambda: wrong_type[(1,)](x.half(), got, 16))
    out["fp8_sum"] = refusal(lambda: fp8_sum[(1,)](x.to(torch.float8_e5m2), x.to(torch.float8_e5m2), 16))

    codes = torch.randint(0, 256, (16, 32), generator=g, dtype=torch.uint8)
    scales = torch.randint(120, 134, (16, 2), generator=g, dtype=torch.uint8)
    b, got = torch.randn(64, 16, generator=g).bfloat16(), torch.zeros(16, 16)
    dot_scaled[(1,)](codes, scales, b, got, 16, 64)
    out["dot_scaled"] = {"a": codes.tolist(), "scale": scales.tolist(), "b": b.tolist(), "got": got.tolist()}

    before = interpreter.InterpreterBuilder.binary_op
    numerics.install(interpreter)
    out["idempotent"] = before is interpreter.InterpreterBuilder.binary_op
    one = tl.tensor(interpreter.TensorHandle(np.array([7], np.int32), tl.int32), tl.int32)
    two = tl.tensor(interpreter.TensorHandle(np.array([7, 8], np.int32), tl.int32), tl.block_type(tl.int32, [2]))
    out["index"] = [numerics.tensor_index(one), refusal(lambda: numerics.tensor_index(two))]
    out["libdevice"] = coverage()
    return out


def refusal(call) -> str:
    """The innermost error of a call, as "Type: text"; empty if there is none."""
    try:
        call()
    except Exception as error:
        while error.__cause__ is not None:
            error = error.__cause__
        return f"{type(error).__name__}: {error}"
    return ""


def coverage() -> dict[str, list]:
    """For each libdevice symbol with float32 arguments: its value at fixed arguments, or null where it is unknown."""
    from harness.interpreted.libdevice import find

    table = {}
    args = [np.array([0.25, 0.75], np.float32), np.array([0.5, 3.0], np.float32), np.array([2.0, -1.0], np.float32)]
    for symbol, count in symbols():
        function = find(symbol)
        table[symbol] = None if function is None else np.asarray(function(*args[:count])).astype(float).tolist()
    return table


def symbols() -> list[tuple[str, int]]:
    """The symbols of libdevice that take float32 arguments, and how many, from the source of Triton's module."""
    import ast
    import inspect

    found = []
    for node in ast.walk(ast.parse(inspect.getsource(cuda_libdevice))):
        if isinstance(node, ast.Dict):
            for types, value in zip(node.keys, node.values, strict=True):
                names = [c.value for c in ast.walk(types) if isinstance(c, ast.Constant)]
                if names and set(names) == {"fp32"}:
                    found.append((next(c.value for c in ast.walk(value) if isinstance(c, ast.Constant)), len(names)))
    return found


if __name__ == "__main__":
    if sys.argv[1:]:
        one_op.main(*sys.argv[1:])
    print(json.dumps(results()))
