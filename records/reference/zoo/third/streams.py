"""Streams: copies, blocks, rows with shared weights, strided views, transposes; float16, float32, int8."""

import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

# -- scale: out = 3 x, float16, a length that no block divides ---------------------------------------------------------


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One block a program."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) * 3.0, mask=mask)


@triton.jit
def scale_loop_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Few programs, each strides over the vector."""
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < n
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) * 3.0, mask=mask)


@triton.jit
def scale_stretch_kernel(x_ptr, out_ptr, n, EACH: tl.constexpr, BLOCK: tl.constexpr):
    """A lane owns a stretch of EACH elements: neighbouring lanes lie EACH apart."""
    first = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) * EACH
    for i in range(EACH):
        mask = first + i < n
        tl.store(out_ptr + first + i, tl.load(x_ptr + first + i, mask=mask) * 3.0, mask=mask)


def _scale():
    n = 90_000_001
    args = ("x", "out", n)
    variants = {
        f"b{b}_w{w}": [Call(scale_kernel, (triton.cdiv(n, b),), args, {"BLOCK": b}, w)]
        for b, w in ((512, 4), (1024, 1), (2048, 8), (16384, 8), (128, 1))
    }
    for programs, block, warps in ((132, 8192, 8), (264, 1024, 4), (2112, 2048, 4), (33, 4096, 4)):
        variants[f"loop{programs}_b{block}"] = [Call(scale_loop_kernel, (programs,), args, {"BLOCK": block}, warps)]
    for each in (2, 8):
        grid = (triton.cdiv(n, each * 512),)
        variants[f"stretch{each}"] = [Call(scale_stretch_kernel, grid, args, {"EACH": each, "BLOCK": 512})]
    tensors = {"x": Tensor((n,), "float16"), "out": Tensor((n,), "float16", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"].float() * 3)


# -- affine: out = x * w + b along rows, float32: what each row shares is loaded once a program or once a row ----------


@triton.jit
def affine_kernel(x_ptr, w_ptr, b_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows a program, one after the other; w and b stay in registers."""
    cols = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + cols)
    b = tl.load(b_ptr + cols)
    for r in range(ROWS):
        offs = (tl.program_id(0) * ROWS + r) * N + cols
        tl.store(out_ptr + offs, tl.load(x_ptr + offs) * w + b)


@triton.jit
def affine_flat_kernel(x_ptr, w_ptr, b_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """One lane an element; the column comes from a division."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    col = offs % N
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * tl.load(w_ptr + col) + tl.load(b_ptr + col))


def _affine():
    M, N = 65536, 1024
    args = ("x", "w", "b", "out", M, N)
    variants = {
        f"rows{r}_w{w}": [Call(affine_kernel, (M // r,), args, {"ROWS": r, "BLOCK": N}, w)]
        for r, w in ((1, 4), (4, 4), (16, 2), (64, 8), (512, 4), (1, 32))
    }
    for block in (256, 4096):
        variants[f"flat{block}"] = [Call(affine_flat_kernel, (M * N // block,), args, {"BLOCK": block})]
    vector = Tensor((N,), "float32")
    tensors = {"x": Tensor((M, N), "float32"), "w": vector, "b": vector, "out": Tensor((M, N), "float32", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"] * t["w"] + t["b"])


# -- every2: a packed copy of every second column of [M, 2 N] bfloat16 -------------------------------------------------


@triton.jit
def every_kernel(x_ptr, out_ptr, M, N, stride_m, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile a program, strides at run time."""
    rm = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    rn = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    tl.store(out_ptr + rm * N + rn, tl.load(x_ptr + rm * stride_m + rn * stride_n))


@triton.jit
def every_split_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Whole runs are loaded, and split in registers."""
    r = tl.program_id(0)
    cols = tl.program_id(1) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    even, odd = tl.split(tl.reshape(tl.load(x_ptr + r * 2 * N + cols), (BLOCK, 2)))
    tl.store(out_ptr + r * N + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK), even)


def _every2():
    M, N = 8192, 8192
    args = ("x", "out", M, N, 2 * N, 2)

    def tile(m, n, w=4):
        return [Call(every_kernel, (M // m, N // n), args, {"BLOCK_M": m, "BLOCK_N": n}, w)]

    variants = {
        "t1x1024": tile(1, 1024), "t4x512": tile(4, 512), "t64x16": tile(64, 16), "t1x128_w1": tile(1, 128, 1),
        "split1024": [Call(every_split_kernel, (M, N // 1024), ("x", "out", M, N), {"BLOCK": 1024})],
    }  # fmt: skip
    tensors = {"x": Tensor((M, 2 * N), "bfloat16"), "out": Tensor((M, N), "bfloat16", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"][:, ::2].float())


# -- turn: a transpose of [M, N] float16 -------------------------------------------------------------------------------


@triton.jit
def turn_kernel(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile through registers and shared memory."""
    rm = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    tile = tl.load(x_ptr + rm[:, None] * N + rn[None, :])
    tl.store(out_ptr + rn[:, None] * M + rm[None, :], tl.trans(tile))


@triton.jit
def turn_walk_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    """Rows are read whole and written down columns, STEPS rows a program."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for i in range(STEPS):
        r = tl.program_id(1) * STEPS + i
        tl.store(out_ptr + cols * M + r, tl.load(x_ptr + r * N + cols))


def _turn():
    M, N = 4096, 14336
    args = ("x", "out", M, N)

    def tile(m, n, w=4):
        return [Call(turn_kernel, (N // n, M // m), args, {"BLOCK_M": m, "BLOCK_N": n}, w)]

    variants = {
        "t64x64": tile(64, 64), "t128x64_w8": tile(128, 64, 8), "t32x32_w1": tile(32, 32, 1), "t16x64": tile(16, 64),
        "t256x16": tile(256, 16), "t8x128": tile(8, 128),
        "walk": [Call(turn_walk_kernel, (N // 512, M // 16), args, {"BLOCK": 512, "STEPS": 16})],
    }  # fmt: skip
    tensors = {"x": Tensor((M, N), "float16"), "out": Tensor((N, M), "float16", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"].t().float())


FAMILIES = {"scale": _scale(), "affine": _affine(), "every2": _every2(), "turn": _turn()}
