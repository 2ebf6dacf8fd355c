"""Kernels that were timed apart from the rest, when the model had been written: attention, products, rows, transposes.

All in bfloat16. Attention has 32 heads of 128 over 4096 positions; its programs go through groups of GROUP heads, with
a causal mask from the longest row of tiles to the shortest. Times are whole microseconds; those of products follow from
their share of cuBLAS's time in the same run.
"""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor, Tiles

LOG2E = 1.4426950408889634

# -- attention: later_full, later_causal -------------------------------------------------------------------------------


@triton.jit
def attend(acc, total, top, q, k, v, seen, scale, MASKED: tl.constexpr):
    """Take in one block of keys; ``scale`` holds log2(e), so that exp2 will do."""
    s = tl.dot(q, k)
    if MASKED:
        s = tl.where(seen, s, -float("inf"))
    new = tl.maximum(top, tl.max(s, 1) * scale)
    p = tl.exp2(s * scale - new[:, None])
    fade = tl.exp2(top - new)
    total = total * fade + tl.sum(p, 1)
    return tl.dot(p.to(tl.bfloat16), v, acc * fade[:, None]), total, new


@triton.jit
def tile_of(pid, tiles, GROUP: tl.constexpr, CAUSAL: tl.constexpr):
    """Return which rows and which head a program takes."""
    group = pid // (GROUP * tiles)
    place = pid % (GROUP * tiles)
    if CAUSAL:
        return tiles - 1 - place // GROUP, group * GROUP + place % GROUP
    else:
        return place % tiles, group * GROUP + place // tiles


@triton.jit
def textbook_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """exp in place of exp2, the scale on the scores, the mask in every step."""
    base = tl.program_id(1).to(tl.int64) * S * D
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    rn = tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = tl.program_id(0) * BLOCK_M + BLOCK_M if CAUSAL else S
    for j in range(0, end, BLOCK_N):
        s = tl.dot(q, tl.load(k_ptr + base + (j + rn)[None, :] * D + rd[:, None])) * scale
        if CAUSAL:
            s = tl.where(rm[:, None] >= (j + rn)[None, :], s, -float("inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        fade = tl.exp(top - new)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(v_ptr + base + (j + rn)[:, None] * D + rd[None, :])
        acc = tl.dot(p.to(tl.bfloat16), v, acc * fade[:, None])
        top = new
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def pointers_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Blocks below the diagonal without a mask, those on it in a second loop."""
    m, h = tile_of(tl.program_id(0), S // BLOCK_M, GROUP, CAUSAL)
    base = h.to(tl.int64) * S * D
    rm = m * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    rn = tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    k_ptrs = k_ptr + base + rn[None, :] * D + rd[:, None]
    v_ptrs = v_ptr + base + rn[:, None] * D + rd[None, :]
    low = m * BLOCK_M if CAUSAL else S
    for _ in tl.range(0, low, BLOCK_N):
        acc, total, top = attend(acc, total, top, q, tl.load(k_ptrs), tl.load(v_ptrs), 0, scale, False)
        k_ptrs += BLOCK_N * D
        v_ptrs += BLOCK_N * D
    if CAUSAL:
        for j in tl.range(low, low + BLOCK_M, BLOCK_N):
            seen = rm[:, None] >= (j + rn)[None, :]
            acc, total, top = attend(acc, total, top, q, tl.load(k_ptrs), tl.load(v_ptrs), seen, scale, True)
            k_ptrs += BLOCK_N * D
            v_ptrs += BLOCK_N * D
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def one_tile(
    q_desc, k_desc, v_desc, out_desc, m, h, S, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The same with tensor descriptors of [heads * S, D]."""
    row = h * S
    rm = m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.arange(0, BLOCK_N)
    q = q_desc.load([row + m * BLOCK_M, 0])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    low = m * BLOCK_M if CAUSAL else S
    for j in tl.range(0, low, BLOCK_N):
        k, v = k_desc.load([row + j, 0]).T, v_desc.load([row + j, 0])
        acc, total, top = attend(acc, total, top, q, k, v, 0, scale, False)
    if CAUSAL:
        for j in tl.range(low, low + BLOCK_M, BLOCK_N):
            k, v = k_desc.load([row + j, 0]).T, v_desc.load([row + j, 0])
            acc, total, top = attend(acc, total, top, q, k, v, rm[:, None] >= (j + rn)[None, :], scale, True)
    out_desc.store([row + m * BLOCK_M, 0], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def descriptors_kernel(
    q_desc, k_desc, v_desc, out_desc, S, count, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
    PERSISTENT: tl.constexpr,
):  # fmt: skip
    """One tile a program, or as many as there are for a fixed number of programs."""
    if PERSISTENT:
        for t in tl.range(tl.program_id(0), count, tl.num_programs(0)):
            m, h = tile_of(t, S // BLOCK_M, GROUP, CAUSAL)
            one_tile(q_desc, k_desc, v_desc, out_desc, m, h, S, scale, BLOCK_M, BLOCK_N, D, CAUSAL)
    else:
        m, h = tile_of(tl.program_id(0), S // BLOCK_M, GROUP, CAUSAL)
        one_tile(q_desc, k_desc, v_desc, out_desc, m, h, S, scale, BLOCK_M, BLOCK_N, D, CAUSAL)


@triton.jit
def ahead_kernel(
    q_desc, k_desc, v_desc, out_desc, S, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The scores of the next block are asked for before the softmax of this one; from the last block down."""
    m, h = tile_of(tl.program_id(0), S // BLOCK_M, GROUP, CAUSAL)
    row = h * S
    rm = m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.arange(0, BLOCK_N)
    q = q_desc.load([row + m * BLOCK_M, 0])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    end = m * BLOCK_M + BLOCK_M if CAUSAL else S
    s = tl.dot(q, k_desc.load([row + end - BLOCK_N, 0]).T)
    if CAUSAL:
        s = tl.where(rm[:, None] >= (end - BLOCK_N + rn)[None, :], s, -float("inf"))
    for j in tl.range(0, end - BLOCK_N, BLOCK_N):
        following = tl.dot(q, k_desc.load([row + end - 2 * BLOCK_N - j, 0]).T)
        new = tl.maximum(top, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), v_desc.load([row + end - BLOCK_N - j, 0]), acc * fade[:, None])
        top = new
        s = following
    new = tl.maximum(top, tl.max(s, 1) * scale)
    p = tl.exp2(s * scale - new[:, None])
    fade = tl.exp2(top - new)
    total = total * fade + tl.sum(p, 1)
    acc = tl.dot(p.to(tl.bfloat16), v_desc.load([row, 0]), acc * fade[:, None])
    out_desc.store([row + m * BLOCK_M, 0], (acc / total[:, None]).to(tl.bfloat16))


def _attention(causal):
    H, S, D = 32, 4096, 128
    scale = LOG2E / D**0.5

    def textbook(m, n, warps, stages=3):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "D": D, "CAUSAL": causal}
        return [Call(textbook_kernel, (S // m, H), ("q", "k", "v", "out", S, D**-0.5), constants, warps, stages)]

    def pointers(m, n, warps):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "D": D, "CAUSAL": causal, "GROUP": 8}
        return [Call(pointers_kernel, (H * S // m,), ("q", "k", "v", "out", S, scale), constants, warps, 3)]

    def tiles(m, n):
        return Tiles("q", (m, D)), Tiles("k", (n, D)), Tiles("v", (n, D)), Tiles("out", (m, D))

    def descriptors(m, n, warps, stages=3, programs=0):
        count = H * S // m
        constants = {"BLOCK_M": m, "BLOCK_N": n, "D": D, "CAUSAL": causal, "GROUP": 8, "PERSISTENT": bool(programs)}
        args = (*tiles(m, n), S, count, scale)
        return [Call(descriptors_kernel, (programs or count,), args, constants, warps, stages)]

    def ahead(m, n, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "D": D, "CAUSAL": causal, "GROUP": 8}
        return [Call(ahead_kernel, (H * S // m,), (*tiles(m, n), S, scale), constants, warps, stages)]

    variants = {
        "textbook_64x64": textbook(64, 64, 4), "textbook_128x64": textbook(128, 64, 8),
        "textbook_128x128": textbook(128, 128, 8, 2), "pointers_64x64": pointers(64, 64, 4),
        "pointers_128x64": pointers(128, 64, 8), "tma_64x64": descriptors(64, 64, 4),
        "tma_64x64_s2": descriptors(64, 64, 4, 2), "tma_64x64_s4": descriptors(64, 64, 4, 4),
        "tma_128x64": descriptors(128, 64, 8), "tma_128x128": descriptors(128, 128, 8, 2),
        "tma_persistent": descriptors(128, 64, 8, 3, 132), "ahead_128x128": ahead(128, 128, 8, 2),
        "ahead_128x64": ahead(128, 64, 8, 3),
    }  # fmt: skip
    given = {n: Tensor((H * S, D), "bfloat16") for n in ("q", "k", "v")}

    def expected(t):
        q, k, v = (t[n].float().view(H, S, D) for n in "qkv")
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return out.reshape(H * S, D)

    return Family(given | {"out": Tensor((H * S, D), "bfloat16", "empty")}, variants, "out", expected)


# -- matrix product: later_matmul --------------------------------------------------------------------------------------


@triton.jit
def place_of(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Return row and column of a tile: columns of GROUP rows one after the other."""
    first = tile // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    place = tile % (GROUP * tiles_n)
    return first + place % size, place // size


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    m, n = place_of(tl.program_id(0), M // BLOCK_M, N // BLOCK_N, GROUP)
    rm = m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@triton.jit
def product_tma_kernel(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    HALVES: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    """Tiles in turns; FLAT joins both loops. HALVES stores the result in two parts, which needs less shared memory."""
    tiles_m = M // BLOCK_M
    tiles_n = N // BLOCK_N
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=FLAT):
        m, n = place_of(tile, tiles_m, tiles_n, GROUP)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in tl.range(0, K, BLOCK_K):
            acc = tl.dot(a_desc.load([m * BLOCK_M, k]), b_desc.load([k, n * BLOCK_N]), acc)
        if HALVES:
            left, right = tl.split(tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1)))
            c_desc.store([m * BLOCK_M, n * BLOCK_N], left.to(tl.bfloat16))
            c_desc.store([m * BLOCK_M, n * BLOCK_N + BLOCK_N // 2], right.to(tl.bfloat16))
        else:
            c_desc.store([m * BLOCK_M, n * BLOCK_N], acc.to(tl.bfloat16))


def _matmul():
    N, m, n, k = 4096, 128, 256, 64

    def pointers(m, n, k, group, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": group}
        return [Call(product_kernel, (N // m * (N // n),), ("a", "b", "c", N, N, N), constants, warps, stages)]

    def tma(stages=3, halves=False, flat=False, programs=132):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8, "HALVES": halves, "FLAT": flat}
        args = (Tiles("a", (m, k)), Tiles("b", (k, n)), Tiles("c", (m, n // 2 if halves else n)), N, N, N)
        return [Call(product_tma_kernel, (programs,), args, constants, 8, stages)]

    variants = {
        "pointers_128x256": pointers(128, 256, 64, 8, 8, 4), "pointers_128x128": pointers(128, 128, 64, 8, 4, 4),
        "textbook_64x64x32": pointers(64, 64, 32, 1, 4, 3), "tma": tma(4, True, programs=N // m * (N // n)),
        "tma_persistent": tma(), "tma_flat": tma(flat=True), "tma_flat_halves": tma(4, True, True),
    }  # fmt: skip
    given = {"a": Tensor((N, N), "bfloat16"), "b": Tensor((N, N), "bfloat16"), "c": Tensor((N, N), "bfloat16", "empty")}
    return Family(given, variants, "c", lambda t: t["a"].float() @ t["b"].float())


# -- rows and transposes: later_softmax, later_transpose ---------------------------------------------------------------


@triton.jit
def row_kernel(x_ptr, out_ptr, N: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, N)
    x = tl.load(x_ptr + r * N + c).to(tl.float32)
    p = tl.exp2((x - tl.max(x, 0)) * 1.4426950408889634)
    tl.store(out_ptr + r * N + c, (p * (1.0 / tl.sum(p, 0))).to(tl.bfloat16))


@triton.jit
def two_rows_kernel(x_ptr, out_ptr, N: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :]).to(tl.float32)
    p = tl.exp2((x - tl.max(x, 1)[:, None]) * 1.4426950408889634)
    tl.store(out_ptr + r[:, None] * N + c[None, :], (p * (1.0 / tl.sum(p, 1))[:, None]).to(tl.bfloat16))


@triton.jit
def turn_kernel(x_ptr, out_ptr, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """GROUP above 0: so many tiles below each other come first, which write the same rows of the output."""
    tiles = N // BLOCK_N
    if GROUP == 0:
        n = tl.program_id(0) % tiles
        m = tl.program_id(0) // tiles
    else:
        m = tl.program_id(0) // (GROUP * tiles) * GROUP + tl.program_id(0) % GROUP
        n = tl.program_id(0) % (GROUP * tiles) // GROUP
    rm = m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = n * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + rm[:, None] * N + rn[None, :])
    tl.store(out_ptr + rn[:, None] * N + rm[None, :], tl.trans(x))


def _softmax():
    M, N = 32768, 8192
    variants = {f"one_w{w}": [Call(row_kernel, (M,), ("x", "out"), {"N": N}, w, 3)] for w in (2, 4, 8, 16, 32)}
    variants["two_rows"] = [Call(two_rows_kernel, (M // 2,), ("x", "out"), {"N": N, "ROWS": 2}, 8, 3)]
    given = {"x": Tensor((M, N), "bfloat16"), "out": Tensor((M, N), "bfloat16", "empty")}
    return Family(given, variants, "out", lambda t: torch.softmax(t["x"].float(), 1))


def _transpose():
    N = 16384

    def turn(m, n, warps, group=0):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "GROUP": group}
        return [Call(turn_kernel, (N // m * (N // n),), ("x", "out", N), constants, warps, 3)]

    variants = {
        "t32x32": turn(32, 32, 4), "t64x64": turn(64, 64, 4), "t128x64": turn(128, 64, 4),
        "t128x128_w8": turn(128, 128, 8), "t128x128_w16": turn(128, 128, 16), "ordered": turn(128, 128, 8, 128),
    }  # fmt: skip
    given = {"x": Tensor((N, N), "bfloat16"), "out": Tensor((N, N), "bfloat16", "empty")}
    return Family(given, variants, "out", lambda t: t["x"].float().t())


FAMILIES = {
    "later_full": _attention(False), "later_causal": _attention(True), "later_matmul": _matmul(),
    "later_softmax": _softmax(), "later_transpose": _transpose(),
}  # fmt: skip
