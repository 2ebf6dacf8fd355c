"""The interpreter's arithmetic against independent ones: integer recipes, exact fractions, ml_dtypes and torch.

Kernels run in child processes (this process must import neither torch nor triton): `gpu/one_op.py` for single
operations on all bit patterns, `numerics_child.py` for everything else.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.interpreted import libdevice, numerics, rounding
from harness.tests.gpu.patterns import DOTS, DTYPES, OPS, dot_operands, operands, same, ulp_distance

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECOND = 16
FORMATS = {"bf16": (8, -126), "fp16": (11, -14), "fp32": (24, -126), "fp64": (53, -1022),
           "fp8e4nv": (4, -6), "fp8e5": (3, -14)}  # significand bits, smallest exponent  # fmt: skip
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
COMPARISONS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
               "ne": np.not_equal}  # fmt: skip
KEYS = [
    *(f"{n}-bf16-bf16-bf16" for n in (*ARITHMETIC, "max", "min", "maxnan", "minnan", "where", "mod")),
    *(f"{n}-bf16-bf16-i1" for n in COMPARISONS), "add-fp16-fp16-fp16", "mul-fp16-fp16-fp16", "abs-bf16-bf16",
    "fma-bf16-bf16-bf16-bf16", "fma-fp16-fp16-fp16-fp16", "fma-fp32-fp32-fp32-fp32",
    *(f"cast-{a}-{b}" for a in ("fp16", "bf16", "fp32") for b in ("fp8e4nv", "fp8e5")),
    *(f"cast-{a}-{b}" for a in ("fp8e4nv", "fp8e5") for b in ("fp16", "fp32", "bf16")),
    "cast-fp32-bf16", "cast-fp32-fp16", "cast-bf16-fp32", "cast-bf16-fp16", "cast-fp16-bf16", "cast-fp64-bf16",
    "rtz-fp32-bf16", "rtz-fp32-fp16", "rtz-fp32-fp8e5",
    *(f"cast-{a}-{b}" for a in ("i32", "i64", "u64") for b in ("bf16", "fp16", "fp32")),
    *(f"cast-{a}-{b}" for a in ("fp32", "fp64") for b in ("i8", "u8", "i16", "i32", "u32", "i64", "u64")),
    "idiv-i32-i32-i32", "mod-i32-i32-i32", "idiv-i8-i8-i8", "exp-fp32-fp32", "exp2-fp32-fp32", "sqrt-fp32-fp32",
    "log-fp32-fp32", "floor-fp32-fp32", "sqrt_rn-fp32-fp32", "erf-fp32-fp32",
    *(k for k in DOTS if "16x16x32" in k),
]  # fmt: skip
TORCH_SCRIPT = """
import numpy as np, sys, torch
from harness.tests.gpu.patterns import OPS, operands
kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp8e4nv": torch.float8_e4m3fn,
         "fp8e5": torch.float8_e5m2}
def tensor(a, t):
    return torch.from_numpy(a.view(f"u1" if a.itemsize == 1 else f"i{a.itemsize}")).view(kinds[t])
folder, second, *keys = sys.argv[1:]
for key in keys:
    op = OPS[key]
    ins = [tensor(a, t) for a, t in zip(operands(op, int(second)), op.ins)]
    if op.name == "cast":
        out = ins[0].to(kinds[op.out])
    else:
        out = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "max": torch.fmax}[op.name](*ins)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[out.element_size()]
    np.save(f"{folder}/torch-{key}.npy", out.view(bits).numpy().view(f"u{out.element_size()}"))
"""
TORCH_KEYS = [
    *(f"{n}-bf16-bf16-bf16" for n in ARITHMETIC), "cast-fp32-bf16", "cast-fp32-fp16", "cast-fp16-fp8e4nv",
    "cast-fp16-fp8e5", "cast-fp32-fp8e4nv", "cast-fp8e4nv-fp32", "cast-fp8e5-fp16", "cast-bf16-fp16",
]  # fmt: skip


def child(arguments: list[str], interpret: bool) -> subprocess.Popen:
    """Starts a Python process that finds the harness, and the triton that this process would find."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    env |= {"TRITON_INTERPRET": "1"} if interpret else {}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Results:
    """What the children computed: `interpreted(key)`, `torch(key)` as arrays and `kernels` as a dictionary."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        children = [
            child(["-m", "harness.tests.numerics_child", str(folder), str(SECOND), *KEYS], interpret=True),
            child(["-c", TORCH_SCRIPT, str(folder), str(SECOND), *TORCH_KEYS], interpret=False),
        ]
        said = [c.communicate(timeout=600) for c in children]
        for process, (_, errors) in zip(children, said, strict=True):
            assert process.returncode == 0, errors[-3000:]
        self.kernels = json.loads(said[0][0])

    def interpreted(self, key: str) -> np.ndarray:
        kind = OPS[key].out if key in OPS else DOTS[key].acc
        return np.load(self.folder / f"{key}.npy").view(DTYPES[kind])

    def torch(self, key: str) -> np.ndarray:
        return np.load(self.folder / f"torch-{key}.npy").view(DTYPES[OPS[key].out])


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    return Results(tmp_path_factory.mktemp("numerics"))


@pytest.fixture(autouse=True)
def quiet():
    """The expected values are computed from infinities and NaNs, too; the children run with warnings as errors."""
    with np.errstate(all="ignore"):
        yield


def widen_bf16(values: np.ndarray) -> np.ndarray:
    """bfloat16 as float32, by moving bits."""
    return (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def narrow_bf16(values: np.ndarray) -> np.ndarray:
    """float32 as bfloat16 by the integer recipe: add half of the dropped part, less one if the kept part is even."""
    bits = values.astype(np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).view(DTYPES["bf16"])


def nearest(value: Fraction, kind: str) -> Fraction:
    """An exact number rounded to nearest, ties to even, with the format's precision and no largest value."""
    if value == 0:
        return value
    bits, smallest = FORMATS[kind]
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    unit = Fraction(2) ** (max(exponent, smallest) - bits + 1)
    return round(value / unit) * unit


def agree(got: np.ndarray, expected: np.ndarray, ins: list[np.ndarray]) -> None:
    """Fails with the first three differences."""
    differ = np.flatnonzero(~same(got.reshape(-1), expected.reshape(-1)))
    shown = [(*(float(a[i]) for a in ins), float(got[i]), float(expected[i])) for i in differ[:3]]
    assert not len(differ), f"{len(differ)} of {got.size} differ; operands, got, expected: {shown}"


def finite_sample(key: str, count: int) -> np.ndarray:
    """Indices of operands that are all finite, spread over the whole set."""
    ok = np.all([np.isfinite(a.astype(np.float64)) for a in operands(OPS[key], SECOND)], axis=0)
    return np.random.default_rng(5).choice(np.flatnonzero(ok), count, replace=False)


# -- one operation, all patterns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARITHMETIC)
def test_bfloat16_arithmetic_rounds_once_to_even(results, name):
    ins = operands(OPS[f"{name}-bf16-bf16-bf16"], SECOND)

    expected = narrow_bf16(ARITHMETIC[name](*map(widen_bf16, ins)))

    agree(results.interpreted(f"{name}-bf16-bf16-bf16"), expected, ins)


@pytest.mark.parametrize("name", COMPARISONS)
def test_bfloat16_comparisons_compare_numbers(results, name):
    ins = operands(OPS[f"{name}-bf16-bf16-i1"], SECOND)

    expected = COMPARISONS[name](*map(widen_bf16, ins))

    agree(results.interpreted(f"{name}-bf16-bf16-i1"), expected, ins)


@pytest.mark.parametrize(("name", "pick", "keeps_nan"), [
    ("max", max, False), ("min", min, False), ("maxnan", max, True), ("minnan", min, True),
])  # fmt: skip
def test_max_and_min_treat_nan_and_signed_zeros_like_the_hardware(results, name, pick, keeps_nan):
    key = f"{name}-bf16-bf16-bf16"
    a, b = operands(OPS[key], SECOND)
    picked = np.random.default_rng(0).choice(len(a), 20000, replace=False)
    picked = np.concatenate(
        [picked, np.flatnonzero((a == 0) & (b == 0)), np.flatnonzero(np.isnan(a) & np.isnan(b))[:9]]
    )

    def chosen(x: float, y: float) -> float:
        if math.isnan(x) or math.isnan(y):
            return math.nan if keeps_nan or (math.isnan(x) and math.isnan(y)) else (y if math.isnan(x) else x)
        return pick((x, y), key=lambda v: (v, math.copysign(1, v)))

    expected = narrow_bf16(np.array([chosen(float(a[i]), float(b[i])) for i in picked], np.float32))

    agree(results.interpreted(key)[picked], expected, [a[picked], b[picked]])


def test_selection_and_sign_move_bits(results):
    a, b = operands(OPS["where-bf16-bf16-bf16"], SECOND)

    agree(results.interpreted("where-bf16-bf16-bf16"), np.where(widen_bf16(a) > widen_bf16(b), a, b), [a, b])
    (values,) = operands(OPS["abs-bf16-bf16"], SECOND)
    assert (results.interpreted("abs-bf16-bf16").view(np.uint16) == values.view(np.uint16) & 0x7FFF).all()


def test_remainder_is_one_division_and_one_fused_step(results):
    a, b = operands(OPS["mod-bf16-bf16-bf16"], SECOND)
    x, y = widen_bf16(a), widen_bf16(b)
    whole = np.trunc(x / y).astype(np.float64)
    keep = np.isfinite(y) & (np.abs(whole) < 2.0**20)  # float64 is exact there

    expected = narrow_bf16((x.astype(np.float64) - whole * y).astype(np.float32))

    agree(results.interpreted("mod-bf16-bf16-bf16")[keep], expected[keep], [a[keep], b[keep]])
    whole_x = results.interpreted("mod-bf16-bf16-bf16")[np.isinf(y) & np.isfinite(x)]
    agree(whole_x, a[np.isinf(y) & np.isfinite(x)], [whole_x])


@pytest.mark.parametrize("key", TORCH_KEYS)
def test_same_as_torch(results, key):
    ins = operands(OPS[key], SECOND)
    keep = np.ones(len(ins[0]), bool)
    if "fp8e" in key.split("-")[-1]:  # torch does not saturate everywhere
        keep = np.abs(ins[0].astype(np.float64)) <= (448 if key.endswith("nv") else 57344)

    agree(results.interpreted(key)[keep], results.torch(key)[keep], [a[keep] for a in ins])


@pytest.mark.parametrize("key", ["add-fp16-fp16-fp16", "mul-fp16-fp16-fp16", "fma-bf16-bf16-bf16-bf16",
                                 "fma-fp16-fp16-fp16-fp16", "fma-fp32-fp32-fp32-fp32"])  # fmt: skip
def test_rounded_once_from_the_exact_result(results, key):
    op, ins, got = OPS[key], operands(OPS[key], SECOND), results.interpreted(key)
    exact = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "fma": lambda a, b, c: a * b + c}[op.name]
    largest = Fraction(float(ml_dtypes.finfo(DTYPES[op.out]).max))

    for i in finite_sample(key, 4000):
        expected = nearest(exact(*(Fraction(float(a[i])) for a in ins)), op.out)
        found = float(got[i])
        assert (abs(expected) > largest and math.isinf(found)) or Fraction(found) == expected, [
            float(a[i]) for a in ins
        ]


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32", "fp64"])
@given(data=st.data())
@settings(max_examples=60, deadline=None, database=None)
def test_fma_sees_the_side_of_a_tie(kind, data):
    bits, dtype = FORMATS[kind][0], DTYPES[kind]
    a = data.draw(st.integers(2, bits - 2))
    # the product has one bit too many, so it is a tie; z is so small that a rounded sum would not show it
    x, y = (2**a + 1) * data.draw(st.sampled_from([1, -1])), 2 ** (bits - a) + 1
    z = data.draw(st.sampled_from([-1, 0, 1])) * 2.0 ** -data.draw(st.integers(0, 20 if kind == "fp16" else 120))

    got = rounding.fma(*(np.array([float(v)]).astype(dtype) for v in (x, y, z)))

    assert Fraction(float(got[0])) == nearest(Fraction(x) * y + Fraction(z), kind)


# -- casts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize(("target", "largest"), [("fp8e4nv", 448.0), ("fp8e5", 57344.0)])
def test_fp8_casts_round_to_even_and_saturate(results, source, target, largest):
    key = f"cast-{source}-{target}"
    (values,) = operands(OPS[key], SECOND)
    wide = values.astype(np.float32)

    expected = wide.astype(DTYPES[target])
    expected = np.where(np.abs(wide) >= largest, np.copysign(largest, wide).astype(DTYPES[target]), expected)

    got = results.interpreted(key)
    agree(got, expected, [values])
    assert set(got.view(np.uint8)[np.isnan(wide)]) == {0x7F}
    assert float(np.abs(got[~np.isnan(wide)].astype(np.float32)).max()) == largest


@pytest.mark.parametrize("key", ["cast-fp32-fp16", "cast-fp32-fp8e4nv", "cast-fp32-fp8e5", "cast-fp64-bf16"])
def test_casts_against_exact_fractions(results, key):
    (values,), got, target = operands(OPS[key], SECOND), results.interpreted(key), OPS[key].out
    largest = float(ml_dtypes.finfo(DTYPES[target]).max)

    for i in finite_sample(key, 3000):
        expected = nearest(Fraction(float(values[i])), target)
        if abs(expected) <= largest:
            assert float(got[i]) == float(expected), float(values[i])


def test_float32_to_bfloat16_by_the_integer_recipe(results):
    (values,) = operands(OPS["cast-fp32-bf16"], SECOND)

    agree(results.interpreted("cast-fp32-bf16"), narrow_bf16(values), [values])


@pytest.mark.parametrize("key", ["cast-fp8e4nv-fp16", "cast-fp8e4nv-fp32", "cast-fp8e4nv-bf16", "cast-fp8e5-fp16",
                                 "cast-fp8e5-fp32", "cast-fp8e5-bf16", "cast-bf16-fp32"])  # fmt: skip
def test_widening_is_exact(results, key):
    (values,) = operands(OPS[key], SECOND)
    expected = values.astype(np.float32).astype(DTYPES[OPS[key].out])
    keep = np.isfinite(values.astype(np.float32)) | (key != "cast-fp8e5-bf16")  # compiled as a multiplication

    agree(results.interpreted(key)[keep], expected[keep], [values[keep]])


def test_infinite_e5m2_becomes_65536_in_bfloat16(results):
    (values,) = operands(OPS["cast-fp8e5-bf16"], SECOND)

    assert set(results.interpreted("cast-fp8e5-bf16")[np.isinf(values)].astype(float)) == {65536.0, -65536.0}


@pytest.mark.parametrize("target", ["bf16", "fp16", "fp8e5"])
def test_toward_zero_never_grows(results, target):
    (values,), got = operands(OPS[f"rtz-fp32-{target}"], SECOND), results.interpreted(f"rtz-fp32-{target}")
    largest = float(ml_dtypes.finfo(DTYPES[target]).max)
    finite = np.isfinite(values)
    wide, exact = got[finite].astype(np.float64), values[finite].astype(np.float64)
    above = (got[finite].view(f"u{got.itemsize}") + 1).view(got.dtype).astype(np.float64)  # the next larger magnitude

    assert (np.abs(wide) <= np.abs(exact)).all()
    assert (np.signbit(wide) == np.signbit(exact)).all()
    assert ((np.abs(above) > np.abs(exact)) | (np.abs(wide) == largest)).all()
    assert np.isinf(got[np.isinf(values)].astype(np.float32)).all()


@pytest.mark.parametrize("source", ["i32", "i64", "u64"])
@pytest.mark.parametrize("target", ["bf16", "fp16", "fp32"])
def test_integers_to_floats_round_once(results, source, target):
    (values,), got = operands(OPS[f"cast-{source}-{target}"], SECOND), results.interpreted(f"cast-{source}-{target}")
    largest = float(ml_dtypes.finfo(DTYPES[target]).max)

    for i in range(2000):
        expected = nearest(Fraction(int(values[i])), target)
        assert float(got[i]) == (expected if abs(expected) <= largest else math.copysign(math.inf, expected)), values[i]


@pytest.mark.parametrize("source", ["fp32", "fp64"])
@pytest.mark.parametrize("target", ["i8", "u8", "i16", "i32", "u32", "i64", "u64"])
def test_floats_to_integers_cut_and_clamp(results, source, target):
    (values,), got = operands(OPS[f"cast-{source}-{target}"], SECOND), results.interpreted(f"cast-{source}-{target}")
    info = np.iinfo(DTYPES[target])
    holder = np.iinfo(info.kind + "2") if info.bits == 8 else info

    for i in [*range(64), *np.random.default_rng(6).integers(0, len(values), 2000)]:
        value = float(values[i])
        if math.isnan(value):
            expected = 1 << (holder.bits - 1) if source == "fp64" or holder.bits == 64 else 0
        else:
            expected = holder.max if value >= holder.max else holder.min if value <= holder.min else int(value)
        assert int(got[i]) & ((1 << info.bits) - 1) == expected & ((1 << info.bits) - 1), value


def test_integer_division_goes_toward_zero(results):
    for kind in ("i32", "i8"):
        a, b = (v.astype(np.int64) for v in operands(OPS[f"idiv-{kind}-{kind}-{kind}"], SECOND))
        expected = np.trunc(a / b).astype(DTYPES[kind])
        agree(results.interpreted(f"idiv-{kind}-{kind}-{kind}"), expected, [a, b])
    a, b = (v.astype(np.int64) for v in operands(OPS["mod-i32-i32-i32"], SECOND))
    agree(results.interpreted("mod-i32-i32-i32"), (a - b * np.trunc(a / b).astype(np.int64)).astype(np.int32), [a, b])


# -- round_to ----------------------------------------------------------------------------------------------------------


@given(bits=st.integers(0, 2**32 - 1), kind=st.sampled_from(["bf16", "fp16", "fp8e4nv", "fp8e5"]))
@settings(deadline=None, database=None)
def test_round_to_picks_the_nearest_and_even(bits, kind):
    value = np.array([bits], np.uint32).view(np.float32)
    if not np.isfinite(value[0]):
        return
    largest = Fraction(float(ml_dtypes.finfo(DTYPES[kind]).max))
    exact = nearest(Fraction(float(value[0])), kind)

    got = float(numerics.round_to(kind, value)[0])

    if abs(exact) <= largest:
        assert Fraction(got) == exact
    else:
        assert abs(got) == (float(largest) if "fp8" in kind else math.inf)
    assert math.copysign(1, got) == math.copysign(1, value[0])


def test_round_to_does_not_round_twice_from_float64():
    tie_and_a_bit = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8])

    assert numerics.round_to("bfloat16", tie_and_a_bit).astype(float).tolist() == [1 + 2**-7, 1.0, 1.0]
    assert numerics.round_to("fp16", np.array([1 + 2**-11 + 2**-40])).astype(float).tolist() == [1 + 2**-10]
    assert numerics.round_to("fp16", np.array([1e-30, 65520.0, -np.inf])).astype(float).tolist() == [0, np.inf, -np.inf]


def test_round_to_knows_both_families_of_names():
    for name, other in (("float8_e4m3fn", "fp8e4nv"), ("float8_e5m2", "fp8e5"), ("bfloat16", "bf16")):
        assert numerics.round_to(name, np.float32([1.1])).dtype == numerics.round_to(other, np.float32([1.1])).dtype
    with pytest.raises(KeyError):
        numerics.round_to("float7", np.float32([1.0]))


def test_fp8e4b15_codes_survive_the_way_there_and_back():
    codes = np.arange(256, dtype=np.uint8)
    codes = codes[(codes & 0x7F) < 0x7F]  # 0x7F stands for 1.875, above the clamp

    assert (rounding.to_e4b15(rounding.from_e4b15(codes)) == codes).all()
    assert rounding.to_e4b15(np.float32([5.0, -5.0])).tolist() == [0x7E, 0xFE]


# -- functions ---------------------------------------------------------------------------------------------------------


def test_exp_rounds_its_scaled_argument(results):
    (values,), got = operands(OPS["exp-fp32-fp32"], SECOND), results.interpreted("exp-fp32-fp32")
    keep = np.isfinite(values) & (np.abs(values) < 80)
    exact = np.exp(values[keep].astype(np.float64))
    error = np.abs(got[keep] / exact - 1)

    assert (error <= (1.25 * np.abs(values[keep]) + 1) * 2.0**-24).all()
    assert (error > 4 * 2.0**-24).any()  # as on a GPU: far more than a rounding error for large arguments


@pytest.mark.parametrize(("name", "reference"), [
    ("exp2", np.exp2), ("sqrt", np.sqrt), ("log", np.log), ("sqrt_rn", np.sqrt), ("floor", np.floor),
    ("erf", np.vectorize(math.erf, otypes=[float])),
])  # fmt: skip
def test_functions_are_within_half_a_unit(results, name, reference):
    (values,), got = operands(OPS[f"{name}-fp32-fp32"], SECOND), results.interpreted(f"{name}-fp32-fp32")
    normal = (np.abs(values) >= 2.0**-126) | np.isnan(values)
    if name in ("log", "sqrt_rn"):
        normal |= True  # these keep subnormal arguments

    expected = reference(values.astype(np.float64)).astype(np.float32)
    expected = np.where(np.abs(expected) < 2.0**-126, np.copysign(np.float32(0), expected), expected)

    assert ulp_distance(got[normal], expected[normal]).max() == 0
    if name in ("sqrt", "floor"):
        assert (got[~normal] == 0).all()


def test_libdevice_computes_known_functions_and_names_unknown_ones(results):
    said = results.kernels
    x = np.array(said["library"]["x"], np.float32)
    tanh, square, third, infinite = np.array(said["library"]["got"], np.float32)

    assert np.allclose(tanh, np.tanh(x), rtol=1e-6)
    assert np.allclose(square, x * x, rtol=1e-6)
    assert np.allclose(third, x / np.float32(3), rtol=1e-6)
    assert (infinite == 1).all()
    assert said["bessel"].startswith("NotImplementedError") and "__nv_j0f" in said["bessel"]
    assert said["wrong_type"].startswith("TypeError") and "libdevice.exp" in said["wrong_type"]


def test_libdevice_at_the_edges_as_on_an_h200():
    def value(name: str, *args: float) -> str:
        return str(libdevice.find(f"__nv_{name}")(*(np.array([a], np.float32) for a in args)).astype(float)[0])

    assert [value("roundf", v) for v in (-0.3, 2.5, -2.5, 0.49999997)] == ["-0.0", "3.0", "-3.0", "0.0"]
    assert value("fast_fdividef", 1.0, 2.0**127) == "0.0" and value("fast_fdividef", math.inf, 2.0**127) == "nan"
    assert value("fast_fdividef", 1.0, math.inf) == "0.0" and value("fast_fdividef", 6.0, 3.0) == "2.0"
    assert value("fmodf", 2.0**-125, 1.5 * 2.0**-126) == str(2.0**-127)  # not flushed, unlike other results
    assert value("expf", -100.0) == "0.0" and value("rsqrtf", 1e-40) == "inf"


def test_libdevice_values(results):
    table = results.kernels["libdevice"]
    names = "acos asin asinh atan atanh cosh erf erfc exp expm1 lgamma log log10 log1p log2 sin sinh sqrt tan tanh"
    known = {name: getattr(math, name) for name in f"{names} cbrt exp2 floor ceil trunc fabs".split()}
    known |= {
        "rsqrt": lambda v: v**-0.5, "rint": round, "round": lambda v: math.floor(v + 0.5), "exp10": lambda v: 10**v,
        "rcbrt": lambda v: v ** (-1 / 3), "sinpi": lambda v: math.sin(math.pi * v), "tgamma": math.gamma,
        "normcdf": lambda v: math.erfc(-v / math.sqrt(2)) / 2,
    }  # fmt: skip

    for name, function in known.items():
        assert np.allclose(table[f"__nv_{name}f"], [function(0.25), function(0.75)], rtol=3e-7), name
    for name, function in {"pow": math.pow, "fmod": math.fmod, "atan2": math.atan2, "hypot": math.hypot,
                           "copysign": math.copysign, "remainder": math.remainder}.items():  # fmt: skip
        assert np.allclose(table[f"__nv_{name}f"], [function(0.25, 0.5), function(0.75, 3.0)], rtol=3e-7), name
    assert table["__nv_fmaf"] == [2.125, 1.25]
    assert np.allclose(table["__nv_erff"], [math.erf(v) for v in (0.25, 0.75)])
    assert np.allclose([math.erf(v) for v in table["__nv_erfinvf"]], [0.25, 0.75])
    assert np.allclose([math.erfc(v) for v in table["__nv_erfcinvf"]], [0.25, 0.75])
    assert table["__nv_isnanf"] == [0, 0] and table["__nv_float2int_rn"] == [0, 1]
    assert sum(value is None for value in table.values()) < len(table) / 3


# -- reductions, scans, blocks -----------------------------------------------------------------------------------------


def tree_sum(values: np.ndarray) -> np.ndarray:
    """A sum by halves, each addition rounded to the dtype."""
    while values.size > 1:
        a, b = np.split(values, 2)
        values = (a.astype(np.float32) + b.astype(np.float32)).astype(values.dtype)
    return values[0]


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32"])
def test_reductions_are_trees_that_round_each_step(results, kind):
    said = results.kernels[f"folds_{kind}"]
    x = np.array(said["x"], np.float64).astype(DTYPES[kind])
    clean = np.where(np.isnan(x), 0, x).astype(DTYPES[kind])
    with_nan, without = np.array(said["got"], np.float32), np.array(said["clean"], np.float32)

    assert without[0] == np.float32(tree_sum(clean))
    assert abs(without[5] - clean.astype(np.float64).sum()) < 128 * float(ml_dtypes.finfo(DTYPES[kind]).eps)
    assert np.isnan(with_nan[0])  # a sum keeps a NaN
    assert with_nan[1] == np.float32(np.nanmax(x.astype(np.float32)))  # tl.max gives way to numbers
    assert with_nan[2] == np.float32(np.nanmin(x.astype(np.float32)))
    assert without[3] == 17  # the first of two equal ones
    assert without[4] == np.argmin(clean.astype(np.float32))
    assert (without[8:16] == clean.reshape(8, 16).astype(np.float32).max(1)).all()
    assert (without[32:48] == clean.reshape(8, 16).astype(np.float32).min(0)).all()


def test_integers_reduce_exactly(results):
    got = results.kernels["folds_int"]

    assert got[:6] == [-64, 63, -64, 127, 0, -64]


def test_own_combine_functions(results):
    said = results.kernels["own_combine"]
    x, got = np.array(said["x"], np.float32), np.array(said["got"], np.float32)
    scale, shift, shifts = np.float64(1), np.float64(0), []
    for v in x.astype(np.float64):
        scale, shift = scale * v, shift * v + (v + 1)
        shifts.append(shift)

    assert got[0, 0] == got[0, 1] == x.max()  # with an `if`, directly and in a function that it calls
    assert np.allclose(got[0, 2:4], [scale, shift], rtol=1e-5)  # associative, not commutative
    assert (got[1] == np.maximum.accumulate(x)).all()
    assert np.allclose(got[2], shifts, rtol=1e-5)
    assert np.allclose(got[3], np.cumsum(x[::-1].astype(np.float64))[::-1], rtol=1e-6)
    assert (got[4] == np.sort(x)).all()
    assert (got[5] == x[::-1]).all()


def test_constants_selection_and_bitcasts(results):
    said = results.kernels["constants"]
    x, got = np.array(said["x"]), np.array(said["got"])

    assert (got[0][1:] == 0).all()  # the compiler prints bfloat16 constants with six decimals
    assert set(got[1]) == {float(narrow_bf16(np.float32([1e-5]))[0])}
    assert set(got[2]) == {-56.0}
    assert (got[3][1:] == np.abs(x[1:])).all() and np.isnan(got[3][0])
    assert got[4][0] == -1.0 and (got[4][1:] == np.clip(x[1:], -1, 2)).all()
    assert (got[5][1:] == x[1:]).all()


def test_a_scalar_condition_masks_a_block(results):
    written, counted, masked = results.kernels["scalar_condition"]

    assert written == [1, 2, 3, 4, 5] + [0] * 11
    assert counted == [2, 2, 2, 1] + [0] * 12
    assert masked == [2, 1] + [0] * 14  # negative numbers are not counted, nor are masked ones
    assert results.kernels["comparison"] == "int1"


def test_fp8_has_no_arithmetic(results):
    assert results.kernels["fp8_sum"].startswith("TypeError: fp8e5 has no arithmetic")


def test_install_is_idempotent_and_an_index_is_one_number(results):
    assert results.kernels["idempotent"]
    assert results.kernels["index"][0] == 7
    assert results.kernels["index"][1].startswith("TypeError: a block of shape [2]")


# -- dot ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [k for k in KEYS if k.startswith("dot_whole")])
def test_whole_numbers_multiply_exactly(results, key):
    a, b = (v.astype(np.float64) for v in dot_operands(DOTS[key]))

    assert (results.interpreted(key).astype(np.float64) == a @ b).all()


def test_tf32_cuts_float32_operands(results):
    key = "dot_single-fp32-default-fp32-16x16x32"
    a, b = dot_operands(DOTS[key])
    cut = (a.view(np.uint32) & 0xFFFFE000).view(np.float32)

    assert (results.interpreted(key) == cut @ b).all()
    assert (results.interpreted(key) != a @ b).any()


@pytest.mark.parametrize(("precision", "bound"), [
    ("default", 2.0**-10), ("tf32x3", 2.0**-20), ("bf16x3", 2.0**-14), ("bf16x6", 2.0**-20), ("ieee", 2.0**-21),
])  # fmt: skip
def test_input_precision_is_as_good_as_its_name_and_not_better(results, precision, bound):
    key = f"dot_random-fp32-{precision}-fp32-16x16x32"
    a, b = (v.astype(np.float64) for v in dot_operands(DOTS[key]))
    error = (np.abs(results.interpreted(key) - a @ b) / (np.abs(a) @ np.abs(b))).max()

    assert error < bound
    if precision in ("default", "bf16x3"):
        assert error > 2.0**-19


def test_a_float16_accumulator_is_rounded(results):
    key = "dot_random-fp16-default-fp16-16x16x32"
    a, b = (v.astype(np.float32) for v in dot_operands(DOTS[key]))
    first = (a[:, :16] @ b[:16]).astype(np.float16).astype(np.float32)

    assert ulp_distance(results.interpreted(key), (first + a[:, 16:] @ b[16:]).astype(np.float16)).max() <= 1
    assert (results.interpreted(key) != (a @ b).astype(np.float16)).any()


@pytest.mark.parametrize("kind", ["fp16", "bf16", "fp8e5", "fp8e4nv"])
def test_narrow_operands_multiply_exactly(results, kind):
    key = f"dot_single-{kind}-default-fp32-16x16x32"
    a, b = (v.astype(np.float32) for v in dot_operands(DOTS[key]))

    assert (results.interpreted(key) == a @ b).all()


def test_scaled_dot_decodes_fp4_low_nibble_first(results):
    said = results.kernels["dot_scaled"]
    codes, scale = np.array(said["a"], np.uint8), np.array(said["scale"], np.int64)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    a = values[np.stack([codes & 15, codes >> 4], axis=-1).reshape(16, 64)] * np.repeat(
        2.0 ** (scale - 127), 32, axis=1
    )
    b = np.array(said["b"])

    assert np.allclose(said["got"], a @ b, atol=1e-5 * (np.abs(a) @ np.abs(b)).max())
