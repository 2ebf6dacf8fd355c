"""Encodings of TTGIR become one kind of layout that says who holds which element."""

from __future__ import annotations

import json

import numpy as np
import pytest

from harness.compiled.layout import Layout, parse_encoding

BLOCKED = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 0]}>"


def owners(text: str, shape: tuple[int, ...], **aliases: str):
    layout = parse_encoding(text, shape, {f"#{k}": v for k, v in aliases.items()})
    return layout, [a.reshape(shape) for a in layout.owners()]


def test_blocked_gives_each_thread_its_run_of_elements():
    _, (warp, lane, register) = owners(BLOCKED, (16, 16))

    assert warp[:, 0].tolist() == [0] * 8 + [1] * 8
    assert lane[0].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert lane[:8, 0].tolist() == [0, 4, 8, 12, 16, 20, 24, 28]
    assert register[0, :4].tolist() == [0, 1, 2, 3]


def test_a_tensor_larger_than_the_layout_repeats_it_in_registers():
    _, (warp, _, register) = owners(BLOCKED, (16, 32))

    assert np.array_equal(warp[:, :16], warp[:, 16:])
    assert register[0, ::4].tolist() == [0, 0, 0, 0, 4, 4, 4, 4]


def test_a_tensor_smaller_than_the_layout_is_held_several_times():
    layout, (warp, _, _) = owners(BLOCKED, (8, 16))

    assert not warp.any()
    assert layout.replicas() == 2


def test_a_slice_drops_its_parent_s_dimension():
    layout, (warp, lane, register) = owners("#ttg.slice<{dim = 1, parent = #b}>", (16,), b=BLOCKED)

    assert lane.tolist() == [0, 4, 8, 12, 16, 20, 24, 28] * 2
    assert (warp[8], register.max()) == (1, 0)
    assert layout.replicas() == 4


def test_linear_is_taken_as_it_is():
    text = "#ttg.linear<{register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[0]], block = []}>"
    layout, (_, lane, register) = owners(text, (128,))

    assert lane.tolist() == [i // 4 for i in range(128)]
    assert register[:4].tolist() == [0, 1, 2, 3]
    assert layout.replicas() == 2


@pytest.mark.parametrize(("version", "rows"), [(2, [0, 0, 1, 1]), (3, [0, 1, 2, 3])])
def test_tensor_core_results_lie_in_fragments(version, rows):
    """mma.sync m16n8: 4 threads a row, 2 columns each; wgmma: the same, warps below each other."""
    warps = "[2, 2]" if version == 2 else "[4, 1]"
    shape = (32, 16) if version == 2 else (64, 16)
    text = f"#ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, warpsPerCTA = {warps}, instrShape = [16, {8 * (version - 1)}]}}>"
    _, (warp, lane, register) = owners(text, shape)

    assert lane[0, :8].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert lane[:9, 0].tolist() == [0, 4, 8, 12, 16, 20, 24, 28, 0]
    assert (register[0, 0], register[0, 1], register[8, 0]) == (0, 1, 2)
    assert [warp[i * shape[0] // 4, 0] // (2 if version == 2 else 1) for i in range(4)] == rows


def test_an_encoding_that_we_do_not_know_is_none():
    assert parse_encoding("#ttg.padded_shared<{}>", (4,), {}) is None


def test_layouts_cross_a_process_as_json():
    layout = parse_encoding(BLOCKED, (16, 32), {})

    assert Layout.from_json(json.loads(json.dumps(layout.to_json()))) == layout
