"""05_nf4, the suite: bitsandbytes' NF4, any size, any blocksize, absmax plain or nested, float16 and bfloat16."""

from hypothesis import given
from hypothesis import strategies as st

from harness.strategies import cases, dim

DTYPES = ("float16", "bfloat16")
BLOCKSIZES = st.sampled_from((64, 128, 256, 512, 1024, 2048, 4096))
STORED = st.sampled_from(("float16", "bfloat16", "float32"))


def test_declared_cases(run, declared):
    run(declared)


@given(
    case=cases(
        dims={"M": dim(1, 9), "N": dim(1, 450)},
        dtypes=DTYPES,
        fills={"absmax": ("normal", "large", "tiny")},
        options={"blocksize": BLOCKSIZES, "stored": STORED},
    )
)
def test_plain_absmax_of_any_size(run, case):
    run(case)


@given(
    case=cases(
        dims={"M": dim(1, 9), "N": dim(1, 450)},
        dtypes=DTYPES,
        layouts={"packed": ("contiguous", "offset")},
        options={"blocksize": BLOCKSIZES, "nested": st.just(True)},
    )
)
def test_nested_absmax_of_any_size(run, case):
    run(case)


@given(
    case=cases(
        dims={"M": dim(257, 262), "N": dim(64, 66)},
        dtypes=DTYPES,
        options={"blocksize": st.sampled_from((64, 128)), "nested": st.just(True)},
    )
)
def test_second_absmax_changes_every_256_blocks(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
