"""Hints for values that are wrong in themselves: NaN, a factor, a sign, a constant, too few bits.

The same rules as in ``hints_moved``: strong evidence or None.
"""

from __future__ import annotations

import numpy as np

from harness.diagnosis.scene import EPS, Hint, Scene, plain


def overflow(scene: Scene) -> Hint:
    """Infinities where the inputs are large and the answer is finite."""
    bad = ~np.isfinite(scene.g) & np.isfinite(scene.e) & scene.w
    largest = max((float(np.nanmax(np.abs(x.astype(np.float64)))) for x in scene.inputs if _floats(x)), default=0.0)
    if not np.isinf(scene.g[bad]).any() or bad.sum() < 0.95 * scene.w.sum() or not 1e3 <= largest < np.inf:
        return None
    return (
        f"The inputs are large (up to {plain(largest, 4)}) and the result is infinite or NaN where it should be "
        "finite: a value on the way overflows. Look for the largest one, and for the dtype that it is kept in."
    )


def _floats(x: np.ndarray) -> bool:
    return x.dtype.kind == "f" and x.size > 0 and not np.isnan(x).all()


def hidden_nan(scene: Scene) -> Hint:
    """NaN is expected, and something else was found."""
    hidden = np.isnan(scene.e) & scene.w
    if not hidden.any() or hidden.sum() < 0.95 * scene.w.sum():
        return None
    return (
        "NaN is expected there, as torch has it, and a number was found: NaN and infinities must get through the "
        "maximum, the differences and the sum, and no tl.where may replace them."
    )


def not_a_number(scene: Scene) -> Hint:
    """NaN where every input is finite."""
    bad = np.isnan(scene.g) & np.isfinite(scene.e) & scene.w
    finite = all(np.isfinite(x.astype(np.float64)).all() for x in scene.inputs if x.dtype.kind == "f")
    if not bad.any() or bad.sum() < 0.95 * scene.w.sum() or not finite:
        return None
    which = "Every element" if bad.all() else "Every wrong element"
    return (
        f"{which} is NaN although all inputs are finite: look for a masked load without other= (its masked lanes are "
        "undefined, and NaN here), memory that was read before it was written, and 0/0 or inf - inf."
    )


def constant(scene: Scene) -> Hint:
    """One number everywhere."""
    first = scene.g.ravel()[:1]
    if scene.g.size < 4 or not (scene.g == first).all() or (scene.e == scene.e.ravel()[0]).all():
        return None
    value = plain(float(first[0])) if scene.is_float else f"{int(first[0])}"
    zero = "nothing was added up, or a mask is false everywhere"
    cause = zero if first[0] == 0 else "it does not depend on the inputs"
    return f"Every element is {value}: {cause}."


def equals_input(scene: Scene) -> Hint:
    """The result is an input."""
    for i, x in enumerate(scene.inputs):
        if x.shape == scene.e.shape and scene.explains(x.astype(np.float64)):
            return f"The result is {scene.name(i)} unchanged: check what the store writes, and over which tensor."
    return None


def block_scale(scene: Scene) -> Hint:
    """Blocks of a quantised tensor are off by one factor each."""
    block = scene.options.get("blocksize")
    if not scene.is_float or not (isinstance(block, int) or scene.packed):
        return None
    size = block if isinstance(block, int) else 4096
    while size >= 16:
        factors = _factors(scene, size) if size < scene.e.size else None
        if factors is not None:
            i = int(np.nanargmax(np.abs(factors - 1)))
            found = f"{plain(float(factors[i]), 4)} in the block from element {i * size:,} on"
            if isinstance(block, int) and size < block:
                return (
                    f"The scale changes every {size} elements, but blocksize={block} (the factor is {found}): check "
                    "how the index of the scale follows from the index of the element."
                )
            return (
                f"Within each block of {size} elements everything is off by one factor ({found}): the code is decoded "
                "rightly and the scale is not. Check the index of the block and how its absmax is decoded."
            )
        size //= 2
    return None


def _factors(scene: Scene, size: int) -> np.ndarray | None:
    """Return got/expected per run of ``size`` elements, or None unless it is one number in each and not in all."""
    pad = -scene.e.size % size
    e, g, ratio = (
        np.pad(v.ravel(), (0, pad), constant_values=np.nan).reshape(-1, size) for v in (scene.e, scene.g, scene.ratio)
    )
    return _steady(scene, e, g, ratio, np.pad(scene.w.ravel(), (0, pad)).reshape(-1, size))


def _steady(scene: Scene, e: np.ndarray, g: np.ndarray, ratio: np.ndarray, wrong: np.ndarray) -> np.ndarray | None:
    """Return the factor of each row (NaN: unknown), or None unless the rows are steady and explain ``wrong``.

    A row counts with four known ratios. Nearly every wrong element must lie in a counted row, most in rows whose factor
    is clearly not 1; and the factors must differ.
    """
    counted = np.isfinite(ratio).sum(-1) >= 4
    if counted.sum() < 2:
        return None
    known, wrong_there = np.isfinite(ratio[counted]), wrong[counted]
    middle = np.nanmedian(ratio[counted], axis=-1)
    steady = (known & ~scene.same(middle[:, None] * e[counted], g[counted])).sum() <= 0.01 * known.sum()
    clear = np.abs(middle - 1) > 2 * scene.slack
    inside = wrong_there[clear].sum()
    spread = np.ptp(middle) > 2 * scene.slack * np.abs(middle).max()
    if not steady or not spread or wrong_there.sum() < 0.95 * wrong.sum() or inside < max(4, 0.5 * wrong.sum()):
        return None
    if len(np.unique(e[wrong])) < 3:  # two values, such as 0 and 1, have any factor
        return None
    factors = np.full(len(ratio), np.nan)
    factors[counted] = middle
    return factors


def scaled(scene: Scene) -> Hint:
    """Everything is off by the same factor."""
    known = scene.ratio[np.isfinite(scene.ratio)]
    if known.size < 8 or not scene.is_float:
        return None
    factor = float(np.median(known))
    if factor <= 0 or abs(factor - 1) < 2 * scene.slack or not scene.explains(scene.e * factor):
        return None
    return f"Every element is {plain(factor, 4)} times what it should be: a factor is missing, or applied twice."


def line_scale(scene: Scene) -> Hint:
    """Each row (or each column) is off by a factor of its own."""
    if scene.e.ndim < 2 or not scene.is_float or not scene.e.size:
        return None
    for name, axis in (("row", -1), ("column", -2)):
        views = (scene.e, scene.g, scene.ratio, scene.w)
        factors = _steady(scene, *(np.moveaxis(v, axis, -1).reshape(-1, v.shape[axis]) for v in views))
        if factors is not None:
            i = int(np.nanargmax(np.abs(factors - 1)))
            return (
                f"Within a {name} all elements are off by one factor ({plain(float(factors[i]), 4)} in {name} {i:,}): "
                f"check what is computed, or loaded, once per {name}."
            )
    return None


def sign(scene: Scene) -> Hint:
    """The sign is wrong, or lost."""
    if not scene.explains(-scene.e, scene.w):
        return None
    right = scene.e[~scene.w]
    if (scene.e[scene.w] < 0).all() and (right >= 0).all() and right.any():
        return "Where a negative value is expected, its positive counterpart was found: the sign is lost."
    if (scene.w | (scene.e == 0)).all():
        return "Every element has the wrong sign: look for a difference that is taken the wrong way round."
    return None


def wrapped_integers(scene: Scene) -> Hint:
    """Whole numbers that went around the end of a narrow type."""
    if scene.is_float or scene.w.sum() < 3 or scene.dtype == "bool":
        return None
    e, g = np.asarray(scene.expected)[scene.w].astype(np.int64), np.asarray(scene.got)[scene.w].astype(np.int64)
    for bits in (8, 16):
        half = 2 ** (bits - 1)
        outside = (e < -half) | (e >= half)
        if outside.all() and ((e - g) % 2**bits == 0).all() and ((g >= -half) & (g < 2 * half)).all():
            return f"The wrong values went around the end of int{bits}: widen to tl.int32 before you multiply or add."
    if scene.dtype in ("int8", "int16", "uint8"):
        info = np.iinfo(scene.dtype)
        at_end = (e == info.min) | (e == info.max)
        if at_end.all() and (np.abs(e - g) > (info.max - info.min) // 4).mean() >= 0.9:
            return (
                f"Where the result should stay at the end of {scene.dtype} ({info.min} or {info.max}) it went around: "
                "clamp before the cast."
            )
    return None


def low_precision(scene: Scene) -> Hint:
    """All elements are slightly off, some up and some down: something was kept in too few bits."""
    enough = scene.w.sum() >= 16 and scene.w.mean() >= 0.1
    if EPS.get(scene.dtype, 1.0) > EPS["bfloat16"] or not enough or not np.isfinite(scene.g[scene.w]).all():
        return None
    expected = scene.e[scene.w]
    typical = np.median(np.abs(expected))
    relative = (scene.g[scene.w] - expected) / np.maximum(np.abs(expected), max(typical, 1e-300))
    size, eps = np.abs(relative), EPS[scene.dtype]
    middle = float(np.median(size))
    least = {"float64": 2.0**-30, "float32": 2.0**-16}.get(scene.dtype, eps / 2)
    small = least <= middle <= max(2.0**-6, eps) and np.percentile(size, 99) <= 16 * middle
    orders = [expected] + [x[scene.w] for x in scene.inputs if x.shape == scene.e.shape]
    if not small or not all(_is_noise(relative[np.argsort(values, kind="stable")]) for values in orders):
        return None
    start = f"All values are nearly right (typically off by one part in 2^{round(-np.log2(middle))}): "
    if scene.dtype == "float64":
        return start + "something is computed in float32, or in less. Keep everything in tl.float64."
    if scene.dtype == "float32":
        return start + (
            "something is computed in 16 bits or in tf32. Convert to tl.float32 first; if there is a tl.dot, give it "
            "input_precision='ieee'."
        )
    return start + (
        f"a sum or a product is kept in {scene.dtype}, or in less. Convert to tl.float32 after the load and back only "
        "in the store."
    )


def _is_noise(errors: np.ndarray) -> bool:
    """Return whether errors, in the order of some quantity, look rounded: both signs, and rough.

    The error of a wrong formula is a smooth function of the input: from one value to the next it hardly changes.
    """
    rough = np.median(np.abs(np.diff(errors))) > 0.2 * np.median(np.abs(errors))
    return bool(rough and abs(errors.mean()) < 0.8 * np.abs(errors).mean() and 0.1 < (errors > 0).mean() < 0.9)


def zeros(scene: Scene) -> Hint:
    """Every wrong element is 0, and 0 is not what the right ones hold."""
    right, wrong = scene.g[~scene.w], scene.g[scene.w]
    if wrong.size < 8 or wrong.any() or np.count_nonzero(right) <= 0.5 * right.size:
        return None
    return "Every wrong element is 0, as if its part of a loop never ran or its lanes were masked off: check the masks."
