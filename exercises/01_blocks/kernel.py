"""Add two tensors: out[i] = x[i] + y[i].

Each program (one block of threads on the GPU) handles BLOCK neighbouring elements.
Source: https://triton-lang.org/main/getting-started/tutorials/01-vector-add.html
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(
    # inputs
    x_ptr,  # [n_elements]
    y_ptr,  # [n_elements]
    # output
    out_ptr,  # [n_elements]
    # size
    n_elements,
    # tile
    BLOCK: tl.constexpr,  # elements per program, a power of two
):
    """out[i] = x[i] + y[i] for the BLOCK elements that start at program_id * BLOCK."""
    # int64, because pid * BLOCK passes 2**31 in a large tensor
    pid = tl.program_id(axis=0).to(tl.int64)
    # TODO(1/3, ~2 lines): `offs` holds the numbers of this program's elements, `mask` says which of them exist

    # TODO(2/3, ~2 lines): `x` and `y` hold these elements of the inputs; nothing outside the inputs was read

    # TODO(3/3, ~1 line): the sums stand in the output; nothing outside it was written


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return x + y.

    Args:
        x: any shape, any strides, float32, float16, bfloat16, int32 or int8.
        y: shape and dtype of x, any strides.

    Returns:
        A contiguous tensor, shape and dtype of x. Integers wrap around.

    Raises:
        ValueError: shapes or dtypes differ.

    Cost: reads 2 n, writes n elements; n additions.
    """
    if x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(f"x is {x.dtype} {tuple(x.shape)}, y is {y.dtype} {tuple(y.shape)}; expected the same twice")
    # neighbours in the tensor become neighbours in memory (a copy only if they are not yet)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n_elements = out.numel()
    BLOCK = 1024
    # cdiv rounds up: the last program may have fewer than BLOCK elements
    add_kernel[(triton.cdiv(n_elements, BLOCK),)](x, y, out, n_elements, BLOCK=BLOCK)
    return out
