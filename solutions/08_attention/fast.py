"""Prefill attention at the speed of Hopper's best library: kernel.py's loop, split between specialised warps.

Judged on a GPU only: Gluon has no interpreter, and overlap is what it is about. On a CPU, for decoding, and for heads
of other sizes than 64 and 128 this file runs kernel.py, which stands beside it.

What a program does, for 128 queries of one head:
- one warp (24 registers a thread) does nothing but ask the copy engine for tiles, as far ahead as there is room;
- two warpgroups of four warps (240 registers) have 64 queries each. While one computes exponentials, the other keeps
  the tensor cores busy; and each issues the scores of the next keys before the product of these keys' weights.

What each step bought for [1, 32, 4096, 128] in bfloat16 on an H200, microseconds, all keys / causal (Triton 3.6,
kernels of this form for lengths that the tile divides; cuDNN took 404 to 409 / 258 to 260 in the same runs):

    exp, scale on each score, a mask in each step             634 / 384
    exp2 with the scale folded in, two loops, 64 x 64         525 / 484 (128 x 64: 298)
    the same through descriptors (kernel.py)                  498 / 271
    warps split as above, K and V in two stages of 128 keys   392 / 226
    a program per SM that takes tile after tile               384 / (slower: its share of the triangle is uneven)

This file as it stands, with ragged lengths, grouped heads and seq_lens: 389 / 226, the latter with 8 KV heads, in one
run with cuDNN, which took 413 / 261. What made the difference to its first version, 414 / 235:

- the weights p wait in registers for the next step. Two loops over keys, with a mask and without, made the compiler
  pack them anew in each step, 64 instructions; now there is one loop, and a branch around the mask;
- a causal tile with a long row of keys is followed by its short partner, so all programs have the same to do;
- the next tile's queries are fetched while this one ends.

A loop of its own for the masked blocks, before the main one, was 4 % faster still, and wrong: ptxas worked out the
address of the queries inside that loop only, and used it where the loop had not run at all.
Source: https://arxiv.org/abs/2407.08608 (FlashAttention-3)
"""

import importlib.util
from pathlib import Path

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

# three names that changed between Triton 3.6 and 3.9
barrier = getattr(gl, "barrier", None) or gl.thread_barrier
async_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
async_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global

STAGES = gl.constexpr(2)  # tiles of K, and of V, that shared memory holds
QUERIES = gl.constexpr(2)  # tiles of Q likewise: the next one is there when this one is done
ROWS = gl.constexpr(64)  # queries of a warpgroup: what one tensor-core instruction takes
LOWEST = gl.constexpr(-1e30)  # stands for -inf in maxima: -inf - -inf would be NaN


@gluon.jit
def tiles_of(visit, num_pid_m, IS_CAUSAL: gl.constexpr):
    """Return bh, pid_m of the visit's first tile and of its last one, and how many tiles it has: 1 or 2.

    A causal mask makes a triangle: with its row of tiles from the long end goes the one from the short end, so that
    all visits cost the same.
    """
    if IS_CAUSAL:
        half = (num_pid_m + 1) // 2
        light = visit % half
        bh = visit // half
        heavy = num_pid_m - 1 - light
        number = 1 + (heavy != light).to(gl.int32)
    else:
        heavy = visit % num_pid_m
        light = heavy
        bh = visit // num_pid_m
        number = 1
    return bh, heavy, light, number


@gluon.jit
def keys_of(
    pid_m, bh, seq_lens_ptr, Hq, Tq, Tk, HAS_LENS: gl.constexpr, IS_CAUSAL: gl.constexpr, BLOCK_N: gl.constexpr
):
    """Return n_keys, the number of key blocks that the tile needs (at least 1), and how many of them need a mask."""
    n_keys = Tk
    if HAS_LENS:
        n_keys = gl.load(seq_lens_ptr + bh // Hq)
    seen_by_any = n_keys
    seen_by_all = n_keys
    if IS_CAUSAL:
        seen_by_any = gl.minimum(n_keys, (pid_m + 1) * 2 * ROWS + n_keys - Tq)
        seen_by_all = gl.maximum(gl.minimum(n_keys, pid_m * 2 * ROWS + 1 + n_keys - Tq), 0)
    # a tile that sees nothing takes one block, masked whole, and so becomes zeros
    num_blocks = gl.maximum((seen_by_any + BLOCK_N - 1) // BLOCK_N, 1)
    return n_keys, num_blocks, num_blocks - gl.minimum(seen_by_all // BLOCK_N, num_blocks)


@gluon.jit
def load_tiles(
    q_desc, k_desc, v_desc, seq_lens_ptr, q_smem, k_smem, v_smem, q_full, q_empty, k_full, k_empty, v_full, v_empty,
    Hq, Tq, Tk, num_pid_m, num_visits, HAS_LENS: gl.constexpr, IS_CAUSAL: gl.constexpr, GROUP: gl.constexpr,
    D: gl.constexpr, BLOCK_N: gl.constexpr,
):  # fmt: skip
    """The loading warp: ask for each tile as soon as its place is free, the last keys first."""
    step = 0
    tile = 0
    for visit in range(gl.program_id(0), num_visits, gl.num_programs(0)):
        bh, heavy, light, number = tiles_of(visit, num_pid_m, IS_CAUSAL)
        for i in range(number):
            pid_m = heavy + i * (light - heavy)
            _, num_blocks, _ = keys_of(pid_m, bh, seq_lens_ptr, Hq, Tq, Tk, HAS_LENS, IS_CAUSAL, BLOCK_N)
            for w in gl.static_range(2):
                place = tile % QUERIES * 2 + w
                mbarrier.wait(q_empty.index(place), (tile // QUERIES & 1) ^ 1)
                mbarrier.expect(q_full.index(place), ROWS * D * 2)
                async_load(q_desc, [bh * Tq + (2 * pid_m + w) * ROWS, 0], q_full.index(place), q_smem.index(place))
            tile += 1
            row = bh // GROUP * Tk + num_blocks * BLOCK_N
            for _ in range(num_blocks):
                row -= BLOCK_N
                place = step % STAGES
                phase = (step // STAGES) & 1
                mbarrier.wait(k_empty.index(place), phase ^ 1)
                mbarrier.expect(k_full.index(place), BLOCK_N * D * 2)
                async_load(k_desc, [row, 0], k_full.index(place), k_smem.index(place))
                mbarrier.wait(v_empty.index(place), phase ^ 1)
                mbarrier.expect(v_full.index(place), BLOCK_N * D * 2)
                async_load(v_desc, [row, 0], v_full.index(place), v_smem.index(place))
                step += 1


@gluon.jit
def hide(s, first_row, first_key, n_keys, Tq, IS_CAUSAL: gl.constexpr, BLOCK_N: gl.constexpr, S: gl.constexpr):
    """Return the scores s, -inf where a row may not see the key."""
    keys = first_key + gl.arange(0, BLOCK_N, gl.SliceLayout(0, S))
    if IS_CAUSAL:
        rows = first_row + gl.arange(0, ROWS, gl.SliceLayout(1, S))
        seen = keys[None, :] <= (rows + n_keys - Tq)[:, None]
    else:
        seen = gl.expand_dims(keys < n_keys, 0)
    return gl.where(seen, s, -float("inf"))


@gluon.jit
def weigh(s, l_i, m_i, qk_scale):
    """Return the weights of the scores s, what older sums shrink to, and the new l_i and m_i, the latter in base 2."""
    m_new = gl.maximum(m_i, gl.max(s, 1) * qk_scale)
    alpha = gl.exp2(m_i - m_new)
    weights = gl.exp2(s * qk_scale - m_new[:, None])
    return weights, alpha, l_i * alpha + gl.sum(weights, 1), m_new


@gluon.jit
def clear(v_smem, v_full, step, first_key, n_keys, D: gl.constexpr, BLOCK_N: gl.constexpr):
    """Put zeros where this step's values have no key: 0 times what lies there might be NaN.

    Both warpgroups do so, and write the same.
    """
    place = step % STAGES
    mbarrier.wait(v_full.index(place), (step // STAGES) & 1)
    if first_key + BLOCK_N > n_keys:
        LANES: gl.constexpr = gl.BlockedLayout([1, 8], [256 // D, D // 8], [4, 1], [1, 0])
        keys = first_key + gl.arange(0, BLOCK_N, gl.SliceLayout(1, LANES))
        v = v_smem.index(place).load(LANES)
        v_smem.index(place).store(gl.where(gl.expand_dims(keys < n_keys, 1), v, gl.zeros_like(v)))
        fence_async_shared()
        barrier()


@gluon.jit
def compute(
    out_desc, out_ptr, seq_lens_ptr, q_smem, k_smem, v_smem, out_smem, q_full, q_empty, k_full, k_empty, v_full,
    v_empty, Hq, Tq, Tk, num_pid_m, num_visits, qk_scale, WARPGROUP: gl.constexpr, HAS_LENS: gl.constexpr,
    IS_CAUSAL: gl.constexpr, GROUP: gl.constexpr, D: gl.constexpr, BLOCK_N: gl.constexpr,
):  # fmt: skip
    """A computing warpgroup: ROWS queries of each tile."""
    S: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 16])
    OUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, D, 16])
    P: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=OUT, k_width=2)
    DTYPE: gl.constexpr = out_desc.dtype
    step = 0
    tile = 0
    for visit in range(gl.program_id(0), num_visits, gl.num_programs(0)):
        bh, heavy, light, number = tiles_of(visit, num_pid_m, IS_CAUSAL)
        for i in range(number):
            pid_m = heavy + i * (light - heavy)
            n_keys, num_blocks, num_masked = keys_of(
                pid_m, bh, seq_lens_ptr, Hq, Tq, Tk, HAS_LENS, IS_CAUSAL, BLOCK_N
            )  # fmt: skip
            first_row = (2 * pid_m + WARPGROUP) * ROWS
            key = (num_blocks - 1) * BLOCK_N
            q_place = tile % QUERIES * 2 + WARPGROUP
            q = q_smem.index(q_place)
            mbarrier.wait(q_full.index(q_place), tile // QUERIES & 1)
            m_i = gl.full((ROWS,), LOWEST, gl.float32, gl.SliceLayout(1, S))
            l_i = gl.zeros((ROWS,), gl.float32, gl.SliceLayout(1, S))
            o = gl.zeros((ROWS, D), gl.float32, OUT)
            # the last block of keys, which may need a mask, on its own: there are no weights to multiply yet
            clear(v_smem, v_full, step, key, n_keys, D, BLOCK_N)
            place = step % STAGES
            mbarrier.wait(k_full.index(place), (step // STAGES) & 1)
            zeros = gl.zeros((ROWS, BLOCK_N), gl.float32, S)
            s = warpgroup_mma(q, k_smem.index(place).permute((1, 0)), zeros, use_acc=False, is_async=True)
            s = warpgroup_mma_wait(0, deps=(s,))
            mbarrier.arrive(k_empty.index(place), count=1)
            s = hide(s, first_row, key, n_keys, Tq, IS_CAUSAL, BLOCK_N, S)
            weights, _, l_i, m_i = weigh(s, l_i, m_i, qk_scale)
            p = gl.convert_layout(weights.to(DTYPE), P)
            for block in range(1, num_blocks):
                # issue the scores of the next block, multiply the weights p of this one, and take the new scores in
                place = step % STAGES
                ahead = (step + 1) % STAGES
                mbarrier.wait(k_full.index(ahead), ((step + 1) // STAGES) & 1)
                zeros = gl.zeros((ROWS, BLOCK_N), gl.float32, S)
                s = warpgroup_mma(q, k_smem.index(ahead).permute((1, 0)), zeros, use_acc=False, is_async=True)
                mbarrier.wait(v_full.index(place), (step // STAGES) & 1)
                o = warpgroup_mma(p, v_smem.index(place), o, is_async=True)
                # one product may still be under way: that of the weights, which the exponentials do not need
                s = warpgroup_mma_wait(1, deps=(s,))
                mbarrier.arrive(k_empty.index(ahead), count=1)
                if IS_CAUSAL:
                    if block < num_masked:
                        s = hide(s, first_row, key - block * BLOCK_N, n_keys, Tq, IS_CAUSAL, BLOCK_N, S)
                weights, alpha, l_i, m_i = weigh(s, l_i, m_i, qk_scale)
                o = warpgroup_mma_wait(0, deps=(o,))
                mbarrier.arrive(v_empty.index(place), count=1)
                p = gl.convert_layout(weights.to(DTYPE), P)
                o = o * gl.convert_layout(alpha, gl.SliceLayout(1, OUT))[:, None]
                step += 1
            mbarrier.arrive(q_empty.index(q_place), count=1)
            tile += 1
            place = step % STAGES
            mbarrier.wait(v_full.index(place), (step // STAGES) & 1)
            o = warpgroup_mma(p, v_smem.index(place), o, is_async=True)
            o = warpgroup_mma_wait(0, deps=(o,))
            mbarrier.arrive(v_empty.index(place), count=1)
            step += 1
            share = 1.0 / gl.where(l_i == 0.0, 1.0, l_i)
            out = (o * gl.convert_layout(share, gl.SliceLayout(1, OUT))[:, None]).to(DTYPE)
            if first_row + ROWS <= Tq:
                tma.store_wait(0)  # the tile before has left shared memory
                barrier()
                out_smem.index(WARPGROUP).store(out)
                fence_async_shared()
                barrier()
                async_store(out_desc, [bh * Tq + first_row, 0], out_smem.index(WARPGROUP))
            else:  # the last rows: a whole tile would run into the next head
                rows = first_row + gl.arange(0, ROWS, gl.SliceLayout(1, OUT))
                cols = gl.arange(0, D, gl.SliceLayout(0, OUT))
                ptrs = out_ptr + gl.expand_dims((bh * Tq + rows).to(gl.int64) * D, 1) + gl.expand_dims(cols, 0)
                gl.store(ptrs, out, mask=gl.expand_dims(rows < Tq, 1) & gl.expand_dims(cols < D, 0))
    tma.store_wait(0)


# one compiled kernel for all sizes: it takes seconds, and nothing is won by knowing them
@gluon.jit(do_not_specialize=["Hq", "Tq", "Tk", "num_pid_m", "num_visits"])
def attention_kernel(
    q_desc,  # [B * Hq * Tq, D]
    k_desc,  # [B * Hkv * Tk, D]
    v_desc,  # [B * Hkv * Tk, D]
    out_desc,  # [B * Hq * Tq, D]
    out_ptr,
    seq_lens_ptr,  # [B] int32 if HAS_LENS
    Hq, Tq, Tk, num_pid_m, num_visits, qk_scale,
    HAS_LENS: gl.constexpr, IS_CAUSAL: gl.constexpr, GROUP: gl.constexpr,
    D: gl.constexpr, BLOCK_N: gl.constexpr,
):  # fmt: skip
    """Give out shared memory and barriers, then let the warps go their ways."""
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [2 * QUERIES, ROWS, D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(k_desc.dtype, [STAGES, BLOCK_N, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(v_desc.dtype, [STAGES, BLOCK_N, D], v_desc.layout)
    out_smem = gl.allocate_shared_memory(out_desc.dtype, [2, ROWS, D], out_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [2 * QUERIES, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [2 * QUERIES, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2 * QUERIES):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
        # both warpgroups must have read a tile before the next one may take its place
        mbarrier.init(k_empty.index(i), count=2)
        mbarrier.init(v_empty.index(i), count=2)
    fence_async_shared()
    gl.warp_specialize(
        [
            (compute, (
                out_desc, out_ptr, seq_lens_ptr, q_smem, k_smem, v_smem, out_smem, q_full, q_empty, k_full, k_empty,
                v_full, v_empty, Hq, Tq, Tk, num_pid_m, num_visits, qk_scale, 0, HAS_LENS, IS_CAUSAL, GROUP, D,
                BLOCK_N)),
            (compute, (
                out_desc, out_ptr, seq_lens_ptr, q_smem, k_smem, v_smem, out_smem, q_full, q_empty, k_full, k_empty,
                v_full, v_empty, Hq, Tq, Tk, num_pid_m, num_visits, qk_scale, 1, HAS_LENS, IS_CAUSAL, GROUP, D,
                BLOCK_N)),
            (load_tiles, (
                q_desc, k_desc, v_desc, seq_lens_ptr, q_smem, k_smem, v_smem, q_full, q_empty, k_full, k_empty, v_full,
                v_empty, Hq, Tq, Tk, num_pid_m, num_visits, HAS_LENS, IS_CAUSAL, GROUP, D, BLOCK_N)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip


def plain():
    """Return the module kernel.py beside this file."""
    if not hasattr(plain, "module"):
        spec = importlib.util.spec_from_file_location("attention_kernel", Path(__file__).with_name("kernel.py"))
        plain.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plain.module)
    return plain.module


def prefill(q, k, v, *, causal, sm_scale, seq_lens):
    """Launch the Gluon kernel. Arguments as for attention; D is 64 or 128."""
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    (B, Hq, Tq, D), (Hkv, Tk) = q.shape, k.shape[1:3]
    out = torch.empty_like(q)
    dtype, BLOCK_N = (gl.bfloat16 if q.dtype == torch.bfloat16 else gl.float16), 128

    def descriptor(x, rows):
        layout = gl.NVMMASharedLayout.get_default_for([rows, D], dtype)
        return TensorDescriptor.from_tensor(x.view(-1, D), [rows, D], layout)

    num_pid_m = triton.cdiv(Tq, 2 * ROWS.value)
    num_visits = B * Hq * (triton.cdiv(num_pid_m, 2) if causal else num_pid_m)
    num_sms = torch.cuda.get_device_properties(q.device).multi_processor_count
    attention_kernel[(min(num_visits, num_sms),)](
        descriptor(q, ROWS.value), descriptor(k, BLOCK_N), descriptor(v, BLOCK_N), descriptor(out, ROWS.value),
        out, q if seq_lens is None else seq_lens, Hq, Tq, Tk, num_pid_m, num_visits, sm_scale * 1.4426950408889634,
        HAS_LENS=seq_lens is not None, IS_CAUSAL=causal, GROUP=Hq // Hkv, D=D, BLOCK_N=BLOCK_N,
        num_warps=4, maxnreg=168,
    )  # fmt: skip
    return out


def attention(q, k, v, *, causal, sm_scale, seq_lens):
    """Return softmax(sm_scale * q @ k.T) @ v: see kernel.py."""
    hopper = q.is_cuda and torch.cuda.get_device_capability(q.device)[0] == 9
    if hopper and q.shape[-1] in (64, 128) and q.shape[2] > 16:
        return prefill(q, k, v, causal=causal, sm_scale=sm_scale, seq_lens=seq_lens)
    return plain().attention(q, k, v, causal=causal, sm_scale=sm_scale, seq_lens=seq_lens)
