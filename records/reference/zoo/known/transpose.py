"""Transposing a matrix: out[n, m] = x[m, n], float32."""

import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

SIZE = 8192


@triton.jit
def tile_kernel(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile goes through registers and shared memory."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    tile = tl.load(x_ptr + rm[:, None] * N + rn[None, :])
    tl.store(out_ptr + rn[:, None] * M + rm[None, :], tl.trans(tile))


@triton.jit
def from_row_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Reads along a row, writes down a column."""
    r = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + c * M + r, tl.load(x_ptr + r * N + c))


@triton.jit
def from_column_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Reads down a column, writes along a row."""
    c = tl.program_id(0)
    r = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + c * M + r, tl.load(x_ptr + r * N + c))


def _transpose():
    args = ("x", "out", SIZE, SIZE)
    tiles = [(32, 32, 4), (64, 64, 4), (128, 128, 8), (8, 8, 1), (8, 8, 4), (16, 16, 1), (16, 128, 4), (128, 16, 4),
             (4, 256, 4)]  # fmt: skip
    variants = {
        f"t{m}x{n}_w{w}": [Call(tile_kernel, (SIZE // m, SIZE // n), args, {"BLOCK_M": m, "BLOCK_N": n}, w)]
        for m, n, w in tiles
    }
    variants["row"] = [Call(from_row_kernel, (SIZE, SIZE // 1024), args, {"BLOCK": 1024})]
    variants["col"] = [Call(from_column_kernel, (SIZE, SIZE // 1024), args, {"BLOCK": 1024})]
    tensors = {"x": Tensor((SIZE, SIZE), "float32"), "out": Tensor((SIZE, SIZE), "float32", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"].t())


FAMILIES = {"transpose": _transpose()}
