"""00_stream, the suite: out = x for any strides and any dtype, in memory of its own."""

from hypothesis import given

from harness.strategies import cases, dim

DTYPES = ("float32", "float16", "bfloat16", "int8", "int32", "int64")
FILLS = {"x": ("normal", "large", "tiny", "nan_and_infinities")}


def test_declared_cases(run, declared):
    run(declared)


@given(case=cases(dims={"N": dim(0, 6200)}, dtypes=DTYPES, fills=FILLS, layouts={"x": ("contiguous", "offset")}))
def test_any_length(run, case):
    run(case)


@given(
    case=cases(
        dims={"M": dim(1, 24), "N": dim(1, 150)},
        dtypes=DTYPES,
        layouts={"x": ("contiguous", "transposed", "sliced", "strided", "expanded", "offset")},
    )
)
def test_any_strides(run, case):
    run(case)


@given(case=cases(dims={"M": dim(1, 5), "N": dim(1, 300)}, dtypes=("float8_e4m3fn",), layouts={"x": ("sliced",)}))
def test_eight_bit_floats(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
