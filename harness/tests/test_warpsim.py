"""The time of a program follows the compiler's schedule, the latencies and the queues."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.compiled.control import Counter, constant_bank
from harness.model.warpsim import Costs, Hop, counts, passes, simulate, without_seldom
from harness.tests.sasstext import program

COSTS = Costs(program=0.0)
FAR = Hop(500.0)
LOAD = "LDG.E R4, desc[UR4][R2.64] | stall 1, write 0"


def path(source: str, *, warps: int = 4, residents: int = 1, n: int = 0, hop=FAR, tensor=None, costs=COSTS):
    """Simulate a program whose one argument is ``n``."""
    made = program(source)
    executed = Counter(made, warps).counts(constant_bank(80, {0: n}, (1, 1, 1), warps * 32), (1, 1, 1), (0, 0, 0))
    more = {} if tensor is None else {"tensor": lambda _: tensor}
    return simulate(made, executed, warps, lambda _: hop, residents=residents, costs=costs, **more)


def loop(body: str) -> str:
    return f"""\
MOV R0, RZ
top:
{body}
IADD3 R0, R0, 0x1, RZ | stall 4
ISETP.LT.AND P0, PT, R0, c[0x0][0x160], PT | stall 12
@P0 BRA top | stall 5
EXIT
"""


def test_stall_counts_hold_the_next_instruction_back():
    assert path("MOV R0, R1 | stall 9\nMOV R2, R3 | stall 5\nEXIT").first == pytest.approx(15, abs=2)


def test_a_warp_waits_where_the_schedule_says():
    first = path(f"{LOAD}\nMOV R0, R1\nFADD R5, R4, R4 | wait 0\nEXIT")
    never = path(f"{LOAD}\nMOV R0, R1\nFADD R5, R4, R4\nEXIT")

    assert first.first == pytest.approx(500, abs=10)
    assert never.first < 20


def test_who_was_waited_for_is_named():
    ptx = '.file 1 "/k.py"\n.loc 1 42 1\n'
    made = program(f"{LOAD} // 2\nFADD R5, R4, R4 | wait 0\nEXIT", ptx, ("/k.py",))
    executed = Counter(made, 1).counts({}, (1, 1, 1), (0, 0, 0))

    stalls = simulate(made, executed, 1, lambda _: Hop(300.0), costs=COSTS).stalls
    assert stalls == {42: pytest.approx(300, abs=5)}


@pytest.mark.parametrize("n", [3, 8, 100, 100_000])
def test_a_loop_costs_its_rounds(n):
    found = path(loop(f"{LOAD}\nFADD R5, R4, R4 | wait 0"), n=n)

    assert found.first == pytest.approx(n * 522, rel=0.03)
    assert found.instructions == 4 * (2 + 5 * n)


def test_ctas_beside_each_other_hide_latency():
    source = f"{LOAD}\nFADD R5, R4, R4 | wait 0\nEXIT"

    assert path(source, residents=8).cycles < 1.3 * path(source).cycles


def test_a_pipe_is_shared_by_all():
    """100 special functions of 8 cycles each: eight warps of a scheduler take eight times as long."""
    source = "\n".join(["MUFU.EX2 R1, R2 | stall 8"] * 100) + "\nEXIT"

    assert path(source).cycles == pytest.approx(800, rel=0.1)
    assert path(source, residents=8).cycles == pytest.approx(6400, rel=0.1)


def test_the_way_to_memory_is_a_queue():
    source = "\n".join([LOAD] * 10) + "\nMOV R0, R1 | wait 0\nEXIT"

    # 10 loads of 4 warps, 16 cycles each
    assert path(source, hop=Hop(500.0, 16.0)).first == pytest.approx(500 + 640, rel=0.1)


def test_bank_conflicts_fill_the_shared_memory_pipe():
    store = (
        "S2R R0, SR_TID.X\nSHF.L.U32 R2, R0, {}, RZ | stall 6\n" + "\n".join(["STS [R2], R3 | stall 4"] * 50) + "\nEXIT"
    )
    from dataclasses import replace

    from harness.model.banks import with_conflicts

    def cycles(shift: str) -> tuple[float, float]:
        made, _ = with_conflicts(program(store.replace("{}", shift)), 4)
        executed = Counter(made, 4).counts({}, (1, 1, 1), (0, 0, 0))
        found = simulate(made, executed, 4, lambda _: Hop(1.0), residents=8, costs=replace(COSTS, memory=1.0))
        return found.cycles, found.shared_cycles

    free, crowded = cycles("0x2"), cycles("0x7")
    assert (free[1], crowded[1]) == (200.0, 6400.0)


def test_a_barrier_waits_for_the_last_warp():
    ptx = "BAR.SYNC 0x0 | stall 5"
    source = f"S2R R0, SR_TID.X\nISETP.GT.AND P0, PT, R0, 0x1f, PT | stall 12\n@P0 BRA meet | stall 5\n{LOAD}\nMOV R0, R1 | wait 0\nmeet:\n{ptx}\nEXIT"

    assert path(source, warps=8).first == pytest.approx(540, abs=30)


def test_a_barrier_that_nobody_else_comes_to_does_not_hang():
    source = "S2R R0, SR_TID.X\nISETP.GT.AND P0, PT, R0, 0x1f, PT | stall 12\n@P0 BRA end | stall 5\nBAR.SYNC 0x1, 0x20 | stall 5\nend:\nEXIT"

    assert path(source, warps=8).first < 200


def test_copies_in_flight_hide_behind_the_rounds_before():
    copy = "LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64] | stall 4\nLDGDEPBAR | stall 1, write 0\n"
    work = "\n".join(["FADD R1, R1, R1 | stall 4"] * 100)

    ahead = loop(f"DEPBAR.LE SB0, 0x2 | stall 4\n{copy}{work}")
    behind = loop(f"{copy}DEPBAR.LE SB0, 0x0 | stall 4\n{work}")
    assert path(ahead, n=50).first == pytest.approx(50 * 435, rel=0.1)
    assert path(behind, n=50).first == pytest.approx(50 * 935, rel=0.1)


def test_products_run_by_themselves_until_somebody_waits():
    product = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24, gsb0 | stall 1"
    work = "\n".join(["FADD R1, R1, R1 | stall 4"] * 50)

    apart = loop(f"{product}\n{work}\nWARPGROUP.DEPBAR.LE gsb0, 0x1 | stall 2")
    joined = loop(f"{product}\nWARPGROUP.DEPBAR.LE gsb0, 0x0 | stall 2\n{work}")
    assert path(apart, n=50, tensor=200.0).first == pytest.approx(50 * 222, rel=0.1)
    assert path(joined, n=50, tensor=200.0).first == pytest.approx(50 * 482, rel=0.1)


def test_tensor_loads_land_in_the_order_in_which_they_are_waited_for():
    source = """\
S2R R0, SR_TID.X
SYNCS.ARRIVE.TRANS64 RZ, [UR4], R6 | stall 2
UTMALDG.2D [UR8], [UR12] | stall 2
SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 | stall 1, write 1
MOV R1, R2 | wait 1
EXIT
"""
    assert path(source, hop=Hop(600.0)).first == pytest.approx(610, abs=20)


def test_an_unknown_opcode_costs_what_its_schedule_says():
    assert path("FROB R0, R1 | stall 7\nFROB R2, R0 | stall 7\nEXIT").first == pytest.approx(15, abs=2)


def test_totals_need_no_simulation():
    made = program(
        "LDL.64 R2, [R1]\nHMMA.16816.F32.BF16 R4, R8, R2, R4\nFFMA R0, R1, R2, R3\nSHFL.IDX PT, R0, R1, RZ, 0x1f\nEXIT"
    )
    executed = Counter(made, 2).counts({}, (1, 1, 1), (0, 0, 0))
    found = counts(made, executed)

    assert found.instructions == 10
    assert found.issued == {"lsu": 2.0, "tensor": 2.0, "fma": 2.0, "mio": 2.0, "control": 2.0}
    assert (found.local_bytes, found.hmma, found.shared_cycles) == (2 * 256.0, 2.0, 2 * 2.0 + 2.0)


def test_older_gpus_have_half_the_float_units():
    assert (Costs.of(80).fma, Costs.of(90).fma, Costs.of(89).fp64) == (2.0, 1.0, 64.0)


def test_what_a_loop_does_in_few_rounds_is_not_done_in_each():
    """The tail of a tile, behind a branch that is taken once in 64 rounds."""
    made = program(loop(f"{LOAD}\nFADD R5, R4, R4 | wait 0"))
    executed = Counter(made, 4).counts(constant_bank(80, {0: 256}, (1, 1, 1), 128), (1, 1, 1), (0, 0, 0))
    wait = next(i for i, x in enumerate(made.instructions) if x.base == "FADD")
    seldom = list(executed.instructions)
    seldom[wait] = 4 * 256 / 64
    rare = replace(executed, instructions=tuple(seldom))

    kept, cycles = without_seldom(made, rare, 4)
    assert kept.instructions[wait] == 0
    assert cycles == 4 * made.instructions[wait].stall
    assert without_seldom(made, executed, 4) == (executed, 0.0)


def test_what_all_warps_do_now_and_then_has_a_barrier_in_it():
    """A tile of 8 rounds ends for 8 warps: as many executions as one warp's in each round."""
    made = program(loop(f"{LOAD}\nFADD R5, R4, R4 | wait 0\nBAR.SYNC.DEFER_BLOCKING 0x0\nMOV R7, R5"))
    executed = Counter(made, 8).counts(constant_bank(80, {0: 64}, (1, 1, 1), 256), (1, 1, 1), (0, 0, 0))
    end = [i for i, x in enumerate(made.instructions) if x.base in ("FADD", "BAR", "MOV") and made.innermost[i] >= 0]
    rare = [64.0 if i in end else n for i, n in enumerate(executed.instructions)]

    kept, _ = without_seldom(made, replace(executed, instructions=tuple(rare)), 8)
    assert [kept.instructions[i] for i in end] == [0.0] * len(end)
    load = next(i for i, x in enumerate(made.instructions) if x.base == "LDG")
    assert kept.instructions[load] == executed.instructions[load]


def test_what_one_warp_does_in_each_round_is_part_of_it():
    made = program(loop(LOAD))
    executed = Counter(made, 8).counts(constant_bank(80, {0: 64}, (1, 1, 1), 256), (1, 1, 1), (0, 0, 0))
    one = [n / 8 for n in executed.instructions]

    assert without_seldom(made, replace(executed, instructions=tuple(one)), 8)[1] == 0.0


@pytest.mark.parametrize(("line", "cycles"), [
    ("LDG.E.128 R4, desc[UR4][R2.64]", 0), ("STG.E desc[UR4][R2.64], R4", 0), ("LDL.64 R4, [R2]", 2),
    ("LDGSTS.E.BYPASS.128 [R9], desc[UR4][R2.64]", 1), ("LDGSTS.E [R9], desc[UR4][R2.64]", 1), ("LDS.128 R4, [R2]", 4),
    ("SHFL.BFLY PT, R4, R2, 0x1, 0x1f", 1), ("FADD R5, R4, R4", 0),
    ("HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24", 8), ("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8].tnspB, R24", 20),
    ("HGMMA.64x64x16.F32.BF16 R24, R56, gdesc[UR8], R24", 4),
])  # fmt: skip
def test_what_keeps_the_data_stage_of_l1_busy(line, cycles):
    """As an H200's counters say (``l1tex__data_pipe_lsu_wavefronts``): a lookup is counted by the trace, not here."""
    assert passes(program(f"{line}\nEXIT").instructions[0]) == cycles
