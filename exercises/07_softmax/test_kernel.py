"""07_softmax, the suite: softmax over the last dim as torch has it, any shape, any strides, three dtypes."""

from hypothesis import given

from harness.strategies import cases, dim

DTYPES = ("float32", "float16", "bfloat16")
FILLS = {"x": ("normal", "large", "tiny", "ascending", "half_minus_inf", "below_minus_200")}
NOT_FINITE = {"x": ("nan_from_all_minus_inf", "nan_from_plus_inf", "nan")}


def test_declared_cases(run, declared):
    run(declared)


@given(case=cases(dims={"M": dim(1, 5), "N": dim(1, 2100)}, dtypes=DTYPES, fills=FILLS))
def test_any_row_length(run, case):
    run(case)


@given(
    case=cases(
        dims={"M": dim(1, 17), "N": dim(1, 140)},
        dtypes=DTYPES,
        layouts={"x": ("transposed", "sliced", "strided", "expanded", "offset")},
    )
)
def test_any_strides(run, case):
    run(case)


@given(
    case=cases(
        dims={"B": dim(1, 4), "M": dim(1, 5), "N": dim(1, 300)},
        dtypes=DTYPES,
        layouts={"x": ("contiguous", "transposed", "sliced", "expanded")},
    )
)
def test_three_dimensions(run, case):
    run(case)


@given(case=cases(dims={"M": dim(1, 4), "N": dim(1, 600)}, dtypes=DTYPES, fills=NOT_FINITE))
def test_infinities_and_nan_as_torch_has_them(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
