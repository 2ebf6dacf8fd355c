"""Matrix products with an end: bias and gelu, silu and mul of two products, fp8 with scales, batches."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor, Tiles


def _allocate(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda" if torch.cuda.is_available() else "cpu")


triton.set_allocator(_allocate)  # for the descriptors that kernels make

# -- mm_gelu: c = gelu(a @ b + bias), bfloat16 -------------------------------------------------------------------------


@triton.jit
def gelu(x):
    """By erf."""
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """The tutorial's: grouped tiles, indices wrapped instead of masked, strides as arguments."""
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * num_n
    first_m = (pid // in_group) * GROUP_M
    size_m = min(num_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % size_m
    pid_n = (pid % in_group) // size_m
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c = gelu(acc + tl.load(bias_ptr + offs_n)[None, :]).to(tl.bfloat16)
    cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (cm[:, None] < M) & (cn[None, :] < N)
    tl.store(c_ptr + cm[:, None] * stride_cm + cn[None, :] * stride_cn, c, mask=mask)


@triton.jit
def gelu_naive_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A grid of two dims, pointers anew in each step."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rm * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + rn)
        acc += tl.dot(a, b)
    tl.store(c_ptr + rm * N + rn, gelu(acc + tl.load(bias_ptr + rn)).to(tl.bfloat16))


@triton.jit
def gelu_tiles_kernel(
    a, b, bias_ptr, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Host-made descriptors, b as [N, K]."""
    pid = tl.program_id(0)
    num_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * num_n) * GROUP_M
    size_m = min(tl.cdiv(M, BLOCK_M) - first_m, GROUP_M)
    m = (first_m + (pid % (GROUP_M * num_n)) % size_m) * BLOCK_M
    n = (pid % (GROUP_M * num_n)) // size_m * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    bias = tl.load(bias_ptr + n + tl.arange(0, BLOCK_N))
    c.store([m, n], gelu(acc + bias[None, :]).to(tl.bfloat16))


@triton.jit
def gelu_persistent_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Persistent, with descriptors made in the kernel, b as [K, N]."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    num_m = tl.cdiv(M, BLOCK_M)
    for tile in tl.range(tl.program_id(0), num_m * tl.cdiv(N, BLOCK_N), tl.num_programs(0)):
        m = tile % num_m * BLOCK_M
        n = tile // num_m * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
        bias = tl.load(bias_ptr + n + tl.arange(0, BLOCK_N))
        c.store([m, n], gelu(acc + bias[None, :]).to(tl.bfloat16))


def _mm_gelu(M=2048, N=8192, K=2048, shrink=1):
    def tutorial(m, n, k, group, warps, stages, turned=False):
        b, strides = ("bt", (1, K)) if turned else ("b", (N, 1))
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group}
        args = ("a", b, "bias", "c", M, N, K, K, 1, *strides, N, 1)
        return [Call(gelu_kernel, (triton.cdiv(M, m) * triton.cdiv(N, n),), args, constants, warps, stages)]

    def naive(m, n, k, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(gelu_naive_kernel, (M // m, N // n), ("a", "b", "bias", "c", M, N, K), constants, warps, stages)]

    def tiles(m, n, k, group, warps, stages):
        args = (Tiles("a", (m, k)), Tiles("bt", (n, k)), "bias", Tiles("c", (m, n)), M, N, K)
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": group}
        return [Call(gelu_tiles_kernel, (M // m * (N // n),), args, constants, warps, stages)]

    def persistent(m, n, k, programs, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        grid = (max(1, programs // shrink),)
        return [Call(gelu_persistent_kernel, grid, ("a", "b", "bias", "c", M, N, K), constants, warps, stages)]

    variants = {
        "t128x256x64_g8_w8": tutorial(128, 256, 64, 8, 8, 3), "t128x128x32_g4_w4": tutorial(128, 128, 32, 4, 4, 5),
        "t64x256x32_g8_w4": tutorial(64, 256, 32, 8, 4, 4), "turned128x128x64": tutorial(128, 128, 64, 8, 4, 3, True),
        "t32x64x32_g1_w4": tutorial(32, 64, 32, 1, 4, 2), "naive64x64x64_s2": naive(64, 64, 64, 4, 2),
        "naive128x128x64_s1": naive(128, 128, 64, 8, 1), "tiles128x256x64_w8": tiles(128, 256, 64, 8, 8, 4),
        "tiles256x128x64_w8": tiles(256, 128, 64, 4, 8, 3), "tiles64x128x128_w4": tiles(64, 128, 128, 8, 4, 3),
        "persist128x256x64": persistent(128, 256, 64, 132, 8, 3),
        "persist128x128x64": persistent(128, 128, 64, 264, 4, 3),
    }  # fmt: skip
    tensors = {
        "a": Tensor((M, K), "bfloat16", scale=0.15), "b": Tensor((K, N), "bfloat16", scale=0.15),
        "bt": Tensor((N, K), "bfloat16", "turned", of="b"), "bias": Tensor((N,), "float32"),
        "c": Tensor((M, N), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(
        tensors, variants, "c", lambda t: torch.nn.functional.gelu(t["a"].float() @ t["b"].float() + t["bias"])
    )


# -- mm_swiglu: c = silu(a @ gate^T) * (a @ up^T), bfloat16, weights [N, K] --------------------------------------------


@triton.jit
def swiglu_kernel(
    a_ptr, gate_ptr, up_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Two products that share the tile of a; programs go down M first."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        offs = rn[None, :] * K + (k + rk)[:, None]
        gate = tl.dot(a, tl.load(gate_ptr + offs), gate)
        up = tl.dot(a, tl.load(up_ptr + offs), up)
    c = gate * tl.sigmoid(gate) * up
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], c.to(tl.bfloat16), mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def swiglu_twice_kernel(
    a_ptr, gate_ptr, up_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One product after the other."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        acc = tl.dot(a, tl.load(gate_ptr + rn[None, :] * K + (k + rk)[:, None]), acc)
    half = (acc * tl.sigmoid(acc)).to(tl.bfloat16)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        acc = tl.dot(a, tl.load(up_ptr + rn[None, :] * K + (k + rk)[:, None]), acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], (half.to(tl.float32) * acc).to(tl.bfloat16))


@triton.jit
def swiglu_tiles_kernel(
    a, gate_w, up_w, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Host-made descriptors, persistent."""
    num_m = tl.cdiv(M, BLOCK_M)
    for tile in tl.range(tl.program_id(0), num_m * tl.cdiv(N, BLOCK_N), tl.num_programs(0)):
        m = tile % num_m * BLOCK_M
        n = tile // num_m * BLOCK_N
        gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            x = a.load([m, k])
            gate = tl.dot(x, gate_w.load([n, k]).T, gate)
            up = tl.dot(x, up_w.load([n, k]).T, up)
        c.store([m, n], (gate * tl.sigmoid(gate) * up).to(tl.bfloat16))


def _mm_swiglu(M=2048, N=5632, K=2048, shrink=1):
    def product(m, n, k, warps, stages, kernel=swiglu_kernel):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(kernel, (M // m, N // n), ("a", "gate", "up", "c", M, N, K), constants, warps, stages)]

    def tiles(m, n, k, warps, stages):
        args = (Tiles("a", (m, k)), Tiles("gate", (n, k)), Tiles("up", (n, k)), Tiles("c", (m, n)), M, N, K)
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(swiglu_tiles_kernel, (max(1, 132 // shrink),), args, constants, warps, stages)]

    variants = {
        "t128x128x64_w8": product(128, 128, 64, 8, 3), "t128x64x64_w4": product(128, 64, 64, 4, 3),
        "t64x64x32_w4": product(64, 64, 32, 4, 4), "t128x128x32_w4": product(128, 128, 32, 4, 3),
        "twice128x128x64": product(128, 128, 64, 8, 3, swiglu_twice_kernel),
        "tiles128x128x64": tiles(128, 128, 64, 8, 3),
    }  # fmt: skip
    weight = Tensor((N, K), "bfloat16", scale=0.15)
    tensors = {
        "a": Tensor((M, K), "bfloat16", scale=0.15), "gate": weight, "up": weight,
        "c": Tensor((M, N), "bfloat16", "empty"),
    }  # fmt: skip

    def expected(t):
        a = t["a"].float()
        return torch.nn.functional.silu(a @ t["gate"].float().t()) * (a @ t["up"].float().t())

    return Family(tensors, variants, "c", expected)


# -- fp8_rowwise: c = (a @ bt^T) * scales of rows and columns, float8_e4m3fn to bfloat16 -------------------------------


@triton.jit
def fp8_kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Pointers."""
    pid = tl.program_id(0)
    rm = pid % tl.cdiv(M, BLOCK_M) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid // tl.cdiv(M, BLOCK_M) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        b = tl.load(b_ptr + rn[None, :] * K + (k + rk)[:, None])
        acc = tl.dot(a, b, acc)
    acc = acc * tl.load(sa_ptr + rm)[:, None] * tl.load(sb_ptr + rn)[None, :]
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@triton.jit
def fp8_tiles_kernel(
    a, b, sa_ptr, sb_ptr, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Host-made descriptors."""
    pid = tl.program_id(0)
    m = pid % tl.cdiv(M, BLOCK_M) * BLOCK_M
    n = pid // tl.cdiv(M, BLOCK_M) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    sa = tl.load(sa_ptr + m + tl.arange(0, BLOCK_M))
    sb = tl.load(sb_ptr + n + tl.arange(0, BLOCK_N))
    c.store([m, n], (acc * sa[:, None] * sb[None, :]).to(tl.bfloat16))


def _fp8_rowwise(M=2048, N=8192, K=4096):
    def product(m, n, k, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(fp8_kernel, (M // m * (N // n),), ("a", "bt", "sa", "sb", "c", M, N, K), constants, warps, stages)]

    def tiles(m, n, k, warps, stages):
        args = (Tiles("a", (m, k)), Tiles("bt", (n, k)), "sa", "sb", Tiles("c", (m, n)), M, N, K)
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(fp8_tiles_kernel, (M // m * (N // n),), args, constants, warps, stages)]

    variants = {
        "tiles128x256x128": tiles(128, 256, 128, 8, 4), "tiles128x128x64_w4": tiles(128, 128, 64, 4, 5),
        "t128x256x64_w8": product(128, 256, 64, 8, 4), "t128x128x128_w4": product(128, 128, 128, 4, 3),
        "t64x128x128_s2": product(64, 128, 128, 4, 2), "t32x128x64_w4": product(32, 128, 64, 4, 3),
    }  # fmt: skip
    tensors = {
        "a": Tensor((M, K), "float8_e4m3fn"), "bt": Tensor((N, K), "float8_e4m3fn"), "sa": Tensor((M,), "float32"),
        "sb": Tensor((N,), "float32"), "c": Tensor((M, N), "bfloat16", "empty"),
    }  # fmt: skip

    def expected(t):
        return t["a"].float() @ t["bt"].float().t() * t["sa"][:, None] * t["sb"]

    return Family(tensors, variants, "c", expected, tolerance=0.02)


# -- bmm: [B, M, K] times [B, K, N], bfloat16 --------------------------------------------------------------------------


@triton.jit
def batch_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The batch is the grid's last dim."""
    batch = tl.program_id(2).to(tl.int64)
    rm = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + batch * M * K + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + batch * K * N + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    tl.store(c_ptr + batch * M * N + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@triton.jit
def batch_walk_kernel(
    a_ptr, b_ptr, c_ptr, B, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A fixed number of programs walk over all tiles; the batch changes fastest."""
    num_n = tl.cdiv(N, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    for tile in range(tl.program_id(0), B * tl.cdiv(M, BLOCK_M) * num_n, tl.num_programs(0)):
        batch = (tile % B).to(tl.int64)
        rm = tile // B // num_n * BLOCK_M + tl.arange(0, BLOCK_M)
        rn = tile // B % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a = tl.load(a_ptr + batch * M * K + rm[:, None] * K + (k + rk)[None, :])
            b = tl.load(b_ptr + batch * K * N + (k + rk)[:, None] * N + rn[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + batch * M * N + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16))


@triton.jit
def batch_tiles_kernel(a, b, c, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Host-made descriptors of three dims."""
    batch = tl.program_id(2)
    m = tl.program_id(1) * BLOCK_M
    n = tl.program_id(0) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        x = a.load([batch, m, k]).reshape(BLOCK_M, BLOCK_K)
        y = b.load([batch, k, n]).reshape(BLOCK_K, BLOCK_N)
        acc = tl.dot(x, y, acc)
    c.store([batch, m, n], acc.to(tl.bfloat16).reshape(1, BLOCK_M, BLOCK_N))


def _bmm(B=128, M=512, N=512, K=1024, shrink=1):
    def product(m, n, k, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(batch_kernel, (N // n, M // m, B), ("a", "b", "c", M, N, K), constants, warps, stages)]

    def walk(m, n, k, programs, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        grid = (max(1, programs // shrink),)
        return [Call(batch_walk_kernel, grid, ("a", "b", "c", B, M, N, K), constants, warps, stages)]

    def tiles(m, n, k, warps, stages):
        args = (Tiles("a", (1, m, k)), Tiles("b", (1, k, n)), Tiles("c", (1, m, n)), K)
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(batch_tiles_kernel, (N // n, M // m, B), args, constants, warps, stages)]

    variants = {
        "t128x128x64_w4": product(128, 128, 64, 4, 3), "t256x128x32_w8": product(256, 128, 32, 8, 3),
        "t64x64x64_w4": product(64, 64, 64, 4, 3), "t16x64x64_w2": product(16, 64, 64, 2, 3),
        "walk128x128x64": walk(128, 128, 64, 264, 8, 3), "tiles128x128x64": tiles(128, 128, 64, 4, 4),
    }  # fmt: skip
    tensors = {
        "a": Tensor((B, M, K), "bfloat16"), "b": Tensor((B, K, N), "bfloat16"),
        "c": Tensor((B, M, N), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "c", lambda t: t["a"].float() @ t["b"].float())


FAMILIES = {
    "mm_gelu": _mm_gelu(), "mm_swiglu": _mm_swiglu(), "fp8_rowwise": _fp8_rowwise(), "bmm": _bmm(),
}  # fmt: skip
