"""A traced launch's values become a constant bank, its programs a mean."""

from __future__ import annotations

from harness.compiled.kernelfacts import KernelFacts
from harness.compiled.ptxlines import Parameter
from harness.compiled.trips import arguments, executed, traced
from harness.tests.sasstext import program

SOURCE = """\
S2R R1, SR_CTAID.X
MOV R0, RZ
top:
IADD3 R0, R0, 0x1, RZ
ISETP.LT.AND P0, PT, R0, c[0x0][0x168], PT
@P0 BRA top
EXIT
"""


def facts(source: str = SOURCE, sm: int = 80) -> KernelFacts:
    parameters = (Parameter("x", 0, 8), Parameter("n", 8, 4), Parameter("scale", 12, 4), Parameter("", 16, 8))
    return KernelFacts(
        kernel="k", hash="", sm=sm, triton="", num_warps=2, threads=64, num_stages=1, num_ctas=1, registers=16,
        spill_bytes=0, shared_bytes=0, accesses=(), dots=(), program=program(source), parameters=parameters,
    )  # fmt: skip


def test_scalars_decide_the_loops():
    found, _ = executed(facts(), {"grid": [4], "samples": [0, 3], "scalars": {"n": 20}, "sites": []})

    assert found.loops == (20.0,)
    assert sum(found.instructions) == 2 * (2 + 3 * 20 + 1)


def test_programs_are_averaged():
    by_program = SOURCE.replace("R0, c[0x0][0x168]", "R0, R1")

    assert executed(facts(by_program), {"grid": [8], "samples": [2, 6], "scalars": {}, "sites": []})[0].loops == (4.0,)


def test_the_words_of_the_arguments():
    words = arguments(facts(), {"n": -1, "scale": 1.0})

    assert (words[8], words[12]) == (0xFFFFFFFF, 0x3F800000)
    assert words[0] % 16 == 0 and words[4] > 0  # a pointer that was made up


def test_sites_of_one_line_add_up():
    sites = [{"line": 5, "instructions": 3.0}, {"line": 5, "instructions": 4.0}, {"line": 0, "instructions": 9.0}]

    assert traced(sites) == {5: 7.0}


def test_programs_that_do_unlike_work_are_followed_in_numbers():
    """Program n loops n times, the first one once; two were traced, which say nothing about the mean of 64."""
    source = SOURCE.replace("R0, c[0x0][0x168]", "R0, R1").replace("top:\n", "top:\nLDG.E R4, desc[UR4][R2.64]\n")
    trace = {"grid": [64], "samples": [2, 6], "scalars": {}, "sites": []}
    alike, one = executed(facts(source), trace | {"unlike": 1.0})
    unlike, factor = executed(facts(source), trace | {"unlike": 1.5})
    mean = (1 + sum(range(64))) / 64

    assert (alike.loops, one) == ((4.0,), 1.0)
    assert unlike.loops == (mean,)
    assert factor == mean / 4
