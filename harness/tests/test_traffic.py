"""What a few traced programs say about all of them: what is shared, read again, held, written in parts."""

from __future__ import annotations

import pytest

from harness.device import find_device
from harness.model.constants import constants
from harness.model.terms import l2
from harness.model.traffic import scaled, share, traffic

MB = 2**20


def tensor(**changes):
    return {
        "storage": 0, "kind": "load", "argument": "x_ptr", "bytes": 128 * MB, "own": 64.0, "run": 64.0,
        "row": [64, 64 * 64, 64 * 64], "anywhere": [64, 64 * 64, 64 * 64], "samples": [8, 512, 512],
    } | changes  # fmt: skip


def site(**changes):
    return {
        "line": 9, "column": 5, "kind": "load", "argument": "x_ptr", "storage": 0, "item": 4, "tile": False,
        "bypasses": False, "executions": 1.0, "instructions": 1.0, "requests": 4.0, "sectors": 64.0, "cycles": 16.0,
        "units": 32.0, "partial": 0.0, "lanes": 512.0, "distinct": 64.0, "distinct_units": 32.0, "missed": 64.0,
        "missed_units": 32.0, "hottest": 0.0, "addresses": 0.0, "width": 4,
    } | changes  # fmt: skip


def seen(tensors, sites, programs=65536, wave=2112):
    trace = {"programs": programs, "wave": wave, "tensors": tensors, "sites": sites, "samples": list(range(8))}
    return traffic(trace, wave, 132, 16, 16384.0, 40e6)


def test_programs_that_share_nothing_read_all_of_it_once():
    found = seen([tensor()], [site()])

    assert found.dram_read == 128 * MB
    assert found.l2_units == 65536 * 32
    assert found.shared_units == 0
    assert found.reach[9, 5].dram == 1


@pytest.mark.parametrize(("pieces", "met"), [(7, 64), (256, 64), (500, 64)])
def test_programs_drawn_from_a_wave_tell_how_many_pieces_it_touches(pieces, met):
    distinct = round(pieces * (1 - (1 - 1 / pieces) ** met) * 64)
    drawn = tensor(anywhere=[met, met * 64, distinct])

    assert share(drawn, 2112, 65536) == pytest.approx(pieces / 2112, rel=0.05)


def test_where_none_of_them_met_the_neighbours_tell():
    assert share(tensor(row=[64, 4096, 2048]), 2112, 65536) == 0.5


def test_what_the_first_accesses_do_not_reach_is_bounded_by_its_size():
    unseen = tensor(anywhere=[0, 0, 0], row=[0, 0, 0], bytes=64 * 32 * 211)

    assert share(unseen, 2112, 65536) == pytest.approx(0.1, rel=0.01)


def test_what_all_programs_read_comes_from_dram_once_and_hits_l1():
    table = tensor(bytes=2048, anywhere=[64, 4096, 64], row=[64, 4096, 64], samples=[8, 512, 64])
    found = seen([table], [site()])

    assert found.dram_read == 2048
    assert found.reach[9, 5].l1 == 1
    assert found.l2_units + found.shared_units < 0.1 * 65536 * 32


def test_a_second_pass_over_more_than_l2_holds_is_read_again():
    long = tensor(own=16384.0, bytes=512 * MB, anywhere=[64, 64 * 16384, 64 * 16384], row=[64, 64 * 16384, 64 * 16384])
    twice = site(executions=2.0, distinct=32768.0, missed=32768.0, sectors=32768.0)

    assert seen([long], [twice], programs=1024, wave=1024).dram_read == 2 * 512 * MB
    assert seen([long], [twice], programs=1024, wave=32).dram_read == 512 * MB


def test_sectors_that_several_programs_write_in_parts_are_joined():
    parts = tensor(kind="store", row=[64, 4096, 512], anywhere=[64, 4096, 4000])
    found = seen([parts], [site(kind="store", partial=64.0, units=64.0)])

    assert found.partial_units == 65536 * 64
    assert found.joined == pytest.approx(found.partial_units / 8)
    assert found.dram_read == 0 and found.dram_written > 0


def test_writers_that_are_rows_of_the_grid_apart_join_as_well():
    """No program of a wave is seen to meet another, but all of them write twice what the tensor holds."""
    out = tensor(kind="store", bytes=64 * MB)
    parts = site(kind="store", partial=64.0, units=64.0)

    assert seen([out], [parts]).joined == 65536 * 32
    assert seen([tensor(kind="store")], [parts]).joined == 0


def test_who_does_not_ask_first_for_what_dram_brings_waits_as_well():
    met = {"anywhere": [64, 4096, 640], "row": [64, 4096, 640]}
    fresh = seen([tensor(**met)], [site()]).reach[9, 5]
    again = seen([tensor(**met, bytes=MB // 16)], [site()]).reach[9, 5]

    assert (fresh.dram, fresh.l2, fresh.late) == (0, 1, 1)
    assert again.late < 0.2


def test_short_runs_of_addresses_are_counted():
    assert seen([tensor(run=2.0)], [site()]).pieces == pytest.approx(128 * MB / 64)


def test_a_trace_stands_for_programs_that_do_more():
    trace = {"tensors": [tensor(own=64.0), tensor(storage=1, own=100.0, bytes=3200)], "sites": [site()], "programs": 8}
    found = scaled(trace, 1.5)

    assert [t["own"] for t in found["tensors"]] == [96.0, 100.0]  # no more than the tensor has
    assert (found["sites"][0]["sectors"], found["sites"][0]["executions"]) == (96.0, 1.5)
    assert (found["sites"][0]["line"], found["sites"][0]["width"], found["sites"][0]["tile"]) == (9, 4, False)
    assert scaled(trace, 1.0) is trace


@pytest.mark.parametrize(("parts", "calm", "crowded"), [
    (1, 1, 1), (2, 2, 2), (4, 2, 2), (8, 2, 6.4), (16, 2, 12.8),
])  # fmt: skip
def test_parts_of_a_sector_that_follow_each_other_meet_on_their_way(parts, calm, crowded):
    """How often each sector was written: counters of an H200, 189 patterns of stores."""
    own = tensor(kind="store", bytes=65536 * 32 * 64)
    found = seen([own], [site(kind="store", partial=32.0 * parts, units=32.0 * parts, distinct_units=32.0)])

    assert found.partial_units == 65536 * 32 * parts
    assert found.calm_units == pytest.approx(65536 * 32 * calm)
    assert found.crowded_units == pytest.approx(65536 * 32 * crowded)


def test_other_warps_stores_come_in_between_when_everybody_waits_for_l2():
    h200 = constants(find_device("H200"))
    own = tensor(kind="store", bytes=65536 * 32 * 64)
    found = seen([own], [site(kind="store", partial=32.0 * 8, units=32.0 * 8, distinct_units=32.0)])
    calm = l2(found, 0.0, h200, meanwhile=1.0)

    assert calm == pytest.approx(2 * 65536 * 32 / h200.l2_partial)
    assert l2(found, 0.0, h200, meanwhile=calm * 1.01) == calm
    assert l2(found, 0.0, h200, meanwhile=calm * 0.99) == pytest.approx(3.2 * calm)
