"""02_amortize, the suite: out = x @ weight.T for 1 to 16 tokens, any sizes, any strides, float16 and bfloat16."""

from hypothesis import given

from harness.strategies import cases, dim

DTYPES = ("float16", "bfloat16")


def test_declared_cases(run, declared):
    run(declared)


@given(
    case=cases(
        dims={"B": dim(1, 16), "N": dim(1, 80), "K": dim(1, 300)},
        dtypes=DTYPES,
        fills={"x": ("normal", "tiny"), "weight": ("normal", "uniform", "tiny")},
    )
)
def test_any_size(run, case):
    run(case)


@given(
    case=cases(
        dims={"B": dim(1, 16), "N": dim(1, 40), "K": dim(1, 140)},
        dtypes=DTYPES,
        layouts={
            "x": ("contiguous", "transposed", "sliced", "strided", "expanded"),
            "weight": ("contiguous", "transposed", "sliced", "strided", "offset"),
        },
    )
)
def test_any_strides(run, case):
    run(case)


@given(case=cases(dims={"B": dim(1, 4), "N": dim(1, 20), "K": dim(700, 2500)}, dtypes=DTYPES))
def test_long_sums(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
