"""`tl.extra.libdevice` and `tl.extra.cuda.libdevice` in the interpreter.

There, these functions end in a ValueError about `_semantic`, or return None: Triton's interpreter supplies the missing
argument only to the functions of `tl`, `tl.core` and `tl.math`, and the neutral module `tl.extra.libdevice` holds
empty functions that only the compiler replaces. `install` supplies it here as well, fills the neutral module with the
functions of the CUDA one, and computes what they call.

Subnormal float32 numbers are flushed to zero, as Triton compiles libdevice (which makes NaNs of some of them, in `cbrt`
and in `pow` of a negative number; not so here). An H200 is within two units in the last place of these functions; the
`fast_…` ones are as exact here as the others and less so on a GPU (`fast_sinf` and its kin: 2**-21 in absolute terms).
"""

import inspect
import math
import sys
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from harness.interpreted import elementary as el
from harness.interpreted.rounding import FLOAT32, FLOAT64, fma, round_to, to_int

_f64 = el.through_float64
_vector = np.vectorize
INT64 = np.dtype(np.int64)


def _gamma(x: float) -> float:
    return math.nan if x == -math.inf or (x <= 0 and x == int(x)) else math.inf if x > 171.7 else math.gamma(x)


def _lgamma(x: float) -> float:
    return math.inf if math.isinf(x) or (x <= 0 and x == int(x)) else math.lgamma(x)


_quantile = _vector(
    lambda p: NormalDist().inv_cdf(p) if 0 < p < 1 else {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan), otypes=[float]
)


def _norm(*args: np.ndarray) -> np.ndarray:
    return np.sqrt(sum(a * a for a in args))


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _vector(lambda a, b: math.nan if b == 0 or math.isinf(a) or a != a or b != b else math.remainder(a, b))(x, y)


def _fast_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # the instruction multiplies with a reciprocal that it has flushed to zero where it would be subnormal
    reciprocal = np.where((np.abs(y) > 2.0**126) & np.isfinite(y), np.copysign(np.float32(0), y), np.nan)
    return el.flush(np.where(np.isnan(reciprocal), el.flush(x) / el.flush(y), x * reciprocal))


# functions of floats; the float32 version of a function has an "f" at the end of its symbol
_FLOAT: dict[str, Callable[..., np.ndarray]] = {
    "acos": _f64(np.arccos), "acosh": _f64(np.arccosh), "asin": _f64(np.arcsin), "asinh": _f64(np.arcsinh),
    "atan": _f64(np.arctan), "atan2": _f64(np.arctan2), "atanh": _f64(np.arctanh), "cbrt": _f64(np.cbrt),
    "ceil": _f64(np.ceil), "cos": el.cos, "cosh": _f64(np.cosh), "cospi": _f64(lambda x: np.cos(np.pi * np.fmod(x, 2))),
    "cyl_bessel_i0": _f64(np.i0), "erf": el.erf, "erfc": el.erfc,
    "erfinv": _f64(lambda x: _quantile((x + 1) / 2) / math.sqrt(2)),
    "erfcinv": _f64(lambda x: -_quantile(x / 2) / math.sqrt(2)), "normcdfinv": _f64(_quantile),
    "exp": _f64(np.exp), "exp10": _f64(lambda x: np.power(10.0, x)), "exp2": el.exp2,
    "expm1": _f64(np.expm1), "fabs": _f64(np.abs), "fdim": _f64(lambda x, y: np.where(x <= y, 0.0, x - y)),
    "floor": _f64(np.floor), "fma": lambda x, y, z: el.flush(fma(el.flush(x), el.flush(y), el.flush(z))),
    "fmod": lambda x, y: np.fmod(el.flush(x), el.flush(y)), "hypot": _f64(np.hypot),
    "lgamma": _f64(_vector(_lgamma, otypes=[float])),
    "ldexp": _f64(np.ldexp), "log": el.log, "log10": el.log10, "log1p": _f64(np.log1p), "log2": el.log2,
    "logb": _f64(lambda x: np.where(np.isfinite(x), np.floor(np.log2(np.abs(x))), x * x)), "nearbyint": _f64(np.rint),
    "norm3d": _f64(_norm), "norm4d": _f64(_norm), "normcdf": _f64(lambda x: 0.5 * el.erfc(-x / math.sqrt(2))),
    "pow": _f64(np.power), "powi": _f64(lambda x, n: np.power(x, n.astype(float))),
    "rcbrt": _f64(lambda x: 1 / np.cbrt(x)), "remainder": _f64(_remainder),
    "rhypot": _f64(lambda x, y: 1 / np.hypot(x, y)), "rint": _f64(np.rint),
    "rnorm3d": _f64(lambda *v: 1 / _norm(*v)), "rnorm4d": _f64(lambda *v: 1 / _norm(*v)), "round": _f64(el.round_away),
    "rsqrt": el.rsqrt, "scalbn": _f64(np.ldexp), "sin": el.sin, "sinh": _f64(np.sinh),
    "sinpi": _f64(lambda x: np.sin(np.pi * np.fmod(x, 2))), "sqrt": el.sqrt, "tan": _f64(np.tan), "tanh": _f64(np.tanh),
    "tgamma": _f64(_vector(_gamma, otypes=[float])), "trunc": _f64(np.trunc),
    "copysign": np.copysign, "nextafter": np.nextafter,
}  # fmt: skip

_FAST: dict[str, Callable[..., np.ndarray]] = {
    "fast_expf": lambda x: el.flush(el.exp(el.flush(x))), "fast_exp10f": _FLOAT["exp10"], "fast_powf": _FLOAT["pow"],
    "fast_logf": _f64(np.log), "fast_log2f": _f64(np.log2), "fast_log10f": _f64(np.log10),
    "fast_sinf": el.sin, "fast_cosf": el.cos, "fast_tanf": _FLOAT["tan"],
    "fast_fdividef": _fast_divide,
}  # fmt: skip


def _signed(a: np.ndarray) -> np.ndarray:
    return a.astype(np.int64)


def _unsigned(a: np.ndarray) -> np.ndarray:
    return a.view(f"u{a.dtype.itemsize}").astype(np.uint64)


def _leading_zeros(a: np.ndarray) -> np.ndarray:
    bits = 8 * a.dtype.itemsize
    return bits - _vector(lambda v: int(v).bit_length(), otypes=[int])(a.view(f"u{a.dtype.itemsize}"))


def _reverse(a: np.ndarray) -> np.ndarray:
    flipped = np.packbits(np.unpackbits(a[..., None].view(np.uint8), axis=-1)[..., ::-1], axis=-1)
    return flipped.view(a.dtype)[..., 0]


def _mulhi_signed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a.astype(object) * b.astype(object)) >> (8 * a.dtype.itemsize)).astype(a.dtype)


def _mul24(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    low = [(v.astype(np.int64) << 40) >> 40 if v.dtype.kind == "i" else v.astype(np.int64) & 0xFFFFFF for v in (a, b)]
    return low[0] * low[1]


def _byte_perm(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    source = _unsigned(a) | _unsigned(b) << np.uint64(32)
    out = np.zeros_like(source)
    for i in range(4):
        place = (_unsigned(selector) >> np.uint64(4 * i)) & np.uint64(7)
        out |= ((source >> (place * np.uint64(8))) & np.uint64(0xFF)) << np.uint64(8 * i)
    return out


# functions of integers and of bit patterns
_EXACT: dict[str, Callable[..., np.ndarray]] = {
    "abs": np.abs, "llabs": np.abs, "clz": _leading_zeros, "clzll": _leading_zeros,
    "brev": _reverse, "brevll": _reverse,
    "popc": lambda a: np.bitwise_count(_unsigned(a)), "popcll": lambda a: np.bitwise_count(_unsigned(a)),
    "ffs": lambda a: np.where(a == 0, 0, 8 * a.dtype.itemsize - _leading_zeros(a & -a)),
    "ffsll": lambda a: np.where(a == 0, 0, 8 * a.dtype.itemsize - _leading_zeros(a & -a)),
    "mulhi": _mulhi_signed, "mul64hi": _mulhi_signed, "umulhi": el.umulhi, "umul64hi": el.umulhi,
    "mul24": _mul24, "umul24": _mul24, "byte_perm": _byte_perm,
    "sad": lambda a, b, c: np.abs(_signed(a) - _signed(b)) + _signed(c),
    "usad": lambda a, b, c: np.abs(_signed(a) - _signed(b)) + _signed(c),
    "hadd": lambda a, b: (_signed(a) + _signed(b)) >> 1, "uhadd": lambda a, b: (_signed(a) + _signed(b)) >> 1,
    "rhadd": lambda a, b: (_signed(a) + _signed(b) + 1) >> 1, "urhadd": lambda a, b: (_signed(a) + _signed(b) + 1) >> 1,
    "isnanf": np.isnan, "isnand": np.isnan, "isinff": np.isinf, "isinfd": np.isinf, "finitef": np.isfinite,
    "isfinited": np.isfinite, "signbitf": np.signbit, "signbitd": np.signbit,
    "float_as_int": lambda a: a.view(np.int32), "float_as_uint": lambda a: a.view(np.uint32),
    "int_as_float": lambda a: a.view(FLOAT32), "uint_as_float": lambda a: a.view(FLOAT32),
    "double_as_longlong": lambda a: a.view(np.int64), "longlong_as_double": lambda a: a.view(FLOAT64),
    "double2hiint": lambda a: (a.view(np.int64) >> 32), "double2loint": lambda a: a.view(np.int64),
    "hiloint2double": lambda hi, lo: (_unsigned(hi) << np.uint64(32) | _unsigned(lo)).view(FLOAT64),
    "saturatef": lambda a: np.where(np.isnan(a), np.float32(0), np.clip(el.flush(a), 0, 1)),
    "ilogb": lambda a: np.frexp(a)[1] - 1, "ilogbf": lambda a: np.frexp(a)[1] - 1,
    "llrint": lambda a: to_int(np.rint(a), INT64), "llrintf": lambda a: to_int(np.rint(a), INT64),
    "llround": lambda a: to_int(el.round_away(a), INT64), "llroundf": lambda a: to_int(el.round_away(a), INT64),
}  # fmt: skip

_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_INTEGERS = {"int": np.dtype("i4"), "uint": np.dtype("u4"), "ll": np.dtype("i8"), "ull": np.dtype("u8")}
_FLOATS = {"float": FLOAT32, "double": FLOAT64}
_ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt, "rsqrt": el.rsqrt,
    "rcp": lambda x: np.ones_like(x) / x,
}  # fmt: skip


def _with_mode(name: str) -> Callable[..., np.ndarray] | None:
    """Functions whose name ends in a rounding mode: conversions to integers in all four, the others to nearest."""
    base, _, mode = name.rpartition("_")
    source, _, target = base.partition("2")
    if source in _FLOATS and target in _INTEGERS and mode in _WHOLE:
        return lambda x: to_int(_WHOLE[mode](el.flush(x)), _INTEGERS[target])
    if source in _INTEGERS and target in _FLOATS and mode == "rn":
        return lambda x: x.astype(_FLOATS[target])
    if base == "double2float" and mode in ("rn", "rz"):
        return lambda x: el.flush(round_to(FLOAT32, x, toward_zero=mode == "rz"))
    if base[:1] in "fd" and base[1:] in _ARITHMETIC and mode == "rn":
        return lambda *args: el.flush(_ARITHMETIC[base[1:]](*(el.flush(a) for a in args)))
    return _FLOAT["fma"] if base in ("fma", "fmaf") and mode == "rn" else None


def find(symbol: str) -> Callable[..., np.ndarray] | None:
    """The numpy function behind a libdevice symbol such as "__nv_expf"; None for one that is not known here."""
    name = symbol.removeprefix("__nv_")
    known = _FAST.get(name) or _EXACT.get(name) or _FLOAT.get(name) or _with_mode(name)
    return known or _FLOAT.get(name.removesuffix("f"))


def install(interp) -> None:
    """Makes libdevice callable from interpreted kernels. `interp`: the module triton.runtime.interpreter."""
    from triton.language.extra import cuda, libdevice

    def extern_elementwise(self, library, path, symbol, args, result, is_pure):
        function = find(symbol)
        if function is None:
            raise NotImplementedError(f"libdevice's {symbol} is not known to this interpreter; a GPU decides")
        with np.errstate(all="ignore"):
            data = np.asarray(function(*(a.data for a in args)))
        return interp.TensorHandle(data.astype(interp._get_np_dtype(result), copy=False), result.scalar)

    builder = interp.InterpreterBuilder
    builder.create_extern_elementwise = extern_elementwise
    # hints to the hardware about the next kernel of a stream; here kernels run one after the other
    builder.create_grid_dependency_wait = builder.create_grid_dependency_launch_dependents = lambda self: None

    # the package exists twice in some Tritons: as an attribute of `extra` and, under its name, among the modules
    package = "triton.language.extra.cuda"
    for module in [cuda, *(m for n, m in list(sys.modules.items()) if n == package or n.startswith(package + "."))]:
        for name, member in list(vars(module).items()):
            if interp.tl.core.is_builtin(member):
                setattr(module, name, _supplied(name, member, interp.interpreter_semantic))
    for name, member in list(vars(libdevice).items()):
        if inspect.isfunction(member):
            setattr(libdevice, name, getattr(cuda.libdevice, name, None) or _unknown(name))


def _supplied(name: str, member: Callable, semantic) -> Callable:
    """The function with the argument that the compiler would pass."""

    def call(*args, **kwargs):
        kwargs["_semantic"] = semantic
        try:
            return member(*args, **kwargs)
        except KeyError as types:
            raise TypeError(f"libdevice.{name} has no version for {types}; cast its arguments first") from None

    call.__name__, call.__doc__ = name, member.__doc__
    return call


def _unknown(name: str) -> Callable:
    def call(*args, **kwargs):
        raise NotImplementedError(f"libdevice.{name} does not exist for NVIDIA GPUs")

    return call
