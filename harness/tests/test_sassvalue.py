"""The integer instructions of SASS compute what hardware computes, for one thread and for many at once."""

from __future__ import annotations

import numpy as np
import pytest

from harness.compiled.decider import Place, Thread
from harness.compiled.sassvalue import MASK, prepare
from harness.tests.sasstext import program

THREAD = Thread({0x10: 7, 0x14: 9}, Place((3, 0, 0), (8, 1, 1), 4, warp=2, lane=5))


def run(text: str, **state):
    """Execute one instruction; return the values of the registers that it writes."""
    step = prepare(program(text + "\nEXIT").instructions[0])
    values = step.run(state, THREAD) if step.run else None
    return dict(zip(step.writes, values, strict=True)) if values is not None else None


@pytest.mark.parametrize(
    ("text", "state", "expected"),
    [
        ("IADD3 R0, R1, -R2, RZ", {"R1": 5, "R2": 7}, {"R0": MASK - 1}),
        ("IADD3 R0, P0, R1, R2, RZ", {"R1": MASK, "R2": 1}, {"R0": 0, "P0": True}),
        # x - 0 carries: it is x + ~0 + 1
        ("IADD3 R0, P0, R1, -R2, RZ", {"R1": 5, "R2": 0}, {"R0": 5, "P0": True}),
        ("IADD3.X R0, R1, ~R2, RZ, P0, !PT", {"R1": 5, "R2": 2, "P0": True}, {"R0": 3}),
        ("VIADD R0, R1, 0xfffffff0", {"R1": 32}, {"R0": 16}),
        ("IMAD R0, R1, R2, R3", {"R1": 3, "R2": MASK, "R3": 10}, {"R0": 7}),
        ("IMAD.MOV.U32 R0, RZ, RZ, c[0x0][0x10]", {}, {"R0": 7}),
        ("IMAD.SHL.U32 R0, R1, 0x4, RZ", {"R1": 6}, {"R0": 24}),
        ("IMAD.WIDE R4, R1, 0x4, R2", {"R1": MASK, "R2": 8, "R3": 1}, {"R4": 4, "R5": 1}),
        ("IMAD.WIDE.U32 R4, R1, R1, RZ", {"R1": MASK}, {"R4": 1, "R5": MASK - 1}),
        ("IMAD.HI.U32 R0, R1, R2, RZ", {"R1": 1 << 31, "R2": 6}, {"R0": 3}),
        ("LEA R0, P0, R1, R2, 0x2", {"R1": 3, "R2": MASK}, {"R0": 11, "P0": True}),
        ("LEA.HI.X.SX32 R0, R1, R2, 0x1, P0", {"R1": MASK, "R2": 5, "P0": True}, {"R0": 5}),
        ("LEA.HI R0, R1, R2, RZ, 0x4", {"R1": 0xF0000000, "R2": 1}, {"R0": 16}),
        ("SHF.R.U32.HI R0, RZ, 0x3, R1", {"R1": 80}, {"R0": 10}),
        ("SHF.R.S32.HI R0, RZ, 0x1f, R1", {"R1": 1 << 31}, {"R0": MASK}),
        ("SHF.L.U32 R0, R1, 0x5, RZ", {"R1": 3}, {"R0": 96}),
        ("SHF.R.U64 R0, R1, 0x4, R2", {"R1": 0x10, "R2": 0x3}, {"R0": 0x30000001}),
        ("SHF.L.U64.HI R0, R1, 0x4, R2", {"R1": 0xF0000000, "R2": 1}, {"R0": 0x1F}),
        ("LOP3.LUT R0, R1, 0x1f, RZ, 0xc0, !PT", {"R1": 0x3F}, {"R0": 0x1F}),
        ("LOP3.LUT P0, RZ, R1, 0x40, RZ, 0xc0, !PT", {"R1": 0x3F}, {"P0": False}),
        ("LOP3.LUT R0, R1, R2, R3, 0x96, !PT", {"R1": 12, "R2": 10, "R3": 1}, {"R0": 7}),
        ("ISETP.GE.AND P0, PT, R1, 0x1, PT", {"R1": MASK}, {"P0": False}),
        ("ISETP.GE.U32.AND P0, PT, R1, 0x1, PT", {"R1": MASK}, {"P0": True}),
        ("ISETP.LT.OR P0, P1, R1, R2, P2", {"R1": 3, "R2": 3, "P2": True}, {"P0": True, "P1": True}),
        ("ISETP.GT.AND.EX P0, PT, R1, RZ, PT, P1", {"R1": 0, "P1": True}, {"P0": True}),
        ("ISETP.NE.AND.EX P0, PT, R1, RZ, PT, P1", {"R1": 0, "P1": False}, {"P0": False}),
        ("PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x0", {}, {"P0": True}),
        ("PLOP3.LUT P0, PT, P1, P2, PT, 0xa8, 0x0", {"P1": False, "P2": True}, {"P0": True}),
        ("VOTE.ALL P0, P1", {"P1": True}, {"P0": True}),
        ("VOTE.ANY R0, PT, P1", {"P1": True}, {"R0": MASK}),
        ("SEL R0, R1, R2, !P0", {"R1": 1, "R2": 2, "P0": True}, {"R0": 2}),
        ("VIMNMX R0, R1, R2, PT", {"R1": MASK, "R2": 4}, {"R0": MASK}),
        ("PRMT R0, R1, 0x7632, R2", {"R1": 0x44332211, "R2": 0x88776655}, {"R0": 0x88774433}),
        ("SGXT R0, R1, 0x8", {"R1": 0x1FF}, {"R0": MASK}),
        ("IABS R0, R1", {"R1": MASK - 4}, {"R0": 5}),
        ("S2R R0, SR_TID.X", {}, {"R0": 69}),
        ("S2UR UR4, SR_CTAID.X", {}, {"UR4": 3}),
        ("LDC.64 R4, c[0x0][0x10]", {}, {"R4": 7, "R5": 9}),
        ("CS2R R4, SRZ", {}, {"R4": 0, "R5": 0}),
        # two halves as constants: 1.0 is 0x3c00, 2 ** -24 is 0x0001
        ("HFMA2.MMA R0, -RZ, RZ, 1, 5.9604644775390625e-08", {}, {"R0": 0x3C000001}),
        ("UIADD3 UR4, UR5, 0x40, URZ", {"UR5": 1}, {"UR4": 0x41}),
        ("LDL.64 R2, [R1+0x8]", {"S8": 4, "S12": 5}, {"R2": 4, "R3": 5}),
        ("STL [R1], R2", {"R2": 6}, {"S0": 6}),
    ],
)  # fmt: skip
def test_an_instruction(text, state, expected):
    assert run(text, **state) == expected


@pytest.mark.parametrize("text", ["FADD R0, R1, R2", "LDG.E R0, desc[UR4][R2.64]", "MUFU.EX2 R0, R1", "XYZZY R0, R1"])
def test_floats_memory_and_unknown_opcodes_have_no_value(text):
    assert run(text, R1=1, R2=2) is None


@pytest.mark.parametrize(
    "text", ["IMAD R0", "LOP3.LUT R0, R1", "ISETP.AND P0, PT, R1", "SHF.L R0", "VOTE.ALL P0", "PRMT R0, R1"]
)
def test_a_form_that_nobody_described_has_no_value(text):
    assert run(text, R1=1) is None


def test_an_address_is_read_and_not_written():
    step = prepare(program("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR13+0x24000], R6\nEXIT").instructions[0])

    assert (step.writes, set(step.reads)) == (("P0",), {"UR13", "R6"})


def test_what_is_not_known_stays_unknown_unless_it_does_not_matter():
    assert run("IADD3 R0, R1, R2, RZ", R1=1) is None
    assert run("LOP3.LUT R0, R1, RZ, R2, 0xc0, !PT", R1=5) == {"R0": 0}
    assert run("SEL R0, R1, R2, P0", R1=5, P0=True) == {"R0": 5}


@pytest.mark.parametrize("dividend", [0, 1, 99, 100, 101, 12345, 2**31, 2**32 - 1])
def test_the_compiler_s_unsigned_division(dividend):
    """The sequence that ptxas writes for n / 100 at run time, with a reciprocal that may be off by one."""
    source = """\
I2F.U32.RP R0, R9
MUFU.RCP R0, R0
IADD3 R2, R0, 0xffffffe, RZ
F2I.FTZ.U32.TRUNC.NTZ R3, R2
IMAD.MOV.U32 R2, RZ, RZ, RZ
IMAD.MOV R5, RZ, RZ, -R3
IMAD R5, R5, R9, RZ
IMAD.HI.U32 R3, R3, R5, R2
IMAD.HI.U32 R3, R3, R8, RZ
IMAD.MOV R5, RZ, RZ, -R3
IMAD R0, R9, R5, R8
ISETP.GE.U32.AND P0, PT, R0, R9, PT
@P0 IMAD.IADD R0, R0, 0x1, -R9
@P0 IADD3 R3, R3, 0x1, RZ
ISETP.GE.U32.AND P1, PT, R0, R9, PT
@P1 IADD3 R3, R3, 0x1, RZ
EXIT
"""
    state = {"R8": dividend, "R9": 100}
    for instruction in program(source).instructions[:-1]:
        step = prepare(instruction)
        if step.guard is None or step.guard.read(state, {}):
            state.update(zip(step.writes, step.run(state, THREAD), strict=True))

    assert state["R3"] == dividend // 100


@pytest.mark.parametrize(
    "text",
    [
        "IADD3 R0, P0, R1, -R2, RZ", "IMAD R0, R1, R2, R3", "IMAD.WIDE R4, R1, R2, R6", "IMAD.HI.U32 R0, R1, R2, RZ",
        "LEA.HI.X.SX32 R0, R1, R2, 0x3, P1", "SHF.R.S32.HI R0, RZ, 0x3, R1", "LOP3.LUT R0, R1, R2, R3, 0x78, !PT",
        "ISETP.LT.AND P0, PT, R1, R2, P1", "SEL R0, R1, R2, P1", "PRMT R0, R1, 0x5410, R2", "VIMNMX.U32 R0, R1, R2, !PT",
    ],
)  # fmt: skip
def test_many_threads_at_once_give_the_same(text):
    """Arrays hold one entry a thread; the arithmetic must not notice."""
    generator = np.random.default_rng(0)
    state = {f"R{i}": generator.integers(0, 2**32, 16, dtype=np.int64) for i in range(8)}
    state["P1"] = generator.integers(0, 2, 16).astype(bool)
    together = run(text, **state)

    for lane in range(16):
        alone = run(text, **{k: v[lane].item() for k, v in state.items()})
        assert {k: np.broadcast_to(v, 16)[lane] for k, v in together.items()} == alone
