"""Bring any strided view into one piece: out[i, j, k, …] = x[i, j, k, …].

The shape says how often to step, the strides say how far: element (i, j, …) of x lies i * stride_0 + j * stride_1 + …
elements behind its first one. A stride may be anything: larger than the rows (a slice), out of order (a transpose),
0 (an expanded dim), smaller than the size of the dims behind it (overlapping windows).
Source: https://docs.pytorch.org/docs/stable/tensor_view.html
"""

import torch
import triton
import triton.language as tl


@triton.jit
def contiguous_kernel(
    # input, output
    x_ptr,  # [size_0, size_1, size_2, M, N] in any order in memory
    out_ptr,  # the same dims; dim N is the one whose neighbours are neighbours in memory
    # sizes; 1 for the dims that x does not have
    size_1,
    size_2,
    M,
    N,
    # strides of x
    stride_x0,
    stride_x1,
    stride_x2,
    stride_xm,
    stride_xn,
    # strides of the output; that of dim N is 1
    stride_o0,
    stride_o1,
    stride_o2,
    stride_om,
    # tile
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Copy one tile [BLOCK_M, BLOCK_N] of dims M and N at one index (i0, i1, i2) of the others.

    All indices are int64, because index * stride passes 2**31. Programs that run at the same time are neighbours in
    pid: they write neighbouring pieces of the output.
    """
    pid = tl.program_id(axis=0)
    # step 1: pid is a number whose digits are the indices, the last digit that of the dim in which the output is dense
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    pid_n = pid % num_pid_n
    pid_m = pid // num_pid_n % num_pid_m
    rest = pid // num_pid_n // num_pid_m
    i2 = (rest % size_2).to(tl.int64)
    i1 = (rest // size_2 % size_1).to(tl.int64)
    i0 = (rest // size_2 // size_1).to(tl.int64)
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # [BLOCK_M]
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)  # [BLOCK_N]
    # step 2: the same indices meet the strides of x on one side and those of the output on the other
    src = x_ptr + i0 * stride_x0 + i1 * stride_x1 + i2 * stride_x2
    dst = out_ptr + i0 * stride_o0 + i1 * stride_o1 + i2 * stride_o2
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    # step 3: a stride of 1 is known to the compiler (a new kernel is made for it): the load runs along the side where x
    # is dense, the store along N, and if these differ the tile is turned in shared memory in between
    tile = tl.load(src + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=mask)  # [BLOCK_M, BLOCK_N]
    tl.store(dst + offs_m[:, None] * stride_om + offs_n[None, :], tile, mask=mask)


def dims_of(x: torch.Tensor) -> list[tuple[int, int, int]]:
    """Return (size, stride in x, stride in the output) of five dims, outermost first.

    Dims of size 1 are left out; a dim that continues the one behind it is one with it; missing ones have size 1.
    """
    dims = []
    for size, stride in zip(x.shape, x.stride(), strict=True):
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
    """Return which of the first four dims is M (a number from 0 to 3), BLOCK_M and BLOCK_N, powers of two.

    N is the last dim: the output is dense in it. M is the one beside it in which x is densest.
    """
    # step 4: an expanded dim does not move in x at all, so there is nothing to gain along it
    m = min(range(4), key=lambda i: (dims[i][1] or 2**62, -i))
    (M, stride_xm, _), (N, stride_xn, _) = dims[m], dims[4]
    if 0 < stride_xn <= stride_xm or M == 1:
        # x is densest in the output's own dim: long flat tiles, as in a copy, of several rows where rows are short
        BLOCK_N = min(triton.next_power_of_2(N), 2048)
        return m, min(triton.next_power_of_2(M), 2048 // BLOCK_N), BLOCK_N
    # a transpose: at least 256 bytes (128 for bytes) on either side, longer where the other dim is short
    side = 128 if element_size <= 2 else 64
    BLOCK_M = min(triton.next_power_of_2(M), side)
    BLOCK_N = min(triton.next_power_of_2(N), side * side // BLOCK_M)
    return m, min(triton.next_power_of_2(M), side * side // BLOCK_N), BLOCK_N


def contiguous(x: torch.Tensor) -> torch.Tensor:
    """Return x in one piece, whatever its strides.

    Args:
        x: 0 to 5 dims, any strides, any dtype.

    Returns:
        A contiguous tensor, shape and dtype of x, in memory of its own.

    Raises:
        ValueError: x has more than 5 dims.

    Cost: reads each element that lies in memory once, writes n elements; one launch.
    """
    if x.dim() > 5:
        raise ValueError(f"x has {x.dim()} dims, shape {tuple(x.shape)}; expected 5 at most")
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    dims = dims_of(x)
    m, BLOCK_M, BLOCK_N = tile_of(dims, x.element_size())
    dims.insert(3, dims.pop(m))  # the order of the kernel: three outer dims, M, N
    sizes, strides_x, strides_o = zip(*dims, strict=True)
    grid = (sizes[0] * sizes[1] * sizes[2] * triton.cdiv(sizes[3], BLOCK_M) * triton.cdiv(sizes[4], BLOCK_N),)
    # 16 to 32 elements a thread
    num_warps = min(max(BLOCK_M * BLOCK_N // 512, 1), 16)
    contiguous_kernel[grid](
        x, out, *sizes[1:], *strides_x, *strides_o[:4], BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return out
