"""Matrix product at the speed of cuBLAS on Hopper: kernel.py with less to wait for.

Judged on a GPU only: what it adds to kernel.py is overlap, which no count on a CPU can show. What each step bought, as
a share of cuBLAS for 4096 and 8192 cubed in bfloat16 (H200, Triton 3.6; the same tile, 128 x 256 x 64, throughout):

    pointers, a program per tile (kernel.py)                               0.96   0.98
    descriptors: the copy engine (TMA) fetches tiles, no addresses         0.97   1.00
    persistent: a program per SM takes tile after tile                     0.98   1.00
    flatten: both loops become one, so that the copies for the next tile
        are under way while this one is stored                             0.99   1.00
    the tile is stored in halves, which leaves room for a fourth stage     0.99   1.00 to 1.01

These were measured with kernels of this form for sizes that the tile divides. This file as it stands, with ragged and
strided operands, reached 0.994 and 1.011 (H200, Triton 3.6: records/reference/experiments has the samples).
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tile_of(tile, num_pid_m, num_pid_n, GROUP_M: tl.constexpr):
    """Return (pid_m, pid_n) of the tile with this number: GROUP_M rows of tiles at a time, column after column."""
    first_m = tile // (GROUP_M * num_pid_n) * GROUP_M
    rows = tl.minimum(num_pid_m - first_m, GROUP_M)
    within = tile % (GROUP_M * num_pid_n)
    return first_m + within % rows, within // rows


@triton.jit
def matmul_kernel(
    a_desc,  # [M, K], or [K, M] if A_TURNED
    b_desc,  # [K, N], or [N, K] if B_TURNED
    out_desc,  # [M, N], in blocks of half a tile
    M,
    N,
    K,
    A_TURNED: tl.constexpr,
    B_TURNED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """Tiles number program, program + programs, … of a @ b. Descriptors read 0 past an end and store nothing there."""
    num_pid_m, num_pid_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), num_pid_m * num_pid_n, tl.num_programs(0), flatten=True):
        pid_m, pid_n = tile_of(tile, num_pid_m, num_pid_n, GROUP_M)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            # a turned operand is fetched as it lies, and the tensor core reads the tile the other way round
            if A_TURNED:
                a = a_desc.load([k, pid_m * BLOCK_M]).T
            else:
                a = a_desc.load([pid_m * BLOCK_M, k])  # [BLOCK_M, BLOCK_K]
            if B_TURNED:
                b = b_desc.load([pid_n * BLOCK_N, k]).T
            else:
                b = b_desc.load([k, pid_n * BLOCK_N])  # [BLOCK_K, BLOCK_N]
            acc = tl.dot(a, b, acc, input_precision="ieee")
        halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        left, right = tl.split(halves)  # [BLOCK_M, BLOCK_N // 2]
        out_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N], left.to(out_desc.dtype))
        out_desc.store([pid_m * BLOCK_M, pid_n * BLOCK_N + BLOCK_N // 2], right.to(out_desc.dtype))


def fits_descriptor(x):
    """Return whether TMA can address x: neighbours in a row side by side, rows on multiples of 16 bytes."""
    return x.stride(1) == 1 and x.stride(0) > 0 and x.stride(0) * x.element_size() % 16 == 0 == x.data_ptr() % 16


def aligned(shape, like):
    """Return an empty matrix of this shape whose rows begin on multiples of 16 bytes."""
    per_row = triton.cdiv(shape[1], 8) * 8
    return torch.empty((shape[0], per_row), dtype=like.dtype, device=like.device)[:, : shape[1]]


def for_descriptor(x):
    """Return x as TMA can address it, and whether that is x turned: as it is, as its transpose, or else a copy."""
    if fits_descriptor(x):
        return x, False
    if fits_descriptor(x.T):
        return x.T, True
    return aligned(x.shape, x).copy_(x), False


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b: see kernel.py. The result's rows begin on multiples of 16 bytes, so it may have gaps."""
    if a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        raise ValueError(f"a is {a.dtype} {tuple(a.shape)}, b is {b.dtype} {tuple(b.shape)}: no product of these")
    (M, K), N = a.shape, b.shape[1]
    out = aligned((M, N), a)
    if not out.numel():
        return out
    BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 128, 256, 64, 8, 4
    if a.dtype == torch.float32:
        BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages = 64, 64, 32, 4, 3
    num_sms = torch.cuda.get_device_properties(a.device).multi_processor_count
    tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    if 4 * tiles < 3 * num_sms and BLOCK_N == 256:  # smaller tiles, so that few SMs are idle
        BLOCK_M, BLOCK_N, num_warps = 64, 64, 4
        tiles = triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    # an SM holds one program of the large tile, which stays; of the small ones it holds several, which come and go
    programs = min(tiles, num_sms) if BLOCK_N == 256 else tiles
    (a, a_turned), (b, b_turned) = for_descriptor(a), for_descriptor(b)
    matmul_kernel[(programs,)](
        TensorDescriptor.from_tensor(a, [BLOCK_K, BLOCK_M] if a_turned else [BLOCK_M, BLOCK_K]),
        TensorDescriptor.from_tensor(b, [BLOCK_N, BLOCK_K] if b_turned else [BLOCK_K, BLOCK_N]),
        TensorDescriptor.from_tensor(out, [BLOCK_M, BLOCK_N // 2]),
        M, N, K, a_turned, b_turned,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=8, num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    return out
