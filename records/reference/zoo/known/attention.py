"""Attention in bfloat16: prefill with and without a causal mask, and one query a head (decode)."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

LOG2E = 1.4426950408889634

# -- attn: prefill, [1, H, S, D] ---------------------------------------------------------------------------------------


@triton.jit
def flash_kernel(q_ptr, k_ptr, v_ptr, out_ptr, S, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    """A block of queries against all keys, online softmax."""
    h = tl.program_id(1)
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    base = h.to(tl.int64) * S * D
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    k_ptrs = k_ptr + base + tl.arange(0, BLOCK_N)[None, :] * D + rd[:, None]
    v_ptrs = v_ptr + base + tl.arange(0, BLOCK_N)[:, None] * D + rd[None, :]
    for _ in range(0, S, BLOCK_N):
        s = tl.dot(q, tl.load(k_ptrs)) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        acc = acc * fade[:, None]
        acc = tl.dot(p.to(tl.bfloat16), tl.load(v_ptrs), acc)
        top = new
        k_ptrs += BLOCK_N * D
        v_ptrs += BLOCK_N * D
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def scores_kernel(q_ptr, k_ptr, s_ptr, S, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    """Unfused: the scores go to memory."""
    h = tl.program_id(2).to(tl.int64)
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + h * S * D + rm[:, None] * D + rd[None, :])
    k = tl.load(k_ptr + h * S * D + rn[None, :] * D + rd[:, None])
    tl.store(s_ptr + h * S * S + rm[:, None] * S + rn[None, :], tl.dot(q, k) * scale)


@triton.jit
def weights_kernel(s_ptr, p_ptr, S, BLOCK: tl.constexpr):
    """Unfused: softmax of each row."""
    r = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + r * S + c)
    p = tl.exp2(s - tl.max(s, 0))
    tl.store(p_ptr + r * S + c, (p / tl.sum(p, 0)).to(tl.bfloat16))


@triton.jit
def weighted_kernel(p_ptr, v_ptr, out_ptr, S, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, D: tl.constexpr):
    """Unfused: weights times values."""
    h = tl.program_id(1).to(tl.int64)
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    rk = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for j in range(0, S, BLOCK_K):
        p = tl.load(p_ptr + h * S * S + rm[:, None] * S + (j + rk)[None, :])
        v = tl.load(v_ptr + h * S * D + (j + rk)[:, None] * D + rd[None, :])
        acc = tl.dot(p, v, acc)
    tl.store(out_ptr + h * S * D + rm[:, None] * D + rd[None, :], acc.to(tl.bfloat16))


def _prefill(H, S, D, names):
    shape = (1, H, S, D)
    return {n: Tensor(shape, "bfloat16") for n in names} | {"out": Tensor(shape, "bfloat16", "empty")}


def _attended(causal):
    def expected(t):
        q, k, v = (t[n].float() for n in "qkv")
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return expected


def _attn():
    H, S, D = 32, 4096, 128
    scale = LOG2E / D**0.5

    def flash(m, n, warps, stages):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "D": D}
        return [Call(flash_kernel, (S // m, H), ("q", "k", "v", "out", S, scale), constants, warps, stages)]

    variants = {
        "fa64x64_w4": flash(64, 64, 4, 3), "fa128x64_w4": flash(128, 64, 4, 3), "fa128x64_w8": flash(128, 64, 8, 3),
        "fa128x128_w8": flash(128, 128, 8, 2), "fa128x128_w4": flash(128, 128, 4, 2), "fa64x32_w4": flash(64, 32, 4, 3),
        "fa16x32_w1": flash(16, 32, 1, 3), "fa32x16_w4": flash(32, 16, 4, 2), "fa128x64_s1": flash(128, 64, 8, 1),
    }  # fmt: skip
    square = {"BLOCK_M": 128, "BLOCK_N": 128, "D": D}
    variants["material"] = [
        Call(scores_kernel, (S // 128, S // 128, H), ("q", "k", "s", S, scale), square, 8),
        Call(weights_kernel, (H * S,), ("s", "p", S), {"BLOCK": S}, 8),
        Call(weighted_kernel, (S // 128, H), ("p", "v", "out", S), {"BLOCK_M": 128, "BLOCK_K": 64, "D": D}, 8),
    ]
    tensors = _prefill(H, S, D, "qkv") | {
        "s": Tensor((H, S, S), "float32", "empty"), "p": Tensor((H, S, S), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", _attended(False))


# -- causal: prefill with a mask ---------------------------------------------------------------------------------------


@triton.jit
def causal_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, SKIP: tl.constexpr,
):  # fmt: skip
    """SKIP leaves out the tiles above the diagonal."""
    h = tl.program_id(1)
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    base = h.to(tl.int64) * S * D
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    if SKIP:
        end = tl.program_id(0) * BLOCK_M + BLOCK_M
    else:
        end = S
    for j in range(0, end, BLOCK_N):
        rn = j + tl.arange(0, BLOCK_N)
        s = tl.dot(q, tl.load(k_ptr + base + rn[None, :] * D + rd[:, None])) * scale
        s = tl.where(rm[:, None] >= rn[None, :], s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        acc = acc * fade[:, None]
        acc = tl.dot(p.to(tl.bfloat16), tl.load(v_ptr + base + rn[:, None] * D + rd[None, :]), acc)
        top = new
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.bfloat16))


def _causal():
    H, S, D = 32, 4096, 64
    scale = LOG2E / D**0.5

    def flash(m, n, warps, stages, skip=True):
        constants = {"BLOCK_M": m, "BLOCK_N": n, "D": D, "SKIP": skip}
        return [Call(causal_kernel, (S // m, H), ("q", "k", "v", "out", S, scale), constants, warps, stages)]

    variants = {
        "64x64": flash(64, 64, 4, 3), "128x64_w4": flash(128, 64, 4, 3), "128x128_w8": flash(128, 128, 8, 3),
        "128x64_noskip": flash(128, 64, 4, 3, False), "32x32_w4": flash(32, 32, 4, 3), "16x64_w1": flash(16, 64, 1, 3),
        "64x64_s1": flash(64, 64, 4, 1),
    }  # fmt: skip
    return Family(_prefill(H, S, D, "qkv"), variants, "out", _attended(True))


# -- decode: one query a head ------------------------------------------------------------------------------------------


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, top_ptr, total_ptr, acc_ptr, S, scale,
    CHUNK: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr, FINAL: tl.constexpr,
):  # fmt: skip
    """One head and one stretch of keys a program; FINAL when there is only one stretch."""
    h = tl.program_id(0)
    part = tl.program_id(1)
    base = h.to(tl.int64) * S * D
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + h * D + rd).to(tl.float32)
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for j in range(part * CHUNK, part * CHUNK + CHUNK, BLOCK):
        rn = j + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + base + rn[:, None] * D + rd[None, :]).to(tl.float32)
        v = tl.load(v_ptr + base + rn[:, None] * D + rd[None, :]).to(tl.float32)
        s = tl.sum(k * q[None, :], 1) * scale
        new = tl.maximum(top, tl.max(s, 0))
        p = tl.exp2(s - new)
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 0)
        acc = acc * fade + tl.sum(p[:, None] * v, 0)
        top = new
    if FINAL:
        tl.store(acc_ptr + h * D + rd, acc / total)
    else:
        i = h * tl.num_programs(1) + part
        tl.store(top_ptr + i, top)
        tl.store(total_ptr + i, total)
        tl.store(acc_ptr + i * D + rd, acc)


@triton.jit
def combine_kernel(top_ptr, total_ptr, acc_ptr, out_ptr, PARTS: tl.constexpr, D: tl.constexpr):
    """Joins the stretches of a head."""
    h = tl.program_id(0)
    parts = h * PARTS + tl.arange(0, PARTS)
    top = tl.load(top_ptr + parts)
    weight = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(weight * tl.load(total_ptr + parts), 0)
    acc = tl.load(acc_ptr + parts[:, None] * D + tl.arange(0, D)[None, :])
    tl.store(out_ptr + h * D + tl.arange(0, D), tl.sum(acc * weight[:, None], 0) / total)


def _decode():
    H, S, D = 32, 32768, 128
    scale = LOG2E / D**0.5

    def split(parts, block, warps):
        constants = {"CHUNK": S // parts, "BLOCK": block, "D": D, "FINAL": parts == 1}
        last = "out" if parts == 1 else "acc"
        args = ("q", "k", "v", "top", "total", last, S, scale)
        first = Call(decode_kernel, (H, parts), args, constants, warps)
        if parts == 1:
            return [first]
        return [first, Call(combine_kernel, (H,), ("top", "total", "acc", "out"), {"PARTS": parts, "D": D})]

    variants = {
        "nosplit_bn64": split(1, 64, 4), "nosplit_bn128_w8": split(1, 128, 8), "nosplit_bn16": split(1, 16, 4),
        "split4_bn64": split(4, 64, 4), "split16_bn64": split(16, 64, 4), "split32_bn64": split(32, 64, 4),
        "split32_bn16": split(32, 16, 4), "split64_bn32": split(64, 32, 4), "split64_bn128_w8": split(64, 128, 8),
        "split8_bn128_w8": split(8, 128, 8), "split256_bn64": split(256, 64, 4),
    }  # fmt: skip
    one, all_of = (1, H, 1, D), (1, H, S, D)
    tensors = {
        "q": Tensor(one, "bfloat16"), "k": Tensor(all_of, "bfloat16"), "v": Tensor(all_of, "bfloat16"),
        "out": Tensor(one, "float32", "empty"), "top": Tensor((H * 512,), "float32", "empty"),
        "total": Tensor((H * 512,), "float32", "empty"), "acc": Tensor((H * 512, D), "float32", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", _attended(False))


FAMILIES = {"attn": _attn(), "causal": _causal(), "decode": _decode()}
