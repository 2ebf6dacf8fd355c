"""Hints for rows that should add up to 1: a missing maximum, infinities, a sum with too many or too few terms.

The same rules as in ``hints_moved``: strong evidence or None.
"""

from __future__ import annotations

import numpy as np

from harness.diagnosis.scene import Hint, Scene, plain

# exp() of more than this may overflow once a row is summed; a maximum below its negative makes every term 0
EXP_LIMIT = {"float16": 7.0}
EXP_LIMIT_FLOAT32 = 80.0
EXP_OVERFLOWS = 90.0  # for certain, in float32


def missing_max(scene: Scene) -> Hint:
    """A softmax whose exp() overflows (or vanishes) since the row's maximum was not subtracted."""
    if not _rows_sum_to_one(scene) or not scene.inputs or scene.inputs[0].shape != scene.e.shape:
        return None
    x = scene.inputs[0].astype(np.float64)
    top = np.max(np.where(np.isfinite(x), x, -np.inf), axis=-1)
    limit = EXP_LIMIT.get(scene.dtype, EXP_LIMIT_FLOAT32)
    wrong, broken = scene.w.any(-1), (~np.isfinite(scene.g) & scene.w).any(-1)
    if not wrong.any() or (wrong & ~((np.abs(top) > limit) & broken)).any():
        return None
    # inf / inf is NaN where exp() overflows and finite / inf is 0 elsewhere; where every term is 0, 0 / 0 is NaN
    low = (top < 0)[..., None]
    must, never = low | (x > EXP_OVERFLOWS), ~low & (x < limit)
    nan = np.isnan(scene.g)
    unlike = (must & ~nan | never & nan) & wrong[..., None]
    if unlike.sum() > 0.05 * scene.w.sum():
        return None
    row = int(np.flatnonzero(wrong.ravel())[0])
    largest = f"the maximum of row {row} is {plain(float(top.ravel()[row]), 4)}"
    if (top[wrong] < 0).all():
        return (
            f"exp() of every value is 0, and 0/0 is NaN: only rows far below 0 are wrong ({largest}). Subtract each "
            "row's own maximum before exp(); masked lanes have no say in it (other=-float('inf'))."
        )
    return (
        f"exp() overflows: only rows with large values are wrong ({largest}). Subtract each row's maximum before exp()."
    )


def infinite_inputs(scene: Scene) -> Hint:
    """NaN in exactly the rows that hold an infinity."""
    x = scene.inputs[0] if scene.inputs else np.zeros(0)
    if not x.ndim or x.shape != scene.e.shape or x.dtype.kind != "f":
        return None
    rows, nan = np.isinf(x.astype(np.float64)).any(-1), np.isnan(scene.g) & scene.w
    wrong = scene.w.any(-1)
    if not nan.any() or nan.sum() < 0.5 * scene.w.sum() or (wrong & ~rows).any() or (rows.all() and not wrong.all()):
        return None
    return (
        "NaN appears only in rows that hold an infinity: inf - inf and 0 * inf are NaN. Check what your maximum and "
        "your differences do when a whole tile is -inf."
    )


def row_sums(scene: Scene) -> Hint:
    """A softmax whose rows do not add up to 1: the sum that divides them has too many or too few terms."""
    if not _rows_sum_to_one(scene) or not np.isfinite(scene.g).all():
        return None
    e, g, ratio, wrong = (v.reshape(-1, scene.e.shape[-1]) for v in (scene.e, scene.g, scene.ratio, scene.w))
    rows = wrong.any(-1) & (np.isfinite(ratio).sum(-1) >= 3)
    if not rows.any() or rows.sum() < 0.9 * wrong.any(-1).sum():
        return None
    middle, known = np.nanmedian(ratio[rows], axis=-1), np.isfinite(ratio[rows])
    unsteady = known & ~scene.same(middle[:, None] * e[rows], g[rows])
    steady = unsteady.sum() <= 0.01 * known.sum() and scene.same(middle * e[rows].sum(-1), g[rows].sum(-1)).all()
    if not steady or (np.abs(middle - 1) < max(1e-3, 2 * scene.slack)).any():
        return None
    first = int(np.flatnonzero(rows)[0])
    total = f"{plain(float(g[first].sum()), 4)} in row {first}"
    if (middle > 1).all():
        return f"Rows add up to more than 1 ({total}): the sum that divides them misses a part of the row."
    if not (middle < 1).all():
        return None
    lanes = _counted_lanes(scene, rows, middle)
    if lanes:
        number = "1 masked lane" if lanes == 1 else f"{lanes:,} masked lanes"
        return (
            f"Rows add up to less than 1 ({total}): {number} past the end of a row counted as well. Masked lanes must "
            "add 0: load them with other=-float('inf')."
        )
    return (
        f"Rows add up to less than 1 ({total}): the sum that divides them is too large. Does it count lanes past the "
        "end of the row, or parts that still belong to an older, smaller maximum?"
    )


def _counted_lanes(scene: Scene, rows: np.ndarray, factors: np.ndarray) -> int:
    """Return how many lanes past the end, each holding 0 or the maximum, explain the rows' factors; 0 if none do."""
    if not scene.inputs or scene.inputs[0].shape != scene.e.shape:
        return 0
    columns = scene.e.shape[-1]
    x = scene.inputs[0].astype(np.float64).reshape(-1, columns)[rows]
    lanes = {-columns % block for block in [*scene.blocks.values(), 1 << (columns - 1).bit_length()]} - {0}
    for total in (np.exp(x).sum(-1), np.exp(x - x.max(-1, keepdims=True)).sum(-1)):
        for count in sorted(lanes):
            if scene.same(total / (total + count), factors).all():
                return count
    return 0


def _rows_sum_to_one(scene: Scene) -> bool:
    if not scene.e.ndim or scene.e.shape[-1] < 2 or not scene.is_float or not scene.e.size:
        return False
    rows = scene.e[np.isfinite(scene.e).all(-1)]
    return bool(len(rows) and (rows >= 0).all() and (np.abs(rows.sum(-1) - 1) < 0.02).all())
