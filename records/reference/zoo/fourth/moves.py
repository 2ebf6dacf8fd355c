"""Moves: permutes, transposes of bytes, reversed rows, gathers of rows and columns; counts by atomics, running sums."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

# -- heads_first: [B, T, H, D] to [B, H, T, D], bfloat16 ---------------------------------------------------------------


@triton.jit
def heads_flat_kernel(x_ptr, out_ptr, T, H, D, n, BLOCK: tl.constexpr):
    """One lane an element of the result; its source comes from divisions."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = i % D
    t = i // D % T
    h = i // (D * T) % H
    b = i // (D * T * H)
    x = tl.load(x_ptr + ((b * T + t) * H + h) * D + d, mask=i < n)
    tl.store(out_ptr + i, x, mask=i < n)


@triton.jit
def heads_source_kernel(x_ptr, out_ptr, T, H: tl.constexpr, D: tl.constexpr, n, BLOCK: tl.constexpr):
    """The same from the source's side; H and D are constants."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = i % D
    h = i // D % H
    t = i // (D * H) % T
    b = i // (D * H * T)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + ((b * H + h) * T + t) * D + d, x, mask=i < n)


@triton.jit
def heads_tile_kernel(x_ptr, out_ptr, T, H, BLOCK_T: tl.constexpr, D: tl.constexpr):
    """A tile of one head a program."""
    h = tl.program_id(0)
    t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    b = tl.program_id(2)
    d = tl.arange(0, D)
    mask = t[:, None] < T
    x = tl.load(x_ptr + ((b * T + t[:, None]) * H + h) * D + d[None, :], mask=mask)
    tl.store(out_ptr + ((b * H + h) * T + t[:, None]) * D + d[None, :], x, mask=mask)


@triton.jit
def heads_token_kernel(x_ptr, out_ptr, T, H: tl.constexpr, D: tl.constexpr):
    """All heads of a token a program."""
    t = tl.program_id(0)
    b = tl.program_id(1)
    h = tl.arange(0, H)[:, None]
    d = tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + ((b * T + t) * H + h) * D + d)
    tl.store(out_ptr + ((b * H + h) * T + t) * D + d, x)


def _heads_first(B=8, T=4096, H=32, D=128):
    n = B * T * H * D
    flat = ("x", "out", T, H, D, n)

    def tile(block, warps):
        constants = {"BLOCK_T": block, "D": D}
        return [Call(heads_tile_kernel, (H, triton.cdiv(T, block), B), ("x", "out", T, H), constants, warps)]

    def source(block, warps):
        constants = {"H": H, "D": D, "n": n, "BLOCK": block}
        return [Call(heads_source_kernel, (triton.cdiv(n, block),), ("x", "out", T), constants, warps)]

    variants = {
        "flat1024": [Call(heads_flat_kernel, (triton.cdiv(n, 1024),), flat, {"BLOCK": 1024}, 4)],
        "flat128_w4": [Call(heads_flat_kernel, (triton.cdiv(n, 128),), flat, {"BLOCK": 128}, 4)],
        "source2048": source(2048, 4), "tile64_w4": tile(64, 4), "tile4_w1": tile(4, 1), "tile256_w8": tile(256, 8),
        "token_w4": [Call(heads_token_kernel, (T, B), ("x", "out", T), {"H": H, "D": D}, 4)],
    }  # fmt: skip
    tensors = {"x": Tensor((B, T, H, D), "bfloat16"), "out": Tensor((B, H, T, D), "bfloat16", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"].transpose(1, 2).float())


# -- turn_bytes: [B, M, N] to [B, N, M], uint8 -------------------------------------------------------------------------


@triton.jit
def bytes_tile_kernel(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile a program, turned on the way out."""
    b = tl.program_id(2).to(tl.int64) * M * N
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + b + m[:, None] * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :])
    mask = (n < N)[:, None] & (m < M)[None, :]
    tl.store(out_ptr + b + n[:, None] * M + m[None, :], tl.trans(x), mask=mask)


@triton.jit
def bytes_plain_kernel(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """A tile a program, stored as it was loaded."""
    b = tl.program_id(2).to(tl.int64) * M * N
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (m < M) & (n < N)
    tl.store(out_ptr + b + n * M + m, tl.load(x_ptr + b + m * N + n, mask=mask), mask=mask)


@triton.jit
def bytes_row_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """A piece of a row of the result a program: it loads a column."""
    b = tl.program_id(2).to(tl.int64) * M * N
    n = tl.program_id(1)
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + b + n * M + m, tl.load(x_ptr + b + m * N + n, mask=m < M), mask=m < M)


def _turn_bytes(B=16, M=4096, N=3072):
    def tile(m, n, warps, kernel=bytes_tile_kernel):
        grid = (triton.cdiv(M, m), triton.cdiv(N, n), B)
        return [Call(kernel, grid, ("x", "out", M, N), {"BLOCK_M": m, "BLOCK_N": n}, warps)]

    variants = {
        "turn64x64": tile(64, 64, 4), "turn128x128": tile(128, 128, 4), "turn32x128_w2": tile(32, 128, 2),
        "turn16x16_w1": tile(16, 16, 1), "plain64x64": tile(64, 64, 4, bytes_plain_kernel),
        "plain16x128": tile(16, 128, 4, bytes_plain_kernel),
        "row1024": [Call(bytes_row_kernel, (triton.cdiv(M, 1024), N, B), ("x", "out", M, N), {"BLOCK": 1024}, 4)],
    }  # fmt: skip
    tensors = {"x": Tensor((B, M, N), "uint8", "bytes"), "out": Tensor((B, N, M), "uint8", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"].transpose(1, 2).float())


# -- flip_rows: the middle half of each float32 row, backwards ---------------------------------------------------------


@triton.jit
def flip_load_kernel(x_ptr, out_ptr, N, half, BLOCK: tl.constexpr):
    """Loads backwards."""
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + N // 4 + half - 1 - i, mask=i < half)
    tl.store(out_ptr + row * half + i, x, mask=i < half)


@triton.jit
def flip_store_kernel(x_ptr, out_ptr, N, half, BLOCK: tl.constexpr):
    """Stores backwards."""
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + N // 4 + i, mask=i < half)
    tl.store(out_ptr + row * half + half - 1 - i, x, mask=i < half)


@triton.jit
def flip_inside_kernel(x_ptr, out_ptr, N, half, BLOCK: tl.constexpr):
    """Both forwards, tl.flip between; blocks count from the row's end."""
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = half - (tl.program_id(0) + 1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + N // 4 + j, mask=j >= 0, other=0.0)
    tl.store(out_ptr + row * half + i, tl.flip(x, 0), mask=i < half)


def _flip_rows(M=8192, N=12000):
    def flip(kernel, block, warps):
        grid = (triton.cdiv(N // 2, block), M)
        return [Call(kernel, grid, ("x", "out", N, N // 2), {"BLOCK": block}, warps)]

    variants = {
        "load1024": flip(flip_load_kernel, 1024, 4), "load8192_w8": flip(flip_load_kernel, 8192, 8),
        "store1024": flip(flip_store_kernel, 1024, 4), "store256_w1": flip(flip_store_kernel, 256, 1),
        "inside1024": flip(flip_inside_kernel, 1024, 4),
    }  # fmt: skip
    tensors = {"x": Tensor((M, N), "float32"), "out": Tensor((M, N // 2), "float32", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"][:, N // 4 : N // 4 + N // 2].flip(1), tolerance=1e-6)


# -- take_rows: out[t] = table[ids[t]], bfloat16 rows of 768 -----------------------------------------------------------


@triton.jit
def take_row_kernel(table_ptr, ids_ptr, out_ptr, D, BLOCK: tl.constexpr):
    """A row a program."""
    t = tl.program_id(0)
    row = tl.load(ids_ptr + t)
    d = tl.arange(0, BLOCK)
    tl.store(out_ptr + t * D + d, tl.load(table_ptr + row * D + d, mask=d < D), mask=d < D)


@triton.jit
def take_tile_kernel(table_ptr, ids_ptr, out_ptr, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows a program."""
    t = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row = tl.load(ids_ptr + t)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = d[None, :] < D
    x = tl.load(table_ptr + row[:, None] * D + d[None, :], mask=mask)
    tl.store(out_ptr + t[:, None] * D + d[None, :], x, mask=mask)


@triton.jit
def take_flat_kernel(table_ptr, ids_ptr, out_ptr, D, n, BLOCK: tl.constexpr):
    """One lane an element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids_ptr + i // D, mask=i < n, other=0)
    tl.store(out_ptr + i, tl.load(table_ptr + row * D + i % D, mask=i < n), mask=i < n)


@triton.jit
def take_walk_kernel(table_ptr, ids_ptr, out_ptr, T, D, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Row after row by a fixed number of programs: an index, then a row, in each step."""
    d = tl.arange(0, BLOCK)
    for t in tl.range(tl.program_id(0), T, tl.num_programs(0), num_stages=STAGES):
        row = tl.load(ids_ptr + t)
        tl.store(out_ptr + t * D + d, tl.load(table_ptr + row * D + d, mask=d < D, other=0.0), mask=d < D)


def _take_rows(V=128000, T=131072, D=768, shrink=1):
    def tile(rows, block, warps):
        constants = {"ROWS": rows, "BLOCK": block}
        return [
            Call(take_tile_kernel, (T // rows, triton.cdiv(D, block)), ("table", "ids", "out", D), constants, warps)
        ]

    def walk(programs, warps, stages):
        constants = {"BLOCK": triton.next_power_of_2(D), "STAGES": stages}
        grid = (max(1, programs // shrink),)
        return [Call(take_walk_kernel, grid, ("table", "ids", "out", T, D), constants, warps, stages)]

    def flat(block, warps):
        args = ("table", "ids", "out", D, T * D)
        return [Call(take_flat_kernel, (triton.cdiv(T * D, block),), args, {"BLOCK": block}, warps)]

    variants = {
        f"row_w{w}": [Call(take_row_kernel, (T,), ("table", "ids", "out", D), {"BLOCK": 1024}, w)] for w in (1, 4)
    }
    variants |= {
        "tile8x256": tile(8, 256, 4), "tile64x32": tile(64, 32, 4), "flat1024": flat(1024, 4),
        "walk528": walk(528, 4, 1), "walk2112_s3": walk(2112, 1, 3),
    }  # fmt: skip
    tensors = {
        "table": Tensor((V, D), "bfloat16"), "ids": Tensor((T,), "int32", "below", below=V),
        "out": Tensor((T, D), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: t["table"][t["ids"].long()].float(), tolerance=1e-6)


# -- take_columns: out[m, c] = x[m, columns[c]], float32 ---------------------------------------------------------------


@triton.jit
def columns_kernel(x_ptr, columns_ptr, out_ptr, M, N, C, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A tile of ROWS rows; the columns are loaded once."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.load(columns_ptr + c, mask=c < C, other=0)
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    mask = (r < M)[:, None] & (c < C)[None, :]
    x = tl.load(x_ptr + r[:, None] * N + column[None, :], mask=mask)
    tl.store(out_ptr + r[:, None] * C + c[None, :], x, mask=mask)


@triton.jit
def columns_inside_kernel(x_ptr, columns_ptr, out_ptr, C, N: tl.constexpr, BLOCK: tl.constexpr):
    """The whole row is loaded, and tl.gather picks."""
    r = tl.program_id(0)
    x = tl.load(x_ptr + r * N + tl.arange(0, N))
    c = tl.arange(0, BLOCK)
    column = tl.load(columns_ptr + c, mask=c < C, other=0)
    tl.store(out_ptr + r * C + c, tl.gather(x, column, 0), mask=c < C)


def _take_columns(M=32768, N=2048, C=1536):
    def tile(rows, block, warps):
        grid, constants = (triton.cdiv(C, block), triton.cdiv(M, rows)), {"ROWS": rows, "BLOCK": block}
        return [Call(columns_kernel, grid, ("x", "columns", "out", M, N, C), constants, warps)]

    inside = {"N": N, "BLOCK": triton.next_power_of_2(C)}
    variants = {
        "tile1x1024": tile(1, 1024, 4), "tile16x128": tile(16, 128, 4), "tile4x2048_w8": tile(4, 2048, 8),
        "tile64x8": tile(64, 8, 4), "tile1x64_w1": tile(1, 64, 1),
        "inside": [Call(columns_inside_kernel, (M,), ("x", "columns", "out", C), inside, 4)],
    }  # fmt: skip
    tensors = {
        "x": Tensor((M, N), "float32"), "columns": Tensor((C,), "int32", "below", below=N),
        "out": Tensor((M, C), "float32", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: t["x"][:, t["columns"].long()], tolerance=1e-6)


# -- bincount: how often each of 1024 values occurs in a vector of int32 -----------------------------------------------


@triton.jit
def count_atomic_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """An atomic for each element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=i < n, sem="relaxed")


@triton.jit
def count_block_kernel(x_ptr, out_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """tl.histogram of a block, then an atomic for each bin."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=i < n))


@triton.jit
def count_loop_kernel(x_ptr, out_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """A fixed number of programs, each with its own counts until the end."""
    counts = tl.zeros((BINS,), tl.int32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        counts += tl.histogram(tl.load(x_ptr + i, mask=i < n, other=0), BINS, mask=i < n)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts)


def _bincount(n=60_000_000, bins=1024, shrink=1):
    def block(size, warps):
        constants = {"BINS": bins, "BLOCK": size}
        return [Call(count_block_kernel, (triton.cdiv(n, size),), ("x", "out", n), constants, warps)]

    def loop(programs, size, warps):
        grid, constants = (max(1, programs // shrink),), {"BINS": bins, "BLOCK": size}
        return [Call(count_loop_kernel, grid, ("x", "out", n), constants, warps)]

    variants = {
        "block16384_w8": block(16384, 8), "block2048_w4": block(2048, 4), "loop528_b4096": loop(528, 4096, 8),
        "loop132_b1024": loop(132, 1024, 4), "loop1056_b2048_w2": loop(1056, 2048, 2),
        "atomic1024": [Call(count_atomic_kernel, (triton.cdiv(n, 1024),), ("x", "out", n), {"BLOCK": 1024}, 4)],
    }  # fmt: skip
    tensors = {"x": Tensor((n,), "int32", "below", below=bins), "out": Tensor((bins,), "int32", "empty")}

    def expected(t):
        return torch.bincount(t["x"], minlength=bins).float()

    return Family(tensors, variants, "out", expected, zeroed=("out",), tolerance=1e-6)


# -- row_cumsum: running sums along float32 rows of 12000 --------------------------------------------------------------


@triton.jit
def cumsum_row_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A row a program."""
    base = tl.program_id(0) * N
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + c, mask=c < N, other=0.0)
    tl.store(out_ptr + base + c, tl.cumsum(x, 0), mask=c < N)


@triton.jit
def cumsum_chunk_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Chunk after chunk, the sum so far carried along."""
    base = tl.program_id(0) * N
    so_far = 0.0
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < N, other=0.0)
        tl.store(out_ptr + base + c, tl.cumsum(x, 0) + so_far, mask=c < N)
        so_far += tl.sum(x, 0)


@triton.jit
def cumsum_rows_kernel(x_ptr, out_ptr, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows side by side, chunk after chunk."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    so_far = tl.zeros((ROWS,), tl.float32)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        i = r[:, None] * N + c[None, :]
        x = tl.load(x_ptr + i, mask=c[None, :] < N, other=0.0)
        tl.store(out_ptr + i, tl.cumsum(x, 1) + so_far[:, None], mask=c[None, :] < N)
        so_far += tl.sum(x, 1)


def _row_cumsum(M=8192, N=12000):
    def row(warps):
        return [Call(cumsum_row_kernel, (M,), ("x", "out", N), {"BLOCK": triton.next_power_of_2(N)}, warps)]

    def chunk(block, warps):
        return [Call(cumsum_chunk_kernel, (M,), ("x", "out", N), {"BLOCK": block}, warps)]

    def rows(count, block, warps):
        constants = {"ROWS": count, "BLOCK": block}
        return [Call(cumsum_rows_kernel, (M // count,), ("x", "out", N), constants, warps)]

    variants = {
        "row_w8": row(8), "row_w16": row(16), "chunk1024": chunk(1024, 4), "chunk4096_w8": chunk(4096, 8),
        "chunk128_w1": chunk(128, 1), "rows8x128": rows(8, 128, 4), "rows4x64_w1": rows(4, 64, 1),
    }  # fmt: skip
    tensors = {"x": Tensor((M, N), "float32"), "out": Tensor((M, N), "float32", "empty")}
    return Family(tensors, variants, "out", lambda t: torch.cumsum(t["x"].double(), 1), tolerance=1e-4)


FAMILIES = {
    "heads_first": _heads_first(), "turn_bytes": _turn_bytes(), "flip_rows": _flip_rows(), "take_rows": _take_rows(),
    "take_columns": _take_columns(), "bincount": _bincount(), "row_cumsum": _row_cumsum(),
}  # fmt: skip
