"""Softmax at other shapes and dtypes: short float32 rows, long bfloat16 ones, float16 in between."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor


@triton.jit
def rows_kernel(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS whole rows a program."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    offs = r * N + c
    mask = c < N
    x = tl.load(x_ptr + offs, mask=mask, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(out_ptr + offs, (p / tl.sum(p, 1)[:, None]).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def persistent_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """One row at a time, a fixed number of programs."""
    c = tl.arange(0, BLOCK)
    mask = c < N
    for r in tl.range(tl.program_id(0), M, tl.num_programs(0)):
        x = tl.load(x_ptr + r * N + c, mask=mask, other=-float("inf")).to(tl.float32)
        p = tl.exp(x - tl.max(x, 0))
        tl.store(out_ptr + r * N + c, (p / tl.sum(p, 0)).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def online_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """A running maximum and sum in every lane, then the result in a second pass."""
    r = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + start + cols, mask=start + cols < N, other=-1e30).to(tl.float32)
        new = tl.maximum(top, x)
        total = total * tl.exp(top - new) + tl.exp(x - new)
        top = new
    most = tl.max(top, 0)
    scale = 1.0 / tl.sum(total * tl.exp(top - most), 0)
    for start in range(0, N, BLOCK):
        mask = start + cols < N
        x = tl.load(x_ptr + r * N + start + cols, mask=mask, other=-1e30).to(tl.float32)
        tl.store(out_ptr + r * N + start + cols, (tl.exp(x - most) * scale).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def scalar_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Each chunk is reduced to a scalar maximum and sum."""
    r = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    top = -1e30
    total = 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + start + cols, mask=start + cols < N, other=-1e30).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
        top = new
    for start in range(0, N, BLOCK):
        mask = start + cols < N
        x = tl.load(x_ptr + r * N + start + cols, mask=mask, other=-1e30).to(tl.float32)
        tl.store(out_ptr + r * N + start + cols, (tl.exp(x - top) / total).to(out_ptr.dtype.element_ty), mask=mask)


def _family(M, N, dtype, variants):
    tensors = {"x": Tensor((M, N), dtype), "out": Tensor((M, N), dtype, "empty")}
    return Family(tensors, variants, "out", lambda t: torch.softmax(t["x"].float(), 1))


def _short():
    M, N = 262144, 200
    args = ("x", "out", M, N)
    variants = {
        f"rows{r}_w{w}": [Call(rows_kernel, (M // r,), args, {"ROWS": r, "BLOCK": 256}, w)]
        for r, w in ((1, 1), (1, 4), (4, 4), (16, 4), (32, 8))
    }
    variants["persist1056_w1"] = [Call(persistent_kernel, (1056,), args, {"BLOCK": 256}, 1)]
    variants["persist4224_w1"] = [Call(persistent_kernel, (4224,), args, {"BLOCK": 256}, 1)]
    return _family(M, N, "float32", variants)


def _middle():
    M, N = 16384, 8192
    args = ("x", "out", M, N)
    variants = {f"one_w{w}": [Call(rows_kernel, (M,), args, {"ROWS": 1, "BLOCK": N}, w)] for w in (2, 8, 16, 32)}
    variants["persist528_w16"] = [Call(persistent_kernel, (528,), args, {"BLOCK": N}, 16)]
    variants["persist132_w8"] = [Call(persistent_kernel, (132,), args, {"BLOCK": N}, 8)]
    variants["online512"] = [Call(online_kernel, (M,), args, {"BLOCK": 512}, 4)]
    variants["scalar512"] = [Call(scalar_kernel, (M,), args, {"BLOCK": 512}, 4)]
    return _family(M, N, "float16", variants)


def _long():
    M, N = 1024, 128256
    args = ("x", "out", M, N)
    variants = {
        "online16384_w32": [Call(online_kernel, (M,), args, {"BLOCK": 16384}, 32)],
        "online8192_w8": [Call(online_kernel, (M,), args, {"BLOCK": 8192}, 8)],
        "online2048_w4": [Call(online_kernel, (M,), args, {"BLOCK": 2048}, 4)],
        "scalar4096_w8": [Call(scalar_kernel, (M,), args, {"BLOCK": 4096}, 8)],
        "scalar1024_w4": [Call(scalar_kernel, (M,), args, {"BLOCK": 1024}, 4)],
        "online256_w1": [Call(online_kernel, (M,), args, {"BLOCK": 256}, 1)],
    }
    return _family(M, N, "bfloat16", variants)


FAMILIES = {"softmax_short": _short(), "softmax_middle": _middle(), "softmax_long": _long()}
