"""Attention in float16 with grouped heads: whole at D = 64, causal at D = 128; decode by pages of 16 and 64 keys."""

import random

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor, Tiles

LOG2E = 1.4426950408889634

# -- gqa64: q [B, H, S, 64], k and v [B, HK, S, 64], not causal --------------------------------------------------------


@triton.jit
def whole_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale, H: tl.constexpr, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The scale goes into q first; the sum's maximum is kept in base two."""
    h = tl.program_id(1)
    base = h.to(tl.int64) * S * D
    kv = (h // H * (H // GROUP) + h % H // GROUP).to(tl.int64) * S * D
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    rn = tl.arange(0, BLOCK_N)
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :])
    q = (q.to(tl.float32) * scale).to(tl.float16)
    k_ptrs = k_ptr + kv + rn[None, :] * D + rd[:, None]
    v_ptrs = v_ptr + kv + rn[:, None] * D + rd[None, :]
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for _ in tl.range(0, S, BLOCK_N, num_stages=STAGES):
        s = tl.dot(q, tl.load(k_ptrs))
        new = tl.maximum(top, tl.max(s, 1))
        fade = tl.exp2(top - new)
        p = tl.exp2(s - new[:, None])
        total = total * fade + tl.sum(p, 1)
        acc = acc * fade[:, None]
        acc = tl.dot(p.to(tl.float16), tl.load(v_ptrs), acc)
        top = new
        k_ptrs += BLOCK_N * D
        v_ptrs += BLOCK_N * D
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def plain_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale, H: tl.constexpr, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """No running maximum: a first pass finds it, a second one sums; exp, masks and true divisions."""
    h = tl.program_id(0)
    base = h.to(tl.int64) * S * D
    kv = (h // H * (H // GROUP) + h % H // GROUP).to(tl.int64) * S * D
    rm = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :], mask=rm[:, None] < S, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    for start in range(0, S, BLOCK_N):
        rn = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + kv + rn[:, None] * D + rd[None, :], mask=rn[:, None] < S, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        top = tl.maximum(top, tl.max(tl.where(rn[None, :] < S, s, -float("inf")), 1))
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, S, BLOCK_N):
        rn = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + kv + rn[:, None] * D + rd[None, :], mask=rn[:, None] < S, other=0.0)
        v = tl.load(v_ptr + kv + rn[:, None] * D + rd[None, :], mask=rn[:, None] < S, other=0.0)
        s = tl.where(rn[None, :] < S, tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        p = tl.exp(s - top[:, None])
        total += tl.sum(p, 1)
        acc += tl.dot(p.to(tl.float16), v)
    out = (acc / total[:, None]).to(tl.float16)
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], out, mask=rm[:, None] < S)


def _gqa64(B=1, H=16, HK=4, S=4096, D=64):
    args, same = ("q", "k", "v", "out", S), {"H": H, "GROUP": H // HK, "D": D}

    def flash(m, n, warps, stages):
        constants = {**same, "BLOCK_M": m, "BLOCK_N": n, "STAGES": stages}
        return [Call(whole_kernel, (triton.cdiv(S, m), B * H), (*args, LOG2E / D**0.5), constants, warps, stages)]

    def plain(m, n, warps, stages):
        constants = {**same, "BLOCK_M": m, "BLOCK_N": n}
        return [Call(plain_kernel, (B * H, triton.cdiv(S, m)), (*args, D**-0.5), constants, warps, stages)]

    variants = {
        "m128n64_w4_s3": flash(128, 64, 4, 3), "m128n128_w8_s2": flash(128, 128, 8, 2),
        "m64n128_w4_s2": flash(64, 128, 4, 2), "m64n32_w4_s4": flash(64, 32, 4, 4),
        "m128n32_w8_s1": flash(128, 32, 8, 1),
        "plain64x64_w4": plain(64, 64, 4, 2), "plain32x32_w2": plain(32, 32, 2, 1),
    }  # fmt: skip
    tensors = {
        "q": Tensor((B, H, S, D), "float16"), "k": Tensor((B, HK, S, D), "float16"),
        "v": Tensor((B, HK, S, D), "float16"), "out": Tensor((B, H, S, D), "float16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", _attended(H // HK, False))


def _attended(group, causal):
    def expected(t):
        out = torch.empty(t["q"].shape, dtype=torch.float32, device=t["q"].device)
        for b in range(out.shape[0]):
            for h in range(out.shape[1]):
                q, k, v = (
                    t[n][b : b + 1, h // g : h // g + 1].float() for n, g in zip("qkv", (1, group, group), strict=True)
                )
                out[b, h] = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)[0, 0]
        return out

    return expected


# -- gqa128_causal: q [1, H, S, 128], k and v [1, HK, S, 128] ----------------------------------------------------------


@triton.jit
def step(q, k, v, top, total, acc, rm, rn, MASK: tl.constexpr):
    """One tile of keys."""
    s = tl.dot(q, k)
    if MASK:
        s += tl.where(rm[:, None] >= rn[None, :], 0.0, -1e6)
    new = tl.maximum(top, tl.max(s, 1))
    fade = tl.exp2(top - new)
    p = tl.exp2(s - new[:, None])
    return new, total * fade + tl.sum(p, 1), tl.dot(p.to(tl.float16), v, acc * fade[:, None])


@triton.jit
def lower_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, ORDER: tl.constexpr,
):  # fmt: skip
    """Tiles below the diagonal without a mask, then those on it. ORDER: the longest rows of tiles start first."""
    i = tl.num_programs(0) - 1 - tl.program_id(0) if ORDER else tl.program_id(0)
    h = tl.program_id(1)
    base = h.to(tl.int64) * S * D
    kv = (h // GROUP).to(tl.int64) * S * D
    rm = i * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    q = (tl.load(q_ptr + base + rm[:, None] * D + rd[None, :]).to(tl.float32) * scale).to(tl.float16)
    top = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, i * BLOCK_M, BLOCK_N):
        rn = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + kv + rn[None, :] * D + rd[:, None])
        v = tl.load(v_ptr + kv + rn[:, None] * D + rd[None, :])
        top, total, acc = step(q, k, v, top, total, acc, rm, rn, False)
    for start in range(i * BLOCK_M, (i + 1) * BLOCK_M, BLOCK_N):
        rn = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + kv + rn[None, :] * D + rd[:, None])
        v = tl.load(v_ptr + kv + rn[:, None] * D + rd[None, :])
        top, total, acc = step(q, k, v, top, total, acc, rm, rn, True)
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def all_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, S, scale, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Every tile of keys, the masked half as well."""
    h = tl.program_id(1)
    base = h.to(tl.int64) * S * D
    kv = (h // GROUP).to(tl.int64) * S * D
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, D)
    q = (tl.load(q_ptr + base + rm[:, None] * D + rd[None, :]).to(tl.float32) * scale).to(tl.float16)
    top = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, S, BLOCK_N):
        rn = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + kv + rn[None, :] * D + rd[:, None])
        v = tl.load(v_ptr + kv + rn[:, None] * D + rd[None, :])
        top, total, acc = step(q, k, v, top, total, acc, rm, rn, True)
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def lower_tiles_kernel(
    q, k, v, out, S, scale, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Host-made descriptors of [H * S, D], one loop, the mask in all of it."""
    i = tl.program_id(0)
    h = tl.program_id(1)
    rm = i * BLOCK_M + tl.arange(0, BLOCK_M)
    x = (q.load([h * S + i * BLOCK_M, 0]).to(tl.float32) * scale).to(tl.float16)
    top = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, (i + 1) * BLOCK_M, BLOCK_N):
        row = h // GROUP * S + start
        rn = start + tl.arange(0, BLOCK_N)
        top, total, acc = step(x, k.load([row, 0]).T, v.load([row, 0]), top, total, acc, rm, rn, True)
    out.store([h * S + i * BLOCK_M, 0], (acc / total[:, None]).to(tl.float16))


def _gqa128_causal(H=16, HK=2, S=4096, D=128):
    scale = LOG2E / D**0.5

    def flash(m, n, warps, stages, order=False):
        constants = {"GROUP": H // HK, "BLOCK_M": m, "BLOCK_N": n, "D": D, "ORDER": order}
        return [Call(lower_kernel, (S // m, H), ("q", "k", "v", "out", S, scale), constants, warps, stages)]

    def full(m, n, warps, stages):
        constants = {"GROUP": H // HK, "BLOCK_M": m, "BLOCK_N": n, "D": D}
        return [Call(all_kernel, (S // m, H), ("q", "k", "v", "out", S, scale), constants, warps, stages)]

    def tiles(m, n, warps, stages):
        constants = {"GROUP": H // HK, "BLOCK_M": m, "BLOCK_N": n, "D": D}
        args = (Tiles("q", (m, D)), Tiles("k", (n, D)), Tiles("v", (n, D)), Tiles("out", (m, D)), S, scale)
        return [Call(lower_tiles_kernel, (S // m, H), args, constants, warps, stages)]

    variants = {
        "m128n64_w8_s3": flash(128, 64, 8, 3), "m128n128_w8_order": flash(128, 128, 8, 2, True),
        "m64n64_w4_order": flash(64, 64, 4, 2, True), "m128n32_w4_s4": flash(128, 32, 4, 4),
        "m64n32_w4_s1": flash(64, 32, 4, 1), "all128x64_w8": full(128, 64, 8, 3),
        "tiles128x64_w8": tiles(128, 64, 8, 3),
    }  # fmt: skip
    tensors = {
        "q": Tensor((H * S, D), "float16"), "k": Tensor((HK * S, D), "float16"),
        "v": Tensor((HK * S, D), "float16"), "out": Tensor((H * S, D), "float16", "empty"),
    }  # fmt: skip

    def expected(t):
        shaped = {n: t[n].view(1, -1, S, D) for n in "qkv"}
        return _attended(H // HK, True)(shaped).view(H * S, D)

    return Family(tensors, variants, "out", expected)


# -- paged16, paged64: decode, keys and values in pages [page, HK, PAGE, 128], a table of pages for each sequence ------


@triton.jit
def paged_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, top_ptr, total_ptr, acc_ptr, S, scale,
    HK: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """A page a step; the query heads of a key head, padded to sixteen, through tl.dot."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    pages = tl.cdiv(S, PAGE)
    each = tl.cdiv(pages, tl.num_programs(2))
    first = tl.program_id(2) * each
    rg = tl.arange(0, 16)
    rd = tl.arange(0, D)
    rp = tl.arange(0, PAGE)
    head = (b * HK + h) * GROUP + rg
    q = tl.load(q_ptr + head[:, None] * D + rd[None, :], mask=rg[:, None] < GROUP, other=0.0)
    top = tl.full((16,), -1e30, tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for i in range(first, min(first + each, pages)):
        page = tl.load(table_ptr + b * pages + i).to(tl.int64)
        base = (page * HK + h) * PAGE * D
        k = tl.load(k_ptr + base + rp[None, :] * D + rd[:, None])
        s = tl.dot(q, k) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(v_ptr + base + rp[:, None] * D + rd[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc * fade[:, None])
        top = new
    part = head * tl.num_programs(2) + tl.program_id(2)
    mask = rg < GROUP
    tl.store(top_ptr + part, top, mask=mask)
    tl.store(total_ptr + part, total, mask=mask)
    tl.store(acc_ptr + part[:, None] * D + rd[None, :], acc, mask=mask[:, None])


@triton.jit
def paged_keys_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, top_ptr, total_ptr, acc_ptr, S, scale,
    HK: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """BLOCK keys a step: the table is gathered key by key."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    each = tl.cdiv(S, tl.num_programs(2))
    first = tl.program_id(2) * each
    rg = tl.arange(0, 16)
    rd = tl.arange(0, D)
    head = (b * HK + h) * GROUP + rg
    q = tl.load(q_ptr + head[:, None] * D + rd[None, :], mask=rg[:, None] < GROUP, other=0.0)
    top = tl.full((16,), -1e30, tl.float32)
    total = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for start in range(first, first + each, BLOCK):
        j = start + tl.arange(0, BLOCK)
        seen = j < tl.minimum(first + each, S)
        page = tl.load(table_ptr + b * tl.cdiv(S, PAGE) + j // PAGE, mask=seen, other=0).to(tl.int64)
        base = ((page * HK + h) * PAGE + j % PAGE) * D
        k = tl.load(k_ptr + base[None, :] + rd[:, None], mask=seen[None, :], other=0.0)
        s = tl.where(seen[None, :], tl.dot(q, k) * scale, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        v = tl.load(v_ptr + base[:, None] + rd[None, :], mask=seen[:, None], other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * fade[:, None])
        top = new
    part = head * tl.num_programs(2) + tl.program_id(2)
    mask = rg < GROUP
    tl.store(top_ptr + part, top, mask=mask)
    tl.store(total_ptr + part, total, mask=mask)
    tl.store(acc_ptr + part[:, None] * D + rd[None, :], acc, mask=mask[:, None])


@triton.jit
def paged_head_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, top_ptr, total_ptr, acc_ptr, S, scale,
    HK: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """A query head a program, products and sums in float32."""
    b = tl.program_id(0)
    h = tl.program_id(1)
    pages = tl.cdiv(S, PAGE)
    each = tl.cdiv(pages, tl.num_programs(2))
    first = tl.program_id(2) * each
    rd = tl.arange(0, D)
    rp = tl.arange(0, PAGE)
    head = b * HK * GROUP + h
    q = tl.load(q_ptr + head * D + rd).to(tl.float32) * scale
    top = -1e30
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    for i in range(first, min(first + each, pages)):
        page = tl.load(table_ptr + b * pages + i).to(tl.int64)
        offs = (page * HK + h // GROUP) * PAGE * D + rp[:, None] * D + rd[None, :]
        s = tl.sum(tl.load(k_ptr + offs).to(tl.float32) * q[None, :], 1)
        new = tl.maximum(top, tl.max(s, 0))
        p = tl.exp2(s - new)
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 0)
        acc = acc * fade + tl.sum(tl.load(v_ptr + offs).to(tl.float32) * p[:, None], 0)
        top = new
    part = head * tl.num_programs(2) + tl.program_id(2)
    tl.store(top_ptr + part, top)
    tl.store(total_ptr + part, total)
    tl.store(acc_ptr + part * D + rd, acc)


@triton.jit
def join_kernel(top_ptr, total_ptr, acc_ptr, out_ptr, PARTS: tl.constexpr, D: tl.constexpr):
    """Joins the stretches of a query head."""
    head = tl.program_id(0)
    rd = tl.arange(0, D)
    parts = head * PARTS + tl.arange(0, PARTS)
    top = tl.load(top_ptr + parts)
    weight = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(weight * tl.load(total_ptr + parts), 0)
    acc = tl.load(acc_ptr + parts[:, None] * D + rd[None, :])
    tl.store(out_ptr + head * D + rd, (tl.sum(acc * weight[:, None], 0) / total).to(tl.float16))


def _paged(B, H, HK, S, page, choose):
    D, most = 128, 32
    scale = LOG2E / D**0.5

    def split(kernel, parts, warps, stages, **more):
        constants = {"HK": HK, "GROUP": H // HK, "PAGE": page, "D": D, **more}
        args = ("q", "k", "v", "table", "top", "total", "acc", S, scale)
        heads = H if kernel is paged_head_kernel else HK
        return [
            Call(kernel, (B, heads, parts), args, constants, warps, stages),
            Call(join_kernel, (B * H,), ("top", "total", "acc", "out"), {"PARTS": parts, "D": D}),
        ]

    count = B * S // page
    pool = Tensor((count, HK, page, D), "float16")
    tensors = {
        "q": Tensor((B, H, D), "float16"), "k": pool, "v": pool,
        "table": Tensor((count,), "int32", "table", values=tuple(random.Random(0).sample(range(count), count))),
        "top": Tensor((B * H, most), "float32", "empty"),
        "total": Tensor((B * H, most), "float32", "empty"), "acc": Tensor((B * H, most, D), "float32", "empty"),
        "out": Tensor((B, H, D), "float16", "empty"),
    }  # fmt: skip

    def expected(t):
        table, rows = t["table"].long().view(B, S // page), []
        for b in range(B):
            k, v = (t[n][table[b]].transpose(0, 1).reshape(HK, S, D).float() for n in "kv")
            q = t["q"][b].float().view(HK, H // HK, D)
            rows.append((torch.softmax(q @ k.transpose(1, 2) / D**0.5, 2) @ v).reshape(H, D))
        return torch.stack(rows)

    return Family(tensors, choose(split), "out", expected)


def _paged16(B=16, H=32, HK=8, S=8192):
    def choose(split):
        return {
            "page_split4": split(paged_kernel, 4, 4, 3), "page_split16_w1": split(paged_kernel, 16, 1, 4),
            "page_split1_s1": split(paged_kernel, 1, 4, 1),
            "keys64_split8": split(paged_keys_kernel, 8, 4, 3, BLOCK=64),
            "keys128_split2_w8": split(paged_keys_kernel, 2, 8, 2, BLOCK=128),
            "head_split4": split(paged_head_kernel, 4, 4, 3),
        }  # fmt: skip

    return _paged(B, H, HK, S, 16, choose)


def _paged64(B=8, H=64, HK=8, S=16384):
    def choose(split):
        return {
            "page_split8": split(paged_kernel, 8, 4, 3), "page_split32_w2": split(paged_kernel, 32, 2, 2),
            "page_split2_w8": split(paged_kernel, 2, 8, 4),
            "keys32_split8": split(paged_keys_kernel, 8, 4, 4, BLOCK=32),
            "keys128_split16_s1": split(paged_keys_kernel, 16, 4, 1, BLOCK=128),
        }  # fmt: skip

    return _paged(B, H, HK, S, 64, choose)


FAMILIES = {
    "gqa64": _gqa64(), "gqa128_causal": _gqa128_causal(), "paged16": _paged16(), "paged64": _paged64(),
}  # fmt: skip
