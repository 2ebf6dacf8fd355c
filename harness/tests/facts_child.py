"""Run by test_kernelfacts.py: compile three small kernels for each GPU and print their facts as JSON."""

from __future__ import annotations

import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from harness.compiled.kernelfacts import extract
from harness.device import load_devices


@triton.jit
def row_sum_kernel(x_ptr, o_ptr, N, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * stride + cols, mask=cols < N, other=0.0)  # the load
    tl.store(o_ptr + row, tl.sum(acc, 0))  # the store


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + rows)[None, :])
        b = tl.load(b_ptr + (k + rows)[:, None] * BLOCK + rows[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], acc.to(tl.float16))


@triton.jit
def transpose_kernel(x_ptr, o_ptr, N, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * N + rows[None, :])
    tl.store(o_ptr + rows[:, None] * N + rows[None, :], tl.trans(x))


ALIGNED = [["tt.divisibility", 16]]
SOURCES = {
    "row_sum": (row_sum_kernel, "*fp32 *fp32 i32 i32", 1024),
    "matmul": (matmul_kernel, "*fp16 *fp16 *fp16 i32", 64),
    "transpose": (transpose_kernel, "*fp32 *fp32 i32", 32),
}


def main() -> None:
    """Print {gpu: {kernel: facts}} for the GPUs named on the command line."""
    devices, found = load_devices(), {}
    for name in sys.argv[1:]:
        device = devices[name]
        for kernel, (fn, types, block) in SOURCES.items():
            block = 16 if (name, kernel) == ("t4", "matmul") else block
            names = fn.arg_names
            signature = dict(zip(names, types.split(), strict=False)) | {"BLOCK": "constexpr"}
            source = ASTSource(
                fn, signature, {(len(names) - 1,): block}, {(i,): ALIGNED for i in range(len(names) - 1)}
            )
            compiled = triton.compile(source, target=GPUTarget("cuda", device.sm, 32), options={"num_warps": 4})
            found.setdefault(name, {})[kernel] = extract(compiled, device, [__file__]).to_json()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
