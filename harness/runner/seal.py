"""A seal on the code that judges: what code under test replaced in it shows afterwards.

Everything runs in one process, where Python lets anybody replace anything. This keeps honest people honest: who
replaces a function of the harness or of Triton's interpreter is told so, instead of a verdict nobody can trust.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, staticmethod, classmethod, property)


def seal(classes: Iterable[type] = ()) -> Callable[[], str]:
    """Return a function that names the first thing that was replaced since now; an empty text if nothing was.

    Args:
        classes: what counts beside the harness's own modules.
    """
    modules = [(n, m) for n, m in sys.modules.items() if n.startswith("harness.") and m is not None]
    others = list(classes)
    before = dict(_parts(modules, others))

    def broken() -> str:
        now = dict(_parts(modules, others))
        return next((name for name, part in before.items() if now.get(name) is not part), "")

    return broken


def _parts(modules: Iterable[tuple[str, Any]], classes: Iterable[type]) -> Iterator[tuple[str, Any]]:
    """Yield (name, object) of every function and method."""
    for name, module in modules:
        for key, value in list(vars(module).items()):
            if getattr(value, "__module__", None) != name:
                continue
            if isinstance(value, type):
                yield f"{name}.{key}", value
                yield from _methods(f"{name}.{key}", value)
            elif isinstance(value, _FUNCTIONS):
                yield f"{name}.{key}", value
    for cls in classes:
        yield from _methods(f"{cls.__module__}.{cls.__qualname__}", cls)


def _methods(name: str, cls: type) -> Iterator[tuple[str, Any]]:
    for key, value in list(vars(cls).items()):
        if isinstance(value, _FUNCTIONS):
            yield f"{name}.{key}", value
