"""Bundle: a page's ES modules as one script, so that it runs from a file opened by double-click.

Browsers load no module from disk, so each becomes a function that returns its exports. Only these forms are known, and
others are refused: ``import { a, b as c } from "…"``, ``import * as m from "…"``, ``import "…"``,
``export { a, b } from "…"``, ``export function|class|const NAME``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping

from harness.site.faults import LessonError

_IMPORT = re.compile(
    r"^import\s+(?:\{(?P<names>[^}]*)\}|\*\s+as\s+(?P<star>\w+))\s+from\s+[\"'](?P<path>[^\"']+)[\"'];?[ \t]*$", re.M
)
_PASSED_ON = re.compile(r"^export\s+\{(?P<names>[^}]*)\}\s+from\s+[\"'](?P<path>[^\"']+)[\"'];?[ \t]*$", re.M)
_RUN = re.compile(r"^import\s+[\"'](?P<path>[^\"']+)[\"'];?[ \t]*$", re.M)
_EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function\*?|class|const)\s+([\w$]+))", re.M)
_OTHER = re.compile(r"^(?:import\b|export\b).*$|\bimport\s*\(", re.M)


def bundle(entries: list[str], read: Callable[[str], str]) -> str:
    """Return one script that runs the modules ``entries`` and what they import, each once.

    Args:
        entries: paths such as ``04_coalescing/world.js``, in the order in which they run.
        read: from such a path to the source; raises OSError for one that is not there.

    Raises:
        LessonError: a module is missing, is imported in a circle, or uses another form.
    """
    done: dict[str, str] = {}
    for entry in entries:
        _add(entry, read, done, ())
    return '"use strict";\nconst MODULES = {};\n' + "\n".join(done.values())


def _add(path: str, read: Callable[[str], str], done: dict[str, str], above: tuple[str, ...]) -> None:
    if path in done:
        return
    if path in above:
        raise LessonError(f"{path} imports itself: {' -> '.join([*above, path])}.")
    try:
        source = read(path)
    except OSError as error:
        by = f", imported by {above[-1]}" if above else ""
        raise LessonError(f"{path}{by}, is not there.") from error
    for match in (*_IMPORT.finditer(source), *_RUN.finditer(source), *_PASSED_ON.finditer(source)):
        _add(_resolve(path, match["path"]), read, done, (*above, path))
    done[path] = _function(path, source)


def _function(path: str, source: str) -> str:
    exports = _EXPORT.findall(source)
    for match in _PASSED_ON.finditer(source):
        exports += [name.strip() for name in match["names"].split(",") if name.strip()]
    body = _IMPORT.sub(lambda match: _binding(path, match.groupdict()), source)
    body = _PASSED_ON.sub(lambda match: _binding(path, {**match.groupdict(), "star": None}), body)
    body = _EXPORT.sub("", _RUN.sub("", body))
    if other := _OTHER.search(body):
        raise LessonError(f"{path}: {other[0].strip()!r} is a form that the builder does not know; see bundle.py.")
    body = re.sub(r"</(script)", r"<\\/\1", body, flags=re.I)  # would end the page's script element
    return f'MODULES["{path}"] = (() => {{\n{body.strip()}\nreturn {{ {", ".join(exports)} }};\n}})();\n'


def _binding(path: str, match: Mapping[str, str | None]) -> str:
    target = f'MODULES["{_resolve(path, match["path"] or "")}"]'
    if match["star"]:
        return f"const {match['star']} = {target};"
    names = re.sub(r"\s+as\s+", ": ", re.sub(r"\s+", " ", match["names"] or "").strip().rstrip(","))
    return f"const {{ {names} }} = {target};"


def _resolve(path: str, target: str) -> str:
    if not target.startswith("."):
        raise LessonError(f"{path}: import from {target!r}; expected a path that starts with ./ or ../.")
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
