"""Matrix products: square, skinny and rectangular in bfloat16; matrix times one, four and sixteen vectors."""

import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor, Tiles

# -- c = a @ b, bfloat16 -----------------------------------------------------------------------------------------------


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, F32: tl.constexpr,
):  # fmt: skip
    """Tiles through tl.dot; GROUP rows of tiles are walked together; F32 keeps the tensor cores out."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    if GROUP > 1:
        group = pid // (GROUP * tiles_n)
        first = group * GROUP
        size = min(tiles_m - first, GROUP)
        pm = first + (pid % (GROUP * tiles_n)) % size
        pn = (pid % (GROUP * tiles_n)) // size
    else:
        pm = pid // tiles_n
        pn = pid % tiles_n
    rm = pm * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pn * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        if F32:
            acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
        else:
            acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@triton.jit
def element_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_K: tl.constexpr):
    """One program an element of the result."""
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    acc = tl.zeros((BLOCK_K,), tl.float32)
    for k in range(0, K, BLOCK_K):
        rk = k + tl.arange(0, BLOCK_K)
        acc += tl.load(a_ptr + pm * K + rk).to(tl.float32) * tl.load(b_ptr + rk * N + pn).to(tl.float32)
    tl.store(c_ptr + pm * N + pn, tl.sum(acc, 0).to(tl.bfloat16))


@triton.jit
def row_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """One row times a block of columns, by multiply and tl.sum."""
    pm = tl.program_id(0)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N,), tl.float32)
    for k in range(0, K, BLOCK_K):
        rk = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + pm * K + rk).to(tl.float32)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :]).to(tl.float32)
        acc += tl.sum(a[:, None] * b, 0)
    tl.store(c_ptr + pm * N + rn, acc.to(tl.bfloat16))


@triton.jit
def descriptor_kernel(
    a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Tiles through tensor descriptors (TMA)."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    size = min(tiles_m - first, GROUP)
    pm = first + (pid % (GROUP * tiles_n)) % size
    pn = (pid % (GROUP * tiles_n)) // size
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a.load([pm * BLOCK_M, k]), b.load([k, pn * BLOCK_N]), acc)
    c.store([pm * BLOCK_M, pn * BLOCK_N], acc.to(tl.bfloat16))


def _tiled(M, N, K):
    """Return a maker of launches of ``matmul_kernel``."""

    def tiled(m, n, k, group=1, warps=4, stages=3, f32=False, transposed=False):
        args = ("a", "bt" if transposed else "b", "c", M, N, K, *((1, K) if transposed else (N, 1)))
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": group, "F32": f32}
        return [Call(matmul_kernel, (triton.cdiv(M, m) * triton.cdiv(N, n),), args, constants, warps, stages)]

    return tiled


def _product(M, N, K, variants, **more):
    a, b = Tensor((M, K), "bfloat16"), Tensor((K, N), "bfloat16")
    tensors = {"a": a, "b": b, "c": Tensor((M, N), "bfloat16", "empty")}
    return Family(tensors | more, variants, "c", lambda t: t["a"].float() @ t["b"].float())


def _matmul():
    n = 4096
    mm, args = _tiled(n, n, n), ("a", "b", "c", n, n, n)

    def tma(bm, bn, bk, warps, stages):
        tiles = (Tiles("a", (bm, bk)), Tiles("b", (bk, bn)), Tiles("c", (bm, bn)), n, n, n)
        constants = {"BLOCK_M": bm, "BLOCK_N": bn, "BLOCK_K": bk, "GROUP": 8}
        return [Call(descriptor_kernel, (triton.cdiv(n, bm) * triton.cdiv(n, bn),), tiles, constants, warps, stages)]

    variants = {
        "t16x16x16": mm(16, 16, 16, warps=1),
        "t32x32x32": mm(32, 32, 32),
        "t64x64x32": mm(64, 64, 32),
        "t64x64x64": mm(64, 64, 64),
        "t128x128x32": mm(128, 128, 32, 8),
        "t128x128x64_w4": mm(128, 128, 64, 8),
        "t128x128x64_w8": mm(128, 128, 64, 8, 8),
        "t128x128x64_nogroup": mm(128, 128, 64, warps=8),
        "t128x128x64_s1": mm(128, 128, 64, 8, 8, 1),
        "t128x256x64": mm(128, 256, 64, 8, 8),
        "t128x256x64_s4": mm(128, 256, 64, 8, 8, 4),
        "t128x256x64_nogroup": mm(128, 256, 64, warps=8),
        "t128x256x64_w4": mm(128, 256, 64, 8, 4),
        "t128x256x64_bT": mm(128, 256, 64, 8, 8, transposed=True),
        "fp32_64x64": mm(64, 64, 32, f32=True),
        "fp32_128x128": mm(128, 128, 16, 8, 8, 2, f32=True),
        "row_nodot": [Call(row_kernel, (n, n // 128), args, {"BLOCK_N": 128, "BLOCK_K": 32})],
        "elem": [Call(element_kernel, (n, n), args, {"BLOCK_K": 128}, 1)],
        "tma_128x256x64": tma(128, 256, 64, 8, 3),
        "tma_128x128x64": tma(128, 128, 64, 4, 4),
    }
    return _product(n, n, n, variants, bt=Tensor((n, n), "bfloat16", "turned", of="b"))


def _skinny():
    mm = _tiled(64, 8192, 8192)
    variants = {
        "64x64x64": mm(64, 64, 64, stages=4),
        "64x128x64": mm(64, 128, 64, stages=4),
        "64x32x128": mm(64, 32, 128, stages=4),
        "16x64x64": mm(16, 64, 64),
        "64x256x32": mm(64, 256, 32, warps=8),
        "64x64x64_s1": mm(64, 64, 64, stages=1),
    }
    return _product(64, 8192, 8192, variants)


def _rectangular():
    mm = _tiled(2048, 8192, 2048)
    variants = {
        "128x256x64": mm(128, 256, 64, 8, 8),
        "256x128x64": mm(256, 128, 64, 8, 8),
        "128x128x64": mm(128, 128, 64, 8, 4, 4),
        "64x256x64": mm(64, 256, 64, 8, 4),
        "64x128x64": mm(64, 128, 64, 8, 4),
        "32x64x64": mm(32, 64, 64),
        "256x256x64_w8": mm(256, 256, 64, 8, 8, 2),
        "64x64x16": mm(64, 64, 16),
        "fp32": mm(64, 128, 32, 8, 8, f32=True),
    }
    return _product(2048, 8192, 2048, variants)


# -- y[b, n] = sum_k w[n, k] * x[b, k], bfloat16 in, float32 out -------------------------------------------------------


@triton.jit
def vector_row_kernel(w_ptr, x_ptr, y_ptr, N, K, BATCH: tl.constexpr, BLOCK_K: tl.constexpr):
    """One row a program; the row is read again for each vector."""
    n = tl.program_id(0)
    for b in tl.static_range(BATCH):
        acc = tl.zeros((BLOCK_K,), tl.float32)
        for k in range(0, K, BLOCK_K):
            rk = k + tl.arange(0, BLOCK_K)
            acc += tl.load(w_ptr + n * K + rk).to(tl.float32) * tl.load(x_ptr + b * K + rk).to(tl.float32)
        tl.store(y_ptr + b * N + n, tl.sum(acc, 0))


@triton.jit
def vector_tile_kernel(w_ptr, x_ptr, y_ptr, N, K, BATCH: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Several rows a program, all vectors inside, by multiply and tl.sum."""
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    rb = tl.arange(0, BATCH)
    acc = tl.zeros((BATCH, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        rk = k + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rn[:, None] * K + rk[None, :]).to(tl.float32)
        x = tl.load(x_ptr + rb[:, None] * K + rk[None, :]).to(tl.float32)
        acc += tl.sum(w[None, :, :] * x[:, None, :], 2)
    tl.store(y_ptr + rb[:, None] * N + rn[None, :], acc)


@triton.jit
def vector_lane_kernel(w_ptr, x_ptr, y_ptr, N, K, BATCH: tl.constexpr, BLOCK_N: tl.constexpr):
    """One lane a row, walking along it."""
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    for b in tl.static_range(BATCH):
        acc = tl.zeros((BLOCK_N,), tl.float32)
        for k in range(0, K):
            acc += tl.load(w_ptr + rn * K + k).to(tl.float32) * tl.load(x_ptr + b * K + k).to(tl.float32)
        tl.store(y_ptr + b * N + rn, acc)


@triton.jit
def vector_dot_kernel(w_ptr, x_ptr, y_ptr, N, K, BATCH: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """tl.dot with the vectors padded to sixteen."""
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    rb = tl.arange(0, 16)
    acc = tl.zeros((BLOCK_N, 16), tl.float32)
    for k in range(0, K, BLOCK_K):
        rk = k + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + rn[:, None] * K + rk[None, :])
        x = tl.load(x_ptr + rb[None, :] * K + rk[:, None], mask=rb[None, :] < BATCH, other=0.0)
        acc = tl.dot(w, x, acc)
    tl.store(y_ptr + rb[None, :] * N + rn[:, None], acc, mask=rb[None, :] < BATCH)


@triton.jit
def vector_split_kernel(w_ptr, x_ptr, y_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Split along K, joined by atomics."""
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    w = tl.load(w_ptr + rn[:, None] * K + rk[None, :]).to(tl.float32)
    x = tl.load(x_ptr + rk).to(tl.float32)
    tl.atomic_add(y_ptr + rn, tl.sum(w * x[None, :], 1))


def _vectors(batch):
    N, K = 16384, 8192
    args = ("w", "x", "y", N, K)

    def row(k, warps):
        return [Call(vector_row_kernel, (N,), args, {"BATCH": batch, "BLOCK_K": k}, warps)]

    def tile(n, k):
        return [Call(vector_tile_kernel, (N // n,), args, {"BATCH": batch, "BLOCK_N": n, "BLOCK_K": k})]

    def dot(n, k, stages):
        constants = {"BATCH": batch, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(vector_dot_kernel, (N // n,), args, constants, 4, stages)]

    def split(n, k):
        return [Call(vector_split_kernel, (N // n, K // k), args, {"BLOCK_N": n, "BLOCK_K": k})]

    variants = {
        "row_b512": row(512, 4), "row_full_w4": row(K, 4), "tile4x512": tile(4, 512),
        "colwalk": [Call(vector_lane_kernel, (N // 128,), args, {"BATCH": batch, "BLOCK_N": 128})],
        "dot64x128": dot(64, 128, 4), "dot16x256": dot(16, 256, 4), "dot128x64": dot(128, 64, 3),
    }  # fmt: skip
    if batch == 1:
        variants |= {
            "row_b128_w1": row(128, 1), "row_b2048_w8": row(2048, 8), "tile64x64": tile(64, 64),
            "tile16x256": tile(16, 256), "tile1x1024": tile(1, 1024), "splitk_16x512": split(16, 512),
            "splitk_64x64": split(64, 64),
        }  # fmt: skip
    else:
        variants["tile8x256"] = tile(8, 256)
    tensors = {
        "w": Tensor((N, K), "bfloat16"), "x": Tensor((batch, K), "bfloat16"),
        "y": Tensor((batch, N), "float32", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "y", lambda t: t["x"].float() @ t["w"].float().t(), zeroed=("y",))


FAMILIES = {
    "matmul": _matmul(), "skinny": _skinny(), "rectmm": _rectangular(),
    "gemv1": _vectors(1), "gemv4": _vectors(4), "gemv16": _vectors(16),
}  # fmt: skip
