"""Times: the modelled time of each kata's reference, kept per GPU and Triton version. No torch here.

A submission's share is the reference's modelled time over its own, so both must come from the same model and the same
compiler. The files are ours, written by ``nox -s course -- --write-times``; a learner's tree need not hold solutions.
Each time names what it was made of (the reference's code, the bench shape, the model); one that was made of something
else than what is here is stale, and nothing is judged by it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.course import Kata
from harness.device import Device, load_devices
from harness.errors import KataError
from harness.model.constants import CALIBRATED
from harness.spec import Case

FOLDER = Path("records") / "reference" / "modelled"
HARNESS = Path(__file__).resolve().parents[1]
_SAYS_NO_TIME = {"__init__.py", "aot.py", "findings.py", "patience.py", "speed.py", "times.py"}
_CHANGED = {"kernel": "the reference's code", "suite": "the bench shape", "model": "the speed model"}


class BrokenTimes(KataError):
    """A file of kept times cannot be read."""


@dataclass(frozen=True)
class Kept:
    """What is kept for one bench shape: ``seconds``, None when there is none to judge by; ``why``: then, in words."""

    seconds: float | None
    why: str = ""


def file_of(root: Path, gpu: str, triton: str) -> Path:
    """Return where the times for this GPU and Triton stand."""
    return root / FOLDER / f"{gpu}_triton_{triton}.json"


def read(path: Path) -> dict[str, Any]:
    """Return the times by kata and case; empty when nobody wrote any. Raises BrokenTimes."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["katas"]
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenTimes(
            f"{path} cannot be read ({error!r}); `nox -s course -- --write-times` writes it anew."
        ) from None


def kept(root: Path, kata: Kata, case: Case, device: Device, triton: str) -> Kept:
    """Return the modelled time of the kata's reference at one bench shape, as far as it can be judged by."""
    found = read(file_of(root, device.id, triton)).get(kata.slug, {}).get(case.id)
    if found is None:
        return Kept(None, f"no modelled time of the reference is kept for {device.name} and Triton {triton}")
    changed = stale(found, kata, case, device)
    if changed:
        return Kept(None, f"the modelled time of the reference that is kept is stale: {changed} changed since")
    return Kept(float(found["seconds"]))


def stale(entry: dict[str, Any], kata: Kata, case: Case, device: Device) -> str:
    """Return what has changed since ``entry`` was written, in words; empty when nothing has."""
    of, now = entry.get("of", {}), made_of(kata, case, device)
    return next((words for name, words in _CHANGED.items() if name in now and now[name] != of.get(name)), "")


def made_of(kata: Kata, case: Case, device: Device) -> dict[str, str]:
    """Return digests of what a modelled time is made of; without ``kernel`` where the solution is not in the tree."""
    shape = {k: v for k, v in case.to_json().items() if k not in ("id", "role", "model", "seed")}
    found = {
        "suite": _digest(json.dumps([shape, kata.spec.entry, repr(kata.spec.args)], sort_keys=True)),
        "model": model_digest(device),
    }
    if kata.solution.is_file():
        found["kernel"] = _digest(code(kata.solution.read_text(encoding="utf-8")))
    return found


@functools.cache
def model_digest(device: Device) -> str:
    """Return a digest of the model's code and of what it knows of the GPU: comments and docstrings do not count."""
    files = [p for folder in ("model", "compiled") for p in sorted((HARNESS / folder).glob("*.py"))]
    parts = [code(p.read_text(encoding="utf-8")) for p in files if p.name not in _SAYS_NO_TIME]
    for known in (device, load_devices()[CALIBRATED]):
        facts = dataclasses.asdict(known)
        words = {"id", "name", "aliases", "arch", "measured_on", "unverified"}
        parts.append(json.dumps({k: v for k, v in facts.items() if k not in words}, sort_keys=True))
    return _digest("\n".join(parts))


def code(source: str) -> str:
    """Return the lines of Python source that do something: no comments of a line, no docstrings, no blank lines.

    Not by tokens: those of an f-string differ from Python to Python. A file with a syntax error is returned as it is.
    """
    lines = source.splitlines()
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                first = node.body[0]
                lines[first.lineno - 1 : first.end_lineno] = [""] * (first.end_lineno - first.lineno + 1)
    return "\n".join(x.rstrip() for x in lines if x.strip() and not x.lstrip().startswith("#"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def write(root: Path, gpu: str, triton: str, slug: str, cases: dict[str, dict[str, Any]]) -> Path:
    """Keep the times of one kata (``seconds``, ``binds`` and ``of`` for each bench shape) and return the file."""
    path = file_of(root, gpu, triton)
    katas = read(path) | {slug: cases}
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"schema": 2, "gpu": gpu, "triton": triton, "katas": dict(sorted(katas.items()))}
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path
