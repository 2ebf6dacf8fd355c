"""06_matmul, the suite: out = a @ b for any sizes, any strides, three dtypes, summed in float32."""

from hypothesis import given
from hypothesis import strategies as st

from harness.strategies import cases, dim

DTYPES = ("float32", "float16", "bfloat16")
LAYOUTS = ("contiguous", "transposed", "sliced", "strided", "expanded", "offset")


def test_declared_cases(run, declared):
    run(declared)


@given(case=cases(dims={"M": dim(1, 24), "N": dim(1, 24), "K": dim(1, 140)}, dtypes=DTYPES))
def test_any_sizes(run, case):
    run(case)


@given(
    case=cases(
        dims={"M": dim(1, 20), "N": dim(1, 20), "K": dim(1, 70)},
        dtypes=DTYPES,
        layouts={"a": LAYOUTS, "b": LAYOUTS},
    )
)
def test_any_strides(run, case):
    run(case)


@given(
    case=cases(
        dims={"M": dim(1, 18), "N": dim(1, 18), "K": dim(17, 160)},
        dtypes=DTYPES,
        fills={"a": ("normal", "one_sign", "large", "integers"), "b": ("normal", "one_sign", "tiny")},
    )
)
def test_any_values(run, case):
    run(case)


@given(
    case=st.one_of(
        cases(dims={"M": dim(33, 70), "N": dim(17, 34), "K": dim(1, 9)}, dtypes=DTYPES),
        cases(dims={"M": dim(100, 300), "N": dim(1, 4), "K": dim(1, 40)}, dtypes=DTYPES),
        cases(dims={"M": dim(1, 4), "N": dim(100, 300), "K": dim(1, 40)}, dtypes=DTYPES),
    )
)
def test_any_number_of_tiles(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
