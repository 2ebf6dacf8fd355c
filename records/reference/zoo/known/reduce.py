"""The sum of a long vector, float32."""

import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

N = 2**27


@triton.jit
def atomic_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One block and one atomic a program."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offs), 0))


@triton.jit
def partial_kernel(x_ptr, part_ptr, n, BLOCK: tl.constexpr):
    """One block and one partial sum a program."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(part_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + offs), 0))


@triton.jit
def loop_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    """Few programs, each strides over the vector."""
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(pid * BLOCK, n, tl.num_programs(0) * BLOCK):
        acc += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    if ATOMIC:
        tl.atomic_add(out_ptr, tl.sum(acc, 0))
    else:
        tl.store(out_ptr + pid, tl.sum(acc, 0))


@triton.jit
def atomic_each_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """An atomic for each element, all on one address."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + offs * 0, tl.load(x_ptr + offs))


@triton.jit
def atomic_bins_kernel(x_ptr, part_ptr, n, BLOCK: tl.constexpr):
    """An atomic for each element, on BLOCK neighbouring addresses."""
    j = tl.arange(0, BLOCK)
    tl.atomic_add(part_ptr + j, tl.load(x_ptr + tl.program_id(0) * BLOCK + j))


def _reduce():
    def last(m):
        return Call(loop_kernel, (1,), ("part", "out", m), {"BLOCK": 1024, "ATOMIC": False})

    def atomic(block, warps):
        return [Call(atomic_kernel, (N // block,), ("x", "out", N), {"BLOCK": block}, warps)]

    def part(block, warps):
        return [Call(partial_kernel, (N // block,), ("x", "part", N), {"BLOCK": block}, warps), last(N // block)]

    def loop(programs, warps, is_atomic=True):
        return [Call(loop_kernel, (programs,), ("x", "out", N), {"BLOCK": 4096, "ATOMIC": is_atomic}, warps)]

    variants = {
        "atomic_b1024": atomic(1024, 4), "atomic_b8192": atomic(8192, 8), "atomic_b256": atomic(256, 4),
        "part_b8192": part(8192, 8), "part_b1024": part(1024, 4), "persist_1056_atomic": loop(1056, 4),
        "persist_264_atomic": loop(264, 8), "few_8": loop(8, 8), "single": loop(1, 8, False),
        "spread_b1024": [Call(atomic_bins_kernel, (N // 1024,), ("x", "part", N), {"BLOCK": 1024}), last(1024)],
        "vecatomic": [Call(atomic_each_kernel, (N // 1024,), ("x", "out", N), {"BLOCK": 1024})],
    }  # fmt: skip
    tensors = {
        "x": Tensor((N,), "float32"), "out": Tensor((1,), "float32", "empty"),
        "part": Tensor((2**20,), "float32", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: t["x"].double().sum().float().view(1), ("out", "part"), 0.05)


FAMILIES = {"reduce": _reduce()}
