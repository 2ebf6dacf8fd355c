"""Hints for right values in the wrong place: a stride, a tile, a nibble, the tail.

Each detector looks at a Scene and returns one sentence or two, or None unless nearly every wrong element fits and the
pattern could not come about by chance: a wrong hint costs a learner more than none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.diagnosis.scene import Hint, Scene


def ignored_stride(scene: Scene) -> Hint:
    """An input that is transposed in memory was read as if it were contiguous."""
    swapped = [i for i, x in enumerate(scene.inputs) if _is_transposed(scene, i, x)]
    for i in swapped:
        name, x = scene.name(i), scene.inputs[i]
        for kind in ("all", "last"):
            for predicted in _misread(scene, i, kind):
                if predicted.shape == scene.e.shape and scene.explains(predicted):
                    axis = x.ndim - 1 if kind == "last" else x.ndim - 2
                    used = f"{name}.stride({axis})" if kind == "last" else f"{name}.stride({axis}) and ({axis + 1})"
                    seen = "as if each row lay in one piece" if kind == "last" else "as if it were contiguous"
                    return (
                        f"{name} is transposed in memory and the kernel reads it {seen}: "
                        f"compute the addresses with {used}."
                    )
    if swapped and scene.e.ndim >= 2 and scene.explains(_unswap(scene.e)):
        return (
            f"The result lies in memory like {scene.name(swapped[0])}, which is transposed (torch.empty_like copies "
            "strides), and the kernel writes it as if it were contiguous: use out.stride(), or allocate with "
            "torch.empty(shape, …)."
        )
    return None


def _is_transposed(scene: Scene, i: int, x: np.ndarray) -> bool:
    return scene.layouts.get(scene.name(i)) == "transposed" and x.ndim >= 2 and min(x.shape[-2:]) >= 2


def _swap(x: np.ndarray) -> np.ndarray:
    """Return what a contiguous reader of ``x``'s shape sees when ``x`` is stored with its last two dims exchanged."""
    return np.swapaxes(x, -1, -2).reshape(x.shape)


def _unswap(x: np.ndarray) -> np.ndarray:
    """Return what the caller sees when ``x`` is written in row-major order into memory with those dims exchanged."""
    return np.swapaxes(x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]), -1, -2)


def _one_stride(x: np.ndarray) -> np.ndarray:
    """Return what a reader sees who uses the row's stride (1 here) and takes the last stride for 1."""
    rows, cols = x.shape[-2:]
    at = np.arange(rows)[:, None] + np.arange(cols)
    return np.swapaxes(x, -1, -2).reshape(*x.shape[:-2], -1)[..., at]


def _misread(scene: Scene, i: int, kind: str) -> Iterator[np.ndarray]:
    """Yield the results that a kernel would get that misreads input ``i``."""
    misread = _swap if kind == "all" else _one_stride
    x = scene.inputs[i]
    if scene.rerun is not None:
        yield scene.again({i: misread(x)})
        return
    if x.shape != scene.e.shape:
        return
    if len(scene.inputs) == 1:  # if each element depends on one element, the result moves as the input does
        yield misread(scene.e)
        return
    x = x.astype(np.float64)
    yield scene.e + (misread(x) - x)
    yield scene.e * (misread(x) / x)  # NaN, which fits nothing, where x is 0


def transposed(scene: Scene) -> Hint:
    """Rows and columns are exchanged."""
    if scene.e.ndim < 2 or min(scene.e.shape[-2:]) < 2:
        return None
    if scene.explains(_swap(scene.e)) or scene.explains(_unswap(scene.e)):
        return (
            "The values are right, but rows and columns are exchanged: somewhere a row index meets a column's stride. "
            "Check the address of the load and of the store."
        )
    return None


def turned_tiles(scene: Scene) -> Hint:
    """Each square tile stands where it belongs, with its rows and columns exchanged."""
    e = scene.e
    for n in sorted({int(n) for n in scene.blocks.values() if n > 1 and e.ndim > 1 and n <= min(e.shape[-2:])}):
        down, across = (length // n * n for length in e.shape[-2:])  # ragged tiles depend on their masks
        whole = e[..., :down, :across].reshape(*e.shape[:-2], down // n, n, across // n, n)
        predicted, where = e.copy(), np.zeros(e.shape, dtype=bool)
        predicted[..., :down, :across] = np.swapaxes(whole, -1, -3).reshape(*e.shape[:-2], down, across)
        where[..., :down, :across] = True
        if scene.explains(predicted, where, cover=0.5):
            return (
                f"The values are right, but inside each tile of {n} x {n} rows and columns are exchanged: what is "
                "stored lies the other way round than its addresses. tl.trans turns a block."
            )
    return None


def swapped_pairs(scene: Scene) -> Hint:
    """Neighbours are exchanged in pairs, as when a byte's nibbles are taken in the wrong order."""
    flat = scene.e.ravel()
    even = flat.size - flat.size % 2
    predicted, where = flat.copy(), np.arange(flat.size) < even
    predicted[:even] = flat[:even].reshape(-1, 2)[:, ::-1].ravel()
    if not scene.explains(predicted.reshape(scene.e.shape), where.reshape(scene.e.shape), cover=0.9):
        return None
    start = "The values are right, but neighbours are exchanged in pairs (elements 0 and 1, 2 and 3, …)"
    if scene.packed:
        return f"{start}: check which nibble of a byte comes first, byte >> 4 or byte & 0xF."
    return f"{start}: check the order in which the two halves are stored."


def repeated_tile(scene: Scene) -> Hint:
    """Every tile holds what belongs in the first one."""
    for name, size, axis in _steps(scene):
        length = scene.e.size if axis is None else scene.e.shape[axis]
        if length < 2 * size or (size == 1 and (axis != 0 or length < 3)):
            continue
        view = scene.e.ravel() if axis is None else scene.e
        predicted = np.take(view, np.arange(length) % size, axis=axis or 0).reshape(scene.e.shape)
        if scene.explains(predicted):
            what = "row" if size == 1 else f"tile ({name}={size})"
            return (
                f"Every {what} equals the first {what}: the loads do not move with the program. Check that the offsets "
                "use tl.program_id, and of which axis."
            )
    return None


def shifted(scene: Scene) -> Hint:
    """Each element holds the value that belongs one element, or one tile, further on or back."""
    for name, size, axis in _steps(scene):
        for step in (size, -size):
            if scene.explains(*_shift(scene.e, step, axis), cover=0.4):
                unit = "place" if size == 1 else "places"
                way = "later" if step > 0 else "earlier"
                along = f" along dimension {axis}" if axis is not None and scene.e.ndim > 1 else ""
                cause = "an index is off by one" if size == 1 else f"a tile index is off by one ({name}={size})"
                return f"Each element holds the value that belongs {size:,} {unit} {way}{along}: {cause}."
    return None


def _steps(scene: Scene) -> Iterator[tuple[str, int, int | None]]:
    """Yield a tile's name, its size (first of all 1) and the axis it may lie along (None: the flattened output)."""
    axes = [*reversed(range(scene.e.ndim)), None] if scene.e.ndim > 1 else [None]
    yield from (("", 1, axis) for axis in axes)
    pairs = [(name, int(size), axis) for name, size in scene.blocks.items() if size > 1 for axis in axes]
    yield from sorted(pairs, key=lambda pair: _strange(pair[0], pair[2], scene.e.ndim))


def _strange(name: str, axis: int | None, ndim: int) -> bool:
    """Whether a tile of this name is unlikely to lie along this axis: by custom M goes down and N across."""
    return name.endswith("M") and axis == ndim - 1 or name.endswith("N") and axis == ndim - 2


def _shift(x: np.ndarray, step: int, axis: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return ``x`` moved by ``step`` and where that is defined; nowhere unless a quarter of it is."""
    view = x.ravel() if axis is None else x
    length = view.shape[axis or 0]
    at = np.arange(length) + step
    inside = (at >= 0) & (at < length)
    if inside.sum() < max(1, length / 4):
        return x, np.zeros(x.shape, dtype=bool)
    shape = [1] * view.ndim
    shape[axis or 0] = length
    where = np.broadcast_to(inside.reshape(shape), view.shape)
    return np.take(view, at.clip(0, length - 1), axis=axis or 0).reshape(x.shape), where.reshape(x.shape)


def only_first_program(scene: Scene) -> Hint:
    """The first program's part is right and all others are wrong."""
    if scene.writers is None or np.shape(scene.writers) != scene.w.shape or (scene.writers < 0).any():
        return None
    programs, sizes = np.unique(scene.writers, return_counts=True)
    if len(programs) < 4 or sizes[0] < 4:
        return None
    shares = np.bincount(np.searchsorted(programs, scene.writers).ravel(), scene.w.ravel()) / sizes
    if shares[0] > 0 or shares[1:].min() < 0.9:
        return None
    # a wrong address gives another number altogether; what is nearly right has another cause
    far = np.abs(scene.g - scene.e)[scene.w] > 0.1 * np.abs(scene.e[scene.w])
    if far.mean() < 0.5:
        return None
    return (
        "Only what the first program wrote is right: check everything that depends on tl.program_id, the offsets and "
        "the masks."
    )


def tail(scene: Scene) -> Hint:
    """All wrong elements are in the last, ragged tile."""
    size, count = scene.w.size, int(scene.w.sum())
    if count == 1 and size >= 16 and scene.w.ravel()[-1]:
        odd = " The size is odd: the last byte holds one element only." if size % 2 and scene.packed else ""
        return f"Only the last of {size:,} elements is wrong: check the mask and the number of programs there.{odd}"
    for where, share, text in _ragged(scene):
        inside = int((scene.w & where).sum())
        # by chance all of them would lie there with the probability (share of the tile) ** count
        if inside == count and inside >= share * where.sum() and (where.sum() / size) ** count < 1e-3:
            return f"All wrong elements are in the last, ragged tile ({text}): check the mask and what is loaded there."
    return None


def _ragged(scene: Scene) -> Iterator[tuple[np.ndarray, float, str]]:
    """Yield the tiles that stick out of the output, smallest first.

    Yields:
        A bool array, the share of it that must be wrong to be evidence, and words for it.
    """
    shape, ndim = scene.w.shape, scene.w.ndim
    blocks = [(name, name, int(size)) for name, size in scene.blocks.items() if size > 1]
    if scene.packed:
        blocks += [(name, f"2 * {name}", 2 * size) for name, _, size in blocks]
    found = []
    for name, words, block in blocks:
        for axis in [*range(ndim), None] if ndim > 1 else [None]:
            length = scene.w.size if axis is None else shape[axis]
            if length > block and length % block and (words == name or axis is None):
                at = np.arange(scene.w.size).reshape(shape) if axis is None else np.indices(shape)[axis]
                start = length - length % block
                along = "" if axis is None else f" along dimension {axis}"
                text = f"from {start:,}{along} on; {length:,} is no multiple of {words}={block}"
                # the end of a matrix read as one line is also its last row: only a clear edge counts
                share = 0.95 if axis is None and ndim > 1 else 0.7
                found.append((at >= start, _strange(name, axis, ndim), share, text))
    if scene.writers is not None and np.shape(scene.writers) == shape and (scene.writers >= 0).all():
        programs, counts = np.unique(scene.writers, return_counts=True)
        if len(programs) > 1 and counts[-1] < counts.max():
            found.append((scene.writers == programs[-1], True, 0.7, "what the last program wrote"))
    for where, _, share, text in sorted(found, key=lambda entry: (int(entry[0].sum()), entry[1])):
        yield where, share, text
