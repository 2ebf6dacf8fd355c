"""Attention: grouped heads in float16 with a causal mask, short sequences, TMA, decode with few and many splits."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor, Tiles

LOG2E = 1.4426950408889634


@triton.jit
def causal_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, STAGED: tl.constexpr,
):  # fmt: skip
    """GROUP query heads share a key head. STAGED handles the tiles below the diagonal without a mask."""
    h = tl.program_id(1)
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    base = h.to(tl.int64) * S * D
    kv = (h // GROUP).to(tl.int64) * S * D
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :])
    top = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    low = tl.program_id(0) * BLOCK_M
    first = 0
    if STAGED:
        for j in range(0, low, BLOCK_N):
            rn = j + tl.arange(0, BLOCK_N)
            s = tl.dot(q, tl.load(k_ptr + kv + rn[None, :] * D + rd[:, None])) * scale
            new = tl.maximum(top, tl.max(s, 1))
            p = tl.exp2(s - new[:, None])
            fade = tl.exp2(top - new)
            total = total * fade + tl.sum(p, 1)
            v = tl.load(v_ptr + kv + rn[:, None] * D + rd[None, :])
            acc = tl.dot(p.to(tl.float16), v, acc * fade[:, None])
            top = new
        first = low
    for j in range(first, low + BLOCK_M, BLOCK_N):
        rn = j + tl.arange(0, BLOCK_N)
        s = tl.dot(q, tl.load(k_ptr + kv + rn[None, :] * D + rd[:, None])) * scale
        s = tl.where(rm[:, None] >= rn[None, :], s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(v_ptr + kv + rn[:, None] * D + rd[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * fade[:, None])
        top = new
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


def _grouped():
    H, HK, S, D = 32, 8, 2048, 128
    scale = LOG2E / D**0.5

    def flash(m, n, warps, stages, staged=True):
        constants = {"GROUP": H // HK, "BLOCK_M": m, "BLOCK_N": n, "D": D, "STAGED": staged}
        return [Call(causal_kernel, (S // m, H), ("q", "k", "v", "out", S, scale), constants, warps, stages)]

    variants = {
        "s128x64_w4": flash(128, 64, 4, 3), "s128x64_w8": flash(128, 64, 8, 3), "s64x64_w4": flash(64, 64, 4, 3),
        "m128x64_w8": flash(128, 64, 8, 3, False), "m64x32_w4": flash(64, 32, 4, 3, False),
        "s128x128_w8": flash(128, 128, 8, 2), "s64x64_s1": flash(64, 64, 4, 1),
        "m16x16_w1": flash(16, 16, 1, 2, False), "s128x64_w2": flash(128, 64, 2, 2),
    }  # fmt: skip
    tensors = {
        "q": Tensor((1, H, S, D), "float16"), "k": Tensor((1, HK, S, D), "float16"),
        "v": Tensor((1, HK, S, D), "float16"), "out": Tensor((1, H, S, D), "float16", "empty"),
    }  # fmt: skip

    def expected(t):
        q, k, v = t["q"].float(), *(t[n].float().repeat_interleave(H // HK, 1) for n in "kv")
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Family(tensors, variants, "out", expected)


@triton.jit
def tiles_kernel(q, k, v, out, S, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    """Not causal, all through tensor descriptors of [H * S, D]."""
    h = tl.program_id(1)
    row = h * S + tl.program_id(0) * BLOCK_M
    x = q.load([row, 0])
    top = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for j in range(0, S, BLOCK_N):
        s = tl.dot(x, k.load([h * S + j, 0]).T) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), v.load([h * S + j, 0]), acc * fade[:, None])
        top = new
    out.store([row, 0], (acc / total[:, None]).to(tl.bfloat16))


def _described():
    H, S, D = 16, 4096, 64
    scale = LOG2E / D**0.5

    def flash(m, n, warps, stages):
        tiles = (Tiles("q", (m, D)), Tiles("k", (n, D)), Tiles("v", (n, D)), Tiles("out", (m, D)), S, scale)
        return [Call(tiles_kernel, (S // m, H), tiles, {"BLOCK_M": m, "BLOCK_N": n, "D": D}, warps, stages)]

    variants = {
        "t128x64_w4": flash(128, 64, 4, 3), "t128x128_w8": flash(128, 128, 8, 3), "t64x64_w4": flash(64, 64, 4, 2),
        "t128x64_s1": flash(128, 64, 4, 1),
    }  # fmt: skip
    whole = Tensor((H * S, D), "bfloat16")
    tensors = {"q": whole, "k": whole, "v": whole, "out": Tensor((H * S, D), "bfloat16", "empty")}

    def expected(t):
        q, k, v = (t[n].float().view(1, H, S, D) for n in "qkv")
        return torch.nn.functional.scaled_dot_product_attention(q, k, v).reshape(H * S, D)

    return Family(tensors, variants, "out", expected)


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, top_ptr, total_ptr, acc_ptr, S, scale,
    GROUP: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """A key head and a stretch of keys a program; its GROUP query heads, padded to sixteen, through tl.dot."""
    h = tl.program_id(0)
    part = tl.program_id(1)
    base = h.to(tl.int64) * S * D
    rd = tl.arange(0, D)
    rg = tl.arange(0, 16)
    q = tl.load(q_ptr + (h * GROUP + rg[:, None]) * D + rd[None, :], mask=rg[:, None] < GROUP, other=0.0)
    top = tl.full((16,), -1e30, tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for j in range(part * CHUNK, part * CHUNK + CHUNK, BLOCK):
        rn = j + tl.arange(0, BLOCK)
        s = tl.dot(q, tl.load(k_ptr + base + rn[None, :] * D + rd[:, None])) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(v_ptr + base + rn[:, None] * D + rd[None, :])
        acc = tl.dot(p.to(tl.bfloat16), v, acc * fade[:, None])
        top = new
    i = (h * GROUP + rg) * tl.num_programs(1) + part
    mask = rg < GROUP
    tl.store(top_ptr + i, top, mask=mask)
    tl.store(total_ptr + i, total, mask=mask)
    tl.store(acc_ptr + i[:, None] * D + rd[None, :], acc, mask=mask[:, None])


@triton.jit
def combine_kernel(top_ptr, total_ptr, acc_ptr, out_ptr, PARTS: tl.constexpr, D: tl.constexpr):
    """Joins the stretches of a query head."""
    h = tl.program_id(0)
    parts = h * PARTS + tl.arange(0, PARTS)
    top = tl.load(top_ptr + parts)
    weight = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(weight * tl.load(total_ptr + parts), 0)
    acc = tl.load(acc_ptr + parts[:, None] * D + tl.arange(0, D)[None, :])
    tl.store(out_ptr + h * D + tl.arange(0, D), tl.sum(acc * weight[:, None], 0) / total)


def _decode():
    H, HK, S, D = 64, 16, 32768, 128
    scale = LOG2E / D**0.5

    def split(parts, block, warps, stages=3):
        constants = {"GROUP": H // HK, "CHUNK": S // parts, "BLOCK": block, "D": D}
        args = ("q", "k", "v", "top", "total", "acc", S, scale)
        return [
            Call(decode_kernel, (HK, parts), args, constants, warps, stages),
            Call(combine_kernel, (H,), ("top", "total", "acc", "out"), {"PARTS": parts, "D": D}),
        ]

    variants = {
        "split32_b64": split(32, 64, 4), "split64_b32": split(64, 32, 4), "split8_b64": split(8, 64, 4),
        "split2_b128": split(2, 128, 8), "split128_b64_s1": split(128, 64, 4, 1), "split16_b16_w1": split(16, 16, 1),
    }  # fmt: skip
    tensors = {
        "q": Tensor((1, H, 1, D), "bfloat16"), "k": Tensor((1, HK, S, D), "bfloat16"),
        "v": Tensor((1, HK, S, D), "bfloat16"), "out": Tensor((1, H, 1, D), "float32", "empty"),
        "top": Tensor((H * 128,), "float32", "empty"), "total": Tensor((H * 128,), "float32", "empty"),
        "acc": Tensor((H * 128, D), "float32", "empty"),
    }  # fmt: skip

    def expected(t):
        q, k, v = t["q"].float(), *(t[n].float().repeat_interleave(H // HK, 1) for n in "kv")
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return Family(tensors, variants, "out", expected)


FAMILIES = {"grouped": _grouped(), "described": _described(), "decode_grouped": _decode()}
