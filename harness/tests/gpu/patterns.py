"""Operands for the one-operation kernels: every 16-bit pattern against a spread of others, ties, edges and samples.

Numpy only, so that the tests' own process can make the same operands as the process that interprets (or compiles).
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

DTYPES = {
    "bf16": np.dtype(ml_dtypes.bfloat16), "fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn), "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "i1": np.dtype(bool), "i8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32), "u32": np.dtype(np.uint32), "i64": np.dtype(np.int64), "u64": np.dtype(np.uint64),
}  # fmt: skip
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
UNARY = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "erf")
LIBDEVICE = ("tanh", "log1p", "expm1", "rint", "round", "trunc", "cbrt", "fast_expf", "acos", "sinh", "isnan")
LIBDEVICE2 = ("pow", "fmod", "copysign", "atan2", "hypot", "fast_dividef")


@dataclass(frozen=True)
class Op:
    """One kernel with one operation.

    Attributes:
        name: what the kernel does, such as "add" or "cast".
        ins: Triton names of the operands' dtypes, such as ("bf16", "bf16").
        out: Triton name of the result's dtype.
        exact: whether the result must agree bit for bit; otherwise a distance in units of the last place is reported.
    """

    name: str
    ins: tuple[str, ...]
    out: str
    exact: bool = True

    @property
    def key(self) -> str:
        return f"{self.name}-{'-'.join(self.ins)}-{self.out}"


def _ops() -> list[Op]:
    ops = []
    for t in ("bf16", "fp16", "fp32"):
        ops += [Op(name, (t, t), t) for name in ("add", "sub", "mul", "max", "min", "maxnan", "minnan", "where", "mod")]
        # float32 division is an approximate instruction; rounded to 16 bits it comes out right
        ops += [Op("div", (t, t), t, exact=t != "fp32"), Op("fma", (t, t, t), t), Op("abs", (t,), t)]
        ops += [Op(name, (t, t), "i1") for name in COMPARISONS]
    ops += [Op("div_rn", ("fp32", "fp32"), "fp32"), Op("sqrt_rn", ("fp32",), "fp32")]
    ops += [Op(name, ("fp32",), "fp32") for name in ("floor", "ceil")]
    ops += [Op(name, ("fp32",), "fp32", exact=False) for name in UNARY]
    ops += [Op(f"libdevice.{n}", ("fp32",), "i32" if n == "isnan" else "fp32", exact=False) for n in LIBDEVICE]
    ops += [Op(f"libdevice.{n}", ("fp32", "fp32"), "fp32", exact=False) for n in LIBDEVICE2]
    floats = ("bf16", "fp16", "fp32", "fp8e4nv", "fp8e5")
    # the compiler has no cast between two fp8 formats
    ops += [Op("cast", (a,), b) for a in floats for b in floats if a != b and not (a[:3] == b[:3] == "fp8")]
    ops += [Op("cast", ("fp64",), b) for b in ("bf16", "fp16", "fp32")]
    ops += [Op("rtz", ("fp32",), b) for b in ("bf16", "fp16", "fp8e5")]
    ints = ("i8", "u8", "i16", "i32", "u32", "i64", "u64")
    ops += [Op("cast", (a,), b) for a in ints for b in ("bf16", "fp16", "fp32")]
    ops += [Op("cast", (a,), b) for a in ("bf16", "fp16", "fp32", "fp64") for b in ints]
    ops += [Op("idiv", (t, t), t) for t in ("i8", "i32", "u32")] + [Op("mod", (t, t), t) for t in ("i8", "i32", "u32")]
    # their last bits depend on the order of the additions
    ops += [Op(name, (t,), t, exact=False) for t in ("bf16", "fp16", "fp32") for name in ("sum", "cumsum")]
    ops += [Op(f"reduce_{name}", (t,), t) for t in ("bf16", "fp16", "fp32") for name in ("max", "min")]
    return ops


OPS = {op.key: op for op in _ops()}


@dataclass(frozen=True)
class Dot:
    """One tl.dot.

    Attributes:
        probe: "single": each result is one product, so it shows how operands are rounded; "whole": small whole numbers,
            exact in any order of additions; "random": normal numbers.
        kind, acc: Triton names of the dtypes of the operands and of the result.
        precision: tl.dot's input_precision; "" is the default.
        shape: M, N, K. 16 rows take `mma.sync`, 64 take Hopper's `wgmma`.
    """

    probe: str
    kind: str
    precision: str
    acc: str
    shape: tuple[int, int, int]

    @property
    def key(self) -> str:
        return f"dot_{self.probe}-{self.kind}-{self.precision or 'default'}-{self.acc}-{'x'.join(map(str, self.shape))}"

    @property
    def exact(self) -> bool:
        return self.probe == "whole" or (self.probe == "single" and self.precision in ("", "tf32", "ieee"))


_KINDS = (
    *(("fp32", p, "fp32") for p in ("", "tf32x3", "ieee", "bf16x3", "bf16x6")),
    ("fp16", "", "fp32"), ("fp16", "", "fp16"),
    ("bf16", "", "fp32"), ("fp8e5", "", "fp32"), ("fp8e4nv", "", "fp32"), ("i8", "", "i32"),
)  # fmt: skip
_DOTS = [
    Dot(probe, *kind, shape)
    for shape in ((16, 16, 32), (64, 64, 64))
    for kind in _KINDS
    for probe in (("whole",) if kind[0] == "i8" else ("single", "whole", "random"))
]
DOTS = {d.key: d for d in _DOTS}


def all_patterns(dtype: str) -> np.ndarray:
    """Every value of a dtype of 8 or 16 bits."""
    bits = 8 * DTYPES[dtype].itemsize
    return np.arange(1 << bits, dtype=f"u{bits // 8}").view(DTYPES[dtype])


def spread(dtype: str, count: int) -> np.ndarray:
    """`count` values of a float dtype: zeros, ones, subnormal, tiny, huge and special values, then random patterns."""
    kind = DTYPES[dtype]
    info = ml_dtypes.finfo(kind)
    tiny, sub, top, eps = (float(v) for v in (info.tiny, info.smallest_subnormal, info.max, info.eps))
    edges = [0.0, -0.0, 1.0, -1.0, 1 + eps, -(1 + eps), sub, -sub, tiny - sub, tiny, -tiny, top, -top, np.inf, -np.inf,
             np.nan, 0.5, 2.0, 3.0, -3.0, eps, top / 2, 1 / 3, 100.0, -0.1]  # fmt: skip
    with np.errstate(all="ignore"):
        values = np.array(edges).astype(kind)
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 1 << 8 * kind.itemsize, count, np.uint64).astype(f"u{kind.itemsize}").view(kind)
    return np.concatenate([values, noise])[:count]


def samples(dtype: str, count: int) -> np.ndarray:
    """Values of a wide dtype: random patterns, and ones at and beside the ties of the narrow formats."""
    kind, rng = DTYPES[dtype], np.random.default_rng(1)
    if kind.kind in "iub":
        info = np.iinfo(kind)
        edges = [v for v in (0, 1, 2, 127, 128, 255, 257, 2049, info.max, info.max - 1, info.min) if v <= info.max]
        noise = rng.integers(info.min, info.max, count, kind, endpoint=True)
        shifted = noise >> rng.integers(0, 8 * kind.itemsize, count).astype(kind)
        return np.concatenate([np.array(edges, kind), _around_ties(kind), shifted])[:count]
    noise = rng.integers(0, 1 << 8 * kind.itemsize, count // 4, np.uint64).astype(f"u{kind.itemsize}")
    bits = np.concatenate([spread(dtype, 64).view(noise.dtype), noise])
    # cut the low bits so that ties between neighbours of each narrow format are met, and their next neighbours
    mantissa = 52 if dtype == "fp64" else 23
    parts = [bits]
    for kept in (2, 3, 7, 10):
        unit = noise.dtype.type(1 << (mantissa - kept - 1))
        cut = noise[: count // 32] & ~(unit - noise.dtype.type(1)) | unit
        near = (cut & ~(noise.dtype.type(0xFF) << noise.dtype.type(mantissa))) | _small_exponents(rng, len(cut), kind)
        parts += [cut, cut + noise.dtype.type(1), cut - noise.dtype.type(1), near, near + noise.dtype.type(1)]
    out = np.concatenate(parts)[:count].view(kind)
    return np.resize(out, count)


def _small_exponents(rng: np.random.Generator, count: int, kind: np.dtype) -> np.ndarray:
    """Exponent fields of numbers between 2**-27 and 2**17, where fp16 and fp8 live."""
    bias, mantissa = (1023, 52) if kind == np.float64 else (127, 23)
    return rng.integers(bias - 27, bias + 17, count).astype(f"u{kind.itemsize}") << np.array(
        mantissa, f"u{kind.itemsize}"
    )


def _around_ties(kind: np.dtype) -> np.ndarray:
    """Integers one below, at and above the ties of 8- and 11-bit significands."""
    bits = 8 * kind.itemsize - (kind.kind == "i")
    ties = [((1 << p) + 1) << (e - p) for p in (8, 11, 24) for e in range(p + 1, bits)]
    return np.array([t + d for t in ties for d in (-1, 0, 1)], kind) if ties else np.array([], kind)


def operands(op: Op, second: int = 64) -> list[np.ndarray]:
    """The operands of an operation: arrays of one length, a power of two.

    Args:
        second: how many values of the second operand each pattern of the first one meets; of dtypes wider than 16
            bits, 4096 times as many values are drawn.
    """
    if op.name.startswith(("sum", "cumsum", "reduce_")):
        return [_rows(op)]
    first = all_patterns(op.ins[0]) if DTYPES[op.ins[0]].itemsize < 4 else samples(op.ins[0], second << 12)
    if DTYPES[op.ins[0]].itemsize == 1:
        first = np.resize(first, 1024)
    if len(op.ins) == 1:
        return [first]
    if DTYPES[op.ins[0]].kind in "iu":
        others = samples(op.ins[1], second << 12)[: len(first)][::-1].copy()
        # a division by zero, or one that overflows, gives anything
        return [first, np.where((others == 0) | (others == -1), others.dtype.type(3), others)]
    others = spread(op.ins[1], second)
    if len(first) > 1 << 16:
        first = first[: 1 << 16]
    pairs = [np.tile(first, second), np.repeat(others, len(first))]
    return pairs if len(op.ins) == 2 else [*pairs, np.repeat(np.roll(others, 7), len(first))[::-1].copy()]


def _rows(op: Op) -> np.ndarray:
    """64 rows of 128 numbers; for max and min with NaNs, infinities and zeros of both signs."""
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((64, 128)).astype(DTYPES[op.ins[0]])
    if op.name.startswith("reduce_"):
        rows[rng.random(rows.shape) < 0.2] = np.nan
        rows[:8][rng.random((8, 128)) < 0.9] = np.nan
        rows[8] = np.nan
        rows[9], rows[9, ::3], rows[10, 5] = 0.0, -0.0, np.inf
    return rows.reshape(-1)


def dot_operands(dot: Dot) -> tuple[np.ndarray, np.ndarray]:
    """[M, K] and [K, N] arrays for a dot."""
    (m, n, k), kind = dot.shape, DTYPES[dot.kind]
    rng = np.random.default_rng(3)
    if dot.probe == "random":
        return rng.standard_normal((m, k)).astype(kind), rng.standard_normal((k, n)).astype(kind)
    if dot.probe == "whole":
        return rng.integers(-4, 5, (m, k)).astype(kind), rng.integers(-4, 5, (k, n)).astype(kind)
    a, b = np.zeros((m, k), kind), np.zeros((k, n), kind)
    values = rng.standard_normal(m).astype(kind)
    if dot.kind == "fp32":  # ties and near ties of 10 mantissa bits
        low = rng.choice(np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF], np.uint32), m)
        values = (values.view(np.uint32) & np.uint32(0xFFFFE000) | low).view(np.float32)
    a[np.arange(m), np.arange(m) % k] = values
    b[:] = np.where(np.arange(n) % 2, 1.0, -2.0).astype(kind)
    return a, b


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays of one dtype hold the same bits, or both a NaN."""
    equal = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
    if a.dtype.kind in "iub":
        return equal
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return equal | (np.isnan(a) & np.isnan(b))


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many representable numbers apart two float arrays are (0 where both are NaN)."""
    kind = np.dtype(f"i{a.itemsize}")
    lowest = np.iinfo(kind).min

    def line(values):
        bits = values.view(kind).astype(np.int64)
        return np.where(bits < 0, lowest - bits, bits)

    apart = np.abs(line(a) - line(b))
    return np.where(same(a, b), 0, apart)
