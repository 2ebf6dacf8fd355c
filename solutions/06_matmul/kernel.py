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
    first_m = pid // (GROUP_M * num_pid_n) * GROUP_M
    rows = tl.minimum(num_pid_m - first_m, GROUP_M)  # the last group may be lower
    within = pid % (GROUP_M * num_pid_n)
    return first_m + within % rows, within // rows


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
    pid_m, pid_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    # rows past the end wrap around to rows that exist: loaded for nothing, never stored, and the loop needs no mask
    # for them; int64, because an index times a stride passes 2**31
    rows = (offs_m % M).to(tl.int64)
    cols = (offs_n % N).to(tl.int64)
    a_ptrs = a_ptr + rows[:, None] * stride_am + offs_k[None, :].to(tl.int64) * stride_ak  # [BLOCK_M, BLOCK_K]
    b_ptrs = b_ptr + offs_k[:, None].to(tl.int64) * stride_bk + cols[None, :] * stride_bn  # [BLOCK_K, BLOCK_N]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)  # [BLOCK_M, BLOCK_K]
            b = tl.load(b_ptrs)  # [BLOCK_K, BLOCK_N]
        else:
            # past the end of K both are 0 and add nothing
            a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
        # only float32 looks at input_precision, and would be cut to TF32 without it
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_ak
        b_ptrs += tl.full((), BLOCK_K, tl.int64) * stride_bk
    out_ptrs = out_ptr + offs_m[:, None].to(tl.int64) * N + offs_n[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def tile_sizes(M, N, dtype, num_sms):
    """Return BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps: the largest tile of which each SM gets one."""
    # the last one has few rows to a group, so that small sizes test the order of the tiles, too
    tiles = [(128, 256, 64, 8, 8), (128, 128, 64, 8, 8), (64, 64, 64, 8, 4), (32, 32, 64, 2, 4)]
    if dtype == torch.float32:  # without tensor cores a large tile only costs registers
        tiles = [(64, 64, 32, 8, 4), (32, 32, 32, 2, 4)]
    return next((t for t in tiles if triton.cdiv(M, t[0]) * triton.cdiv(N, t[1]) >= num_sms), tiles[-1])


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
    gpu = torch.cuda.get_device_properties(a.device)
    BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps = tile_sizes(M, N, a.dtype, gpu.multi_processor_count)
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    # while one pair of tiles is multiplied the next ones are on their way: as many as fit, four at most
    pair_bytes = (BLOCK_M + BLOCK_N) * BLOCK_K * a.element_size()
    num_stages = min(gpu.shared_memory_per_block_optin // pair_bytes, 4)
    matmul_kernel[grid](
        a, b, out, M, N, K, *a.stride(), *b.stride(),
        EVEN_K=K % BLOCK_K == 0, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M,
        num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    return out
