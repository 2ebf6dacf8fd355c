"""Weights: int8 and int4 to bfloat16, eight tokens against a bfloat16 weight, 64 tokens against int8 and int4."""

import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

# -- int8_channels: out = w * scale, int8 [N, K] to bfloat16, a float32 scale for each row -----------------------------


@triton.jit
def channel_flat_kernel(w_ptr, scale_ptr, out_ptr, K, n, BLOCK: tl.constexpr):
    """One lane an element, its scale by a division."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    w = tl.load(w_ptr + i, mask=mask).to(tl.float32)
    tl.store(out_ptr + i, (w * tl.load(scale_ptr + i // K, mask=mask)).to(tl.bfloat16), mask=mask)


@triton.jit
def channel_tile_kernel(w_ptr, scale_ptr, out_ptr, N, K, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A tile of ROWS rows."""
    r = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (r < N)[:, None] & (c < K)[None, :]
    i = r[:, None] * K + c[None, :]
    scale = tl.load(scale_ptr + r, mask=r < N, other=0.0)
    w = tl.load(w_ptr + i, mask=mask, other=0)
    tl.store(out_ptr + i, (w.to(tl.float32) * scale[:, None]).to(tl.bfloat16), mask=mask)


@triton.jit
def channel_rows_kernel(w_ptr, scale_ptr, out_ptr, N, K, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Rows by a fixed number of programs, chunk after chunk."""
    for r in range(tl.program_id(0), N, tl.num_programs(0)):
        scale = tl.load(scale_ptr + r)
        for start in tl.range(0, K, BLOCK, num_stages=STAGES):
            c = start + tl.arange(0, BLOCK)
            w = tl.load(w_ptr + r * K + c, mask=c < K, other=0)
            tl.store(out_ptr + r * K + c, (w.to(tl.float32) * scale).to(tl.bfloat16), mask=c < K)


def _int8_channels(N=16384, K=8192, shrink=1):
    def flat(block, warps):
        args = ("w", "scale", "out", K, N * K)
        return [Call(channel_flat_kernel, (triton.cdiv(N * K, block),), args, {"BLOCK": block}, warps)]

    def tile(rows, block, warps):
        grid, constants = (triton.cdiv(K, block), triton.cdiv(N, rows)), {"ROWS": rows, "BLOCK": block}
        return [Call(channel_tile_kernel, grid, ("w", "scale", "out", N, K), constants, warps)]

    def rows(programs, block, warps, stages):
        grid, constants = (max(1, programs // shrink),), {"BLOCK": block, "STAGES": stages}
        return [Call(channel_rows_kernel, grid, ("w", "scale", "out", N, K), constants, warps, stages)]

    variants = {
        "flat2048_w4": flat(2048, 4), "flat256_w4": flat(256, 4), "flat16384_w8": flat(16384, 8),
        "tile4x1024": tile(4, 1024, 8), "tile128x16": tile(128, 16, 4),
        "rows528_b2048_s1": rows(528, 2048, 4, 1), "rows264_b4096_s3": rows(264, 4096, 8, 3),
    }  # fmt: skip
    tensors = {
        "w": Tensor((N, K), "int8", scale=25.0), "scale": Tensor((N,), "float32"),
        "out": Tensor((N, K), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: t["w"].float() * t["scale"][:, None])


# -- int4_groups: two nibbles a byte, low one first, less 8, times the float16 scale of 128 elements -------------------


@triton.jit
def nibble_join_kernel(q_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A byte a lane; halves interleaved."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    scale = tl.load(scale_ptr + i // 64).to(tl.float32)
    low = ((q & 15).to(tl.float32) - 8.0) * scale
    high = ((q >> 4).to(tl.float32) - 8.0) * scale
    out = tl.interleave(low, high).to(tl.bfloat16)
    tl.store(out_ptr + tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK), out)


@triton.jit
def nibble_group_kernel(q_ptr, scale_ptr, out_ptr, GROUPS: tl.constexpr):
    """GROUPS groups a program, each scale loaded once; halves joined to a third dim."""
    g = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    j = tl.arange(0, 64)
    q = tl.load(q_ptr + g[:, None] * 64 + j[None, :]).to(tl.int32)
    scale = tl.load(scale_ptr + g).to(tl.float32)[:, None]
    low = ((q & 15) - 8).to(tl.float32) * scale
    high = ((q >> 4) - 8).to(tl.float32) * scale
    out = tl.reshape(tl.join(low, high), (GROUPS, 128)).to(tl.bfloat16)
    tl.store(out_ptr + g[:, None] * 128 + tl.arange(0, 128)[None, :], out)


@triton.jit
def nibble_apart_kernel(q_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Two stores, each to every second element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    scale = tl.load(scale_ptr + i // 64).to(tl.float32)
    tl.store(out_ptr + 2 * i, (((q & 15).to(tl.float32) - 8.0) * scale).to(tl.bfloat16))
    tl.store(out_ptr + 2 * i + 1, (((q >> 4).to(tl.float32) - 8.0) * scale).to(tl.bfloat16))


@triton.jit
def nibble_each_kernel(q_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """An element a lane: neighbours load the same byte and shift it."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    q = tl.load(q_ptr + i // 2, mask=mask, other=0).to(tl.int32)
    nibble = (q >> ((i % 2) * 4)) & 15
    scale = tl.load(scale_ptr + i // 128, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, ((nibble - 8).to(tl.float32) * scale).to(tl.bfloat16), mask=mask)


def _int4_groups(N=16384, K=8192):
    n = N * K
    args = ("q", "scale", "out", n // 2)

    def halves(kernel, block, warps):
        return [Call(kernel, (n // 2 // block,), args, {"BLOCK": block}, warps)]

    def group(groups, warps):
        return [Call(nibble_group_kernel, (n // 128 // groups,), ("q", "scale", "out"), {"GROUPS": groups}, warps)]

    def each(block, warps):
        return [Call(nibble_each_kernel, (triton.cdiv(n, block),), ("q", "scale", "out", n), {"BLOCK": block}, warps)]

    variants = {
        "join1024": halves(nibble_join_kernel, 1024, 4), "join128_w1": halves(nibble_join_kernel, 128, 1),
        "join8192_w8": halves(nibble_join_kernel, 8192, 8), "group32": group(32, 4), "group4_w1": group(4, 1),
        "apart1024": halves(nibble_apart_kernel, 1024, 4), "each1024": each(1024, 4), "each4096_w4": each(4096, 4),
    }  # fmt: skip
    tensors = {
        "q": Tensor((N, K // 2), "uint8", "bytes"), "scale": Tensor((N, K // 128), "float16"),
        "out": Tensor((N, K), "bfloat16", "empty"),
    }  # fmt: skip

    def expected(t):
        q = t["q"].reshape(-1, 64)
        both = (q & 15).float().new_empty((*q.shape, 2))
        both[..., 0] = (q & 15).float() - 8
        both[..., 1] = (q >> 4).float() - 8
        return (both.view(-1, 128) * t["scale"].float().view(-1, 1)).view(N, K)

    return Family(tensors, variants, "out", expected)


# -- tokens8: float32 [8, N] = x [8, K] times the transpose of w [N, K], bfloat16 --------------------------------------


@triton.jit
def token_dot_kernel(x_ptr, w_ptr, out_ptr, N, K, EACH, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The tokens padded to sixteen; the second dim of the grid splits K, partial results meet in atomics."""
    m = tl.arange(0, 16)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.program_id(1) * EACH + tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + m[:, None] * K + k[None, :]
    w_ptrs = w_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((16, BLOCK_N), tl.float32)
    for _ in range(0, EACH, BLOCK_K):
        acc = tl.dot(tl.load(x_ptrs, mask=m[:, None] < 8, other=0.0), tl.load(w_ptrs), acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    offs = m[:, None] * N + n[None, :]
    if tl.num_programs(1) == 1:
        tl.store(out_ptr + offs, acc, mask=m[:, None] < 8)
    else:
        tl.atomic_add(out_ptr + offs, acc, mask=m[:, None] < 8, sem="relaxed")


@triton.jit
def token_turned_kernel(x_ptr, w_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The weight as the left operand, so that its rows fill the instruction's M."""
    m = tl.arange(0, 16)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N, 16), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :])
        x = tl.load(x_ptr + m[None, :] * K + k[:, None], mask=m[None, :] < 8, other=0.0)
        acc = tl.dot(w, x, acc)
    tl.store(out_ptr + m[None, :] * N + n[:, None], acc, mask=m[None, :] < 8)


@triton.jit
def token_sum_kernel(x_ptr, w_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Products and sums in float32, token after token."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.arange(0, 8)
    acc = tl.zeros((8, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :]).to(tl.float32)
        for i in tl.static_range(8):
            x = tl.load(x_ptr + i * K + k).to(tl.float32)
            part = tl.sum(w * x[None, :], 1)
            acc += tl.where(m[:, None] == i, part[None, :], 0.0)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc)


@triton.jit
def token_cube_kernel(x_ptr, w_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A cube of products [8, BLOCK_N, BLOCK_K], summed over its last dim in each step."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    m = tl.arange(0, 8)
    acc = tl.zeros((8, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :]).to(tl.float32)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :]).to(tl.float32)
        acc += tl.sum(x[:, None, :] * w[None, :, :], 2)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc)


def _tokens8(N=16384, K=6144):
    args = ("x", "w", "out", N, K)

    def dot(n, k, split, warps, stages):
        constants = {"BLOCK_N": n, "BLOCK_K": k}
        return [Call(token_dot_kernel, (N // n, split), (*args, K // split), constants, warps, stages)]

    def other(kernel, n, k, warps, stages=3):
        return [Call(kernel, (N // n,), args, {"BLOCK_N": n, "BLOCK_K": k}, warps, stages)]

    variants = {
        "dot64x128_w4": dot(64, 128, 1, 4, 4), "dot32x256_s3": dot(32, 256, 1, 4, 3),
        "dot16x64_w1": dot(16, 64, 1, 1, 2),
        "dot128x64_split4": dot(128, 64, 4, 4, 5), "dot64x128_split8_s1": dot(64, 128, 8, 4, 1),
        "turned64x128": other(token_turned_kernel, 64, 128, 4, 4), "sum8x512": other(token_sum_kernel, 8, 512, 4),
        "sum64x64": other(token_sum_kernel, 64, 64, 4, 2), "cube16x64": other(token_cube_kernel, 16, 64, 4),
    }  # fmt: skip
    tensors = {
        "x": Tensor((8, K), "bfloat16"), "w": Tensor((N, K), "bfloat16"), "out": Tensor((8, N), "float32", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: t["x"].float() @ t["w"].float().t(), zeroed=("out",))


# -- w8_tokens64: bfloat16 [64, N] = x [64, K] times int8 w [N, K] with a scale for each row ---------------------------


@triton.jit
def w8_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, N, K, EARLY: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """EARLY scales the weight in the loop, otherwise the sum in the end."""
    m = tl.arange(0, 64)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    scale = tl.load(scale_ptr + n)
    acc = tl.zeros((64, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        w = tl.load(w_ptr + n[None, :] * K + k[:, None])
        if EARLY:
            w = (w.to(tl.float32) * scale[None, :]).to(tl.bfloat16)
        else:
            w = w.to(tl.bfloat16)
        acc = tl.dot(x, w, acc)
    if not EARLY:
        acc = acc * scale[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


def _w8_tokens64(N=28672, K=8192):
    def product(n, k, warps, stages, early=False):
        constants = {"EARLY": early, "BLOCK_N": n, "BLOCK_K": k}
        return [Call(w8_kernel, (N // n,), ("x", "w", "scale", "out", N, K), constants, warps, stages)]

    variants = {
        "n128k64_w4": product(128, 64, 4, 4), "n64k128_w4": product(64, 128, 4, 3),
        "n256k64_w8": product(256, 64, 8, 3),
        "n32k128_w4": product(32, 128, 4, 3), "early128x64": product(128, 64, 4, 3, True),
        "n64k64_s1": product(64, 64, 4, 1), "n16k32_w2": product(16, 32, 2, 2),
    }  # fmt: skip
    tensors = {
        "x": Tensor((64, K), "bfloat16"), "w": Tensor((N, K), "int8", scale=25.0), "scale": Tensor((N,), "float32"),
        "out": Tensor((64, N), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: (t["x"].float() @ t["w"].float().t()) * t["scale"])


# -- w4_tokens64: the same with int4 weights, [K // 2, N] bytes: a byte holds rows 2k and 2k + 1, a scale for 128 of K -


@triton.jit
def w4_join_kernel(x_ptr, q_ptr, scale_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Both halves of a byte are joined along K before one product."""
    m = tl.arange(0, 64)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((64, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        h = start // 2 + tl.arange(0, BLOCK_K // 2)
        q = tl.load(q_ptr + h[:, None] * N + n[None, :]).to(tl.int32)
        both = tl.join((q & 15) - 8, (q >> 4) - 8)
        w = tl.reshape(tl.permute(both, (0, 2, 1)), (BLOCK_K, BLOCK_N))
        scale = tl.load(scale_ptr + (start // 128) * N + n).to(tl.float32)
        acc = tl.dot(x, (w.to(tl.float32) * scale[None, :]).to(tl.bfloat16), acc)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@triton.jit
def w4_apart_kernel(x_ptr, q_ptr, scale_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, HALF: tl.constexpr):
    """A product for each half, with every second column of x; the scale goes to the partial sum."""
    m = tl.arange(0, 64)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((64, BLOCK_N), tl.float32)
    for start in range(0, K // 2, HALF):
        h = start + tl.arange(0, HALF)
        q = tl.load(q_ptr + h[:, None] * N + n[None, :])
        x_ptrs = x_ptr + m[:, None] * K + 2 * h[None, :]
        low = ((q & 15).to(tl.float32) - 8.0).to(tl.bfloat16)
        high = ((q >> 4).to(tl.float32) - 8.0).to(tl.bfloat16)
        part = tl.dot(tl.load(x_ptrs), low)
        part = tl.dot(tl.load(x_ptrs + 1), high, part)
        acc += part * tl.load(scale_ptr + (start // 64) * N + n).to(tl.float32)[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


@triton.jit
def w4_shift_kernel(x_ptr, q_ptr, scale_ptr, out_ptr, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Each byte is loaded twice and shifted by the parity of its row."""
    m = tl.arange(0, 64)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((64, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :])
        q = tl.load(q_ptr + (k // 2)[:, None] * N + n[None, :]).to(tl.int32)
        w = ((q >> ((k % 2) * 4)[:, None]) & 15) - 8
        scale = tl.load(scale_ptr + (start // 128) * N + n).to(tl.float32)
        acc = tl.dot(x, (w.to(tl.float32) * scale[None, :]).to(tl.bfloat16), acc)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16))


def _w4_tokens64(N=28672, K=8192):
    args = ("x", "q", "scale", "out", N, K)

    def join(n, k, warps, stages, kernel=w4_join_kernel):
        return [Call(kernel, (N // n,), args, {"BLOCK_N": n, "BLOCK_K": k}, warps, stages)]

    def apart(n, half, warps, stages):
        return [Call(w4_apart_kernel, (N // n,), args, {"BLOCK_N": n, "HALF": half}, warps, stages)]

    variants = {
        "join128x64": join(128, 64, 4, 3), "join64x128_w8": join(64, 128, 8, 3), "join256x32": join(256, 32, 8, 4),
        "apart128x64": apart(128, 64, 4, 3), "apart64x32_s1": apart(64, 32, 4, 1),
        "shift128x64": join(128, 64, 4, 3, w4_shift_kernel), "shift32x32_w2": join(32, 32, 2, 2, w4_shift_kernel),
    }  # fmt: skip
    tensors = {
        "x": Tensor((64, K), "bfloat16"), "q": Tensor((K // 2, N), "uint8", "bytes"),
        "scale": Tensor((K // 128, N), "float16"), "out": Tensor((64, N), "bfloat16", "empty"),
    }  # fmt: skip

    def expected(t):
        scale = t["scale"].float().repeat_interleave(64, 0)
        low, high = ((t["q"] & 15).float() - 8) * scale, ((t["q"] >> 4).float() - 8) * scale
        return t["x"].float()[:, ::2] @ low + t["x"].float()[:, 1::2] @ high

    return Family(tensors, variants, "out", expected)


FAMILIES = {
    "int8_channels": _int8_channels(), "int4_groups": _int4_groups(), "tokens8": _tokens8(),
    "w8_tokens64": _w8_tokens64(), "w4_tokens64": _w4_tokens64(),
}  # fmt: skip
