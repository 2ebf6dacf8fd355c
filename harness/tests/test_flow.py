"""Loops are found by dominance, not by branches that go up."""

from __future__ import annotations

from harness.tests.sasstext import program


def spans(source: str) -> list[tuple[int, int, int]]:
    return [(x.first, x.last, x.parent) for x in program(source).loops]


def test_loops_nest():
    assert spans("MOV R0, R1\nouter:\nMOV R2, R3\ninner:\nMOV R4, R5\n@P0 BRA inner\n@P1 BRA outer\nEXIT") == [
        (1, 4, -1), (2, 3, 0),
    ]  # fmt: skip


def test_a_piece_at_the_end_that_jumps_back_is_no_loop():
    assert spans("@P0 BRA rare\nback:\nMOV R0, R1\nEXIT\nrare:\nMOV R2, R3\nBRA back") == []


def test_two_branches_to_one_head_are_one_loop():
    assert spans("top:\nMOV R0, R1\n@P0 BRA top\nMOV R2, R3\n@P1 BRA top\nEXIT") == [(0, 3, -1)]


def test_loops_that_follow_each_other_have_no_parent():
    assert spans("a:\nMOV R0, R1\n@P0 BRA a\nb:\nMOV R0, R1\n@P0 BRA b\nEXIT") == [(0, 1, -1), (2, 3, -1)]
