"""Matrix products: float16 at a layer's shape, fp8, TMA, persistent and warp-specialised loops, spills, one stage."""

import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor, Tiles


def _allocate(size, alignment, stream):
    import torch

    return torch.empty(size, dtype=torch.int8, device="cuda" if torch.cuda.is_available() else "cpu")


triton.set_allocator(_allocate)  # for the descriptors that special_kernel makes


@triton.jit
def tiled_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Tiles of pointers; masks in every dim."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    size = min(tiles_m - first, GROUP)
    pm = first + (pid % (GROUP * tiles_n)) % size
    pn = (pid % (GROUP * tiles_n)) // size
    rm = pm * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pn * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (k + rk[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(k + rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def persistent_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A fixed number of programs walk over the tiles, pointers."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles = tiles_m * tl.cdiv(N, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        rm = (tile % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M)
        rn = (tile // tiles_m) * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
            b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


@triton.jit
def special_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """TMA, loads and products in warps of their own; Triton 3.6 does that to descriptors made in the kernel only."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    pm = pid % tiles_m
    pn = pid // tiles_m
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in tl.range(0, tl.cdiv(K, BLOCK_K), warp_specialize=True):
        x = a.load([pm * BLOCK_M, k * BLOCK_K])
        y = b.load([pn * BLOCK_N, k * BLOCK_K])
        acc = tl.dot(x, y.T, acc)
    c.store([pm * BLOCK_M, pn * BLOCK_N], acc.to(tl.float16))


@triton.jit
def descriptor_kernel(
    a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """TMA."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    pm = pid % tiles_m
    pn = pid // tiles_m
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        x = a.load([pm * BLOCK_M, k * BLOCK_K])
        y = b.load([pn * BLOCK_N, k * BLOCK_K])
        acc = tl.dot(x, y.T, acc)
    c.store([pm * BLOCK_M, pn * BLOCK_N], acc.to(tl.float16))


@triton.jit
def descriptor_loop_kernel(
    a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    """TMA, persistent; FLAT makes one loop of the two."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles = tiles_m * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLAT):
        rm = (tile % tiles_m) * BLOCK_M
        rn = (tile // tiles_m) * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            acc = tl.dot(a.load([rm, k * BLOCK_K]), b.load([rn, k * BLOCK_K]).T, acc)
        c.store([rm, rn], acc.to(tl.float16))


def _half():
    M, N, K = 4096, 4096, 1024
    args, turned = ("a", "b", "c", M, N, K, N, 1), ("a", "bt", "c", M, N, K, 1, K)

    def tiled(m, n, k, warps, stages, group=8, args=args):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": group}
        return [Call(tiled_kernel, (triton.cdiv(M, m) * triton.cdiv(N, n),), args, constants, warps, stages)]

    def persistent(m, n, k, programs, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(persistent_kernel, (programs,), ("a", "b", "c", M, N, K), constants, warps, stages)]

    def tma(m, n, k, warps, stages):
        tiles = (Tiles("a", (m, k)), Tiles("bt", (n, k)), Tiles("c", (m, n)), M, N, K)
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(descriptor_kernel, (triton.cdiv(M, m) * triton.cdiv(N, n),), tiles, constants, warps, stages)]

    def special(m, n, k, warps, stages):
        grid, constants = (triton.cdiv(M, m) * triton.cdiv(N, n),), {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(special_kernel, grid, ("a", "bt", "c", M, N, K), constants, warps, stages)]

    def loop(m, n, k, warps, stages, flat, programs=132):
        tiles = (Tiles("a", (m, k)), Tiles("bt", (n, k)), Tiles("c", (m, n)), M, N, K)
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "FLAT": flat}
        return [Call(descriptor_loop_kernel, (programs,), tiles, constants, warps, stages)]

    variants = {
        "t128x128x64_w4": tiled(128, 128, 64, 4, 3), "t128x128x32_w8": tiled(128, 128, 32, 8, 4),
        "t128x256x64_w8": tiled(128, 256, 64, 8, 3), "t64x128x64_w4": tiled(64, 128, 64, 4, 4),
        "t64x64x128_w4": tiled(64, 64, 128, 4, 2), "t128x128x64_s1": tiled(128, 128, 64, 4, 1),
        "t64x64x32_s1": tiled(64, 64, 32, 4, 1), "t256x128x32_w4": tiled(256, 128, 32, 4, 3),
        "t32x64x64_w2": tiled(32, 64, 64, 2, 3), "t128x128x64_bt": tiled(128, 128, 64, 4, 3, args=turned),
        "persist132": persistent(128, 128, 64, 132, 8, 3), "persist33": persistent(128, 128, 64, 33, 8, 3),
        "tma128x128x64": tma(128, 128, 64, 4, 3), "tma128x256x64": tma(128, 256, 64, 8, 3),
        "tma64x64x64_s2": tma(64, 64, 64, 4, 2), "tma128x128x64_special": special(128, 128, 64, 4, 3),
        "tma_loop": loop(128, 128, 64, 8, 3, False), "tma_loop_flat": loop(128, 256, 64, 8, 3, True),
    }  # fmt: skip
    small = 0.1  # so that sums of float16 products keep their digits
    tensors = {
        "a": Tensor((M, K), "float16", scale=small), "b": Tensor((K, N), "float16", scale=small),
        "bt": Tensor((N, K), "float16", "turned", of="b"), "c": Tensor((M, N), "float16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "c", lambda t: t["a"].float() @ t["b"].float())


def _turned(t):
    return t["a"].float() @ t["bt"].float().t()


def _eight():
    M, N, K = 2048, 4096, 4096

    def tma(m, n, k, warps, stages):
        tiles = (Tiles("a", (m, k)), Tiles("bt", (n, k)), Tiles("c", (m, n)), M, N, K)
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(descriptor_kernel, (triton.cdiv(M, m) * triton.cdiv(N, n),), tiles, constants, warps, stages)]

    def tiled(m, n, k, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}
        args = ("a", "bt", "c", M, N, K, 1, K)
        return [Call(tiled_kernel, (triton.cdiv(M, m) * triton.cdiv(N, n),), args, constants, warps, stages)]

    variants = {
        "tma128x128x128": tma(128, 128, 128, 4, 3), "tma128x256x128": tma(128, 256, 128, 8, 3),
        "t128x128x128": tiled(128, 128, 128, 8, 3), "t128x128x64_w4": tiled(128, 128, 64, 4, 4),
        "t64x64x128": tiled(64, 64, 128, 4, 3), "t128x128x128_s1": tiled(128, 128, 128, 8, 1),
    }  # fmt: skip
    tensors = {
        "a": Tensor((M, K), "float8_e4m3fn"), "bt": Tensor((N, K), "float8_e4m3fn"),
        "c": Tensor((M, N), "float16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "c", _turned, tolerance=0.02)


def _tf32():
    M, N, K = 2048, 2048, 2048
    args = ("a", "b", "c", M, N, K, N, 1)

    def tiled(m, n, k, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8}
        return [Call(tiled_kernel, (triton.cdiv(M, m) * triton.cdiv(N, n),), args, constants, warps, stages)]

    variants = {
        "t128x128x32": tiled(128, 128, 32, 8, 3), "t64x64x32": tiled(64, 64, 32, 4, 3),
        "t64x128x64": tiled(64, 128, 64, 4, 2), "t32x32x32": tiled(32, 32, 32, 4, 2),
        "t128x128x32_s1": tiled(128, 128, 32, 8, 1),
    }  # fmt: skip
    tensors = {"a": Tensor((M, K), "float32"), "b": Tensor((K, N), "float32"), "c": Tensor((M, N), "float32", "empty")}
    return Family(tensors, variants, "c", lambda t: t["a"].double() @ t["b"].double())


FAMILIES = {"half": _half(), "eight": _eight(), "tf32": _tf32()}
