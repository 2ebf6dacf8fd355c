"""Strategies draw the words and numbers of a case; the edges come often."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.strategies import cases, dim


@given(st.integers(0, 3000), st.integers(0, 3000), st.data())
def test_a_dim_stays_in_its_range(low, more, data):
    assert low <= data.draw(dim(low, low + more)) <= low + more


def test_a_dim_has_a_taste_for_edges():
    seen = Counter()

    @settings(max_examples=20, database=None)
    @given(dim(1, 2100))
    def draw(n):
        seen[n] += 1

    draw()
    edges = {1, 2100} | {p + d for p in (2**k for k in range(1, 12)) for d in (-1, 0, 1)}
    assert sum(n for value, n in seen.items() if value in edges) >= 6


@given(cases(
    dims={"M": dim(1, 9), "N": 7}, dtypes=("float32", "float16"), layouts={"x": ("contiguous", "transposed")},
    fills={"x": ("normal", "large")}, options={"nested": st.booleans(), "blocksize": 64},
))  # fmt: skip
def test_a_case_has_what_was_asked_for_and_says_so_in_its_name(case):
    assert 1 <= case.dims["M"] <= 9 and case.dims["N"] == 7
    assert case.dtype in ("float32", "float16")
    assert case.layout["x"] in ("contiguous", "transposed")
    assert case.options["nested"] in (True, False) and case.options["blocksize"] == 64
    assert (case.role, case.seed) == ("small", 0)
    words = [f"M{case.dims['M']}", "N7", case.dtype]
    words += ["x.transposed"] * (case.layout["x"] != "contiguous") + ["x.large"] * (case.fill["x"] != "normal")
    assert set(case.id.split("-")) == {*words, f"nested.{case.options['nested']}", "blocksize.64"}


@given(cases(dims={"N": 3}, dtypes=("int8",)))
def test_layouts_fills_and_options_may_be_left_out(case):
    assert case.to_json() == {
        "id": "N3-int8", "dims": {"N": 3}, "dtype": "int8", "layout": {}, "fill": {}, "options": {}, "role": "small", "model": "", "seed": 0,
    }  # fmt: skip
