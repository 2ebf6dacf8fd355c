"""Diagnosis: a mismatch becomes help, in a learner's words.

``describe`` says how much is wrong, shows three elements with the program that wrote each, draws where the errors
are and names the likely cause when the pattern is a known one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness.diagnosis import loops, moved, softmax, values
from harness.diagnosis.scene import Scene, plain

if TYPE_CHECKING:  # compare imports torch, this module needs none
    from harness.diagnosis.compare import Example, Mismatch

__all__ = ["CAUSES", "Scene", "describe", "error_map", "likely_cause", "tile_of"]

# the most telling first: the first one that fits is told
CAUSES = (
    values.wrapped_integers,
    values.hidden_nan,
    softmax.missing_max,
    softmax.infinite_inputs,
    values.block_scale,
    softmax.row_sums,
    moved.tail,
    values.overflow,
    values.not_a_number,
    values.constant,
    moved.ignored_stride,
    values.equals_input,
    moved.swapped_pairs,
    moved.transposed,
    moved.turned_tiles,
    moved.repeated_tile,
    moved.shifted,
    values.scaled,
    values.line_scale,
    values.sign,
    values.low_precision,
    moved.only_first_program,
    loops.dropped_tail,
    loops.last_step_only,
    loops.first_step_again,
    values.zeros,
)


def likely_cause(scene: Scene) -> str | None:
    """Return one sentence or two on what is probably wrong and what to check, or None when no known pattern fits."""
    if not scene.w.any():
        return None
    with np.errstate(all="ignore"):  # NaN, infinities and zeros are what the detectors look at
        return next((hint for cause in CAUSES if (hint := cause(scene)) is not None), None)


def tile_of(scene: Scene, index: tuple[int, ...]) -> str | None:
    """Return who wrote the element last, such as ``program (3, 0)``, or None when that is unknown."""
    if scene.writers is None or np.shape(scene.writers) != scene.w.shape:
        return None
    flat = int(np.asarray(scene.writers)[index])
    return _program(scene.grid, flat) if flat >= 0 else None


def _program(grid: tuple[int, ...], flat: int) -> str:
    sizes = [int(g) for g in grid]
    while len(sizes) > 1 and sizes[-1] == 1:  # launches have three axes; learners write those that they need
        sizes.pop()
    coordinates = []
    for size in sizes[:-1]:
        coordinates.append(flat % size if size else 0)
        flat = flat // size if size else 0
    coordinates.append(flat)
    return f"program {flat}" if len(coordinates) == 1 else f"program ({', '.join(map(str, coordinates))})"


def error_map(wrong: np.ndarray, width: int = 48, height: int = 8) -> str:
    """Return a small picture, at most 60 columns wide: ``#`` wrong, ``+`` partly wrong, ``.`` right.

    One sign stands for a power of two of elements each way, so that the picture lines up with tiles. One dimension is
    drawn line after line, like text; more than two are drawn as all leading ones down, the last one across.

    Args:
        wrong: bool, any shape.
        width: signs across, 1 or more.
        height: signs down, 1 or more.

    Returns:
        A line or two that say what is down and across, then at most ``height`` lines with their first index at the
        left.
    """
    wrong = np.asarray(wrong, dtype=bool)
    if not wrong.size:
        return "(no elements)"
    rows = wrong.reshape(-1, wrong.shape[-1]) if wrong.ndim else wrong.reshape(1, 1)
    if min(rows.shape) == 1:
        return _map_of_line(wrong.ravel(), _unit(wrong), width, height)
    down, across = _power(rows.shape[0], height), _power(rows.shape[1], width)
    lead = f" ({' x '.join(map(str, wrong.shape[:-1]))})" if wrong.ndim > 2 else ""
    titles = [
        f"rows 0-{rows.shape[0] - 1:,}{lead} down{_each(down)}",
        f"columns 0-{rows.shape[1] - 1:,} across{_each(across)}",
    ]
    return "\n".join([*titles, *_lines(_cells(rows, down, across), down)])


def _unit(wrong: np.ndarray) -> str:
    if wrong.ndim < 2:
        return "elements"
    return "columns" if wrong.shape[-1] > 1 else "rows"


def _map_of_line(wrong: np.ndarray, unit: str, width: int, height: int) -> str:
    if len(wrong) > width:
        width = 2 ** (width.bit_length() - 1)  # each line starts at a multiple of a power of two
    step = _power(len(wrong), width * height)
    shares = _cells(wrong[None, :], 1, step)[0]
    cut = [shares[i : i + width] for i in range(0, len(shares), width)]
    title = f"{unit} 0-{len(wrong) - 1:,}, line by line{_each(step)}"
    return "\n".join([title, *_lines(cut, width * step)])


def _power(length: int, cells: int) -> int:
    """Return the smallest power of two of which ``cells`` reach over ``length``."""
    return 1 << (-(-length // cells) - 1).bit_length()


def _each(step: int) -> str:
    return f", {step:,} per sign" if step > 1 else ""


def _cells(wrong: np.ndarray, down: int, across: int) -> np.ndarray:
    """Return the share of wrong elements in each cell of ``down`` x ``across`` elements; the last may be smaller."""
    starts = [np.arange(0, n, step) for n, step in zip(wrong.shape, (down, across), strict=True)]
    total = np.add.reduceat(np.add.reduceat(wrong.astype(np.int64), starts[0], axis=0), starts[1], axis=1)
    tall, wide = (np.diff(np.append(s, n)) for s, n in zip(starts, wrong.shape, strict=True))
    return total / (tall[:, None] * wide)


def _lines(cells: np.ndarray | list[np.ndarray], step: int) -> list[str]:
    labels = [f"{i * step}" for i in range(len(cells))]
    signs = ["".join("#" if c == 1 else "+" if c else "." for c in row) for row in cells]
    return [f"{label:>{len(labels[-1])}} {row}" for label, row in zip(labels, signs, strict=True)]


def describe(scene: Scene, mismatch: Mismatch, *, entry: str, case_id: str) -> str:
    """Return the whole text on a mismatch for a learner.

    Args:
        scene: the call.
        mismatch: what ``compare`` found.
        entry: the kata's function.
        case_id: the case.
    """
    lines = [_headline(mismatch, entry, case_id), *_examples(scene, mismatch)]
    lines += _programs(scene, mismatch)
    if mismatch.count < mismatch.total:  # a picture of everything shows nothing
        lines += ["Where (# wrong, + partly, . right):", *(f"  {line}" for line in error_map(scene.w).splitlines())]
    cause = likely_cause(scene)
    lines.append(f"Likely cause: {cause}" if cause else _next(scene, mismatch))
    return "\n".join(lines)


def _headline(mismatch: Mismatch, entry: str, case_id: str) -> str:
    count, total = mismatch.count, mismatch.total
    where = f"of {entry}'s result"
    if count == total:
        what = f"All {total:,} elements {where} are wrong" if total > 1 else f"The only element {where} is wrong"
    else:
        percent = 100 * count / total
        share = f"{percent:.1f} %" if percent >= 0.1 else "less than 0.1 %"
        what = f"{count:,} of {total:,} elements {where} {'are' if count > 1 else 'is'} wrong ({share})"
    return f"{what} in case {case_id}."


def _examples(scene: Scene, mismatch: Mismatch) -> list[str]:
    shown = list(mismatch.examples)
    if mismatch.worst.index not in [e.index for e in shown]:
        shown.append(mismatch.worst)
    rows = [(_at(e.index), *_pair(e), tile_of(scene, e.index)) for e in shown]
    sizes = [max(len(row[k]) for row in rows) for k in range(3)]
    lines = []
    for example, (index, got, expected, program) in zip(shown, rows, strict=True):
        by = f"  written by {program}" if program else ""
        worst = "  (the worst)" if example is mismatch.worst and len(shown) > 3 else ""
        expected = f"{expected:<{sizes[2]}}" if by or worst else expected
        lines.append(f"  {index:<{sizes[0]}}  got {got:<{sizes[1]}}  expected {expected}{by}{worst}")
    if scene.is_float:
        where = f" at {rows[0][0]}" if mismatch.total > 1 else ""
        lines.append(f"Allowed error{where}: {plain(shown[0].allowed, 3)}.{_distance(mismatch)}")
    return lines


def _at(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else "(scalar)"


def _distance(mismatch: Mismatch) -> str:
    if not mismatch.max_ulp < 1e4:  # far off: the examples say more than a number of units
        return ""
    return f" Largest error: {plain(float(mismatch.max_ulp), 3)} units in the last place."


def _pair(example: Example) -> tuple[str, str]:
    """Return both numbers, in as many digits as it takes to tell them apart."""
    for digits in (6, 9, 17):
        got, expected = plain(example.got, digits), plain(example.expected, digits)
        if got != expected:
            break
    return got, expected


def _programs(scene: Scene, mismatch: Mismatch) -> list[str]:
    """Return a line on who wrote the wrong elements, when that is fewer programs than ran and not yet said."""
    if scene.writers is None or np.shape(scene.writers) != scene.w.shape or mismatch.count <= len(mismatch.examples):
        return []
    writers = np.asarray(scene.writers)
    every, guilty = np.unique(writers[writers >= 0]), np.unique(writers[scene.w])
    if len(every) < 2 or not len(guilty) or guilty[0] < 0 or len(guilty) == len(every):
        return []
    kernel = f" of {scene.kernel}" if scene.kernel else ""
    if len(guilty) == 1:
        return [f"All of them were written by {_program(scene.grid, int(guilty[0]))}{kernel}."]
    return [f"They were written by {len(guilty):,} of the {len(every):,} programs{kernel}."]


def _next(scene: Scene, mismatch: Mismatch) -> str:
    first = mismatch.examples[0]
    program = tile_of(scene, first.index)
    at = f"element {_at(first.index)}" if first.index else "the result"
    run = f"follow {program} by hand" if program else "compute it by hand from the inputs"
    return f"No known pattern fits. Next: take {at} and {run}, step by step."
