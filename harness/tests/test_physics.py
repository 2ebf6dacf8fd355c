"""Physics gives the figures that the lessons state, and the vectors that JavaScript shares."""

import inspect
import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import physics
from harness.device import find_device, load_devices
from harness.errors import KataError
from harness.models import find_model

VECTORS = json.loads((Path(__file__).parent / "physics_vectors.json").read_text(encoding="utf-8"))
H100, H200, B200 = (find_device(name) for name in ("H100", "H200", "B200"))
LLAMA = find_model("Llama 3.3 70B")


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda v: f"{v['name']}{tuple(v['args'])}")
def test_shared_vectors(vector):
    value = getattr(physics, vector["name"])(*vector["args"])

    assert (list(value) if isinstance(value, tuple) else value) == pytest.approx(
        vector["value"], rel=VECTORS["tolerance"]
    )


def test_every_function_has_a_vector_and_a_docstring():
    functions = {n: f for n, f in inspect.getmembers(physics, inspect.isfunction) if f.__module__ == physics.__name__}

    assert set(functions) == {v["name"] for v in VECTORS["vectors"]}
    assert all(f.__doc__ and f.__doc__.startswith("Return") for f in functions.values())


# -- the figures that people repeat, each with what it assumes --------------------------------------------------------


def test_the_ridge_of_an_h100_is_295_flop_a_byte():
    """Dense bfloat16, SXM, datasheet bandwidth."""
    assert round(physics.ridge(H100.peaks["bfloat16"], H100.mem_bw)) == 295
    assert round(physics.ridge(H200.peaks["bfloat16"], H200.mem_bw)) == 206


def test_decode_at_batch_1_is_near_1_flop_a_byte():
    outputs, inputs = LLAMA.projections()["up"]

    def at(batch, bits):
        return physics.intensity(
            physics.linear_flop(batch, outputs, inputs), physics.linear_bytes(batch, outputs, inputs, bits)
        )

    assert at(1, 16) == pytest.approx(1, rel=2e-3)
    assert at(1, 8) == pytest.approx(2, rel=2e-3)
    assert at(1, 4.5) == pytest.approx(3.56, rel=2e-3)
    assert at(16, 16) == pytest.approx(16, rel=5e-3)


def test_an_h100_has_33_mib_of_registers_and_29_mib_of_shared_memory():
    assert physics.registers_bytes(H100.sms, H100.registers_per_sm) == 33 * 2**20
    assert physics.shared_bytes(H100.sms, H100.shared_per_sm_bytes) / 2**20 == pytest.approx(29.39, abs=0.005)
    assert physics.shared_bytes(H100.sms, H100.shared_per_block_optin_bytes) / 2**20 == pytest.approx(29.26, abs=0.005)


def test_2_mb_must_be_in_flight_on_an_h100_if_the_loaded_latency_is_600_ns():
    assumed = 600e-9  # nobody's measurement: about twice what an idle memory takes
    flight = physics.bytes_in_flight(H100.mem_bw, assumed)

    assert flight == pytest.approx(2.01e6)
    assert flight / H100.sms == pytest.approx(15.2e3, rel=2e-3)
    assert physics.bytes_in_flight(H100.mem_bw, 344e-9) == pytest.approx(1.15e6, rel=3e-3)  # idle, on a GH200
    assert physics.reached_bandwidth(flight / 2, assumed, H100.mem_bw) == pytest.approx(H100.mem_bw / 2)


@pytest.mark.parametrize(("format", "gb"), [("bfloat16", 141.11), ("float8", 70.55), ("nvfp4", 39.69)])
def test_llama_3_3_70b_takes_141_71_or_40_gb(format, gb):
    assert LLAMA.weight_bytes(format) / 1e9 == pytest.approx(gb, abs=0.005)


@pytest.mark.parametrize(("format", "gb"), [("float8", 72.66), ("nvfp4", 42.71)])
def test_checkpoints_that_keep_embeddings_and_norms_at_16_bits_are_larger(format, gb):
    size = physics.checkpoint_bytes(LLAMA.parameters, LLAMA.linear_parameters(), physics.bits_per_weight(format))

    assert size / 1e9 == pytest.approx(gb, abs=0.005)


@pytest.mark.parametrize(
    ("flop_rate", "bandwidth", "batch"),
    [
        (2250e12, 8.0e12, 141),  # B200 at the 8 TB/s of its product page
        (2250e12, 7.7e12, 146),  # B200 at the 7.7 TB/s of the HGX datasheet
        (989.4e12, 3.35e12, 148),  # H100 SXM
        (989.4e12, 4.8e12, 103),  # H200
    ],
)
def test_w4a16_and_w8a8_cross_at(flop_rate, bandwidth, batch):
    assert round(physics.crossover_batch(flop_rate, bandwidth)) == batch


def test_at_the_crossover_both_take_the_same_time_and_around_it_each_wins_once():
    rate16, rate8, bandwidth, n = 2250e12, 4500e12, 8e12, 70e9
    cross = physics.crossover_batch(rate16, bandwidth)

    def gain(batch):
        w4 = physics.amortised_time(batch, n, physics.bits_per_weight("nvfp4"), rate16, bandwidth)
        return physics.amortised_time(batch, n, 8, rate8, bandwidth) / w4

    assert gain(cross) == pytest.approx(1)
    assert gain(cross - 1) > 1 > gain(cross + 1)
    assert physics.critical_batch(4.5, rate16, bandwidth) == pytest.approx(79, abs=0.5)
    assert physics.critical_batch(8, rate8, bandwidth) == pytest.approx(281, abs=0.5)


@pytest.mark.parametrize(
    ("format", "bits"), [("mxfp4", 4.25), ("nvfp4", 4.5), ("nf4", 4.5), ("nf4_nested", 4.127), ("int4_group128", 4.156)]
)
def test_bits_a_weight_with_its_scales(format, bits):
    assert physics.bits_per_weight(format) == pytest.approx(bits, abs=5e-4)


def test_an_unknown_format_is_named_with_the_nearest():
    with pytest.raises(KataError, match=r'format=\'nvpf4\' is none of float32, .*\. Did you mean "nvfp4"\?'):
        physics.bits_per_weight("nvpf4")


def test_32k_tokens_of_llama_70b_keep_10_7_gb():
    assert LLAMA.kv_bytes_per_token() * 2**15 / 1e9 == pytest.approx(10.7, abs=0.05)
    assert physics.kv_intensity(LLAMA.q_heads, LLAMA.kv_heads) == 8


# -- what must hold whatever the numbers ------------------------------------------------------------------------------

positive = st.floats(1e-3, 1e15)


@given(positive, positive, positive)
def test_the_roofline_bends_at_the_ridge(at, rate, bandwidth):
    roof = physics.roofline(at, rate, bandwidth)

    assert roof <= rate
    assert (roof == rate) == (at * bandwidth >= rate)
    assert physics.limit_time(at, 1.0, rate, bandwidth) == pytest.approx(at / roof)


@given(st.integers(1, 4096), st.integers(1, 160), st.integers(1, 32))
def test_waves_hold_all_programs_and_no_wave_is_spare(programs, sms, per_sm):
    rounds = physics.waves(programs, sms, per_sm)

    assert (rounds - 1) * sms * per_sm < programs <= rounds * sms * per_sm
    assert 0 < physics.wave_efficiency(programs, sms, per_sm) <= 1


@given(st.floats(0, 0.99), st.integers(0, 12))
def test_accepted_tokens_are_the_expectation_of_the_game(acceptance, drafted):
    """Draft tokens are taken until one is refused; then, or after all, the target adds its own."""
    runs = sum((k + 1) * acceptance**k * (1 - acceptance) for k in range(drafted)) + (drafted + 1) * acceptance**drafted

    assert physics.accepted_tokens(acceptance, drafted) == pytest.approx(runs)


@pytest.mark.parametrize("samples", [6, 9, 20, 61])
def test_the_ranks_cover_the_median_as_often_as_they_say(samples):
    draw = random.Random(samples)
    low, high = physics.median_ranks(samples)
    hits = 0
    for _ in range(2000):
        values = sorted(draw.expovariate(1.0) for _ in range(samples))
        hits += values[low - 1] <= math.log(2) <= values[high - 1]

    assert hits / 2000 > 0.94


@pytest.mark.parametrize("stride", [1, 2, 3, 8, 9, 4096])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_sectors_are_those_of_the_addresses(stride, size):
    touched = {(lane * stride * size + byte) // 32 for lane in range(32) for byte in range(size)}

    assert physics.sectors_per_request(stride, size) == len(touched)


def test_every_device_has_a_ridge_at_each_dtype():
    for device in load_devices().values():
        for dtype, peak in device.peaks.items():
            assert 1 < physics.ridge(peak, device.mem_bw) < 1500, (device.id, dtype)
