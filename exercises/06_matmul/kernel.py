"""Matrix product: out[m, n] = sum over k of a[m, k] * b[k, n], added up in float32.

A program owns a tile of the output and walks along K: at each step it loads a tile of a and a tile of b and multiplies
them on the tensor cores. The larger the tile, the less often each element is loaded.
Source: https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_of(pid, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """Return (pid_m, pid_n), the tile of program `pid`: GROUP_M rows of tiles at a time, column after column.

    Programs that run at the same time then share few rows of a and few columns of b, which stay in the L2 cache.
    """
    # TODO(1/4, ~4 lines): this function returns that; the number of rows of tiles need be no multiple of GROUP_M


@triton.jit
def matmul_kernel(
    # inputs
    a_ptr,  # [M, K]
    b_ptr,  # [K, N]
    # output
    out_ptr,  # [M, N], contiguous
    # sizes
    M,
    N,
    K,
    # strides
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    # tile
    EVEN_K: tl.constexpr,  # whether BLOCK_K divides K
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """One program per tile of BLOCK_M x BLOCK_N outputs."""
    # TODO(2/4, ~9 lines): a_ptrs and b_ptrs point to this program's first tiles of a and b, of all strides
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # TODO(3/4, ~11 lines): acc holds the tile of a @ b, summed over all of K; nothing outside a and b was read

    # TODO(4/4, ~2 lines): the tile stands in out, rounded once; nothing outside it was written


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b.

    Args:
        a: [M, K] float32, float16 or bfloat16, any strides.
        b: [K, N], dtype of a, any strides.

    Returns:
        [M, N], dtype of a, contiguous; sums in float32, rounded once.

    Raises:
        ValueError: shapes or dtypes do not fit.

    Cost: reads M * K + K * N, writes M * N elements; 2 * M * N * K operations.
    """
    if a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        raise ValueError(f"a is {a.dtype} {tuple(a.shape)}, b is {b.dtype} {tuple(b.shape)}: no product of these")
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    raise NotImplementedError("matmul: TODO, choose tile sizes, count the programs and launch; README.md has hints")
    return out
