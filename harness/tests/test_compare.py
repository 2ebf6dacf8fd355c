"""compare: an answer is right exactly when its error is one that honest arithmetic makes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.diagnosis.compare import FORMATS, compare, ulp_size

SIXTEEN = ("float16", "bfloat16")
EIGHT = ("float8_e4m3fn", "float8_e5m2")
NAN, INF = math.nan, math.inf


def every_number(dtype: str) -> torch.Tensor:
    """Return all bit patterns of a dtype of 8 or 16 bits, in the order of the bits."""
    if dtype in EIGHT:
        return torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype))
    return torch.arange(-(2**15), 2**15, dtype=torch.int16).view(getattr(torch, dtype))


def magnitudes(dtype: str) -> list[float]:
    """Return all finite numbers from 0 up: their bits count up by one."""
    numbers = every_number(dtype).to(torch.float64)
    return sorted(x for x in set(numbers.tolist()) if math.isfinite(x) and x >= 0)


def mismatch(expected, got, dtype="float32", *, bound=0.0, ulp=0.0, nan_allowed=False):
    expected = torch.tensor(expected, dtype=torch.float64)
    got = torch.tensor(got, dtype=torch.float64).to(getattr(torch, dtype))
    return compare(expected, got, bound=bound, ulp=ulp, nan_allowed=nan_allowed)


def wrong_at(*args, **kwargs) -> list[bool]:
    found = mismatch(*args, **kwargs)
    return found.wrong.tolist() if found else []


# ulp_size


@pytest.mark.parametrize("dtype", SIXTEEN + EIGHT)
def test_ulp_size_is_the_step_to_the_next_bit_pattern(dtype):
    numbers = magnitudes(dtype)
    steps = [b - a for a, b in zip(numbers, numbers[1:], strict=False)]
    steps.append(steps[-1])  # the largest number has no neighbour above; its step is that of its binade
    values = torch.tensor(numbers, dtype=torch.float64)
    for sign in (1, -1):
        assert ulp_size(sign * values, dtype).tolist() == steps


@pytest.mark.parametrize("dtype", SIXTEEN + EIGHT)
def test_between_two_numbers_ulp_size_is_their_distance(dtype):
    numbers = np.array(magnitudes(dtype))
    fraction = np.random.default_rng(0).uniform(0.01, 0.99, len(numbers) - 1)
    between = numbers[:-1] + fraction * np.diff(numbers)
    assert (ulp_size(torch.from_numpy(between), dtype).numpy() == np.diff(numbers)).all()


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_ulp_size_of_float32_is_numpys_spacing(x):
    largest = float(np.finfo(np.float32).max)
    spacing = float(np.spacing(np.float32(abs(x)))) if abs(x) < largest else 2.0**104
    assert ulp_size(torch.tensor(x, dtype=torch.float64), "float32").item() == spacing


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_ulp_size_of_float64_is_pythons(x):
    assert ulp_size(torch.tensor(x, dtype=torch.float64), "float64").item() == math.ulp(x)


def test_ulp_size_stays_what_it_is_at_the_top_and_is_nan_at_nan():
    values = torch.tensor([65504.0, 65536.0, 1e300, INF, -INF], dtype=torch.float64)
    assert ulp_size(values, "float16").tolist() == [32.0] * 5
    assert math.isnan(ulp_size(torch.tensor(NAN, dtype=torch.float64), "float16").item())


def test_ulp_size_of_whole_numbers_is_one_and_of_other_dtypes_an_error():
    assert ulp_size(torch.tensor([3.0, 1e9], dtype=torch.float64), "int8").tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="'complex64'.*expected float64"):
        ulp_size(torch.zeros(1, dtype=torch.float64), "complex64")


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_largest_number_of_a_format_is_torchs(dtype):
    assert FORMATS[dtype].largest == torch.finfo(getattr(torch, dtype)).max


# the bound


@pytest.mark.parametrize("dtype", SIXTEEN)
def test_every_bit_pattern_is_judged_as_exact_fractions_judge_it(dtype):
    got = every_number(dtype)
    exact = [Fraction(v) if math.isfinite(v) else None for v in got.to(torch.float64).tolist()]
    numbers = magnitudes(dtype)
    for target, bound, ulp in ((1.0, 0.0, 1.0), (-3e-7, 1e-7, 2.0), (1000.4, 0.25, 0.5)):
        below = max(i for i, n in enumerate(numbers) if n <= abs(target))
        allowed = Fraction(bound) + Fraction(ulp) * (Fraction(numbers[below + 1]) - Fraction(numbers[below]))
        low, high = Fraction(target) - allowed, Fraction(target) + allowed
        right = [v is not None and low <= v <= high for v in exact]
        expected = torch.full(got.shape, target, dtype=torch.float64)
        found = compare(expected, got, bound=bound, ulp=ulp, nan_allowed=False)
        assert (~found.wrong).tolist() == right
        assert any(right)


@pytest.mark.parametrize("dtype", SIXTEEN + ("float8_e5m2",))
def test_the_number_itself_is_right_and_its_neighbour_is_wrong_below_one_unit(dtype):
    got = every_number(dtype)
    got = got[torch.isfinite(got.to(torch.float32))]
    expected = got.to(torch.float64)
    assert compare(expected, got, bound=0.0, ulp=0.0, nan_allowed=False) is None
    away = expected + torch.sign(expected) * ulp_size(expected, dtype)
    found = compare(away, got, bound=0.0, ulp=0.49, nan_allowed=False)
    beyond = away.abs() > FORMATS[dtype].largest
    assert (torch.from_numpy(found.wrong) | beyond | (expected == 0)).all()


@settings(max_examples=200, deadline=None)
@given(
    st.floats(-1e30, 1e30),
    st.floats(-20, 20),
    st.floats(0, 1e30),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 8.0]),
    st.sampled_from(["float32", "float16", "bfloat16", "float64"]),
)
def test_any_number_is_judged_as_exact_fractions_judge_it(target, units, bound, ulp, dtype):
    expected = torch.tensor(target, dtype=torch.float64)
    step = ulp_size(expected, dtype).item()
    got = torch.tensor(target + units * step + 0.5 * bound, dtype=torch.float64).to(getattr(torch, dtype))
    if not torch.isfinite(got):
        return
    error = abs(Fraction(got.item()) - Fraction(target))
    allowed = Fraction(bound) + Fraction(ulp) * Fraction(step)
    found = compare(expected, got, bound=bound, ulp=ulp, nan_allowed=False)
    if abs(error - allowed) > allowed / 2**40:  # closer than that, the rounding of float64 may decide
        assert (found is None) == (error <= allowed)


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["float32", "float16", "bfloat16", *EIGHT]))
def test_the_correctly_rounded_answer_is_always_right(x, dtype):
    if dtype == "float8_e4m3fn":
        x = max(-448.0, min(x, 448.0))  # beyond, releases of torch differ: the largest number, or NaN
    got = torch.tensor([x], dtype=torch.float64).to(getattr(torch, dtype))
    assert compare(torch.tensor([x], dtype=torch.float64), got, bound=0.0, ulp=0.51, nan_allowed=False) is None


def test_a_bound_can_differ_by_element_and_be_broadcast():
    bound = torch.tensor([[0.1], [0.0]], dtype=torch.float64)
    assert wrong_at([[1.0, 1.0], [1.0, 1.0]], [[1.05, 1.2], [1.05, 1.0]], bound=bound) == [[False, True], [True, False]]


def test_the_next_lower_precision_fails_at_one_unit():
    expected = torch.linspace(0.1, 1.0, 500, dtype=torch.float64)
    got = expected.to(torch.bfloat16).to(torch.float16)
    assert compare(expected, expected.to(torch.float16), bound=0.0, ulp=1.0, nan_allowed=False) is None
    assert compare(expected, got, bound=0.0, ulp=1.0, nan_allowed=False).count > 250


# NaN and infinities


def test_nan_is_right_only_where_it_is_expected():
    assert wrong_at([NAN, NAN, 1.0, INF], [NAN, 1.0, NAN, NAN], nan_allowed=True) == [False, True, True, True]
    assert mismatch([NAN, 1.0], [NAN, 1.0], nan_allowed=True) is None


def test_a_nan_that_nobody_asked_for_is_the_references_fault():
    with pytest.raises(ValueError, match=r"the reference is NaN at index \[0, 1\]"):
        mismatch([[1.0, NAN]], [[1.0, NAN]])


def test_a_wide_tolerance_does_not_let_nan_or_infinity_through():
    assert wrong_at([1.0, 1.0, 1.0], [NAN, INF, -INF], bound=1e30, ulp=100.0) == [True, True, True]


def test_infinities_must_match_with_their_sign():
    expected, got = [INF, INF, INF, -INF, 5.0], [INF, -INF, 3e38, -INF, INF]
    assert wrong_at(expected, got, bound=1e30) == [False, True, True, False, True]


def test_a_bound_is_ignored_where_the_answer_is_not_finite():
    bound = torch.tensor([INF, NAN], dtype=torch.float64)
    assert mismatch([INF, NAN], [INF, NAN], bound=bound, nan_allowed=True) is None


@pytest.mark.parametrize("sign", [1, -1])
def test_float16_infinity_stands_where_rounding_puts_it(sign):
    def right(expected: float, got: float, **kwargs) -> bool:
        return mismatch([sign * expected], [sign * got], "float16", **kwargs) is None

    assert right(65520.0, INF)  # the first number that is rounded to infinity
    assert right(1e6, INF)
    assert not right(65519.0, INF)
    assert not right(1e6, 65504.0)
    assert not right(1e6, -INF)
    assert right(65520.0, 65504.0, ulp=0.5)  # half a unit below
    assert right(65519.0, 65504.0, ulp=0.5)
    assert right(65504.0, INF, ulp=1.0)  # infinity is the neighbour of the largest number
    assert not right(65472.0, INF, ulp=1.0)
    assert right(65472.0, INF, bound=64.0)


def test_float64_and_float32_overflow_where_they_end():
    largest = torch.finfo(torch.float32).max
    assert mismatch([largest * 1.0000001], [INF]) is None
    assert mismatch([largest], [INF]) is not None
    assert mismatch([1.7e308], [INF], "float64", ulp=8.0) is not None


def test_fp8_without_infinity_saturates():
    assert mismatch([1e6, -1e6, INF, 465.0], [448.0, -448.0, 448.0, 448.0], "float8_e4m3fn") is None
    got = torch.tensor([0x7F], dtype=torch.uint8).view(torch.float8_e4m3fn)  # NaN
    expected = torch.tensor([1e6], dtype=torch.float64)
    assert compare(expected, got, bound=0.0, ulp=1.0, nan_allowed=False) is not None


# whole numbers and bools


def test_whole_numbers_and_bools_must_be_equal():
    big = 2**53
    found = compare(torch.tensor([big, 5]), torch.tensor([big + 1, 5]), bound=9.0, ulp=9.0, nan_allowed=False)
    assert found.wrong.tolist() == [True, False]
    assert (found.worst.got, found.worst.expected, found.max_ulp) == (big + 1, big, 1.0)
    bools = torch.tensor([True, False])
    assert compare(bools, bools.clone(), bound=0.0, ulp=0.0, nan_allowed=False) is None
    assert compare(bools, ~bools, bound=0.0, ulp=0.0, nan_allowed=False).count == 2


def test_float_answers_to_whole_numbers_must_be_equal_too():
    found = compare(torch.tensor([1, 2, 3]), torch.tensor([1.0, 2.5, NAN]), bound=9.0, ulp=9.0, nan_allowed=True)
    assert found.wrong.tolist() == [False, True, True]


def test_whole_answers_to_a_float_reference_have_a_tolerance():
    expected = torch.tensor([1.4, 1.6, 7.0], dtype=torch.float64)
    got = torch.tensor([1, 2, 9], dtype=torch.int8)
    assert compare(expected, got, bound=0.5, ulp=0.0, nan_allowed=False).wrong.tolist() == [False, False, True]


# shapes and what is reported


def test_no_dimension_and_no_elements():
    assert mismatch(1.0, 1.0) is None
    found = mismatch(1.0, 2.0)
    assert (found.count, found.total, found.wrong.shape, found.examples[0].index) == (1, 1, (), ())
    assert isinstance(found.wrong, np.ndarray)
    assert mismatch([], []) is None
    assert compare(torch.tensor(3), torch.tensor(4), bound=0.0, ulp=0.0, nan_allowed=False).wrong.shape == ()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_any_strides(dtype):
    base = torch.arange(48).reshape(6, 8).to(getattr(torch, dtype))
    for view in (base.t(), base[::2, 1::3], base[:1].expand(5, 8), base[2:4, 3:]):
        expected = view.clone().to(torch.float64 if dtype != "int32" else torch.int64).t().contiguous().t()
        assert compare(expected, view, bound=0.0, ulp=0.0, nan_allowed=False) is None
        expected[-1, -1] += 1
        found = compare(expected, view, bound=0.0, ulp=0.0, nan_allowed=False)
        assert found.examples[0].index == (view.shape[0] - 1, view.shape[1] - 1)
        assert found.count == 1


def test_gradients_do_not_matter():
    got = torch.ones(3, requires_grad=True)
    assert compare(torch.ones(3, dtype=torch.float64), got, bound=0.0, ulp=0.0, nan_allowed=False) is None


def test_a_mismatch_says_what_is_wrong():
    expected = torch.zeros(2, 3, dtype=torch.float64) + 1.0
    got = torch.tensor([[1.0, 1.5, 1.0], [9.0, 1.25, 1.125]])
    found = compare(expected, got, bound=0.0, ulp=1.0, nan_allowed=False)
    assert (found.count, found.total) == (4, 6)
    assert [e.index for e in found.examples] == [(0, 1), (1, 0), (1, 1)]
    assert (found.examples[0].got, found.examples[0].expected) == (1.5, 1.0)
    assert found.examples[0].allowed == 2.0**-23
    assert (found.worst.index, found.worst.got) == ((1, 0), 9.0)
    assert found.max_ulp == 8 * 2.0**23


def test_the_worst_is_measured_by_what_is_allowed_and_nan_is_worst():
    bound = torch.tensor([1.0, 1e-3], dtype=torch.float64)
    assert mismatch([10.0, 1.0], [20.0, 1.5], bound=bound).worst.index == (1,)
    found = mismatch([10.0, 1.0], [20.0, NAN], bound=bound)
    assert found.worst.index == (1,)
    assert found.max_ulp == INF


@pytest.mark.parametrize(
    ("bound", "ulp", "words"),
    [
        (-1.0, 1.0, r"the error bound is negative or not finite at index \[0\]"),
        (INF, 1.0, "the error bound is negative or not finite"),
        (NAN, 1.0, "the error bound is negative or not finite"),
        (torch.zeros(3, dtype=torch.float64), 1.0, r"the error bound has shape \[3\]; expected \[2\]"),
        (0.0, -1.0, "ulp = -1.0; expected a finite number"),
        (0.0, NAN, "ulp = nan"),
    ],
)
def test_a_tolerance_that_accepts_anything_is_refused(bound, ulp, words):
    with pytest.raises(ValueError, match=words):
        mismatch([1.0, 2.0], [1.0, 2.0], bound=bound, ulp=ulp)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"shape \[2\] and the answer \[1\]"):
        mismatch([1.0, 2.0], [1.0])
