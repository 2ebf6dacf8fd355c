"""The gate: counts that no GPU makes fast are slow; a measured share is held against the kata's gate with its band."""

from __future__ import annotations

import pytest

from harness.device import find_device
from harness.gate import BYTES_FACTOR, MANY_LAUNCHES, SECTOR_FACTOR, SLACK_BYTES, coarse, measured, modelled
from harness.tests.toys import SOLUTION, launched

H200 = find_device("H200")
COST = {"bytes_read": 64_000, "bytes_written": 64_000, "flops": 16_000}


def site(**changes):
    return {
        "line": 9,
        "kind": "load",
        "argument": "x_ptr",
        "executions": 10,
        "lanes": 640,
        "bytes": 2560,
        "sectors": 80,
    } | changes


def counters(read=64_000, written=64_000, sectors=4_000, sites=None):
    return {"bytes_read": read, "bytes_written": written, "sectors": sectors, "sites": sites or [site()]}


def launch(name="k", *grid):
    return {"kernel": name, "grid": [*grid, 1, 1, 1][:3]}


TRAFFIC, BENCH = (launch("k", 250),), (launch("k", 4096),)


def reasons(counts=None, launches=TRAFFIC, bench=BENCH, device=H200, max_launches=0):
    return coarse(counts or counters(), COST, launches, bench, device, max_launches)


def test_what_moves_the_least_is_not_slow():
    assert reasons() == []


def test_twice_the_bytes_and_a_little_is_still_allowed():
    most = int(BYTES_FACTOR * 128_000) + SLACK_BYTES

    assert reasons(counters(read=most - 64_000)) == []
    assert reasons(counters(read=most - 64_000 + 1)) == [
        f"moves {most + 1:,} bytes to and from memory where 128,000 would do (2.1 times as many)."
    ]


def test_scattered_lanes_name_the_worst_site():
    sites = [site(), site(line=11, kind="store", argument="out_ptr", executions=10, bytes=2560, sectors=640)]
    most = int(SECTOR_FACTOR * 128_000 / 32)

    assert reasons(counters(sectors=most - 1, sites=sites)) == []
    assert reasons(counters(sectors=most, sites=sites)) == [
        "asks memory for 30,000 sectors of 32 bytes where 4,000 would do. Line 11: each store of out_ptr touches 64 sectors "
        "for 256 bytes; 8 would hold 256 bytes. Neighbouring lanes should write neighbouring elements, and a program enough of them."
    ]


def test_dense_loads_that_come_again_are_not_called_scattered():
    sites = [site(line=37, argument="weight_ptr", executions=10, bytes=40_960, sectors=1280)]

    assert reasons(counters(sectors=60_000, sites=sites)) == [
        "asks memory for 60,000 sectors of 32 bytes where 4,000 would do. Line 37: each load of weight_ptr fills its sectors "
        "(128 for 4,096 bytes), but the same bytes are loaded again and again, 15 times as many as there are. Let all that "
        "need a value use it while it is there."
    ]


def test_hundreds_of_launches_are_slow():
    assert reasons(launches=[launch("k", 250)] * (MANY_LAUNCHES - 1)) == []
    assert reasons(bench=[launch("k", 250)] * MANY_LAUNCHES) == [
        "100 launches a call; each costs the host some microseconds. One launch with a bigger grid will do."
    ]


def test_a_kata_may_allow_one_launch():
    assert reasons(max_launches=1) == []
    assert reasons(launches=[launch("a", 9), launch("b", 9)], max_launches=1) == [
        "2 launches a call (a, b); this kata asks for 1: each one more reads and writes memory again."
    ]


@pytest.mark.parametrize(("programs", "words"), [
    (1, "1 program of k for the whole bench shape: 131 of the 132 SMs of NVIDIA H200 have nothing to do."),
    (66, "66 programs of k for the whole bench shape: 66 of the 132 SMs"),
    (67, None),
])  # fmt: skip
def test_too_few_programs_leave_most_of_the_gpu_idle(programs, words):
    found = reasons(bench=[launch("k", 1), launch("k", programs)])

    assert [words in f for f in found] == [True] if words else found == []


def test_an_unknown_bench_shape_is_not_held_against_a_kernel():
    assert reasons(bench=()) == []


# measured


def timing(share, spread=0.01, seconds=1e-4, kind="copy"):
    return {
        "limit": {"kind": kind},
        "share": share, "low": share - spread, "high": share + spread, "ours_s": [seconds / share] * 3, "limit_s": [seconds] * 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("share", "word"),
    [(0.95, "pass"), (0.862, "pass"), (0.855, "undecided"), (0.845, "undecided"), (0.8, "slow"), (1.2, "undecided")],
)
def test_a_share_is_decided_when_its_band_is_clear_of_the_gate(share, word):
    found = measured(timing(share), 0.85, COST, "NVIDIA H200")

    assert found["word"] == word
    assert {k: found["speed"][k] for k in ("kind", "gate", "binds")} == {
        "kind": "measured",
        "gate": 0.85,
        "binds": "DRAM",
    }
    assert found["speed"]["share"] == share
    assert bool(found["reason"]) == (word != "pass")


def test_where_arithmetic_binds_the_limit_is_a_product():
    found = measured(timing(0.5, kind="matmul"), 0.8, COST | {"flops": 10**12}, "NVIDIA H200")

    assert (found["word"], found["speed"]["binds"]) == ("slow", "tensor cores")
    assert found["reason"] == (
        "200 us on NVIDIA H200 for 1,000 GFLOP; torch's matmul of as many operations takes 100 us: 50% of the limit "
        "(49.0% to 51.0%), where 80% is asked for."
    )


# modelled


@pytest.mark.parametrize(
    ("seconds", "word"),
    [
        (1.0e-4, "pass"),
        (0.8e-4, "pass"),
        (1.24e-4, "pass"),
        (1.26e-4, "undecided"),
        (1.6e-4, "undecided"),
        (1.7e-4, "slow"),
    ],
)
def test_a_modelled_share_is_decided_outside_of_its_band(seconds, word):
    found = modelled(seconds, 1.0e-4, 0.7, 0.1, "DRAM", H200)

    assert found["word"] == word
    assert found["speed"]["kind"] == "modelled"
    assert found["speed"]["share"] == pytest.approx(1e-4 / seconds, abs=1e-4)
    assert found["speed"]["band"] == pytest.approx([1e-4 / seconds - 0.1, 1e-4 / seconds + 0.1], abs=1e-4)
    assert bool(found["reason"]) == (word != "pass")
    assert found["speed"]["text"].endswith("what binds is DRAM (bytes from and to memory)")


def test_the_band_of_a_small_share_ends_at_nothing():
    assert modelled(1e-3, 1e-5, 0.7, 0.1, "DRAM", H200)["speed"]["band"] == [0.0, 0.11]


def test_a_device_that_nobody_measured_is_said_to_be_scaled():
    words = "which nobody measured for this project"

    assert words in modelled(1e-4, 1e-4, 0.7, 0.2, "DRAM", find_device("L4"))["speed"]["text"]
    assert words not in modelled(1e-4, 1e-4, 0.7, 0.1, "DRAM", H200)["speed"]["text"]


# through the server: what the counters see


@pytest.mark.parametrize(("source", "times"), [
    (SOLUTION, 1),
    (launched("work = torch.empty_like(x); double_kernel[(triton.cdiv(n, 64),)](x, work, n, 64)\n"
              "    double_kernel[(triton.cdiv(n, 64),)](x, out, n, 64)"), 2),
])  # fmt: skip
def test_the_traffic_case_is_counted(judge, source, times):
    facts = judge(source, "traffic")
    bytes_each = 33 * 512 * 4

    assert facts["word"] == "pass", facts["reason"]
    assert facts["cost"] == {"bytes_read": bytes_each, "bytes_written": bytes_each, "flops": 33 * 512}
    # memory is read once a call, whoever asks how often; what is written to a second place is written
    assert facts["counters"]["bytes_read"] == bytes_each
    assert facts["counters"]["bytes_written"] == times * bytes_each
    assert facts["counters"]["sectors"] == 2 * times * bytes_each // 32


def test_one_element_a_program_asks_for_eight_times_the_sectors(judge):
    facts = judge(launched("double_kernel[(n,)](x, out, n, 1)"), "traffic")

    found = coarse(facts["counters"], facts["cost"], facts["launches"], [], H200)
    assert facts["counters"]["sectors"] == 2 * 33 * 512
    assert "Line 10: each load of x_ptr (x) touches 1 sector for 4 bytes; 1 would hold 32 bytes." in found[0]
