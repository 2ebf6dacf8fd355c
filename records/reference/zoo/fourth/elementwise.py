"""Elementwise: sums of float32 vectors of an odd length, sums that broadcast, bias and gelu."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

# -- add_odd: out = x + y, float32, a length that no block divides -----------------------------------------------------


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One block a program."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, x + y, mask=mask)


@triton.jit
def add_shifted_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Blocks that begin one element early: no vector is aligned."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) - 1
    mask = (i >= 0) & (i < n)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


@triton.jit
def add_hint_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One block a program; nothing is used twice, and the caches are told so."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, eviction_policy="evict_first")
    y = tl.load(y_ptr + i, mask=mask, eviction_policy="evict_first")
    tl.store(out_ptr + i, x + y, mask=mask, cache_modifier=".cs")


@triton.jit
def add_stride_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """A grid-stride loop."""
    step = tl.num_programs(0) * BLOCK
    for start in tl.range(tl.program_id(0) * BLOCK, n, step, num_stages=STAGES):
        i = start + tl.arange(0, BLOCK)
        mask = i < n
        x = tl.load(x_ptr + i, mask=mask, other=0.0)
        y = tl.load(y_ptr + i, mask=mask, other=0.0)
        tl.store(out_ptr + i, x + y, mask=mask)


@triton.jit
def add_chunk_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A chunk of the vector a program, block after block."""
    chunk = tl.cdiv(n, tl.num_programs(0))
    first = tl.program_id(0) * chunk
    last = tl.minimum(first + chunk, n)
    for start in range(first, last, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mask = i < last
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _add_odd(n=40_000_003, shrink=1):
    args = ("x", "y", "out", n)

    def each(kernel, block, warps, extra=0):
        return [Call(kernel, (triton.cdiv(n + extra, block),), args, {"BLOCK": block}, warps)]

    def loop(programs, block, warps, stages):
        grid = (max(1, programs // shrink),)
        return [Call(add_stride_kernel, grid, args, {"BLOCK": block, "STAGES": stages}, warps, stages)]

    variants = {
        "b64_w1": each(add_kernel, 64, 1), "b256_w8": each(add_kernel, 256, 8), "b4096_w4": each(add_kernel, 4096, 4),
        "b32768_w16": each(add_kernel, 32768, 16), "shifted1024": each(add_shifted_kernel, 1024, 4, 1),
        "hint2048": each(add_hint_kernel, 2048, 8), "loop132_b2048_s4": loop(132, 2048, 8, 4),
        "loop528_b1024_s1": loop(528, 1024, 4, 1), "loop1056_b1024_s3": loop(1056, 1024, 4, 3),
        "chunk528": [Call(add_chunk_kernel, (max(1, 528 // shrink),), args, {"BLOCK": 1024}, 4)],
    }  # fmt: skip
    whole = Tensor((n,), "float32")
    tensors = {"x": whole, "y": whole, "out": Tensor((n,), "float32", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"] + t["y"])


# -- add_cast: out[b, m, n] = x[b, m, n] + y[b, n] + z[m], bfloat16 ----------------------------------------------------


@triton.jit
def cast_flat_kernel(x_ptr, y_ptr, z_ptr, out_ptr, M, N, n, BLOCK: tl.constexpr):
    """One lane an element; the indices come from divisions."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    col = i % N
    row = (i // N) % M
    batch = i // (M * N)
    x = tl.load(x_ptr + i, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + batch * N + col, mask=mask).to(tl.float32)
    z = tl.load(z_ptr + row, mask=mask).to(tl.float32)
    tl.store(out_ptr + i, (x + y + z).to(tl.bfloat16), mask=mask)


@triton.jit
def cast_row_kernel(x_ptr, y_ptr, z_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """A row a program, padded to a power of two."""
    m = tl.program_id(0)
    b = tl.program_id(1)
    c = tl.arange(0, BLOCK)
    mask = c < N
    base = (b * M + m) * N
    x = tl.load(x_ptr + base + c, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + b * N + c, mask=mask).to(tl.float32)
    z = tl.load(z_ptr + m).to(tl.float32)
    tl.store(out_ptr + base + c, (x + y + z).to(tl.bfloat16), mask=mask)


@triton.jit
def cast_tile_kernel(x_ptr, y_ptr, z_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile of rows and columns a program."""
    b = tl.program_id(2)
    m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    c = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (m < M)[:, None] & (c < N)[None, :]
    i = (b * M + m[:, None]) * N + c[None, :]
    x = tl.load(x_ptr + i, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + b * N + c, mask=c < N, other=0.0).to(tl.float32)
    z = tl.load(z_ptr + m, mask=m < M, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, (x + y[None, :] + z[:, None]).to(tl.bfloat16), mask=mask)


def _add_cast(B=16, M=4096, N=1536):
    args = ("x", "y", "z", "out", M, N)

    def flat(block, warps):
        n = B * M * N
        return [Call(cast_flat_kernel, (triton.cdiv(n, block),), (*args, n), {"BLOCK": block}, warps)]

    def tile(m, n, warps):
        grid = (triton.cdiv(N, n), triton.cdiv(M, m), B)
        return [Call(cast_tile_kernel, grid, args, {"BLOCK_M": m, "BLOCK_N": n}, warps)]

    variants = {
        "flat1024": flat(1024, 4), "flat128_w1": flat(128, 1),
        "row_w4": [Call(cast_row_kernel, (M, B), args, {"BLOCK": triton.next_power_of_2(N)}, 4)],
        "tile16x256": tile(16, 256, 4), "tile64x128_w8": tile(64, 128, 8), "tile32x8": tile(32, 8, 4),
    }  # fmt: skip
    tensors = {
        "x": Tensor((B, M, N), "bfloat16"), "y": Tensor((B, N), "bfloat16"), "z": Tensor((M,), "bfloat16"),
        "out": Tensor((B, M, N), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(
        tensors, variants, "out", lambda t: t["x"].float() + t["y"].float()[:, None, :] + t["z"].float()[:, None]
    )


# -- bias_gelu: out = gelu(x + bias), bfloat16 -------------------------------------------------------------------------


@triton.jit
def gelu_erf(x):
    """Exact."""
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_tanh(x):
    """The usual approximation, its tanh by exp."""
    t = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return x / (1.0 + tl.exp(-2.0 * t))


@triton.jit
def gelu_flat_kernel(x_ptr, bias_ptr, out_ptr, N, n, ERF: tl.constexpr, BLOCK: tl.constexpr):
    """One lane an element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask).to(tl.float32) + tl.load(bias_ptr + i % N, mask=mask).to(tl.float32)
    y = gelu_erf(x) if ERF else gelu_tanh(x)
    tl.store(out_ptr + i, y.to(tl.bfloat16), mask=mask)


@triton.jit
def gelu_row_kernel(x_ptr, bias_ptr, out_ptr, N, ERF: tl.constexpr, BLOCK: tl.constexpr):
    """A row a program, chunk after chunk."""
    base = tl.program_id(0).to(tl.int64) * N
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        mask = c < N
        x = tl.load(x_ptr + base + c, mask=mask).to(tl.float32) + tl.load(bias_ptr + c, mask=mask).to(tl.float32)
        y = gelu_erf(x) if ERF else gelu_tanh(x)
        tl.store(out_ptr + base + c, y.to(tl.bfloat16), mask=mask)


@triton.jit
def gelu_column_kernel(x_ptr, bias_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Tiles of ROWS rows, walking down the columns; the bias stays in registers."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bias = tl.load(bias_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    for start in tl.range(tl.program_id(1) * ROWS, M, tl.num_programs(1) * ROWS):
        r = start + tl.arange(0, ROWS)
        i = r[:, None] * N + c[None, :]
        mask = (r < M)[:, None] & (c < N)[None, :]
        x = tl.load(x_ptr + i, mask=mask, other=0.0).to(tl.float32) + bias[None, :]
        tl.store(out_ptr + i, gelu_erf(x).to(tl.bfloat16), mask=mask)


def _bias_gelu(M=8192, N=11008):
    n = M * N

    def flat(block, warps, erf):
        args = ("x", "bias", "out", N, n)
        return [Call(gelu_flat_kernel, (triton.cdiv(n, block),), args, {"ERF": erf, "BLOCK": block}, warps)]

    def row(block, warps, erf):
        return [Call(gelu_row_kernel, (M,), ("x", "bias", "out", N), {"ERF": erf, "BLOCK": block}, warps)]

    def column(rows, block, down, warps):
        grid = (triton.cdiv(N, block), down)
        return [Call(gelu_column_kernel, grid, ("x", "bias", "out", M, N), {"ROWS": rows, "BLOCK": block}, warps)]

    variants = {
        "flat1024_erf": flat(1024, 4, True), "flat1024_tanh": flat(1024, 4, False), "flat256_w8": flat(256, 8, True),
        "row2048_w8": row(2048, 8, False), "row512_w1": row(512, 1, True), "row16384_w8": row(16384, 8, True),
        "column8x256": column(8, 256, 32, 4), "column128x32": column(128, 32, 2, 4),
    }  # fmt: skip
    tensors = {
        "x": Tensor((M, N), "bfloat16"), "bias": Tensor((N,), "bfloat16"), "out": Tensor((M, N), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: torch.nn.functional.gelu(t["x"].float() + t["bias"].float()))


FAMILIES = {"add_odd": _add_odd(), "add_cast": _add_cast(), "bias_gelu": _bias_gelu()}
