"""Hints for a loop over tiles that adds up the wrong ones: the ragged last, only the last, always the first.

Each detector asks the reference again, with inputs as a kernel with that mistake would see them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.diagnosis.scene import Hint, Scene

MAX_RERUNS = 12  # a reference takes milliseconds, and a learner waits


def dropped_tail(scene: Scene) -> Hint:
    """The result is that of inputs whose ragged end, which a loop adds up, is 0."""
    tried = set()
    for i, axis, name, size in _walks(scene):
        length = scene.inputs[i].shape[axis]
        rest = length % size
        if not rest or (i, axis, rest) in tried or len(tried) == MAX_RERUNS:
            continue
        tried.add((i, axis, rest))
        if scene.explains(scene.again({i: _only(scene.inputs[i], axis, 0, length - rest)})):
            return (
                f"The last {rest:,} of {length:,} along dimension {axis} of {scene.name(i)} never count: the loop ends "
                f"before the ragged last tile ({name}={size}). Go up to tl.cdiv(length, {name}) and mask."
            )
    return None


def last_step_only(scene: Scene) -> Hint:
    """The result is that of the last tile alone: each step forgot the sum of those before."""
    for i, axis, name, size in _few(_walks(scene)):
        length = scene.inputs[i].shape[axis]
        start = (length - 1) // size * size
        if scene.explains(scene.again({i: _only(scene.inputs[i], axis, start, length)})):
            return (
                f"Only the last {length - start:,} of {length:,} along dimension {axis} of {scene.name(i)} count "
                f"({name}={size}): each step of the loop forgets the sum of the steps before. Add to it: acc += …, or "
                "tl.dot(a, b, acc)."
            )
    return None


def first_step_again(scene: Scene) -> Hint:
    """Each step of the loop read the first tile: of one input, or of all that are walked along."""
    for i, axis, name, size in _few(_walks(scene)):
        length = scene.inputs[i].shape[axis]
        first = {i: _repeated(scene.inputs[i], axis, size)}
        every = {j: _repeated(x, x.shape.index(length), size) for j, x in enumerate(scene.inputs) if length in x.shape}
        for changed in (first, every):
            if scene.explains(scene.again(changed)):
                names = " and ".join(scene.name(j) for j in changed)
                return (
                    f"Every step of the loop reads the first {size:,} of {length:,} along dimension {axis} of {names} "
                    f"({name}={size}): the addresses do not move on. Add {name} times the stride at the end of a step."
                )
    return None


def _walks(scene: Scene) -> Iterator[tuple[int, int, str, int]]:
    """Yield (input, axis, name of a block, its size) for all along which a loop may walk; nothing without a rerun."""
    for i, x in enumerate(scene.inputs if scene.rerun is not None else ()):
        for axis in range(x.ndim - 1, -1, -1):
            for name, size in scene.blocks.items():
                if 1 < int(size) < x.shape[axis]:
                    yield i, axis, name, int(size)


def _few(walks: Iterator[tuple[int, int, str, int]]) -> list[tuple[int, int, str, int]]:
    """Return the first of those that differ in more than the block's name."""
    return list({(i, axis, size): (i, axis, name, size) for i, axis, name, size in walks}.values())[:MAX_RERUNS]


def _only(x: np.ndarray, axis: int, start: int, stop: int) -> np.ndarray:
    """Return ``x`` with 0 outside of ``start`` to ``stop`` along ``axis``."""
    at = np.arange(x.shape[axis])
    keep = (at >= start) & (at < stop)
    return np.where(keep.reshape([-1 if d == axis else 1 for d in range(x.ndim)]), x, np.zeros((), x.dtype))


def _repeated(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    return np.take(x, np.arange(x.shape[axis]) % size, axis=axis)
