"""Inputs: the same case gives the same bits, in the layout that it names, with gaps that show when they are read."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from harness.errors import SpecError
from harness.runner import inputs
from harness.spec import FILLS, LAYOUTS, Case, load_spec
from harness.tests.toys import write_kata

DTYPES = ("float32", "float16", "bfloat16", "int32", "int8", "uint8", "bool")


def case(seed=1, **changes):
    return Case("a", {"M": 4, "N": 6}, "float32", seed=seed, **changes)


def build(shape=(4, 6), dtype="float32", layout="contiguous", fill="normal", seed=1, fills=None, lazy=False):
    return inputs.Build(case(seed), fills or {}, lazy)(shape, dtype, layout, fill)


@pytest.mark.parametrize(
    ("layout", "shape"),
    [(name, shape) for name in LAYOUTS for shape in [(), (7,), (1,), (3, 6), (0, 6), (3, 0), (2, 3, 5)]],
)
def test_every_layout_has_the_shape_that_was_asked_for(layout, shape):
    x = build(shape, "int8", layout)

    assert tuple(x.shape) == shape
    assert x.dtype == torch.int8


@pytest.mark.parametrize(("layout", "shape", "strides", "offset"), [
    ("contiguous", (4, 6), (6, 1), 0),
    ("transposed", (4, 6), (1, 4), 0),
    ("transposed", (7,), (2,), 0),
    ("strided", (4, 6), (12, 2), 0),
    ("sliced", (4, 6), (11, 1), 2),
    ("offset", (4, 6), (6, 1), 1),
    ("expanded", (4, 6), (0, 1), 0),
    ("expanded", (7,), (0,), 0),
    ("huge", (3,), (2**30,), 0),
])  # fmt: skip
def test_a_layout_lies_in_memory_as_its_name_says(layout, shape, strides, offset):
    x = build(shape, "int8", layout)

    assert (x.stride(), x.storage_offset()) == (strides, offset)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "strided", "offset"])
def test_a_seed_gives_the_same_values_in_every_layout(dtype, layout):
    assert torch.equal(build(dtype=dtype, layout=layout), build(dtype=dtype))
    assert torch.equal(build(dtype=dtype, layout=layout), build(dtype=dtype, layout=layout))


@pytest.mark.parametrize("dtype", DTYPES)
def test_another_seed_gives_other_values(dtype):
    assert not torch.equal(build((64,), dtype), build((64,), dtype, seed=2))


@pytest.mark.parametrize("layout", ["sliced", "strided", "offset"])
def test_gaps_hold_nan_or_77(layout):
    x, k = build(layout=layout), build(dtype="int32", layout=layout)
    whole = torch.empty(0).set_(x.untyped_storage())
    whole_k = torch.empty(0, dtype=torch.int32).set_(k.untyped_storage())

    assert whole.isnan().sum() == whole.numel() - x.numel() > 0
    assert (whole_k == 77).sum() >= whole_k.numel() - k.numel()


@pytest.mark.parametrize(("fill", "low", "high"), [
    ("normal", -7, 7), ("uniform", 0, 1), ("large", -1e4, 1e4), ("tiny", -0.01, 0.01), ("integers", -9, 9),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_fills_stay_in_their_range(fill, low, high, dtype):
    x = build((2000,), dtype, fill=fill).double()

    assert low <= x.min() < x.max() <= high
    assert x.isfinite().all()
    if fill == "integers":
        assert torch.equal(x, x.round())
    if fill == "large":
        assert x.abs().max() > 3000


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("fill", FILLS)
def test_whole_numbers_use_their_range(dtype, fill):
    x = build((4000,), dtype, fill=fill)
    info = torch.iinfo(x.dtype)

    if fill == "integers":
        assert max(info.min, -9) <= x.min() < x.max() <= 9
    else:
        assert x.double().max() - x.double().min() > 0.9 * (float(info.max) - float(info.min))


def test_a_fill_of_the_kata_changes_or_returns_the_values():
    def change(x, generator):
        x[0] = 7

    fills = {"mine": change, "new": lambda x, generator: x * 0 + 3}

    assert build(fill="mine", fills=fills)[0].tolist() == [7] * 6
    assert build(fill="new", layout="strided", fills=fills).unique().tolist() == [3]


def test_unknown_words_are_one_sentence():
    with pytest.raises(SpecError, match="layout 'tranposed' is unknown; expected one of contiguous, "):
        build(layout="tranposed")
    with pytest.raises(
        SpecError, match="fill 'nrmal' is unknown; expected one of normal, .* or a name from the kata's FILLS"
    ):
        build(fill="nrmal")


@pytest.mark.parametrize(("dtype", "layout"), [("int32", "contiguous"), ("uint8", "strided"), ("int64", "sliced")])
def test_small_integers_of_a_lazy_build_are_real(dtype, layout):
    """Lengths and tables of blocks steer loops and addresses: what is not drawn would be another value at each run."""
    lazy, real = (build((64, 64), dtype, layout, "integers", lazy=lazy) for lazy in (True, False))

    assert torch.equal(lazy, real)


def test_a_lazy_build_touches_no_memory():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    x = build((2**15, 2**15), "float32", lazy=True)  # 4 GiB

    assert tuple(x.shape) == (2**15, 2**15)
    assert resident() - before < 2**28


def test_the_default_makes_one_tensor_an_argument(tmp_path):
    spec = load_spec(write_kata(tmp_path, exercise=EXERCISE).folder)
    x, k = inputs.make_inputs(spec, SimpleNamespace(), case(layout={"x": "transposed"}, fill={"k": "integers"}))

    assert (x.shape, x.dtype, x.stride()) == ((4, 6), torch.float32, (1, 4))
    assert (k.shape, k.dtype) == ((6,), torch.int32)
    assert k.abs().max() <= 9


def test_a_kata_can_make_its_own(tmp_path):
    spec = load_spec(write_kata(tmp_path, exercise=EXERCISE).folder)
    reference = SimpleNamespace(make_inputs=lambda case, build: [build((2,), "int8"), case.dims["M"]])
    x, m = inputs.make_inputs(spec, reference, case())

    assert (x.shape, m) == ((2,), 4)


EXERCISE = """
title = "t"
entry = "f"
cases = [{ id = "a", dims = { M = 4, N = 6 }, dtype = "float32" }]
args = { x = "T[M, N]", k = "int32[N]" }
returns = { out = "T[M]" }
dtypes = { float32 = 75 }
tolerance = { ulp = 1, why = "w" }
gate = { cpu = 0.7, gpu = 0.7, why = "w" }
"""


# tensors inside objects


class State:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def nested():
    t = [torch.full((2,), float(i)) for i in range(4)]
    state = State(absmax=t[0], inner=State(absmax=t[1]), table={"a": t[2]}, number=3, kind=torch.float16)
    state.me = state  # a cycle
    return (state, [t[3], t[0]], "text"), t


def test_every_tensor_is_found_once_with_its_name(tmp_path):
    args, t = nested()
    spec = load_spec(write_kata(tmp_path, exercise=EXERCISE).folder)

    assert inputs.named_tensors(spec, args) == [
        ("x.absmax", t[0]), ("x.inner.absmax", t[1]), ("x.table['a']", t[2]), ("k[0]", t[3]),
    ]  # fmt: skip


def test_tensors_are_replaced_and_objects_are_copied():
    state = State(absmax=torch.ones(2), inner=State(t=torch.ones(1)), n=3)
    new, rest = inputs.map_tensors((state, [state.absmax]), lambda x: x + 1)

    assert (new.absmax.tolist(), new.inner.t.tolist(), new.n) == ([2, 2], [2], 3)
    assert new is not state and rest[0] is new.absmax
    assert state.absmax.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("shape", "strides", "span"),
    [((3,), (1,), 12), ((3,), (2,), 20), ((2, 3), (0, 1), 12), ((), (), 4), ((0, 3), (3, 1), 0)],
)
def test_the_span_of_a_view_ends_with_its_last_element(shape, strides, span):
    assert inputs.span_bytes(torch.zeros(20).as_strided(shape, strides)) == span


def test_bits_tell_nan_apart_and_follow_the_view():
    nan, other = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)

    assert torch.equal(inputs.bits(nan), inputs.bits(nan))
    assert not torch.equal(inputs.bits(nan), inputs.bits(other))
    assert torch.equal(
        inputs.bits(torch.arange(6.0).view(2, 3).t()), inputs.bits(torch.tensor([[0.0, 3], [1, 4], [2, 5]]))
    )
