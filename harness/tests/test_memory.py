"""What a block of addresses asks of the memory system, against cases that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.memory import L1, block_requests, default_threads, threads_of, whole_requests

ALL = frozenset()
LANE = tuple((2**i,) for i in range(5))


def threads(registers=2, warps=2):
    """A one-dimensional layout: neighbouring registers, then lanes, then warps."""
    r = registers.bit_length() - 1
    w = warps.bit_length() - 1
    bits = [(2**i,) for i in range(r + 5 + w)]
    return threads_of((registers * 32 * warps,), tuple(bits[:r]), tuple(bits[r : r + 5]), tuple(bits[r + 5 :]))


def asked(address, item=4, kind="load", active=None, layout=None, widths=ALL):
    address = np.asarray(address, np.int64)
    active = np.ones(len(address), bool) if active is None else active
    return block_requests(address, active, item, kind, layout or threads(), widths)


def test_neighbouring_elements_are_moved_side_by_side():
    found = asked(np.arange(128) * 4)

    assert (found.width, found.instructions, found.requests) == (2, 1, 2)
    assert (found.sectors, found.units, found.lines) == (16, 8, 4)
    assert len(found.unique) == 16


def test_what_the_compiler_knows_limits_the_width():
    found = asked(np.arange(128) * 4, widths=frozenset({4}))

    assert (found.width, found.instructions, found.requests) == (1, 2, 4)
    # each request takes every second element of 64: all eight sectors of them
    assert found.sectors == 32


@pytest.mark.parametrize(("stride", "sectors"), [(4, 4), (8, 8), (32, 32), (4096, 32), (0, 1)])
def test_the_sectors_of_a_request_grow_with_the_stride(stride, sectors):
    found = asked(np.arange(32) * stride, layout=threads(1, 1))

    assert (found.requests, found.sectors) == (1, sectors)


@pytest.mark.parametrize(("stride", "cycles"), [
    (4, 1), (8, 2), (128, 32), (512, 32),  # one after the other; every second; a power of two: one bank for all
    (400, 16), (132, 16),  # rows of 100 or 33 floats: banks apart, but 32 lines to look up
])  # fmt: skip
def test_what_l1_needs_for_a_request_of_32_lanes(stride, cycles):
    found = asked(np.arange(32) * stride, layout=threads(1, 1))

    assert found.cycles == cycles


def test_a_store_is_looked_up_line_by_line():
    assert asked(np.arange(32) * 400, kind="store", layout=threads(1, 1)).cycles == 32


def test_an_unaligned_run_touches_one_sector_more():
    assert asked(np.arange(32) * 4 + 4, layout=threads(1, 1)).sectors == 5


def test_lanes_that_are_off_ask_for_nothing_but_the_instruction_stays():
    active = np.zeros(128, bool)
    active[:8] = True
    found = asked(np.arange(128) * 4, active=active)

    assert (found.instructions, found.requests, found.sectors, found.lanes) == (1, 1, 1, 8)


@pytest.mark.parametrize(("item", "stride", "partial"), [(4, 4, 0), (2, 4, 8), (4, 32, 64)])
def test_stores_that_fill_a_part_of_a_sector_are_counted(item, stride, partial):
    found = asked(np.arange(64) * stride, item, "store", layout=threads(1, 2))

    assert found.partial == partial


def test_registers_that_hold_the_same_address_are_loaded_once():
    found = asked((np.arange(128) // 2) * 4)

    assert (found.instructions, found.sectors) == (1, 8)


@pytest.mark.parametrize("kind", ["load", "store"])
def test_warps_that_repeat_others_ask_for_nothing(kind):
    layout = threads_of((32,), (), LANE, ((0,),))

    assert asked(np.arange(32) * 4, kind=kind, layout=layout).requests == 1


def test_the_hottest_address_of_an_atomic():
    found = asked(np.repeat([0, 64], [96, 32]), kind="atomic")

    assert (found.hottest, found.addresses) == (96, 2)


def test_every_warp_loads_a_scalar_and_one_thread_stores_it():
    one, on = np.zeros(1, np.int64), np.ones(1, bool)

    assert whole_requests(one, on, 4, "load", 4, False).requests == 4
    assert whole_requests(one, on, 4, "store", 4, False).requests == 1


@pytest.mark.parametrize(("size", "warps"), [(16, 4), (128, 4), (1024, 4), (4096, 8), (100, 2)])
def test_the_default_layout_covers_every_element(size, warps):
    found = default_threads(size, warps)

    assert set(found.elements.reshape(-1)) == set(range(size))
    assert found.elements.shape[1:] == (warps, 32)


def test_l1_holds_what_fits_and_forgets_what_is_oldest():
    l1 = L1(2 * 128)

    assert l1.load(np.arange(4), 1.0) == 4
    assert l1.load(np.arange(2, 6), 1.0) == 2  # the second line's first two sectors
    assert l1.load(np.arange(4), 1.0) == 0
    assert l1.load(np.arange(8, 12), 1.0) == 4  # pushes the second line out
    assert l1.load(np.arange(4), 1.0) == 0
    assert l1.load(np.arange(4, 6), 1.0) == 2


def test_iterations_that_are_left_out_push_out_what_is_old_and_keep_what_they_touch_themselves():
    l1 = L1(8 * 128)
    l1.load(np.arange(4), 1.0)  # before the loop
    l1.skip(0.0)
    l1.load(np.arange(100, 104), 10.0)  # of an iteration that stands for ten
    l1.skip(9 * 128)

    assert l1.fetched == (4 + 40) * 32
    assert l1.load(np.arange(100, 104), 1.0) == 0
    assert l1.load(np.arange(4), 1.0) == 4
