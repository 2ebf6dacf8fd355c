"""Findings name what a learner can change, with the line, and keep quiet where nothing is to be won."""

from __future__ import annotations

import pytest

from harness.compiled.kernelfacts import Access, Dot, KernelFacts
from harness.compiled.sass import Instruction, Program
from harness.device import find_device
from harness.model.constants import constants
from harness.model.findings import MOST, findings, sentences
from harness.tests.test_traffic import site, tensor

H200 = find_device("H200")
FAST = {"DRAM": 1e-4, "L2": 5e-5, "SM": 3e-5, "programs": 1e-6, "atomics": 0.0}
QUIET = {"issue": 1e-5, "shared memory": 0.0, "L1": 1e-5, "latency": 0.0}


def facts(**changes):
    given = {
        "kernel": "k", "hash": "h", "sm": 90, "triton": "3.9.0", "num_warps": 4, "threads": 128, "num_stages": 3,
        "num_ctas": 1, "registers": 32, "spill_bytes": 0, "shared_bytes": 0, "accesses": (), "dots": (),
        "program": Program((Instruction("EXIT", "", "", 0),), ()),
    }  # fmt: skip
    return KernelFacts(**given | changes)


def told(sites=(), tensors=(), terms=None, parts=None, programs=65536, seconds=1e-4, **changes):
    trace = {"kernel": "k", "programs": programs, "sites": list(sites), "tensors": list(tensors)}
    found = findings(facts(**changes), trace, FAST | (terms or {}), QUIET | (parts or {}), seconds, H200)
    return [text for _, text in found]


def test_a_good_kernel_gets_none():
    assert told([site(), site(kind="store", line=10)], [tensor()]) == []


def test_scattered_lanes_are_told_with_the_sectors_that_would_do():
    (text,) = told([site(sectors=128.0, units=128.0, lanes=128.0)])

    assert text == (
        "line 9: each request of x_ptr touches 32 sectors of 32 bytes; 4 would do. Let neighbouring lanes access "
        "neighbouring elements."
    )


def test_stores_of_parts_of_sectors():
    (text,) = told([site(kind="store", partial=64.0, units=64.0, lanes=264.0, sectors=64.0, requests=8.0)])

    assert text.startswith("line 9: a store to x_ptr fills 16 of the 32 bytes of each sector it touches;")


def test_what_is_read_again_by_the_same_program():
    (text,) = told([site(line=30, missed=4096.0 * 3, distinct=4096.0 * 3)], [tensor(own=4096.0)])

    assert text.startswith("line 30: a program reads x_ptr 3.0 times from beyond L1;")


def test_a_dot_without_tensor_cores():
    dot = Dot(12, 5, "fma", (64, 64, 32), 32, 32, "f32", "registers")
    (text,) = told(dots=(dot,), parts={"issue": 9e-5})

    assert text.startswith("line 12: tl.dot in fp32 with input_precision='ieee' uses no tensor cores;")


def test_spilled_registers():
    (text,) = told(spill_bytes=192, registers=255, terms={"SM": 9e-5})

    assert text.startswith("48 registers of each thread are spilled to memory (255 are in use):")


def test_too_many_programs():
    (text,) = told(terms={"programs": 3e-4}, programs=524288, seconds=3e-4)

    assert text.startswith("k starts 524,288 programs;")


def test_too_few_programs_of_few_warps():
    (text,) = told(terms={"SM": 3e-4}, parts={"latency": 3e-4}, programs=132, threads=32, seconds=3e-4)

    assert text.startswith("132 programs of 1 warps for 132 SMs: too few bytes are in flight.")


def test_registers_that_leave_room_for_few_threads():
    (text,) = told(terms={"SM": 3e-4}, parts={"latency": 3e-4}, registers=255, seconds=3e-4)

    assert "an SM holds 256 threads of k at once (255 registers a thread, 0 bytes of shared memory)" in text


def test_atomics_that_wait_for_each_other():
    (text,) = told([site(kind="atomic", lanes=1.0, addresses=1.0, sectors=1.0)], terms={"atomics": 2e-4}, seconds=2e-4)

    assert text.startswith("line 9: 65,536 atomics on x_ptr, the same address;")


def test_bank_conflicts():
    program = Program((Instruction("LDS", "", "", 21, conflict=8.0),), ())
    (text,) = told(program=program, parts={"shared memory": 9e-5})

    assert text.startswith("line 21: an access to shared memory takes 8 times as long as it could (bank conflicts).")


def test_narrow_instructions_but_not_those_that_gather_from_a_table():
    narrow = site(width=1, instructions=8.0, requests=16.0, sectors=64.0)
    table = site(width=1, instructions=8.0, requests=16.0, sectors=16.0)

    assert told([narrow], parts={"issue": 9e-5})[0].startswith("line 9: each instruction moves 4 bytes a thread")
    assert told([table], parts={"issue": 9e-5}) == []


@pytest.mark.parametrize(("how", "said"), [("direct", 1), ("async", 0), ("tma", 0)])
def test_a_loop_of_dots_without_stages(how, said):
    dot = Dot(12, 5, "wgmma", (64, 64, 32), 16, 16, "bf16", "shared")
    access = Access(11, 5, "load", how, 16, None, (64, 32))
    found = told(dots=(dot,), accesses=(access,), num_stages=1, terms={"SM": 1e-4}, parts={"latency": 1e-4})

    assert len(found) == said


def test_at_most_three_are_told_the_costliest_first():
    told_of = sentences([(n * 1e-6, f"line {n}: x") for n in range(9)])

    assert told_of == ["line 8: x", "line 7: x", "line 6: x"]
    assert len(told_of) == MOST


def test_every_device_has_constants_that_scale_with_its_datasheet():
    h200, t4 = constants(H200), constants(find_device("T4"))

    assert h200.calibrated and not t4.calibrated
    assert t4.dram_read / h200.dram_read == pytest.approx(find_device("T4").mem_bw / H200.mem_bw)
    # a copy reaches what was measured
    assert 2 / (1 / h200.dram_read + 1 / h200.dram_write) == pytest.approx(H200.measured["copy_bw"])
