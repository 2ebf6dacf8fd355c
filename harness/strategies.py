"""Strategies: hypothesis draws the words and numbers of a Case; the values come from its seed, in the keeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from harness.spec import Case


def dim(low: int, high: int) -> st.SearchStrategy[int]:
    """Draw a size from ``low`` to ``high``, with a taste for edges: powers of two and their neighbours, the ends."""
    edges = {low, high} | {p + d for p in (2**k for k in range(21)) for d in (-1, 0, 1)}
    return st.one_of(st.sampled_from(sorted(e for e in edges if low <= e <= high)), st.integers(low, high))


def cases(
    *,
    dims: Mapping[str, st.SearchStrategy[int] | int],
    dtypes: Sequence[str],
    layouts: Mapping[str, Sequence[str]] | None = None,
    fills: Mapping[str, Sequence[str]] | None = None,
    options: Mapping[str, st.SearchStrategy[Any] | Any] | None = None,
) -> st.SearchStrategy[Case]:
    """Draw a Case.

    Args:
        dims: size of each dim, drawn or fixed.
        dtypes: names to choose from.
        layouts: per argument, the layouts to choose from.
        fills: per argument, the fills to choose from.
        options: extra values for ``make_inputs``, drawn or fixed.
    """
    return st.builds(
        _case,
        _each({k: _drawn(v) for k, v in dims.items()}),
        st.sampled_from(list(dtypes)),
        _each({k: st.sampled_from(list(v)) for k, v in (layouts or {}).items()}),
        _each({k: st.sampled_from(list(v)) for k, v in (fills or {}).items()}),
        _each({k: _drawn(v) for k, v in (options or {}).items()}),
    )


def _each(parts: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(parts)


def _drawn(value: Any) -> st.SearchStrategy[Any]:
    return value if isinstance(value, st.SearchStrategy) else st.just(value)


def _case(dims: dict, dtype: str, layout: dict, fill: dict, options: dict) -> Case:
    words = [f"{k}{v}" for k, v in dims.items()] + [dtype]
    words += [f"{k}.{v}" for k, v in layout.items() if v != "contiguous"]
    words += [f"{k}.{v}" for k, v in fill.items() if v != "normal"]
    words += [f"{k}.{v}" for k, v in options.items()]
    return Case("-".join(words), dims, dtype, layout, fill, options)
