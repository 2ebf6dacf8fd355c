"""Row by row: softmax, RMS norm, layer norm, cross entropy, running sums."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

# -- softmax of [M, N] bfloat16 ----------------------------------------------------------------------------------------


@triton.jit
def softmax_row_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """A whole row in registers."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    mask = c < N
    x = tl.load(x_ptr + r * N + c, mask=mask, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + r * N + c, (p / tl.sum(p, 0)).to(tl.bfloat16), mask=mask)


@triton.jit
def softmax_three_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Three passes: maximum, sum, result."""
    r = tl.program_id(0)
    top = -float("inf")
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + start + tl.arange(0, BLOCK)).to(tl.float32)
        top = tl.maximum(top, tl.max(x, 0))
    total = 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + start + tl.arange(0, BLOCK)).to(tl.float32)
        total += tl.sum(tl.exp(x - top), 0)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + start + tl.arange(0, BLOCK)).to(tl.float32)
        tl.store(out_ptr + r * N + start + tl.arange(0, BLOCK), (tl.exp(x - top) / total).to(tl.bfloat16))


@triton.jit
def softmax_online_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Two passes: a running maximum with its sum, then the result."""
    r = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + start + tl.arange(0, BLOCK)).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
        top = new
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + start + tl.arange(0, BLOCK)).to(tl.float32)
        tl.store(out_ptr + r * N + start + tl.arange(0, BLOCK), (tl.exp(x - top) / total).to(tl.bfloat16))


@triton.jit
def softmax_lane_kernel(x_ptr, out_ptr, M, N, ROWS: tl.constexpr):
    """One lane a row, walking along it: no two lanes are neighbours in memory."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    for c in range(0, N):
        top = tl.maximum(top, tl.load(x_ptr + r * N + c).to(tl.float32))
    total = tl.zeros((ROWS,), tl.float32)
    for c in range(0, N):
        total += tl.exp(tl.load(x_ptr + r * N + c).to(tl.float32) - top)
    for c in range(0, N):
        x = tl.load(x_ptr + r * N + c).to(tl.float32)
        tl.store(out_ptr + r * N + c, (tl.exp(x - top) / total).to(tl.bfloat16))


@triton.jit
def softmax_rows_kernel(x_ptr, out_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several rows a program."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + r * N + c).to(tl.float32)
    p = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(out_ptr + r * N + c, (p / tl.sum(p, 1)[:, None]).to(tl.bfloat16))


@triton.jit
def softmax_exp_kernel(x_ptr, tmp_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Unfused, first: exponentials in float32 go to memory."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c).to(tl.float32)
    tl.store(tmp_ptr + r * N + c, tl.exp(x - tl.max(x, 0)))


@triton.jit
def softmax_divide_kernel(x_ptr, tmp_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Unfused, second: they are read back, summed and divided."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    p = tl.load(tmp_ptr + r * N + c)
    tl.store(out_ptr + r * N + c, (p / tl.sum(p, 0)).to(tl.bfloat16))


def _softmax():
    M, N = 32768, 2048
    args, three = ("x", "out", M, N), ("x", "tmp", "out", M, N)
    variants = {f"one_w{w}": [Call(softmax_row_kernel, (M,), args, {"BLOCK": N}, w)] for w in (4, 8, 1, 16, 32)}
    variants["one_pad4"] = [Call(softmax_row_kernel, (M,), args, {"BLOCK": 4 * N})]
    for block in (256, 1024):
        variants[f"three_b{block}"] = [Call(softmax_three_kernel, (M,), args, {"BLOCK": block})]
    for block in (1024, 128):
        variants[f"online_b{block}"] = [Call(softmax_online_kernel, (M,), args, {"BLOCK": block})]
    variants["rows4"] = [Call(softmax_rows_kernel, (M // 4,), args, {"ROWS": 4, "BLOCK": N})]
    variants["wrongaxis"] = [Call(softmax_lane_kernel, (M // 128,), args, {"ROWS": 128})]
    variants["unfused"] = [
        Call(softmax_exp_kernel, (M,), three, {"BLOCK": N}), Call(softmax_divide_kernel, (M,), three, {"BLOCK": N}),
    ]  # fmt: skip
    tensors = {
        "x": Tensor((M, N), "bfloat16"), "out": Tensor((M, N), "bfloat16", "empty"),
        "tmp": Tensor((M, N), "float32", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: torch.softmax(t["x"].float(), 1))


# -- rmsnorm of [M, N] bfloat16 ----------------------------------------------------------------------------------------


@triton.jit
def rms_row_kernel(x_ptr, w_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A whole row in registers."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 0) / N + 1e-6)
    tl.store(out_ptr + r * N + c, (x * scale * tl.load(w_ptr + c).to(tl.float32)).to(tl.bfloat16))


@triton.jit
def rms_loop_kernel(x_ptr, w_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Two passes over the row."""
    r = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + k + tl.arange(0, BLOCK)).to(tl.float32)
        acc += x * x
    scale = tl.rsqrt(tl.sum(acc, 0) / N + 1e-6)
    for k in range(0, N, BLOCK):
        c = k + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + c).to(tl.float32)
        tl.store(out_ptr + r * N + c, (x * scale * tl.load(w_ptr + c).to(tl.float32)).to(tl.bfloat16))


@triton.jit
def rms_scale_kernel(x_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    """Unfused: the scale of each row."""
    r = tl.program_id(0)
    x = tl.load(x_ptr + r * N + tl.arange(0, BLOCK)).to(tl.float32)
    tl.store(scale_ptr + r, tl.rsqrt(tl.sum(x * x, 0) / N + 1e-6))


@triton.jit
def rms_apply_kernel(x_ptr, scale_ptr, w_ptr, out_ptr, n, N, BLOCK: tl.constexpr):
    """Unfused: the scales are applied."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs).to(tl.float32) * tl.load(scale_ptr + offs // N) * tl.load(w_ptr + offs % N).to(tl.float32)
    tl.store(out_ptr + offs, x.to(tl.bfloat16))


@triton.jit
def rms_square_kernel(x_ptr, tmp_ptr, n, BLOCK: tl.constexpr):
    """Unfused in three: squares in float32."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs).to(tl.float32)
    tl.store(tmp_ptr + offs, x * x)


@triton.jit
def rms_sum_kernel(tmp_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    """Unfused in three: their sums."""
    r = tl.program_id(0)
    x = tl.load(tmp_ptr + r * N + tl.arange(0, BLOCK))
    tl.store(scale_ptr + r, tl.rsqrt(tl.sum(x, 0) / N + 1e-6))


@triton.jit
def rms_tile_kernel(x_ptr, w_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """Several rows a program, two passes in chunks of columns."""
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    for k in range(0, N, BLOCK_K):
        x = tl.load(x_ptr + r[:, None] * N + k + tl.arange(0, BLOCK_K)[None, :]).to(tl.float32)
        acc += x * x
    scale = tl.rsqrt(tl.sum(acc, 1) / N + 1e-6)
    for k in range(0, N, BLOCK_K):
        c = k + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + r[:, None] * N + c[None, :]).to(tl.float32)
        w = tl.load(w_ptr + c).to(tl.float32)[None, :]
        tl.store(out_ptr + r[:, None] * N + c[None, :], (x * scale[:, None] * w).to(tl.bfloat16))


def _rmsnorm():
    M, N = 16384, 4096
    n = M * N
    args, tile_args = ("x", "w", "out", N), ("x", "w", "out", M, N)
    variants = {f"fused_w{w}": [Call(rms_row_kernel, (M,), args, {"BLOCK": N}, w)] for w in (4, 8, 1, 32)}
    for block in (256, 1024):
        variants[f"loop_b{block}"] = [Call(rms_loop_kernel, (M,), args, {"BLOCK": block})]
    for m, k in ((64, 64), (4, 512)):
        variants[f"rows{m}_k{k}"] = [Call(rms_tile_kernel, (M // m,), tile_args, {"BLOCK_M": m, "BLOCK_K": k})]
    apply = Call(rms_apply_kernel, (n // 2048,), ("x", "scale", "w", "out", n, N), {"BLOCK": 2048})
    variants["unfused2"] = [Call(rms_scale_kernel, (M,), ("x", "scale", N), {"BLOCK": N}), apply]
    variants["unfused3_fp32"] = [
        Call(rms_square_kernel, (n // 2048,), ("x", "tmp", n), {"BLOCK": 2048}),
        Call(rms_sum_kernel, (M,), ("tmp", "scale", N), {"BLOCK": N}),
        apply,
    ]
    tensors = {
        "x": Tensor((M, N), "bfloat16"), "w": Tensor((N,), "bfloat16"), "out": Tensor((M, N), "bfloat16", "empty"),
        "scale": Tensor((M,), "float32", "empty"), "tmp": Tensor((M, N), "float32", "empty"),
    }  # fmt: skip

    def expected(t):
        x = t["x"].float()
        return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6) * t["w"].float()

    return Family(tensors, variants, "out", expected)


# -- layernorm of [M, N] float32 ---------------------------------------------------------------------------------------


@triton.jit
def layer_row_kernel(x_ptr, w_ptr, b_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A whole row in registers."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c)
    mean = tl.sum(x, 0) / N
    d = x - mean
    scale = tl.rsqrt(tl.sum(d * d, 0) / N + 1e-5)
    tl.store(out_ptr + r * N + c, d * scale * tl.load(w_ptr + c) + tl.load(b_ptr + c))


@triton.jit
def layer_loop_kernel(x_ptr, w_ptr, b_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Two passes over the row, both sums in the first."""
    r = tl.program_id(0)
    first = tl.zeros((BLOCK,), tl.float32)
    second = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        x = tl.load(x_ptr + r * N + k + tl.arange(0, BLOCK))
        first += x
        second += x * x
    mean = tl.sum(first, 0) / N
    scale = tl.rsqrt(tl.sum(second, 0) / N - mean * mean + 1e-5)
    for k in range(0, N, BLOCK):
        c = k + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + c)
        tl.store(out_ptr + r * N + c, (x - mean) * scale * tl.load(w_ptr + c) + tl.load(b_ptr + c))


@triton.jit
def layer_rows_kernel(x_ptr, w_ptr, b_ptr, out_ptr, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several rows a program."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + r * N + c)
    mean = tl.sum(x, 1)[:, None] / N
    d = x - mean
    scale = tl.rsqrt(tl.sum(d * d, 1)[:, None] / N + 1e-5)
    tl.store(out_ptr + r * N + c, d * scale * tl.load(w_ptr + c) + tl.load(b_ptr + c))


@triton.jit
def layer_moments_kernel(x_ptr, mean_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    """Unfused: mean and scale of each row."""
    r = tl.program_id(0)
    x = tl.load(x_ptr + r * N + tl.arange(0, BLOCK))
    mean = tl.sum(x, 0) / N
    d = x - mean
    tl.store(mean_ptr + r, mean)
    tl.store(scale_ptr + r, tl.rsqrt(tl.sum(d * d, 0) / N + 1e-5))


@triton.jit
def layer_apply_kernel(x_ptr, mean_ptr, scale_ptr, w_ptr, b_ptr, out_ptr, n, N, BLOCK: tl.constexpr):
    """Unfused: both are applied."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = offs // N
    c = offs % N
    x = (tl.load(x_ptr + offs) - tl.load(mean_ptr + r)) * tl.load(scale_ptr + r)
    tl.store(out_ptr + offs, x * tl.load(w_ptr + c) + tl.load(b_ptr + c))


def _layernorm():
    M, N = 65536, 1024
    n = M * N
    args = ("x", "w", "b", "out", N)
    variants = {f"one_w{w}": [Call(layer_row_kernel, (M,), args, {"BLOCK": N}, w)] for w in (4, 1, 16)}
    variants["loop_b128"] = [Call(layer_loop_kernel, (M,), args, {"BLOCK": 128}, 4)]
    variants["loop_b256_w2"] = [Call(layer_loop_kernel, (M,), args, {"BLOCK": 256}, 2)]
    variants["rows4"] = [Call(layer_rows_kernel, (M // 4,), args, {"ROWS": 4, "BLOCK": N}, 4)]
    variants["rows16_w8"] = [Call(layer_rows_kernel, (M // 16,), args, {"ROWS": 16, "BLOCK": N}, 8)]
    variants["unfused"] = [
        Call(layer_moments_kernel, (M,), ("x", "mean", "scale", N), {"BLOCK": N}),
        Call(layer_apply_kernel, (n // 1024,), ("x", "mean", "scale", "w", "b", "out", n, N), {"BLOCK": 1024}),
    ]
    tensors = {
        "x": Tensor((M, N), "float32"), "w": Tensor((N,), "float32"), "b": Tensor((N,), "float32"),
        "out": Tensor((M, N), "float32", "empty"), "mean": Tensor((M,), "float32", "empty"),
        "scale": Tensor((M,), "float32", "empty"),
    }  # fmt: skip
    return Family(
        tensors, variants, "out", lambda t: torch.nn.functional.layer_norm(t["x"], (N,), t["w"], t["b"], 1e-5)
    )


# -- xent: cross entropy of [M, N] bfloat16 logits ---------------------------------------------------------------------


@triton.jit
def xent_row_kernel(x_ptr, label_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A whole row in registers."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r * N + c, mask=c < N, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 0)
    total = tl.sum(tl.exp(x - top), 0)
    target = tl.load(x_ptr + r * N + tl.load(label_ptr + r)).to(tl.float32)
    tl.store(out_ptr + r, tl.log(total) + top - target)


@triton.jit
def xent_online_kernel(x_ptr, label_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A running maximum and sum in every lane."""
    r = tl.program_id(0)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        c = k + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + c, mask=c < N, other=-1e30).to(tl.float32)
        new = tl.maximum(top, x)
        total = total * tl.exp(top - new) + tl.exp(x - new)
        top = new
    most = tl.max(top, 0)
    whole = tl.sum(total * tl.exp(top - most), 0)
    target = tl.load(x_ptr + r * N + tl.load(label_ptr + r)).to(tl.float32)
    tl.store(out_ptr + r, tl.log(whole) + most - target)


@triton.jit
def xent_scalar_kernel(x_ptr, label_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Each chunk is reduced to scalars."""
    r = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for k in range(0, N, BLOCK):
        c = k + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + c, mask=c < N, other=-1e30).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new), 0)
        top = new
    target = tl.load(x_ptr + r * N + tl.load(label_ptr + r)).to(tl.float32)
    tl.store(out_ptr + r, tl.log(total) + top - target)


@triton.jit
def xent_two_kernel(x_ptr, label_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Two passes: maximum, then sum."""
    r = tl.program_id(0)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for k in range(0, N, BLOCK):
        c = k + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.load(x_ptr + r * N + c, mask=c < N, other=-1e30).to(tl.float32))
    most = tl.max(top, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        c = k + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x_ptr + r * N + c, mask=c < N, other=-1e30).to(tl.float32) - most)
    target = tl.load(x_ptr + r * N + tl.load(label_ptr + r)).to(tl.float32)
    tl.store(out_ptr + r, tl.log(tl.sum(total, 0)) + most - target)


def _xent():
    M, N = 8192, 32000
    args = ("x", "label", "out", N)
    variants = {
        "one_w8": [Call(xent_row_kernel, (M,), args, {"BLOCK": 32768}, 8)],
        "one_w32": [Call(xent_row_kernel, (M,), args, {"BLOCK": 32768}, 32)],
        "online4096_w8": [Call(xent_online_kernel, (M,), args, {"BLOCK": 4096}, 8)],
        "online1024_w4": [Call(xent_online_kernel, (M,), args, {"BLOCK": 1024}, 4)],
        "scalar1024_w4": [Call(xent_scalar_kernel, (M,), args, {"BLOCK": 1024}, 4)],
        "scalar256_w4": [Call(xent_scalar_kernel, (M,), args, {"BLOCK": 256}, 4)],
        "two2048_w8": [Call(xent_two_kernel, (M,), args, {"BLOCK": 2048}, 8)],
    }
    tensors = {
        "x": Tensor((M, N), "bfloat16"), "label": Tensor((M,), "int32", "below", below=N),
        "out": Tensor((M,), "float32", "empty"),
    }  # fmt: skip
    return Family(
        tensors, variants, "out",
        lambda t: torch.nn.functional.cross_entropy(t["x"].float(), t["label"].long(), reduction="none"),
    )  # fmt: skip


# -- cumsum along rows of [M, N] float32 -------------------------------------------------------------------------------


@triton.jit
def cumsum_row_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """A whole row at once."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(out_ptr + r * N + c, tl.cumsum(tl.load(x_ptr + r * N + c), 0))


@triton.jit
def cumsum_loop_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Chunk by chunk, with a carry."""
    r = tl.program_id(0)
    carry = 0.0
    for k in range(0, N, BLOCK):
        c = k + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + c)
        tl.store(out_ptr + r * N + c, tl.cumsum(x, 0) + carry)
        carry += tl.sum(x, 0)


@triton.jit
def cumsum_rows_kernel(x_ptr, out_ptr, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several rows a program."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    tl.store(out_ptr + r * N + c, tl.cumsum(tl.load(x_ptr + r * N + c), 1))


def _cumsum():
    M, N = 16384, 2048
    args = ("x", "out", N)
    variants = {f"one_w{w}": [Call(cumsum_row_kernel, (M,), args, {"BLOCK": N}, w)] for w in (4, 8, 1)}
    variants["loop256"] = [Call(cumsum_loop_kernel, (M,), args, {"BLOCK": 256}, 4)]
    variants["loop128_w1"] = [Call(cumsum_loop_kernel, (M,), args, {"BLOCK": 128}, 1)]
    variants["rows4"] = [Call(cumsum_rows_kernel, (M // 4,), args, {"ROWS": 4, "BLOCK": N}, 4)]
    tensors = {"x": Tensor((M, N), "float32"), "out": Tensor((M, N), "float32", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"].double().cumsum(1).float())


FAMILIES = {
    "softmax": _softmax(), "rmsnorm": _rmsnorm(), "layernorm": _layernorm(), "xent": _xent(), "cumsum": _cumsum(),
}  # fmt: skip
