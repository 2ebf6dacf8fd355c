"""08_attention, the suite: heads, lengths and head sizes of any kind, causal or not, with or without seq_lens."""

from hypothesis import given
from hypothesis import strategies as st

from harness.strategies import cases, dim

DTYPES = ("float16", "bfloat16")
LENS = st.sampled_from(("none", "full", "ragged", "empty"))
HEADS = st.sampled_from(((1, 1), (2, 2), (2, 1), (4, 2), (6, 2), (6, 3)))
SEQUENCES = dim(1, 2)
LAYOUTS = ("contiguous", "transposed", "sliced", "strided", "expanded", "offset")


def attention(Tq, Tk, D, *, B=SEQUENCES, lens=LENS, **more):
    """Draw a case: B sequences, a pair (Hq, Hkv), Tq queries, Tk keys of size D."""
    options = {"causal": st.booleans(), "lens": lens} | more.pop("options", {})
    return HEADS.flatmap(
        lambda h: cases(
            dims={"B": B, "Hq": h[0], "Hkv": h[1], "Tq": Tq, "Tk": Tk, "D": D}, dtypes=DTYPES, options=options, **more
        )
    )


def test_declared_cases(run, declared):
    run(declared)


@given(
    case=attention(
        dim(2, 24),
        dim(24, 140),
        st.sampled_from((64, 128)),
        fills={"q": ("normal", "sharp", "large"), "k": ("normal", "large"), "v": ("normal", "one_sign")},
        options={"scale": st.sampled_from((0.125, 0.3))},
    )
)
def test_prefill_of_any_length(run, case):
    run(case)


@given(case=attention(dim(1, 40), dim(1, 40), st.sampled_from((16, 64)), B=dim(2, 3)))
def test_rows_that_see_few_keys_or_none(run, case):
    run(case)


@given(case=attention(1, dim(1, 400), st.sampled_from((32, 64, 128))))
def test_decode_over_a_cache_of_any_length(run, case):
    run(case)


@given(
    case=attention(
        dim(1, 9),
        dim(1, 40),
        dim(1, 130),
        layouts={"q": LAYOUTS, "k": LAYOUTS, "v": LAYOUTS},
        options={"memory": st.sampled_from(("BHTD", "BTHD"))},
    )
)
def test_any_head_size_and_strides(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
