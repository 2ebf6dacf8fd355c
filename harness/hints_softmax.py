"""Hints for rows that should add up to 1: a missing maximum, infinities, a sum with too many or too few terms.

The same rules as in ``hints_moved``: strong evidence or None.
"""

from __future__ import annotations

import numpy as np

from harness.scene import Hint, Scene, plain

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
    return (
        f"exp() overflows: only rows with large values are wrong (the maximum of row {row} is "
        f"{plain(float(top.ravel()[row]), 4)}). Subtract each row's maximum before exp()."
    )


def infinite_inputs(scene: Scene) -> Hint:
    """NaN in exactly the rows that hold an infinity."""
    x = scene.inputs[0] if scene.inputs else np.zeros(0)
    if not x.ndim or x.shape != scene.e.shape or x.dtype.kind != "f":
        return None
    rows, nan = np.isinf(x.astype(np.float64)).any(-1), np.isnan(scene.g) & scene.w
    if not nan.any() or nan.sum() < 0.5 * scene.w.sum() or (scene.w.any(-1) & ~rows).any() or rows.all():
        return None
    return (
        "NaN appears only in rows that hold an infinity: inf - inf and 0 * inf are NaN. Check what your maximum and "
        "your differences do when a whole tile is -inf."
    )


def row_sums(scene: Scene) -> Hint:
    """A softmax whose rows do not add up to 1: the sum that divides them has too many or too few terms."""
    if not _rows_sum_to_one(scene) or not np.isfinite(scene.g).all():
        return None
    columns = scene.e.shape[-1]
    ratio, wrong = scene.ratio.reshape(-1, columns), scene.w.reshape(-1, columns).any(-1)
    rows = ratio[wrong & (np.isfinite(ratio).sum(-1) >= 3)]
    if len(rows) == 0 or len(rows) < 0.9 * wrong.sum():
        return None
    middle = np.nanmedian(rows, axis=-1)
    off = np.abs(rows / middle[:, None] - 1) > 2 * scene.slack
    if (off & np.isfinite(rows)).sum() > 0.01 * np.isfinite(rows).sum() or (np.abs(middle - 1) < 2 * scene.slack).any():
        return None
    row = int(np.flatnonzero(wrong)[0])
    total = plain(float(scene.g.reshape(-1, columns)[row].sum()), 4)
    if (middle < 1).all():
        lanes = "" if columns & (columns - 1) == 0 else " Masked lanes must add 0: load them with other=-float('inf')."
        return f"Rows add up to less than 1 ({total} in row {row}): the sum counts more than the row.{lanes}"
    if (middle > 1).all():
        return f"Rows add up to more than 1 ({total} in row {row}): the sum misses a part of the row."
    return None


def _rows_sum_to_one(scene: Scene) -> bool:
    if not scene.e.ndim or scene.e.shape[-1] < 2 or not scene.is_float or not scene.e.size:
        return False
    rows = scene.e[np.isfinite(scene.e).all(-1)]
    return bool(len(rows) and (rows >= 0).all() and (np.abs(rows.sum(-1) - 1) < 0.02).all())
