"""The disassembler's text becomes instructions with lines, schedules and loops."""

from __future__ import annotations

import json

import pytest

from harness.compiled.sass import Program, SassError, parse
from harness.tests.sasstext import program, text

PTX = """\
.file 1 "/home/me/kernel.py"
.loc 1 12 8
mov.u32 %r1, 0;
.loc 1 13 8
ld.global.b32 %r2, [%rd1];
"""


def test_an_instruction_carries_its_line_and_its_schedule():
    made = program(
        "LDG.E.128 R4, desc[UR4][R2.64] | stall 4, write 2, wait 0 3 // 5\n@!P0 EXIT | stall 5", PTX, ("kernel.py",)
    )

    load, end = made.instructions
    assert (load.op, load.base, load.operands, load.width) == ("LDG.E.128", "LDG", "R4, desc[UR4][R2.64]", 4)
    assert (load.line, load.column) == (13, 8)
    assert (load.stall, load.write_barrier, load.read_barrier, load.waits) == (4, 2, -1, 0b1001)
    assert (end.guard, end.stall) == ("@!P0", 5)


def test_the_padding_behind_a_kernel_is_left_out():
    made = program("EXIT\nself:\nBRA self\nNOP\nNOP")

    assert [i.op for i in made.instructions] == ["EXIT"]


def test_branches_know_where_they_go():
    made = program("top:\nIADD3 R0, R0, 0x1, RZ\n@P0 BRA top\nEXIT")

    assert [i.target for i in made.instructions] == [-1, 0, -1]
    assert [(x.first, x.last) for x in made.loops] == [(0, 1)]
    assert made.innermost == (0, 0, -1)


def test_the_other_kernels_of_a_file_are_not_read():
    both = text("EXIT", "other") + "\n" + text("NOP\nEXIT", "k")

    assert [i.op for i in parse(both, "k").instructions] == ["NOP", "EXIT"]


def test_no_instructions_is_an_error_that_names_the_kernel():
    with pytest.raises(SassError, match="no instruction of kernel 'k'"):
        parse("nothing of use", "k")


def test_a_program_crosses_a_process_as_json():
    made = program("top:\nLDS R0, [R1]\n@P0 BRA top\nEXIT")

    assert Program.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_an_opcode_that_nobody_described_is_listed_and_counts_as_misc():
    made = program("FROBNICATE.X4 R0, R1\nEXIT")

    assert made.unknown == ("FROBNICATE",)
    assert made.instructions[0].pipe == "misc"


@pytest.mark.parametrize(
    ("op", "width"),
    [("LDG.E", 1), ("LDG.E.64", 2), ("STS.128", 4), ("LDSM.16.M88.4", 4), ("LDSM.16.MT88.2", 2), ("STSM.16.M88", 1)],
)
def test_the_width_of_memory_instructions(op, width):
    assert program(f"{op} R0, [R2]\nEXIT").instructions[0].width == width


def test_text_without_encodings_has_default_schedules():
    plain = ".text.k:\n        /*0000*/                   MOV R1, R2 ;\n        /*0010*/                   EXIT ;\n"

    assert [(i.control, i.waits, i.write_barrier) for i in parse(plain, "k").instructions] == [(-1, 0, -1)] * 2
