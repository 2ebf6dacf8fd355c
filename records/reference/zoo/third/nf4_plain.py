"""NF4 to float16 with float32 absmax, 64 elements a block, for a matrix of 4096 x 14336."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

CODE = (
    -1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0, 0.0795803, 0.1609302,
    0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0,
)  # fmt: skip


@triton.jit
def gather_kernel(q_ptr, code_ptr, absmax_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A gather from the table for each nibble, halves joined."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    absmax = tl.load(absmax_ptr + i // 32)
    first = tl.load(code_ptr + (q >> 4).to(tl.int32)) * absmax
    second = tl.load(code_ptr + (q & 15).to(tl.int32)) * absmax
    j = tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + j, tl.interleave(first, second).to(tl.float16))


@triton.jit
def gather_loop_kernel(q_ptr, code_ptr, absmax_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The same by a fixed number of programs."""
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        q = tl.load(q_ptr + i)
        absmax = tl.load(absmax_ptr + i // 32)
        first = tl.load(code_ptr + (q >> 4).to(tl.int32)) * absmax
        second = tl.load(code_ptr + (q & 15).to(tl.int32)) * absmax
        j = 2 * start + tl.arange(0, 2 * BLOCK)
        tl.store(out_ptr + j, tl.interleave(first, second).to(tl.float16))


@triton.jit
def halves_kernel(q_ptr, code_ptr, absmax_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Halves stored apart: each store fills every second element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    absmax = tl.load(absmax_ptr + i // 32)
    tl.store(out_ptr + 2 * i, (tl.load(code_ptr + (q >> 4).to(tl.int32)) * absmax).to(tl.float16))
    tl.store(out_ptr + 2 * i + 1, (tl.load(code_ptr + (q & 15).to(tl.int32)) * absmax).to(tl.float16))


@triton.jit
def register_kernel(q_ptr, code_ptr, absmax_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The table in registers, picked by tl.gather."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    absmax = tl.load(absmax_ptr + i // 32)
    code = tl.load(code_ptr + tl.arange(0, 16))
    first = tl.gather(code, (q >> 4).to(tl.int32), 0) * absmax
    second = tl.gather(code, (q & 15).to(tl.int32), 0) * absmax
    j = tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + j, tl.interleave(first, second).to(tl.float16))


@triton.jit
def polynomial_kernel(q_ptr, code_ptr, absmax_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Sixteen comparisons for each nibble."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i)
    absmax = tl.load(absmax_ptr + i // 32)
    first = tl.zeros((BLOCK,), tl.float32)
    second = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(16):
        code = tl.load(code_ptr + k)
        first += tl.where((q >> 4) == k, code, 0.0)
        second += tl.where((q & 15) == k, code, 0.0)
    j = tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + j, tl.interleave(first * absmax, second * absmax).to(tl.float16))


def _expected(t):
    q = t["q"].long()
    code = torch.stack([t["code"][q >> 4], t["code"][q & 15]], 1).view(-1, 64)
    return (code * t["absmax"][:, None]).view(-1)


def _plain():
    n = 4096 * 14336 // 2
    args = ("q", "code", "absmax", "out", n)
    variants = {
        f"gather_b{b}_w{w}": [Call(gather_kernel, (n // b,), args, {"BLOCK": b}, w)]
        for b, w in ((256, 4), (1024, 8), (2048, 4), (4096, 4))
    }
    variants["gather_loop528"] = [Call(gather_loop_kernel, (528,), args, {"BLOCK": 2048}, 4)]
    variants["halves_b1024"] = [Call(halves_kernel, (n // 1024,), args, {"BLOCK": 1024}, 4)]
    variants["register_b1024"] = [Call(register_kernel, (n // 1024,), args, {"BLOCK": 1024}, 4)]
    variants["compare_b512"] = [Call(polynomial_kernel, (n // 512,), args, {"BLOCK": 512}, 4)]
    tensors = {
        "q": Tensor((n,), "uint8", "bytes"), "code": Tensor((16,), "float32", "table", values=CODE),
        "absmax": Tensor((n // 32,), "float32"), "out": Tensor((2 * n,), "float16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", _expected)


FAMILIES = {"nf4_plain": _plain()}
