"""NF4 to bfloat16, 64 elements a block; the absmax is a uint8 through a table times a float32 for 256 blocks."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

CODE = (
    -1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0, 0.0795803, 0.1609302,
    0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0,
)  # fmt: skip
OFFSET = 0.05


@triton.jit
def chosen(q):
    """The code of a nibble by comparisons."""
    v = tl.where(q == 0, -1.0, -0.6961928)
    v = tl.where(q == 2, -0.52507305, v)
    v = tl.where(q == 3, -0.39491749, v)
    v = tl.where(q == 4, -0.28444138, v)
    v = tl.where(q == 5, -0.18477343, v)
    v = tl.where(q == 6, -0.09105004, v)
    v = tl.where(q == 7, 0.0, v)
    v = tl.where(q == 8, 0.0795803, v)
    v = tl.where(q == 9, 0.1609302, v)
    v = tl.where(q == 10, 0.2461123, v)
    v = tl.where(q == 11, 0.33791524, v)
    v = tl.where(q == 12, 0.44070983, v)
    v = tl.where(q == 13, 0.562617, v)
    v = tl.where(q == 14, 0.72295684, v)
    v = tl.where(q == 15, 1.0, v)
    return v


@triton.jit
def bytes_kernel(
    q_ptr, code_ptr, absmax_ptr, absmax2_ptr, code2_ptr, offset, out_ptr, n,
    BLOCK: tl.constexpr, CHOOSE: tl.constexpr, JOIN: tl.constexpr,
):  # fmt: skip
    """BLOCK bytes a program; the code by a gather or by comparisons, the halves joined or stored apart."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    block = i // 32
    scale = tl.load(code2_ptr + tl.load(absmax_ptr + block).to(tl.int32))
    absmax = scale * tl.load(absmax2_ptr + block // 256) + offset
    high = (q >> 4).to(tl.int32)
    low = (q & 15).to(tl.int32)
    if CHOOSE:
        first = chosen(high)
        second = chosen(low)
    else:
        first = tl.load(code_ptr + high)
        second = tl.load(code_ptr + low)
    first = (first * absmax).to(tl.bfloat16)
    second = (second * absmax).to(tl.bfloat16)
    if JOIN:
        j = tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
        tl.store(out_ptr + j, tl.interleave(first, second))
    else:
        tl.store(out_ptr + 2 * i, first)
        tl.store(out_ptr + 2 * i + 1, second)


@triton.jit
def blocks_kernel(
    q_ptr, code_ptr, absmax_ptr, absmax2_ptr, code2_ptr, offset, out_ptr, n, BLOCKS: tl.constexpr, CHOOSE: tl.constexpr
):
    """A tile of blocks: absmax is loaded once a block."""
    b = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS)
    i = b[:, None] * 32 + tl.arange(0, 32)[None, :]
    q = tl.load(q_ptr + i)
    absmax = tl.load(code2_ptr + tl.load(absmax_ptr + b).to(tl.int32)) * tl.load(absmax2_ptr + b // 256) + offset
    high = (q >> 4).to(tl.int32)
    low = (q & 15).to(tl.int32)
    if CHOOSE:
        first = chosen(high)
        second = chosen(low)
    else:
        first = tl.load(code_ptr + high)
        second = tl.load(code_ptr + low)
    both = tl.join((first * absmax[:, None]).to(tl.bfloat16), (second * absmax[:, None]).to(tl.bfloat16))
    both = tl.reshape(both, (BLOCKS, 64))
    tl.store(out_ptr + b[:, None] * 64 + tl.arange(0, 64)[None, :], both)


@triton.jit
def elements_kernel(q_ptr, code_ptr, absmax_ptr, absmax2_ptr, code2_ptr, offset, out_ptr, n, BLOCK: tl.constexpr):
    """One lane an element: each byte is read twice."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + j // 2)
    nibble = tl.where(j % 2 == 0, q >> 4, q & 15).to(tl.int32)
    block = j // 64
    scale = tl.load(code2_ptr + tl.load(absmax_ptr + block).to(tl.int32))
    absmax = scale * tl.load(absmax2_ptr + block // 256) + offset
    tl.store(out_ptr + j, (tl.load(code_ptr + nibble) * absmax).to(tl.bfloat16))


@triton.jit
def absmax_kernel(absmax_ptr, absmax2_ptr, code2_ptr, offset, scale_ptr, n, BLOCK: tl.constexpr):
    """Unfused: absmax to float32."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    code = tl.load(code2_ptr + tl.load(absmax_ptr + i).to(tl.int32))
    tl.store(scale_ptr + i, code * tl.load(absmax2_ptr + i // 256) + offset)


@triton.jit
def apply_kernel(q_ptr, code_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Unfused in two: codes times the scales."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    scale = tl.load(scale_ptr + i // 32)
    first = (chosen((q >> 4).to(tl.int32)) * scale).to(tl.bfloat16)
    second = (chosen((q & 15).to(tl.int32)) * scale).to(tl.bfloat16)
    j = tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + j, tl.interleave(first, second))


@triton.jit
def unpack_kernel(q_ptr, code_ptr, tmp_ptr, n, BLOCK: tl.constexpr):
    """Unfused in three: codes in float32 go to memory."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    first = chosen((q >> 4).to(tl.int32))
    second = chosen((q & 15).to(tl.int32))
    j = tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(tmp_ptr + j, tl.interleave(first, second))


@triton.jit
def scale_kernel(tmp_ptr, scale_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Unfused in three: they are read back and scaled."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + j, (tl.load(tmp_ptr + j) * tl.load(scale_ptr + j // 64)).to(tl.bfloat16))


def _expected(t):
    q = t["q"].long()
    code = torch.stack([t["code"][q >> 4], t["code"][q & 15]], 1).view(-1, 64)
    absmax = t["code2"][t["absmax"].long()] * t["absmax2"].repeat_interleave(256)[: len(code)] + OFFSET
    return (code * absmax[:, None]).view(-1)


def _nf4():
    n = 8192 * 8192 // 2  # bytes
    blocks = n // 32
    args = ("q", "code", "absmax", "absmax2", "code2", OFFSET, "out", n)

    def flat(block, choose, join, warps=4):
        constants = {"BLOCK": block, "CHOOSE": choose, "JOIN": join}
        return [Call(bytes_kernel, (n // block,), args, constants, warps)]

    scale_args = ("absmax", "absmax2", "code2", OFFSET, "scale", blocks)
    scales = Call(absmax_kernel, (blocks // 1024,), scale_args, {"BLOCK": 1024})
    variants = {
        "gather_join_b1024": flat(1024, False, True),
        "where_join_b1024": flat(1024, True, True),
        "where_nojoin_b1024": flat(1024, True, False),
        "gather_nojoin_b1024": flat(1024, False, False),
        "where_join_b256": flat(256, True, True),
        "where_join_b4096": flat(4096, True, True, 8),
        "gather_join_b64": flat(64, False, True),
        "tile2d_where": [Call(blocks_kernel, (blocks // 32,), args, {"BLOCKS": 32, "CHOOSE": True})],
        "tile2d_gather": [Call(blocks_kernel, (blocks // 32,), args, {"BLOCKS": 32, "CHOOSE": False})],
        "elem_b1024": [Call(elements_kernel, (2 * n // 1024,), args, {"BLOCK": 1024})],
        "elem_b64": [Call(elements_kernel, (2 * n // 64,), args, {"BLOCK": 64})],
        "two_k": [scales, Call(apply_kernel, (n // 1024,), ("q", "code", "scale", "out", n), {"BLOCK": 1024})],
        "three_k_inter": [
            scales,
            Call(unpack_kernel, (n // 1024,), ("q", "code", "tmp", n), {"BLOCK": 1024}),
            Call(scale_kernel, (2 * n // 1024,), ("tmp", "scale", "out", 2 * n), {"BLOCK": 1024}),
        ],
    }
    tensors = {
        "q": Tensor((n,), "uint8", "bytes"), "absmax": Tensor((blocks,), "uint8", "bytes"),
        "absmax2": Tensor((blocks // 256,), "float32"), "code2": Tensor((256,), "float32"),
        "code": Tensor((16,), "float32", "table", values=CODE), "out": Tensor((2 * n,), "bfloat16", "empty"),
        "scale": Tensor((blocks,), "float32", "empty"), "tmp": Tensor((2 * n,), "float32", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", _expected)


FAMILIES = {"nf4": _nf4()}
