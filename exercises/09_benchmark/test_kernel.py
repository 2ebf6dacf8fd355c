"""09_benchmark, the suite: an estimate holds the truth and is narrow, whatever the device does to it."""

from hypothesis import given
from hypothesis import strategies as st

from harness.measured.simgpu import TRAPS
from harness.strategies import cases


def traps(low, high):
    some = st.lists(st.sampled_from(TRAPS), min_size=low, max_size=high, unique=True)
    return some.map(sorted).map("+".join)


def test_declared_cases(run, declared):
    run(declared)


@given(case=cases(dims={}, dtypes=("float64",), options={"traps": traps(2, 3), "devices": 1}))
def test_some_traps_together(run, case):
    run(case)


@given(case=cases(dims={}, dtypes=("float64",), options={"traps": traps(len(TRAPS) - 2, len(TRAPS)), "devices": 1}))
def test_nearly_all_traps_together(run, case):
    run(case)


def test_speed(speed):
    speed()
