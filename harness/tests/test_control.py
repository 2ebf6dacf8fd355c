"""How often instructions run is found by executing the branches, quickly and for every warp."""

from __future__ import annotations

import time

import pytest

from harness.compiled.control import Counter, constant_bank
from harness.tests.sasstext import program

GRID = (4, 1, 1)


def counts(source: str, n: int = 0, *, warps: int = 4, pid: int = 0, hints=None, whole: bool = True):
    """Count a program whose one argument is ``n``, at 0x160 as on an A100."""
    bank = constant_bank(80, {0: n}, GRID, warps * 32)
    return Counter(program(source), warps, hints).counts(bank, GRID, (pid, 0, 0), whole)


def loop(step: str, test: str) -> str:
    return f"MOV R0, RZ\nMOV R9, c[0x0][0x160]\ntop:\n{step}\n{test}\n@P0 BRA top\nEXIT"


COUNTED = loop("IADD3 R0, R0, 0x40, RZ", "ISETP.LT.AND P0, PT, R0, R9, PT")


@pytest.mark.parametrize("n", [1, 64, 65, 640, 4096, 1_000_000_007])
def test_a_loop_runs_as_often_as_its_bound_says(n):
    found = counts(COUNTED, n)

    assert found.loops == (float(-(-n // 64)),)
    assert found.instructions[2] == 4 * -(-n // 64)
    assert found.complete and found.unknown == ()


def test_a_long_loop_takes_no_time():
    before = time.process_time()
    counts(COUNTED, 2_000_000_000)

    assert time.process_time() - before < 0.2


@pytest.mark.parametrize("n", [1, 5, 1000, 123_457])
def test_a_loop_that_ends_at_equality_is_not_stepped_over(n):
    assert counts(loop("IADD3 R0, R0, 0x1, RZ", "ISETP.NE.U32.AND P0, PT, R0, R9, PT"), n).loops == (float(n),)


@pytest.mark.parametrize("n", [1, 4, 5, 6, 7, 4096, 4099])
def test_an_unrolled_loop_and_its_rest(n):
    source = """\
MOV R9, c[0x0][0x160]
ISETP.GT.AND P0, PT, R9, 0x3, PT
@!P0 BRA rest
four:
IADD3 R9, R9, -0x4, RZ
ISETP.GT.AND P0, PT, R9, 0x3, PT
@P0 BRA four
rest:
ISETP.NE.AND P0, PT, R9, RZ, PT
@!P0 BRA end
one:
IADD3 R9, R9, -0x1, RZ
ISETP.NE.AND P0, PT, R9, RZ, PT
@P0 BRA one
end:
EXIT
"""
    assert counts(source, n).loops == (float(n // 4), float(n % 4))


def test_loops_in_loops_multiply():
    source = """\
MOV R0, RZ
outer:
MOV R1, RZ
inner:
IADD3 R1, R1, 0x1, RZ
ISETP.LT.AND P0, PT, R1, 0x7, PT
@P0 BRA inner
IADD3 R0, R0, 0x1, RZ
ISETP.LT.AND P1, PT, R0, c[0x0][0x160], PT
@P1 BRA outer
EXIT
"""
    assert counts(source, 300).loops == (300.0, 2100.0)


def test_a_64_bit_counter_does_not_wrap():
    source = """\
MOV R2, c[0x0][0x160]
MOV R3, RZ
top:
IADD3 R2, P0, R2, -0x4, RZ
IADD3.X R3, R3, -0x1, RZ, P0, !PT
ISETP.GT.U32.AND P1, PT, R2, 0x3, PT
ISETP.GT.AND.EX P1, PT, R3, RZ, PT, P1
@P1 BRA top
EXIT
"""
    assert counts(source, 2048).loops == (511.0 + 1,)


def test_programs_differ_by_their_number():
    source = COUNTED.replace("MOV R9, c[0x0][0x160]", "S2R R8, SR_CTAID.X\nIMAD R9, R8, c[0x0][0x160], RZ")

    assert [counts(source, 128, pid=p).loops[0] for p in range(1, 4)] == [2.0, 4.0, 6.0]


LANES = """\
S2R R0, SR_TID.X
LOP3.LUT R0, R0, 0x1f, RZ, 0xc0, !PT
ISETP.NE.AND P0, PT, R0, RZ, PT
BSSY B0, meet
@P0 BRA meet
STS [R1], R2
meet:
BSYNC B0
EXIT
"""


def test_lanes_that_part_meet_one_after_the_other():
    """One lane stores: the warp issues the store once and the place where lanes meet twice."""
    assert counts(LANES).instructions == (4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 8.0, 4.0)


def test_only_the_warps_that_go_there_count():
    source = "S2R R0, SR_TID.X\nISETP.GT.AND P0, PT, R0, 0x3f, PT\n@P0 EXIT\nMOV R1, R2\nEXIT"

    assert counts(source).instructions == (4.0, 4.0, 4.0, 2.0, 2.0)


def test_a_later_program_keeps_what_threads_differ_by():
    bank = constant_bank(80, {0: 0}, GRID, 128)
    counter = Counter(program(LANES), 4)

    first, second = (counter.counts(bank, GRID, (p, 0, 0), whole=p == 0) for p in (0, 1))
    assert first == second


LOOPS_BY_NUMBER = """\
S2R R1, SR_CTAID.X
S2R R2, SR_TID.X
MOV R0, RZ
ISETP.GE.AND P0, PT, R0, R1, PT
@P0 BRA out
top:
IADD3 R0, R0, 0x1, RZ
ISETP.LT.AND P0, PT, R0, R1, PT
@P0 BRA top
out:
ISETP.GT.AND P1, PT, R2, 0x10, PT
@P1 BRA end
MOV R5, R6
end:
EXIT
"""


def test_what_the_first_program_skipped_counts_for_the_later_ones():
    """As in a triangular loop: program 0 has no round of it, program 3 has three."""
    bank = constant_bank(80, {}, GRID, 128)
    counter = Counter(program(LOOPS_BY_NUMBER), 4)
    first = counter.counts(bank, GRID, (0, 0, 0))
    later = counter.counts(bank, GRID, (3, 0, 0), whole=False)

    assert (first.instructions[5], later.instructions[5]) == (0, 4 * 3)
    assert later.loops == (3.0,)
    assert later.instructions == counts(LOOPS_BY_NUMBER, pid=3).instructions


BY_DATA = "top:\nLDG.E R2, desc[UR4][R4.64] // 1\nISETP.GT.AND P0, PT, R2, RZ, PT\n@P0 BRA top\nEXIT"
BY_DATA_PTX = '.file 1 "/k.py"\n.loc 1 7 1\n'


def test_a_branch_on_data_is_named_and_follows_the_trace():
    made = program(BY_DATA.replace("// 1", "// 2"), BY_DATA_PTX, ("/k.py",))
    bank = constant_bank(80, {}, GRID, 128)

    blind = Counter(made, 4).counts(bank, GRID, (0, 0, 0))
    traced = Counter(made, 4, {7: 25.0}).counts(bank, GRID, (0, 0, 0))
    assert (blind.loops, blind.unknown) == ((1.0,), (7,))
    assert (traced.loops, traced.unknown) == ((25.0,), (7,))


BEHIND_A_JUMP = """\
LDG.E R2, desc[UR4][R4.64]
ISETP.GT.AND P0, PT, R2, RZ, PT
@P0 BRA work
MOV R8, RZ
BRA out
work:
LDG.E R3, desc[UR4][R6.64] // 2
ISETP.GT.AND P0, PT, R3, RZ, PT
@P0 BRA work
out:
EXIT
"""


@pytest.mark.parametrize(("traced", "rounds"), [({7: 20.0}, 20.0), ({}, 0.0)])
def test_a_branch_on_data_goes_to_what_was_traced_behind_a_jump(traced, rounds):
    """The compiler puts the short way first, which jumps over the loop."""
    made = program(BEHIND_A_JUMP, BY_DATA_PTX, ("/k.py",))
    found = Counter(made, 1, traced).counts({}, GRID, (0, 0, 0))

    assert found.instructions[5] == rounds
    assert found.instructions[3] == (0.0 if rounds else 1.0)


def test_a_subroutine_is_counted_and_returns():
    source = "CALL.REL.NOINC sub\nMOV R0, R1\nCALL.REL.NOINC sub\nEXIT\nsub:\nMOV R2, R3\nRET.REL.NODEC R4"

    assert counts(source, warps=1).instructions == (1.0, 1.0, 1.0, 1.0, 2.0, 2.0)


def test_a_counter_on_the_stack_counts():
    source = """\
STL [R1+0x4], RZ
top:
LDL R0, [R1+0x4]
IADD3 R0, R0, 0x1, RZ
STL [R1+0x4], R0
ISETP.LT.AND P0, PT, R0, c[0x0][0x160], PT
@P0 BRA top
EXIT
"""
    assert counts(source, 99).loops == (99.0,)


def test_a_wait_for_a_barrier_is_over_at_once():
    source = "try:\nSYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2\n@!P0 BRA try\nEXIT"

    assert counts(source).loops == (1.0,)


def test_a_loop_without_end_is_given_up():
    before = time.process_time()
    found = counts(
        "MOV R0, RZ\ntop:\nLOP3.LUT R0, R0, 0x1, RZ, 0x3c, !PT\nISETP.GE.AND P0, PT, R0, RZ, PT\n@P0 BRA top\nEXIT"
    )

    assert not found.complete
    assert time.process_time() - before < 5


@pytest.mark.parametrize(("sm", "arguments", "grid"), [(75, 0x160, 0xC), (90, 0x210, 0xC), (100, 0x380, 0x370)])
def test_constant_bank_by_architecture(sm, arguments, grid):
    bank = constant_bank(sm, {0: 5}, (7, 8, 9), 128)

    assert (bank[arguments], [bank[grid + 4 * i] for i in range(3)]) == (5, [7, 8, 9])
