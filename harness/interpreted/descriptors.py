"""Tensor descriptors as the hardware takes them: what a GPU refuses at run time is refused here, in words.

Rules of CUDA's ``cuTensorMapEncodeTiled`` (CUDA Driver API, Tensor Map Object Management): the base and every stride
but the last, which is 1, are multiples of 16 bytes. Where a block starts is free.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ALIGNMENT = 16  # bytes


def fault(base: int, strides: Sequence[int], itemsize: int) -> str:
    """Return why a GPU refuses a descriptor of ``itemsize``-byte elements; an empty text if it takes it.

    Args:
        base: address of the first element.
        strides: in elements.
    """
    want = f"a GPU wants a multiple of {ALIGNMENT} (use plain pointers for such a tensor, or a padded copy)"
    if base % ALIGNMENT:
        return f"the tensor descriptor starts {base % ALIGNMENT} bytes past a multiple of {ALIGNMENT}; {want}"
    for dim, stride in enumerate(strides[:-1]):
        if stride * itemsize % ALIGNMENT:
            return f"stride {dim} of the tensor descriptor is {stride} elements, {stride * itemsize} bytes; {want}"
    if strides[-1] != 1:
        return (
            f"the last stride of the tensor descriptor is {strides[-1]}; a GPU wants 1 (transpose, or plain pointers)"
        )
    return ""


def addresses(
    base: int, shape: Sequence[int], strides: Sequence[int], block: Sequence[int], start: Sequence[int], itemsize: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the addresses of a block, uint64, and which of them lie inside ``shape``, bool."""
    offsets, inside = np.zeros(tuple(block), np.int64), np.ones(tuple(block), bool)
    for dim, size in enumerate(block):
        at = (int(start[dim]) + np.arange(size, dtype=np.int64)).reshape(
            [size if d == dim else 1 for d in range(len(block))]
        )
        offsets = offsets + at * strides[dim] * itemsize
        inside = inside & (at >= 0) & (at < shape[dim])
    return (offsets + np.int64(base)).astype(np.uint64), inside
