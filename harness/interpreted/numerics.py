"""The arithmetic of Triton's interpreter, repaired: what it computes is what the hardware would.

As shipped, the interpreter adds bfloat16 bit patterns as integers, cuts instead of rounding, loses NaNs in the wrong
places and knows neither TF32 nor libdevice. `install` gives blocks of bfloat16 and fp8 real number types (ml_dtypes),
so that reshaping, selecting and broadcasting just work, and replaces every operation that computes. Each operation on
a narrow float is done in float32 and rounded once; `rounding`, `elementary`, `matrix`, `casts`, `reduction` and
`libdevice` hold the arithmetic, this module the seams. It works alike for Triton 3.6 to 3.9.

Known not to be copied, because it depends on choices that the compiler makes later: contraction of a multiplication
and an addition into one rounding, the order of additions in sums and dots, what an argmax makes of NaN. One or two
units in the last place are left to `/` and to the approximate functions (exp2, log, sqrt, rsqrt, sin, cos, erf).
Operations on fp8 numbers other than casts, loads, `abs` and `where` raise TypeError: no GPU code exists for them.
"""

import dataclasses

import numpy as np

from harness.interpreted import casts, libdevice, matrix, reduction
from harness.interpreted import elementary as el
from harness.interpreted.rounding import (
    BFLOAT16,
    DTYPES,
    FP8_MAX,
    bits_of,
    fma,
    is_float,
    remainder,
    round_to,
    widen,
)

__all__ = ["install", "round_to", "tensor_index"]


# binary operations of the builder, by the numpy function for them; floats arrive as float32 or float64
_BINARY = {
    "create_fadd": np.add, "create_fsub": np.subtract, "create_fmul": np.multiply, "create_fdiv": np.divide,
    "create_precise_divf": np.divide, "create_approx_divf": np.divide, "create_frem": remainder,
    "create_add": np.add, "create_sub": np.subtract, "create_mul": np.multiply,
    "create_sdiv": el.idiv, "create_udiv": el.idiv, "create_srem": np.fmod, "create_urem": np.fmod,
    "create_shl": np.left_shift, "create_lshr": lambda a, b: np.right_shift(bits_of(a), bits_of(b)).view(a.dtype),
    "create_ashr": lambda a, b: np.right_shift(a.view(f"i{a.itemsize}"), b.view(f"i{b.itemsize}")).view(a.dtype),
    "create_and": np.bitwise_and, "create_or": np.bitwise_or, "create_xor": np.bitwise_xor,
    "create_minsi": np.minimum, "create_minui": np.minimum, "create_maxsi": np.maximum, "create_maxui": np.maximum,
    "create_minimumf": el.minimum, "create_minnumf": el.minnum,
    "create_maximumf": el.maximum, "create_maxnumf": el.maxnum,
    "create_umulhi": el.umulhi,
}  # fmt: skip
_COMPARE = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip
_UNARY = {
    "create_cos": el.cos, "create_sin": el.sin, "create_exp": el.exp, "create_exp2": el.exp2, "create_log": el.log,
    "create_log2": el.log2, "create_sqrt": el.sqrt, "create_rsqrt": el.rsqrt, "create_precise_sqrt": np.sqrt,
    "create_erf": el.erf, "create_iabs": np.abs,
    "create_floor": lambda a: np.floor(el.flush(a)), "create_ceil": lambda a: np.ceil(el.flush(a)),
}  # fmt: skip


def tensor_index(tensor) -> int:
    """The number in a one-element tensor, for `tl.tensor.__index__`: loop bounds and shapes known at run time.

    Raises:
        TypeError: for a block of several elements.
    """
    data = tensor.handle.data
    if data.size != 1:
        raise TypeError(f"a block of shape {list(data.shape)} is no index: only a single number is")
    return int(data.reshape(-1)[0])


def install(interp) -> None:
    """Patches the module triton.runtime.interpreter, once; a second call changes nothing.

    Memory operations keep working, but are the caller's to replace. Needs TRITON_INTERPRET=1 before triton's import.
    """
    if getattr(interp, "kata_numerics", False):
        return
    interp.kata_numerics = True
    interp._get_np_dtype = _dtype_lookup(interp)
    for install_part in (_install_elementwise, _install_floats, _install_blocks, _install_dots, _install_memory):
        install_part(interp, interp.InterpreterBuilder)
    for part in (casts, reduction, libdevice):
        part.install(interp)
    # sanitize_overflow spends three extra operations on each integer addition for an assertion that debug=False skips
    interp.interpreter_builder.options = dataclasses.replace(
        interp.interpreter_builder.options,
        sanitize_overflow=False,
        allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    )


def _dtype_lookup(interp):
    original = interp._get_np_dtype
    known = {**DTYPES, **{f"{u}int{b}": np.dtype(f"{u or 'i'}{b // 8}") for u in ("", "u") for b in (8, 16, 32, 64)}}

    def get_np_dtype(ty):
        return known.get(ty.scalar.name) or original(ty)

    return get_np_dtype


def _install_elementwise(interp, builder) -> None:
    handle, tl = interp.TensorHandle, interp.tl

    def binary_op(self, lhs, rhs, op):
        a, b, dtype = lhs.data, rhs.data, lhs.data.dtype
        if dtype in FP8_MAX:
            raise TypeError(f"{lhs.dtype.scalar} has no arithmetic on a GPU: cast to tl.float16 or tl.float32 first")
        with np.errstate(all="ignore"):
            if dtype == np.bool_ and b.dtype == np.bool_ and op not in _COMPARE.values():
                out = (op(a.astype(np.int8), b.astype(np.int8)) & 1).astype(np.bool_)  # one bit, which wraps around
            else:
                out = op(widen(a), widen(b))
        if out.dtype == np.bool_:
            return handle(out, tl.int1)
        return handle(out if out.dtype == dtype else _stored(out, dtype), lhs.dtype.scalar)

    def unary_op(self, arg, op):
        with np.errstate(all="ignore"):
            return handle(_stored(op(widen(arg.data)), arg.data.dtype), arg.dtype.scalar)

    builder.binary_op, builder.unary_op = binary_op, unary_op
    for name, op in _BINARY.items():
        setattr(builder, name, lambda self, lhs, rhs, op=op: self.binary_op(lhs, rhs, op))
    for name, op in _COMPARE.items():
        # integers carry their sign in their dtype; numpy's float comparisons are false with NaN, except !=
        for kind in ("icmp", "icmpS", "icmpU", "fcmpO"):
            setattr(builder, f"create_{kind}{name}", lambda self, lhs, rhs, op=op: self.binary_op(lhs, rhs, op))
        setattr(builder, f"create_fcmpU{name}", lambda self, a, b, op=op: self.binary_op(a, b, _or_unordered(op)))
    builder.create_fcmpUNE = builder.create_icmpNE
    builder.create_fcmpONE = lambda self, a, b: self.binary_op(a, b, lambda x, y: (x < y) | (x > y))
    for name, op in _UNARY.items():
        setattr(builder, name, lambda self, arg, op=op: self.unary_op(arg, op))


def _install_floats(interp, builder) -> None:
    handle = interp.TensorHandle

    def sign_bit(change):
        def changed(self, arg):
            bits = bits_of(arg.data)
            top = bits.dtype.type(1 << (8 * bits.itemsize - 1))
            return handle(change(bits, top).view(arg.data.dtype), arg.dtype.scalar)

        return changed

    builder.create_fabs = sign_bit(lambda bits, top: bits & ~top)
    builder.create_fneg = sign_bit(lambda bits, top: bits ^ top)

    def create_fma(self, x, y, z):
        return handle(fma(x.data, y.data, z.data), z.dtype.scalar)

    def create_clampf(self, arg, low, high, propagate_nan):
        larger, smaller = "create_maxnumf", "create_minnumf"
        if propagate_nan != interp._ir.PROPAGATE_NAN.NONE:
            larger, smaller = "create_maximumf", "create_minimumf"
        return getattr(self, smaller)(getattr(self, larger)(arg, low), high)

    builder.create_fma, builder.create_clampf = create_fma, create_clampf


def _stored(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return round_to(dtype, values) if is_float(dtype) else values.astype(dtype, copy=False)


def _or_unordered(op):
    return lambda a, b: op(a, b) | np.isnan(a) | np.isnan(b)


def _install_blocks(interp, builder) -> None:
    handle, tl = interp.TensorHandle, interp.tl

    def create_splat(self, ty, arg):
        return handle(np.full(ty.shape, arg.data.reshape(-1)[0], dtype=arg.data.dtype), arg.dtype.scalar)

    def create_unsplat(self, arg):
        return handle(arg.data.reshape(-1)[:1].copy(), arg.dtype.scalar)

    def create_histogram(self, data, bins, mask):
        counted = (data.data >= 0) & (data.data < bins)
        counted = counted if mask is None else counted & mask.data
        return handle(np.bincount(data.data[counted], minlength=bins).astype(np.int32), tl.int32)

    for function in (create_splat, create_unsplat, create_histogram):
        setattr(builder, function.__name__, function)


def _install_dots(interp, builder) -> None:
    handle, tl, kinds = interp.TensorHandle, interp.tl, interp._ir.ScaleDotElemTypeTY

    def create_dot(self, a, b, acc, input_precision, max_num_imprecise_acc):
        precision = getattr(input_precision, "name", None) or str(input_precision).rpartition(".")[2]
        return handle(matrix.dot(a.data, b.data, acc.data, precision), acc.dtype.scalar)

    def create_dot_scaled(self, lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, fast, lhs_k, rhs_k, acc):
        half = kinds.FP16 in (lhs_format, rhs_format)

        def operand(value, kind, axis):
            return matrix.unpack_e2m1(value.data, axis) if kind == kinds.E2M1 else widen(value.data)

        scales = [None if s is None else s.data for s in (lhs_scale, rhs_scale)]
        out = matrix.dot_scaled(
            operand(lhs, lhs_format, -1 if lhs_k else -2), scales[0],
            operand(rhs, rhs_format, -2 if rhs_k else -1), scales[1],
            acc.data, np.dtype(np.float16) if half else BFLOAT16,
        )  # fmt: skip
        return handle(out, tl.float32)

    builder.create_dot, builder.create_dot_scaled = create_dot, create_dot_scaled

    semantic = interp.TritonSemantic
    checked = semantic.dot_scaled

    def dot_scaled(self, lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, *rest):
        return checked(self, lhs, lhs_scale, _Format(lhs_format), rhs, rhs_scale, _Format(rhs_format), *rest)

    semantic.dot_scaled = dot_scaled


class _Format(str):
    """The name of a number format; Triton 3.6 and 3.7 ask a constexpr's `value` of it, later ones take it as it is."""

    def __new__(cls, name):
        return super().__new__(cls, getattr(name, "value", name))

    value = property(str)


def _install_memory(interp, builder) -> None:
    """Loads and stores move bit patterns: Triton 3.9's refuse number types that numpy does not know."""

    def create_masked_load(self, ptrs, mask, other, *rest, **options):
        ty = ptrs.get_element_ty()
        dtype = interp._get_np_dtype(ty)
        bits = np.dtype(f"u{dtype.itemsize}")
        fill = np.zeros(ptrs.data.shape, bits) if other is None else other.data.astype(dtype, copy=False).view(bits)
        return interp.TensorHandle(interp._interpreter.load(ptrs.data, mask.data, fill, bits).view(dtype), ty)

    def create_masked_store(self, ptrs, value, mask, *rest, **options):
        values = value.data.astype(interp._get_np_dtype(ptrs.get_element_ty()), copy=False)
        return interp._interpreter.store(ptrs.data, bits_of(values), mask.data)

    builder.create_masked_load, builder.create_masked_store = create_masked_load, create_masked_store
