"""Blocks: which constants of a kernel say how large its blocks are. Reads the source; nothing is run.

A ``tl.constexpr`` may be the length of a row (``N = 50257``) as well as that of a block, and only a large block takes
the compiler minutes. What stands in the shape of ``tl.arange``, ``tl.full`` or ``tl.zeros`` is one, and so is what such
a name was computed from, and what a helper is called with: who knows what it does with it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

HUGE = 32768  # a block of more elements takes the compiler minutes, whatever it does
_MAKES = ("arange", "full", "zeros", "ones", "empty")
_PLAIN = ("range", "min", "max", "int", "float", "abs", "len")


def huge(fn: Callable[..., Any], constants: Mapping[str, str]) -> dict[str, str]:
    """Return those of a kernel's constants, by name, that make a block too large to compile in reasonable time."""
    large = {k: v for k, v in constants.items() if v.isdigit() and int(v) > HUGE}
    if not large:
        return {}
    names = shape_names(fn)
    return large if names is None else {k: v for k, v in large.items() if k in names and _is_power(int(v))}


def _is_power(value: int) -> bool:
    """Triton's blocks have a power of two as many elements."""
    return value & (value - 1) == 0


def shape_names(fn: Callable[..., Any]) -> set[str] | None:
    """Return the names in a function from which the shape of a block is made; None when its source cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found: set[str] = set()
    for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        if _makes_a_block(call.func):
            found |= {name for a in [*call.args, *(k.value for k in call.keywords)] for name in _names(a)}
    assigned = [
        (_targets(n), _names(n.value))
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign | ast.AnnAssign | ast.AugAssign) and n.value
    ]
    while True:
        more = {name for targets, sources in assigned if found & targets for name in sources} - found
        if not more:
            return found
        found |= more


def _makes_a_block(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in _MAKES
    return isinstance(function, ast.Name) and function.id not in _PLAIN  # a helper, or a name imported from tl


def _targets(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {name for target in targets for name in _names(target)}


def _names(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
