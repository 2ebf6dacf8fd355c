"""04_coalescing, the suite: out = x.t() for any size, any strides, six dtypes."""

from hypothesis import given

from harness.strategies import cases, dim

DTYPES = ("float32", "float16", "bfloat16", "int8", "int32", "int64")


def test_declared_cases(run, declared):
    run(declared)


@given(case=cases(dims={"M": dim(0, 140), "N": dim(1, 140)}, dtypes=DTYPES, fills={"x": ("normal", "large", "tiny")}))
def test_any_size(run, case):
    run(case)


@given(case=cases(dims={"M": dim(1, 5), "N": dim(1, 2100)}, dtypes=DTYPES))
def test_wide(run, case):
    run(case)


@given(case=cases(dims={"M": dim(1, 2100), "N": dim(1, 5)}, dtypes=DTYPES))
def test_tall(run, case):
    run(case)


@given(
    case=cases(
        dims={"M": dim(1, 70), "N": dim(1, 70)},
        dtypes=DTYPES,
        layouts={"x": ("transposed", "sliced", "strided", "expanded", "offset")},
    )
)
def test_any_strides(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
