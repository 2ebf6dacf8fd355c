"""Facts of kernels that were really compiled, for every architecture that there is a device file of."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from harness.compiled import trips
from harness.compiled.cubin import tool
from harness.compiled.kernelfacts import KernelFacts
from harness.device import load_devices
from harness.model.warpsim import Costs, Hop, simulate
from harness.tests.toys import python

CHILD = Path(__file__).with_name("facts_child.py")
TILE = {"t4": 16}  # without tensor cores a tile of 64 is unrolled into thousands of instructions
GPUS = {"t4": 75, "a100_80_sxm": 80, "l4": 89, "h200_sxm": 90, "b200_sxm": 100}
SOURCE = CHILD.read_text(encoding="utf-8").splitlines()
LOAD, STORE = (next(i for i, x in enumerate(SOURCE, 1) if f"# the {what}" in x) for what in ("load", "store"))
WARPS = 4

pytestmark = pytest.mark.skipif(tool("nvdisasm") is None, reason="no nvdisasm: install triton, which brings it")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> dict[str, dict[str, KernelFacts]]:
    where = tmp_path_factory.mktemp("facts")
    done = python(str(CHILD), *GPUS, cwd=where)
    assert done.returncode == 0, done.stderr
    return {g: {k: KernelFacts.from_json(f) for k, f in of.items()} for g, of in json.loads(done.stdout).items()}


@pytest.mark.parametrize("gpu", GPUS)
def test_the_loop_runs_as_often_as_the_arguments_say(compiled, gpu):
    facts = compiled[gpu]["row_sum"]
    found, _ = trips.executed(facts, {"grid": [64], "samples": [0, 63], "scalars": {"N": 10_240, "stride": 10_240}})

    loads = [
        n for i, n in zip(facts.program.instructions, found.instructions, strict=True) if i.base == "LDG"
    ]  # 10 blocks of 1024 floats: each of four warps reads 16 bytes a thread, twice
    assert found.unknown == () and found.complete
    assert sum(loads) == 10 * WARPS * 2


@pytest.mark.parametrize("gpu", GPUS)
def test_memory_instructions_stand_at_the_lines_of_their_operations(compiled, gpu):
    facts = compiled[gpu]["row_sum"]
    places = {(i.base, i.line) for i in facts.program.instructions if i.base in ("LDG", "STG")}

    assert places == {("LDG", LOAD), ("STG", STORE)}
    assert {(a.kind, a.line, a.bits, a.how) for a in facts.accesses} == {
        ("load", LOAD, 32, "direct"), ("store", STORE, 32, "direct"),
    }  # fmt: skip
    columns = {i.column for i in facts.program.instructions if i.base == "LDG"}
    assert columns == {a.column for a in facts.accesses if a.kind == "load"}


@pytest.mark.parametrize("gpu", GPUS)
def test_a_layout_says_who_loads_what(compiled, gpu):
    access = next(a for a in compiled[gpu]["row_sum"].accesses if a.kind == "load")
    warp, lane, _ = access.layout.owners()

    assert access.shape == (1024,)
    assert lane[:8].tolist() == [0] * 4 + [1] * 4
    assert warp[128] == 1


@pytest.mark.parametrize(
    ("gpu", "kind"), [("t4", "fma"), ("a100_80_sxm", "mma"), ("h200_sxm", "wgmma"), ("b200_sxm", "tcgen05")]
)
def test_what_multiplies(compiled, gpu, kind):
    facts = compiled[gpu]["matmul"]
    pipes = {i.pipe for i in facts.program.instructions}

    tile = TILE.get(gpu, 64)
    assert {(d.kind, *d.shape[:2]) for d in facts.dots} == {(kind, tile, tile)}
    assert {"fma": "fma", "mma": "tensor", "wgmma": "wgmma", "tcgen05": "tcgen05"}[kind] in pipes


@pytest.mark.parametrize("gpu", GPUS)
def test_arguments_have_names_and_places(compiled, gpu):
    facts = compiled[gpu]["matmul"]

    assert [(p.name, p.offset) for p in facts.parameters[:4]] == [("a_ptr", 0), ("b_ptr", 8), ("c_ptr", 16), ("K", 24)]
    assert facts.arguments_at == {75: 0x160, 80: 0x160, 89: 0x160, 90: 0x210, 100: 0x380}[GPUS[gpu]]


@pytest.mark.parametrize("gpu", GPUS)
def test_the_simulation_takes_every_architecture(compiled, gpu):
    for facts in compiled[gpu].values():
        found, _ = trips.executed(
            facts, {"grid": [64], "samples": [0], "scalars": {"N": 4096, "stride": 4096, "K": 512}}
        )
        device = load_devices()[gpu]
        path = simulate(
            facts.program, found, facts.threads // 32, lambda _: Hop(500.0, 4.0), tensor=lambda _: 32.0,
            residents=facts.blocks_per_sm(device), costs=Costs.of(facts.sm),
        )  # fmt: skip
        assert math.isfinite(path.cycles) and path.cycles >= path.instructions / 4 / 2
        assert not facts.program.unknown


def test_a_transpose_through_shared_memory_is_free_of_conflicts(compiled):
    """Triton swizzles: the facts must see it, not the stride of the tile."""
    program = compiled["h200_sxm"]["transpose"].program
    shared = [i for i in program.instructions if i.base in ("LDS", "STS", "LDSM", "STSM")]

    assert shared and all(i.conflict <= 1.0 for i in shared)


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "blocks"),
    [
        (16, 32, 0, 32),
        (20, 128, 0, 16),
        (80, 32, 0, 24),
        (128, 256, 0, 2),
        (32, 128, 49_152, 4),
        (255, 512, 0, 1),
        (16, 1024, 0, 2),
    ],
)
def test_how_many_ctas_an_sm_holds(compiled, registers, threads, shared, blocks):
    """As CUDA's occupancy calculator: the H200 has 64 warps, 32 CTAs, 65536 registers, 228 KiB."""
    facts = compiled["h200_sxm"]["row_sum"]
    like = KernelFacts(**{**vars(facts), "registers": registers, "threads": threads, "shared_bytes": shared})

    assert like.blocks_per_sm(load_devices()["h200_sxm"]) == blocks


def test_facts_cross_a_process_as_json(compiled):
    for of in compiled.values():
        for facts in of.values():
            assert KernelFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts
