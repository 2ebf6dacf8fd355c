"""Mutant cache: what a suite said about a file, kept outside the checkout under a digest of all that it depends on."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.course import ROOT, Course, Kata

SUITE = ("exercise.toml", "reference.py", "test_kernel.py")
_STARTS = (
    "mutation.mutant_suite",
    "runner.forkserver",
    "runner.keeper",
    "runner.judge",
    "strategies",
)  # the modules that a verdict begins with


def folder_of(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that keeps results between runs: below the user's cache, never in a checkout."""
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kernel-kata" / "mutants"


class Cache:
    """The results of one kata's suite as it stands, for one seed."""

    def __init__(self, course: Course, kata: Kata, seed: int, folder: Path | None = None) -> None:
        self.folder = folder or folder_of()
        parts = [kata.slug, str(seed), *_versions(), harness_digest(), _stored_times(course)]
        parts += [(kata.folder / name).read_text(encoding="utf-8") for name in SUITE]
        self.base = "\0".join(parts)

    def _file(self, source: str) -> Path:
        digest = hashlib.sha256(f"{self.base}\0{source}".encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"

    def get(self, source: str) -> dict[str, Any] | None:
        """Return what the suite said about a file with this text, or None when it is not known."""
        try:
            return json.loads(self._file(source).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, source: str, seen: dict[str, Any]) -> None:
        """Keep what the suite said. A half-written file is never seen: it is renamed when it is whole."""
        file = self._file(source)
        file.parent.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(f".{os.getpid()}")
        half.write_text(json.dumps(seen), encoding="utf-8")
        half.replace(file)


def _versions() -> list[str]:
    out = [sys.version]
    for package in ("torch", "triton", "hypothesis", "numpy"):
        try:
            out.append(version(package))
        except PackageNotFoundError:
            out.append("")
    return out


def _stored_times(course: Course) -> str:
    """The speed test compares with these."""
    files = sorted((course.root / "records" / "reference").rglob("*"))
    return _digest([f for f in files if f.is_file()])


@functools.cache
def harness_digest() -> str:
    """Return a digest of the modules that a verdict depends on, and of the tables that they read."""
    files = [_file(name) for name in modules()]
    return _digest([*files, *sorted((ROOT / "harness").glob("*.toml")), *sorted((ROOT / "harness").glob("*/*.toml"))])


def modules() -> list[str]:
    """Return the modules of the harness that a verdict depends on."""
    seen, left = set(), list(_STARTS)
    while left:
        name = left.pop()
        path = _file(name)
        if name not in seen and path.is_file():
            seen.add(name)
            left += _imports(path)
    return sorted(seen)


def _file(name: str) -> Path:
    return ROOT / "harness" / f"{name.replace('.', '/')}.py"


def _imports(path: Path) -> list[str]:
    """Return what a file imports of the harness, wherever in it; some of these names are functions, not modules."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "harness":
            found += [str(node.module), *(f"{node.module}.{a.name}" for a in node.names)]
    return [name.removeprefix("harness.") for name in found]


def _digest(files: list[Path]) -> str:
    out = hashlib.sha256()
    for file in files:
        out.update(str(file.name).encode() + b"\0" + file.read_bytes())
    return out.hexdigest()
