"""01_blocks, the suite: out = x + y for any shape, any strides, five dtypes."""

from hypothesis import given

from harness.strategies import cases, dim

DTYPES = ("float32", "float16", "bfloat16", "int32", "int8")
FILLS = {"x": ("normal", "large", "integers"), "y": ("normal", "large", "tiny")}


def test_declared_cases(run, declared):
    run(declared)


@given(case=cases(dims={"N": dim(0, 2100)}, dtypes=DTYPES, fills=FILLS))
def test_any_length(run, case):
    run(case)


@given(
    case=cases(
        dims={"M": dim(1, 24), "N": dim(1, 80)},
        dtypes=DTYPES,
        layouts={
            "x": ("contiguous", "transposed", "sliced", "strided"),
            "y": ("contiguous", "transposed", "expanded", "offset"),
        },
    )
)
def test_any_strides(run, case):
    run(case)


@given(
    case=cases(
        dims={"B": dim(1, 5), "M": dim(1, 9), "N": dim(1, 33)},
        dtypes=DTYPES,
        layouts={"x": ("contiguous", "expanded", "transposed"), "y": ("contiguous", "sliced", "strided")},
    )
)
def test_three_dimensions(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
