"""Rows: a residual sum with its RMS norm, group norm, softmax with a mask and with a temperature, argmax."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

# -- add_rmsnorm: total = x + residual; out = total / rms(total) * w, bfloat16, two results ----------------------------


@triton.jit
def norm_row_kernel(x_ptr, r_ptr, w_ptr, total_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    """A whole row in registers."""
    base = tl.program_id(0) * N
    c = tl.arange(0, BLOCK)
    mask = c < N
    x = tl.load(x_ptr + base + c, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(r_ptr + base + c, mask=mask, other=0.0).to(tl.float32)
    tl.store(total_ptr + base + c, x.to(tl.bfloat16), mask=mask)
    scale = tl.rsqrt(tl.sum(x * x, 0) / N + eps)
    w = tl.load(w_ptr + c, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + base + c, (x * scale * w).to(tl.bfloat16), mask=mask)


@triton.jit
def norm_rows_kernel(x_ptr, r_ptr, w_ptr, total_ptr, out_ptr, M, N: tl.constexpr, eps, BLOCK: tl.constexpr):
    """Row after row by a fixed number of programs; w stays in registers."""
    c = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        i = row * N + c
        x = tl.load(x_ptr + i, mask=c < N, other=0.0).to(tl.float32)
        x += tl.load(r_ptr + i, mask=c < N, other=0.0).to(tl.float32)
        tl.store(total_ptr + i, x.to(tl.bfloat16), mask=c < N)
        scale = tl.rsqrt(tl.sum(x * x, 0) / N + eps)
        tl.store(out_ptr + i, (x * scale * w).to(tl.bfloat16), mask=c < N)


@triton.jit
def norm_twice_kernel(x_ptr, r_ptr, w_ptr, total_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    """Chunks: the second pass loads both inputs again."""
    base = tl.program_id(0) * N
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32)
        x += tl.load(r_ptr + base + c, mask=c < N, other=0.0).to(tl.float32)
        tl.store(total_ptr + base + c, x.to(tl.bfloat16), mask=c < N)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / N + eps)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32)
        x += tl.load(r_ptr + base + c, mask=c < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + c, (x * scale * w).to(tl.bfloat16), mask=c < N)


@triton.jit
def sum_kernel(x_ptr, r_ptr, total_ptr, n, BLOCK: tl.constexpr):
    """The sum alone."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32) + tl.load(r_ptr + i, mask=i < n).to(tl.float32)
    tl.store(total_ptr + i, x.to(tl.bfloat16), mask=i < n)


@triton.jit
def plain_norm_kernel(total_ptr, w_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    """The norm alone."""
    base = tl.program_id(0) * N
    c = tl.arange(0, BLOCK)
    mask = c < N
    x = tl.load(total_ptr + base + c, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 0) / N + eps)
    w = tl.load(w_ptr + c, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + base + c, (x * scale * w).to(tl.bfloat16), mask=mask)


def _add_rmsnorm(M=12288, N=5120, shrink=1):
    eps, block = 1e-6, triton.next_power_of_2(N)
    args = ("x", "residual", "w", "total", "out", N, eps)

    def loop(programs, warps):
        grid = (max(1, programs // shrink),)
        args = ("x", "residual", "w", "total", "out", M)
        return [Call(norm_rows_kernel, grid, args, {"N": N, "eps": eps, "BLOCK": block}, warps)]

    variants = {f"row_w{w}": [Call(norm_row_kernel, (M,), args, {"BLOCK": block}, w)] for w in (2, 8, 16)}
    variants["loop264_w8"] = loop(264, 8)
    variants["loop1056_w4"] = loop(1056, 4)
    variants["twice1024"] = [Call(norm_twice_kernel, (M,), args, {"BLOCK": 1024}, 4)]
    variants["twice256_w1"] = [Call(norm_twice_kernel, (M,), args, {"BLOCK": 256}, 1)]
    variants["apart"] = [
        Call(sum_kernel, (triton.cdiv(M * N, 1024),), ("x", "residual", "total", M * N), {"BLOCK": 1024}, 4),
        Call(plain_norm_kernel, (M,), ("total", "w", "out", N, eps), {"BLOCK": block}, 8),
    ]
    whole, empty = Tensor((M, N), "bfloat16"), Tensor((M, N), "bfloat16", "empty")
    tensors = {"x": whole, "residual": whole, "w": Tensor((N,), "bfloat16"), "total": empty, "out": empty}

    def expected(t):
        x = t["x"].float() + t["residual"].float()
        return x * torch.rsqrt(x.square().mean(1, keepdim=True) + eps) * t["w"].float()

    return Family(tensors, variants, "out", expected)


# -- groupnorm: bfloat16 [B, C, HW]; a group is a stretch of C // G channels -------------------------------------------


@triton.jit
def group_loop_kernel(x_ptr, w_ptr, b_ptr, out_ptr, HW, EACH, G, eps, BLOCK: tl.constexpr):
    """A group a program: sums in the first pass, the result in the second."""
    pid = tl.program_id(0)
    size = EACH * HW
    base = pid.to(tl.int64) * size
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i, mask=i < size, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, 0) / size
    scale = tl.rsqrt(tl.sum(squares, 0) / size - mean * mean + eps)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i, mask=i < size, other=0.0).to(tl.float32)
        c = (pid % G) * EACH + i // HW
        w = tl.load(w_ptr + c, mask=i < size, other=0.0)
        b = tl.load(b_ptr + c, mask=i < size, other=0.0)
        tl.store(out_ptr + base + i, ((x - mean) * scale * w + b).to(tl.bfloat16), mask=i < size)


@triton.jit
def group_channel_kernel(x_ptr, w_ptr, b_ptr, out_ptr, HW, EACH: tl.constexpr, G, eps, BLOCK: tl.constexpr):
    """The second pass goes channel by channel: weights are scalars."""
    pid = tl.program_id(0)
    base = pid.to(tl.int64) * (EACH * HW)
    size = EACH * HW
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i, mask=i < size, other=0.0).to(tl.float32)
        total += x
        squares += x * x
    mean = tl.sum(total, 0) / size
    scale = tl.rsqrt(tl.sum(squares, 0) / size - mean * mean + eps)
    for channel in range(EACH):
        w = tl.load(w_ptr + (pid % G) * EACH + channel) * scale
        b = tl.load(b_ptr + (pid % G) * EACH + channel) - mean * w
        for start in range(0, HW, BLOCK):
            i = start + tl.arange(0, BLOCK)
            offs = base + channel * HW + i
            x = tl.load(x_ptr + offs, mask=i < HW, other=0.0).to(tl.float32)
            tl.store(out_ptr + offs, (x * w + b).to(tl.bfloat16), mask=i < HW)


@triton.jit
def group_sums_kernel(x_ptr, sums_ptr, size, BLOCK: tl.constexpr):
    """The sums of a piece of a group, added to the group's by atomics."""
    pid = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid.to(tl.int64) * size + i, mask=i < size, other=0.0).to(tl.float32)
    tl.atomic_add(sums_ptr + 2 * pid, tl.sum(x, 0))
    tl.atomic_add(sums_ptr + 2 * pid + 1, tl.sum(x * x, 0))


@triton.jit
def group_apply_kernel(x_ptr, sums_ptr, w_ptr, b_ptr, out_ptr, HW, EACH, G, eps, BLOCK: tl.constexpr):
    """The result of a piece of a channel."""
    pid = tl.program_id(1)
    size = EACH * HW
    mean = tl.load(sums_ptr + 2 * (pid // EACH)) / size
    var = tl.load(sums_ptr + 2 * (pid // EACH) + 1) / size - mean * mean
    w = tl.load(w_ptr + pid % (G * EACH)) * tl.rsqrt(var + eps)
    b = tl.load(b_ptr + pid % (G * EACH))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid.to(tl.int64) * HW + i, mask=i < HW, other=0.0).to(tl.float32)
    tl.store(out_ptr + pid.to(tl.int64) * HW + i, ((x - mean) * w + b).to(tl.bfloat16), mask=i < HW)


def _groupnorm(B=64, C=320, HW=4096, G=32):
    each, eps = C // G, 1e-5
    args = ("x", "w", "b", "out", HW, each, G, eps)
    variants = {
        f"loop{b}_w{w}": [Call(group_loop_kernel, (B * G,), args, {"BLOCK": b}, w)]
        for b, w in ((8192, 16), (2048, 8), (1024, 4), (128, 1))
    }
    channel = {"EACH": each, "G": G, "eps": eps, "BLOCK": 2048}
    variants["channel2048"] = [Call(group_channel_kernel, (B * G,), ("x", "w", "b", "out", HW), channel, 8)]

    def apart(block, warps):
        sums = ("x", "sums", each * HW)
        rest = ("x", "sums", "w", "b", "out", HW, each, G, eps)
        return [
            Call(group_sums_kernel, (triton.cdiv(each * HW, block), B * G), sums, {"BLOCK": block}, warps),
            Call(group_apply_kernel, (triton.cdiv(HW, block), B * C), rest, {"BLOCK": block}, warps),
        ]

    variants["apart4096"] = apart(4096, 8)
    variants["apart512"] = apart(512, 4)
    tensors = {
        "x": Tensor((B, C, HW), "bfloat16"), "w": Tensor((C,), "float32"), "b": Tensor((C,), "float32"),
        "sums": Tensor((B * G, 2), "float32", "empty"), "out": Tensor((B, C, HW), "bfloat16", "empty"),
    }  # fmt: skip

    def expected(t):
        return torch.nn.functional.group_norm(t["x"].float(), G, t["w"], t["b"], eps)

    return Family(tensors, variants, "out", expected, zeroed=("sums",))


# -- masked_softmax: softmax(x * scale where keep) of bfloat16 rows of 3000, a byte of mask for each element -----------


@triton.jit
def masked_row_kernel(x_ptr, keep_ptr, out_ptr, N, scale, BLOCK: tl.constexpr):
    """A row a program."""
    base = tl.program_id(0) * N
    c = tl.arange(0, BLOCK)
    keep = tl.load(keep_ptr + base + c, mask=c < N, other=0)
    x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32) * scale
    x = tl.where(keep != 0, x, -1e30)
    p = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + base + c, (p / tl.sum(p, 0)).to(tl.bfloat16), mask=c < N)


@triton.jit
def masked_load_kernel(x_ptr, keep_ptr, out_ptr, N, scale, BLOCK: tl.constexpr):
    """A row a program; the byte steers the load of x: one load waits for the other."""
    base = tl.program_id(0) * N
    c = tl.arange(0, BLOCK)
    keep = tl.load(keep_ptr + base + c, mask=c < N, other=0) != 0
    x = tl.load(x_ptr + base + c, mask=keep, other=-float("inf")).to(tl.float32) * scale
    p = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + base + c, (p / tl.sum(p, 0)).to(tl.bfloat16), mask=c < N)


@triton.jit
def masked_rows_kernel(x_ptr, keep_ptr, out_ptr, M, N, scale, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Row after row by a fixed number of programs."""
    c = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), M, tl.num_programs(0), num_stages=STAGES):
        i = row * N + c
        keep = tl.load(keep_ptr + i, mask=c < N, other=0)
        x = tl.load(x_ptr + i, mask=c < N, other=0.0).to(tl.float32) * scale
        x = tl.where(keep != 0, x, -1e30)
        p = tl.exp(x - tl.max(x, 0))
        tl.store(out_ptr + i, (p / tl.sum(p, 0)).to(tl.bfloat16), mask=c < N)


@triton.jit
def masked_thrice_kernel(x_ptr, keep_ptr, out_ptr, N, scale, BLOCK: tl.constexpr):
    """Three passes over the row: maximum, sum, result."""
    base = tl.program_id(0) * N
    top = -1e30
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        keep = tl.load(keep_ptr + base + c, mask=c < N, other=0)
        x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32) * scale
        top = tl.maximum(top, tl.max(tl.where(keep != 0, x, -1e30), 0))
    total = 0.0
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        keep = tl.load(keep_ptr + base + c, mask=c < N, other=0)
        x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32) * scale
        total += tl.sum(tl.where(keep != 0, tl.exp(x - top), 0.0), 0)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        keep = tl.load(keep_ptr + base + c, mask=c < N, other=0)
        x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32) * scale
        p = tl.where(keep != 0, tl.exp(x - top), 0.0) / total
        tl.store(out_ptr + base + c, p.to(tl.bfloat16), mask=c < N)


def _masked_softmax(M=32768, N=3000, shrink=1):
    scale, block = 0.25, triton.next_power_of_2(N)
    args = ("x", "keep", "out", N, scale)

    def loop(programs, warps, stages):
        constants = {"BLOCK": block, "STAGES": stages}
        grid = (max(1, programs // shrink),)
        return [Call(masked_rows_kernel, grid, ("x", "keep", "out", M, N, scale), constants, warps, stages)]

    variants = {f"row_w{w}": [Call(masked_row_kernel, (M,), args, {"BLOCK": block}, w)] for w in (1, 4, 8)}
    variants["load_w8"] = [Call(masked_load_kernel, (M,), args, {"BLOCK": block}, 8)]
    variants["loop528_w8_s2"] = loop(528, 8, 2)
    variants["loop132_w4_s4"] = loop(132, 4, 4)
    variants["thrice1024"] = [Call(masked_thrice_kernel, (M,), args, {"BLOCK": 1024}, 4)]
    tensors = {
        "x": Tensor((M, N), "bfloat16"), "keep": Tensor((M, N), "uint8", "below", below=2),
        "out": Tensor((M, N), "bfloat16", "empty"),
    }  # fmt: skip

    def expected(t):
        return torch.softmax((t["x"].float() * scale).masked_fill(t["keep"] == 0, -1e30), 1)

    return Family(tensors, variants, "out", expected)


# -- vocab_softmax: softmax(x / temperature) of float16 rows of 50257, a temperature for each row ----------------------


@triton.jit
def warm_online_kernel(x_ptr, t_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A running maximum and sum of scalars, then the result."""
    row = tl.program_id(0)
    warmth = 1.4426950408889634 / tl.load(t_ptr + row)
    base = row.to(tl.int64) * N
    top = -1e30
    total = 0.0
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < N, other=-float("inf")).to(tl.float32) * warmth
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp2(top - new) + tl.sum(tl.exp2(x - new), 0)
        top = new
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < N, other=0.0).to(tl.float32) * warmth
        tl.store(out_ptr + base + c, (tl.exp2(x - top) / total).to(tl.float16), mask=c < N)


@triton.jit
def warm_lanes_kernel(x_ptr, t_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    """A running maximum and sum in every lane; the row's length is a constant."""
    row = tl.program_id(0)
    warmth = 1.4426950408889634 / tl.load(t_ptr + row)
    base = row.to(tl.int64) * N
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < N, other=-1e30).to(tl.float32) * warmth
        new = tl.maximum(top, x)
        total = total * tl.exp2(top - new) + tl.exp2(x - new)
        top = new
    most = tl.max(top, 0)
    share = 1.0 / tl.sum(total * tl.exp2(top - most), 0)
    for start in tl.range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + c, mask=c < N, other=0.0, eviction_policy="evict_first").to(tl.float32) * warmth
        tl.store(out_ptr + base + c, (tl.exp2(x - most) * share).to(tl.float16), mask=c < N)


@triton.jit
def warm_whole_kernel(x_ptr, t_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """The whole row in registers, padded to a power of two."""
    row = tl.program_id(0)
    base = row.to(tl.int64) * N
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + c, mask=c < N, other=-float("inf")).to(tl.float32) / tl.load(t_ptr + row)
    p = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + base + c, (p / tl.sum(p, 0)).to(tl.float16), mask=c < N)


def _vocab_softmax(M=4096, N=50257):
    args = ("x", "temperature", "out", N)
    variants = {
        f"online{b}_w{w}": [Call(warm_online_kernel, (M,), args, {"BLOCK": b}, w)]
        for b, w in ((4096, 8), (1024, 4), (16384, 16))
    }
    for b, w in ((8192, 16), (512, 2)):
        calls = [Call(warm_lanes_kernel, (M,), ("x", "temperature", "out"), {"N": N, "BLOCK": b}, w)]
        variants[f"lanes{b}_w{w}"] = calls
    variants["whole_w32"] = [Call(warm_whole_kernel, (M,), args, {"BLOCK": triton.next_power_of_2(N)}, 32)]
    tensors = {
        "x": Tensor((M, N), "float16"), "out": Tensor((M, N), "float16", "empty"),
        "temperature": Tensor((M,), "float32", "table", values=tuple(0.5 + (i % 16) / 16 for i in range(M))),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: torch.softmax(t["x"].float() / t["temperature"][:, None], 1))


# -- argmax_long: the place of the first maximum of few long float32 rows ----------------------------------------------


@triton.jit
def place_part_kernel(x_ptr, top_ptr, place_ptr, N, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """The maximum of a chunk of a row and its place: each lane keeps its own, joined in the end."""
    row = tl.program_id(1)
    first = tl.program_id(0) * CHUNK
    base = row.to(tl.int64) * N
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(first, first + CHUNK, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i, mask=i < first + CHUNK, other=-float("inf"))
        place = tl.where(x > top, i, place)
        top = tl.maximum(x, top)
    most = tl.max(top, 0)
    part = row * tl.num_programs(0) + tl.program_id(0)
    tl.store(top_ptr + part, most)
    tl.store(place_ptr + part, tl.min(tl.where(top == most, place, 2147483647), 0))


@triton.jit
def place_block_kernel(x_ptr, top_ptr, place_ptr, N, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """The same with a reduction of (value, place) for each block."""
    row = tl.program_id(1)
    first = tl.program_id(0) * CHUNK
    base = row.to(tl.int64) * N
    top = -float("inf")
    place = 0
    for start in range(first, first + CHUNK, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i, mask=i < first + CHUNK, other=-float("inf"))
        most, at = tl.max(x, 0, return_indices=True)
        place = tl.where(most > top, start + at, place)
        top = tl.maximum(most, top)
    part = row * tl.num_programs(0) + tl.program_id(0)
    tl.store(top_ptr + part, top)
    tl.store(place_ptr + part, place)


@triton.jit
def place_join_kernel(top_ptr, place_ptr, out_ptr, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """The first of the chunks' maxima."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    top = tl.load(top_ptr + row * PARTS + i, mask=i < PARTS, other=-float("inf"))
    at = tl.argmax(top, 0)
    tl.store(out_ptr + row, tl.load(place_ptr + row * PARTS + at))


def _argmax_long(M=24, N=4_194_304):
    def split(kernel, parts, block, warps):
        constants = {"CHUNK": N // parts, "BLOCK": block}
        return [
            Call(kernel, (parts, M), ("x", "top", "place", N), constants, warps),
            Call(place_join_kernel, (M,), ("top", "place", "out"), {"PARTS": parts, "BLOCK": max(parts, 2)}, 4),
        ]

    variants = {
        "lanes64_b2048": split(place_part_kernel, 64, 2048, 8), "lanes16_b1024": split(place_part_kernel, 16, 1024, 4),
        "lanes512_b8192": split(place_part_kernel, 512, 8192, 16),
        "block128_b4096": split(place_block_kernel, 128, 4096, 4),
        "block8_b16384": split(place_block_kernel, 8, 16384, 8),
    }  # fmt: skip
    tensors = {
        "x": Tensor((M, N), "float32"), "top": Tensor((M, 512), "float32", "empty"),
        "place": Tensor((M, 512), "int32", "empty"), "out": Tensor((M,), "int32", "empty"),
    }  # fmt: skip

    def expected(t):
        places = torch.arange(N, device=t["x"].device, dtype=torch.int32)
        rows = (torch.where(x == x.max(), places, N).min() for x in t["x"])
        return torch.stack(list(rows)).float()

    return Family(tensors, variants, "out", expected, tolerance=1e-6)


# -- max_short: the maximum of many short float32 rows, and its place --------------------------------------------------


@triton.jit
def short_kernel(x_ptr, top_ptr, place_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows a program."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :], mask=c[None, :] < N, other=-float("inf"))
    top, place = tl.max(x, 1, return_indices=True)
    tl.store(top_ptr + r, top)
    tl.store(place_ptr + r, place)


@triton.jit
def short_apart_kernel(x_ptr, top_ptr, place_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The maximum, then the first place that holds it: two plain reductions."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + r[:, None] * N + c, mask=c < N, other=-float("inf"))
    top = tl.max(x, 1)
    tl.store(top_ptr + r, top)
    tl.store(place_ptr + r, tl.min(tl.where(x == top[:, None], c, BLOCK), 1))


@triton.jit
def short_lane_kernel(x_ptr, top_ptr, place_ptr, M, N, ROWS: tl.constexpr):
    """A lane owns a row and walks along it."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    place = tl.zeros((ROWS,), tl.int32)
    for c in range(N):
        x = tl.load(x_ptr + r * N + c)
        place = tl.where(x > top, c, place)
        top = tl.maximum(x, top)
    tl.store(top_ptr + r, top)
    tl.store(place_ptr + r, place)


def _max_short(M=1_048_576, N=100):
    args = ("x", "top", "place", M, N)

    def tile(kernel, rows, warps):
        return [Call(kernel, (M // rows,), args, {"ROWS": rows, "BLOCK": triton.next_power_of_2(N)}, warps)]

    variants = {
        "pair1_w1": tile(short_kernel, 1, 1), "pair16_w4": tile(short_kernel, 16, 4),
        "pair128_w8": tile(short_kernel, 128, 8), "apart32_w4": tile(short_apart_kernel, 32, 4),
        "apart2_w4": tile(short_apart_kernel, 2, 4),
        "lane256": [Call(short_lane_kernel, (M // 256,), args, {"ROWS": 256}, 8)],
    }  # fmt: skip
    tensors = {
        "x": Tensor((M, N), "float32"), "top": Tensor((M,), "float32", "empty"),
        "place": Tensor((M,), "int32", "empty"),
    }  # fmt: skip

    def expected(t):
        places = torch.arange(N, device=t["x"].device, dtype=torch.int32)
        return torch.where(t["x"] == t["x"].amax(1, keepdim=True), places, N).amin(1).float()

    return Family(tensors, variants, "place", expected, tolerance=1e-6)


FAMILIES = {
    "add_rmsnorm": _add_rmsnorm(), "groupnorm": _groupnorm(), "masked_softmax": _masked_softmax(),
    "vocab_softmax": _vocab_softmax(), "argmax_long": _argmax_long(), "max_short": _max_short(),
}  # fmt: skip
