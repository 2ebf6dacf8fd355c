"""Takes an expanded dim, whose stride is 0, for one of neighbours.

VERDICT: out-of-bounds
KILLED BY: test_declared_cases
"""

import torch
import triton
import triton.language as tl


@triton.jit
def contiguous_kernel(
    x_ptr,
    out_ptr,
    size_1,
    size_2,
    M,
    N,
    stride_x0,
    stride_x1,
    stride_x2,
    stride_xm,
    stride_xn,
    stride_o0,
    stride_o1,
    stride_o2,
    stride_om,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    pid_n = pid % num_pid_n
    pid_m = pid // num_pid_n % num_pid_m
    rest = pid // num_pid_n // num_pid_m
    i2 = (rest % size_2).to(tl.int64)
    i1 = (rest // size_2 % size_1).to(tl.int64)
    i0 = (rest // size_2 // size_1).to(tl.int64)
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    src = x_ptr + i0 * stride_x0 + i1 * stride_x1 + i2 * stride_x2
    dst = out_ptr + i0 * stride_o0 + i1 * stride_o1 + i2 * stride_o2
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tile = tl.load(src + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=mask)
    tl.store(dst + offs_m[:, None] * stride_om + offs_n[None, :], tile, mask=mask)


def dims_of(x: torch.Tensor) -> list[tuple[int, int, int]]:
    dims = []
    for size, stride in zip(x.shape, (max(s, 1) for s in x.stride()), strict=True):
        if dims and dims[-1][1] == size * stride:
            dims[-1] = (dims[-1][0] * size, stride)
        elif size != 1:
            dims.append((size, stride))
    dims = [(1, 0)] * (5 - len(dims)) + dims
    stride_o = [1]
    for size, _ in reversed(dims[1:]):
        stride_o.insert(0, stride_o[0] * size)
    return [(size, stride, o) for (size, stride), o in zip(dims, stride_o, strict=True)]


def tile_of(dims: list[tuple[int, int, int]], element_size: int) -> tuple[int, int, int]:
    m = min(range(4), key=lambda i: (dims[i][1] or 2**62, -i))
    (M, stride_xm, _), (N, stride_xn, _) = dims[m], dims[4]
    if 0 < stride_xn <= stride_xm or M == 1:
        BLOCK_N = min(triton.next_power_of_2(N), 2048)
        return m, min(triton.next_power_of_2(M), 2048 // BLOCK_N), BLOCK_N
    side = 128 if element_size <= 2 else 64
    BLOCK_M = min(triton.next_power_of_2(M), side)
    BLOCK_N = min(triton.next_power_of_2(N), side * side // BLOCK_M)
    return m, min(triton.next_power_of_2(M), side * side // BLOCK_N), BLOCK_N


def contiguous(x: torch.Tensor) -> torch.Tensor:
    if x.dim() > 5:
        raise ValueError(f"x has {x.dim()} dims, shape {tuple(x.shape)}; expected 5 at most")
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    dims = dims_of(x)
    m, BLOCK_M, BLOCK_N = tile_of(dims, x.element_size())
    dims.insert(3, dims.pop(m))
    sizes, strides_x, strides_o = zip(*dims, strict=True)
    grid = (sizes[0] * sizes[1] * sizes[2] * triton.cdiv(sizes[3], BLOCK_M) * triton.cdiv(sizes[4], BLOCK_N),)
    num_warps = min(max(BLOCK_M * BLOCK_N // 512, 1), 16)
    contiguous_kernel[grid](
        x, out, *sizes[1:], *strides_x, *strides_o[:4], BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return out
