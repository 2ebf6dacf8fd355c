"""Casts and constants of interpreted kernels, rounded as the compiled ones are."""

import numpy as np

from harness.interpreted.rounding import (
    BFLOAT16,
    E5M2,
    FLOAT32,
    bits_of,
    from_e4b15,
    from_int,
    is_float,
    round_to,
    to_e4b15,
    to_int,
)


def install(interp) -> None:
    """Replaces casts and constants. `interp`: the module triton.runtime.interpreter, with its dtypes already mapped."""
    _install_casts(interp, interp.InterpreterBuilder)
    _install_constants(interp, interp.InterpreterBuilder)


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
