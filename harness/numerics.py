"""The arithmetic of Triton's interpreter, repaired: what it computes is what the hardware would.

As shipped, the interpreter adds bfloat16 bit patterns as integers, cuts instead of rounding, loses NaNs in the wrong
places and knows neither TF32 nor libdevice. `install` gives blocks of bfloat16 and fp8 real number types (ml_dtypes),
so that reshaping, selecting and broadcasting just work, and replaces every operation that computes. Each operation on
a narrow float is done in float32 and rounded once; `rounding`, `elementary`, `matrix`, `reduction` and `libdevice`
hold the arithmetic, this module the seams. It works alike for Triton 3.6 to 3.9.

Known not to be copied, because it depends on choices that the compiler makes later: contraction of a multiplication
and an addition into one rounding, the order of additions in sums and dots, what an argmax makes of NaN. One or two
units in the last place are left to `/` and to the approximate functions (exp2, log, sqrt, rsqrt, sin, cos, erf).
Operations on fp8 numbers other than casts, loads, `abs` and `where` raise TypeError: no GPU code exists for them.
"""

import dataclasses

import numpy as np

from harness import elementary as el
from harness import libdevice, matrix, reduction
from harness.rounding import (
    BFLOAT16,
    DTYPES,
    E5M2,
    FLOAT32,
    FP8_MAX,
    bits_of,
    fma,
    from_e4b15,
    from_int,
    is_float,
    remainder,
    round_to,
    to_e4b15,
    to_int,
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
    for install_part in (_install_elementwise, _install_casts, _install_constants, _install_blocks, _install_memory):
        install_part(interp, interp.InterpreterBuilder)
    reduction.install(interp)
    libdevice.install(interp)
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


def _install_casts(interp, builder) -> None:
    handle, tl, rtz = interp.TensorHandle, interp.tl, interp._ir.ROUNDING_MODE.RTZ

    def cast_impl(self, src, dst_type):
        data, dtype = src.data, interp._get_np_dtype(dst_type)
        if data.dtype == dtype:
            out = data
        elif is_float(data.dtype):
            out = round_to(dtype, data) if is_float(dtype) else to_int(data, dtype)
        else:
            out = from_int(data, dtype) if is_float(dtype) else data.astype(dtype)
        return handle(out, dst_type.scalar)

    casts = ("si_to_fp", "ui_to_fp", "fp_to_si", "fp_to_ui", "fp_ext", "fp_trunc")
    builder.cast_impl = cast_impl
    for name in casts:
        setattr(builder, f"create_{name}", lambda self, src, dst_type: self.cast_impl(src, dst_type))
    builder.create_int_cast = lambda self, src, dst_type, is_signed: self.cast_impl(src, dst_type)

    def create_fp_to_fp(self, src, dst_type, rounding_mode):
        data, target = src.data, dst_type.scalar
        if src.dtype.scalar == tl.float8e4b15:
            data = from_e4b15(data)
        if target == tl.float8e4b15:
            return handle(to_e4b15(data), target)
        dtype = interp._get_np_dtype(target)
        if data.dtype == E5M2 and dtype == BFLOAT16:
            return handle(_e5m2_to_bfloat16(data), target)
        return handle(round_to(dtype, data, toward_zero=rounding_mode == rtz), target)

    builder.create_fp_to_fp = create_fp_to_fp


def _e5m2_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """The compiled cast moves the bits and multiplies by 2**112: infinity becomes 65536, NaN a number above it."""
    bits = bits_of(values).astype(np.uint32)
    moved = ((bits & 0x7F) << 21 | (bits & 0x80) << 24).view(FLOAT32)
    return (moved * np.float32(2.0**112)).astype(BFLOAT16)


def _install_constants(interp, builder) -> None:
    handle, tl = interp.TensorHandle, interp.tl

    def wrapped(bits):
        # like the compiler's builder: a signed constant out of range keeps its low bits
        def get(self, value):
            data = np.array([int(value) & ((1 << bits) - 1)], f"u{bits // 8}").view(f"i{bits // 8}")
            return handle(data, getattr(tl, f"int{bits}"))

        return get

    for bits in (8, 16, 32, 64):
        setattr(builder, f"get_int{bits}", wrapped(bits))

    def get_fp32(self, value):
        with np.errstate(all="ignore"):
            return handle(np.array([value], FLOAT32), tl.float32)

    def get_fp16(self, value):
        with np.errstate(all="ignore"):
            return handle(np.array([value], FLOAT32).astype(np.float16), tl.float16)

    def get_bf16(self, value):
        # the compiler's builder prints the constant with six decimals and reads it back: in bfloat16, 1e-7 is 0
        with np.errstate(all="ignore"):
            printed = np.array([float(f"{np.float32(value):f}")])
        return handle(round_to(BFLOAT16, printed), tl.bfloat16)

    builder.get_fp32, builder.get_fp16, builder.get_bf16 = get_fp32, get_fp16, get_bf16


def _install_blocks(interp, builder) -> None:
    handle, tl, ir = interp.TensorHandle, interp.tl, interp._ir

    def create_splat(self, ty, arg):
        return handle(np.full(ty.shape, arg.data.reshape(-1)[0], dtype=arg.data.dtype), arg.dtype.scalar)

    def create_unsplat(self, arg):
        return handle(arg.data.reshape(-1)[:1].copy(), arg.dtype.scalar)

    def create_histogram(self, data, bins, mask):
        counted = (data.data >= 0) & (data.data < bins)
        counted = counted if mask is None else counted & mask.data
        return handle(np.bincount(data.data[counted], minlength=bins).astype(np.int32), tl.int32)

    def create_dot(self, a, b, acc, input_precision, max_num_imprecise_acc):
        precision = getattr(input_precision, "name", None) or str(input_precision).rpartition(".")[2]
        return handle(matrix.dot(a.data, b.data, acc.data, precision), acc.dtype.scalar)

    def create_dot_scaled(self, lhs, lhs_scale, lhs_format, rhs, rhs_scale, rhs_format, fast, lhs_k, rhs_k, acc):
        half = ir.ScaleDotElemTypeTY.FP16 in (lhs_format, rhs_format)

        def operand(value, kind, axis):
            return matrix.unpack_e2m1(value.data, axis) if kind == ir.ScaleDotElemTypeTY.E2M1 else widen(value.data)

        scales = [None if s is None else s.data for s in (lhs_scale, rhs_scale)]
        out = matrix.dot_scaled(
            operand(lhs, lhs_format, -1 if lhs_k else -2), scales[0],
            operand(rhs, rhs_format, -2 if rhs_k else -1), scales[1],
            acc.data, np.dtype(np.float16) if half else BFLOAT16,
        )  # fmt: skip
        return handle(out, tl.float32)

    for function in (create_splat, create_unsplat, create_histogram, create_dot, create_dot_scaled):
        setattr(builder, function.__name__, function)

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
