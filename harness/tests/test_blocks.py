"""Which constants of a kernel are blocks: a long row is no large block."""

from __future__ import annotations

import pytest

from harness.compiled.blocks import huge, shape_names


class _Tl:
    constexpr = int

    def __getattr__(self, name):
        return lambda *a, **k: 0


tl = _Tl()


def row(x_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    for start in range(0, N, BLOCK):
        tl.load(x_ptr + start + tl.arange(0, BLOCK))


def derived(x_ptr, CHUNK: tl.constexpr, PARTS: tl.constexpr):
    size: tl.constexpr = CHUNK // PARTS
    half = size
    tl.store(x_ptr, tl.zeros((half, 2), 0))


def helped(x_ptr, N: tl.constexpr, M: tl.constexpr):
    _helper(x_ptr, n=N)
    tl.load(x_ptr + min(M, 3))


def _helper(x_ptr, n):
    return x_ptr + n


@pytest.mark.parametrize(("fn", "names"), [
    (row, {"BLOCK"}), (derived, {"half", "size", "CHUNK", "PARTS"}), (helped, {"x_ptr", "N"}),
])  # fmt: skip
def test_names_that_make_a_shape(fn, names):
    assert shape_names(fn) == names


@pytest.mark.parametrize(("fn", "constants", "blocks"), [
    (row, {"N": "50257", "BLOCK": "1024"}, set()),
    (row, {"N": "131072", "BLOCK": "1024"}, set()),
    (row, {"N": "131072", "BLOCK": "65536"}, {"BLOCK"}),
    (row, {"N": "8", "BLOCK": "32768"}, set()),
    (derived, {"CHUNK": "262144", "PARTS": "8"}, {"CHUNK"}),
    (helped, {"N": "65536", "M": "65536"}, {"N"}),
    (len, {"N": "65536", "M": "True"}, {"N"}),  # no source: what is large may be a block
])  # fmt: skip
def test_only_a_large_block_is_left_to_a_gpu(fn, constants, blocks):
    assert set(huge(fn, constants)) == blocks
