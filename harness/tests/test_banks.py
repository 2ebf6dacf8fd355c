"""Bank conflicts are counted from the addresses that the kernel itself computes."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.banks import transactions, with_conflicts
from harness.tests.sasstext import program

ALL = np.ones(32, bool)


def count(op: str, addresses, active=ALL) -> float:
    return transactions(program(f"{op} R0, [R2]\nEXIT").instructions[0], np.asarray(addresses, np.int64), active)


@pytest.mark.parametrize(("step", "expected"), [(0, 1), (4, 1), (8, 2), (12, 1), (16, 4), (128, 32), (132, 1)])
def test_words_a_step_apart(step, expected):
    assert count("LDS", np.arange(32) * step) == expected


@pytest.mark.parametrize(("op", "step", "expected"), [("LDS.64", 8, 2), ("LDS.128", 16, 4), ("LDS.128", 128, 32)])
def test_wide_accesses_are_served_in_parts(op, step, expected):
    assert count(op, np.arange(32) * step) == expected


def test_lanes_that_read_the_same_words_need_one_transaction():
    assert count("LDS.128", np.zeros(32)) == 1
    assert count("LDS.64", np.arange(32) // 16 * 8) == 1


def test_lanes_that_do_not_take_part_do_not_count():
    assert count("STS", np.arange(32) * 128, np.arange(32) < 4) == 4


@pytest.mark.parametrize(("step", "expected"), [(16, 4), (32, 8), (128, 32), (144, 4)])
def test_matrix_loads_take_eight_rows_at_a_time(step, expected):
    assert count("LDSM.16.M88.4", np.arange(32) * step) == expected


def test_atomics_on_one_word_wait_for_each_other():
    assert count("ATOMS.ADD", np.zeros(32)) == 32


def conflicts(source: str, warps: int = 4) -> tuple[list[float], int]:
    made, missing = with_conflicts(program(source), warps)
    return [i.conflict for i in made.instructions if i.base in ("LDS", "STS", "LDGSTS")], missing


def test_addresses_follow_from_the_thread_s_number():
    row = "S2R R0, SR_TID.X\nIMAD.SHL.U32 R2, R0, 0x80, RZ\nSTS [R2], R3\nLDS R4, [R2+0x4]\nEXIT"
    column = row.replace("0x80", "0x4")

    assert conflicts(row) == ([32.0, 32.0], 0)
    assert conflicts(column) == ([1.0, 1.0], 0)


def test_an_asynchronous_copy_writes_to_its_first_address():
    copy = "S2R R0, SR_TID.X\nIMAD.SHL.U32 R2, R0, 0x80, RZ\nLDGSTS.E [R2], desc[UR4][R6.64]\nEXIT"

    assert conflicts(copy) == ([32.0], 0)
    assert conflicts(copy.replace("0x80", "0x4")) == ([1.0], 0)


def test_an_address_in_a_loop_behind_a_branch_is_found():
    source = """\
S2R R0, SR_TID.X
ISETP.GE.AND P0, PT, RZ, c[0x0][0x160], PT
@P0 BRA end
IMAD.SHL.U32 R2, R0, 0x8, RZ
top:
LDS R4, [R2]
IADD3 R1, R1, 0x1, RZ
ISETP.LT.AND P1, PT, R1, c[0x0][0x160], PT
@P1 BRA top
end:
EXIT
"""
    assert conflicts(source) == ([2.0], 0)


def test_only_the_lanes_of_a_guard_count():
    source = "S2R R0, SR_TID.X\nLOP3.LUT R1, R0, 0x7, RZ, 0xc0, !PT\nISETP.NE.AND P0, PT, R1, RZ, PT\nSHF.L.U32 R2, R0, 0x4, RZ\n"

    assert conflicts(source + "@!P0 STS [R2], R3\nEXIT")[0] == [4.0]
    assert conflicts(source + "@P0 BRA end\nSTS [R2], R3\nend:\nEXIT")[0] == [4.0]


def test_an_address_from_memory_counts_as_free_of_conflicts_and_is_reported():
    assert conflicts("LDG.E R2, desc[UR4][R4.64]\nLDS R0, [R2]\nEXIT") == ([1.0], 1)


def test_a_fence_that_loads_nothing_is_left_alone():
    assert conflicts("@!PT LDS RZ, [RZ]\nEXIT") == ([1.0], 0)
