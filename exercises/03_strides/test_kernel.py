"""03_strides, the suite: out = x in one piece, for views of 0 to 5 dims with any strides."""

from hypothesis import given
from hypothesis import strategies as st

from harness.strategies import cases, dim

DTYPES = ("float32", "float16", "bfloat16", "int8", "int32", "int64")
ORDERS = st.permutations("ABCDE").map("".join)


def test_declared_cases(run, declared):
    run(declared)


@given(
    case=cases(
        dims={"A": dim(0, 36), "B": dim(1, 140)},
        dtypes=DTYPES,
        layouts={"x": ("transposed", "sliced", "strided", "expanded", "offset")},
        fills={"x": ("normal", "large", "tiny")},
    )
)
def test_any_strides(run, case):
    run(case)


@given(case=cases(dims={d: dim(1, 5) for d in "ABCDE"}, dtypes=DTYPES, options={"order": ORDERS}))
def test_five_dimensions_in_any_order(run, case):
    run(case)


@given(
    case=cases(
        dims={"A": dim(1, 5), "B": dim(1, 5), "C": dim(1, 5), "D": dim(1, 20)},
        dtypes=DTYPES,
        options={"expand": st.sampled_from(("A", "B", "D", "AC", "BD", "CD", "ABCD"))},
    )
)
def test_dims_of_stride_0(run, case):
    run(case)


@given(case=cases(dims={"A": dim(1, 5), "B": dim(1, 60)}, dtypes=DTYPES, options={"windows": dim(1, 12)}))
def test_overlapping_windows(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
