"""Record: one event of a learner's history, as one line of JSON with its own digest. No torch here.

``records/README.md`` describes the line for people; a test holds the two together. Whoever changes what a field means,
or adds a kind, raises SCHEMA: an older harness then keeps such lines and says that it did not count them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
import platform
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SCHEMA = 1
KINDS = ("attempt", "reset", "hint", "peek")
START = '{"schema":'  # every line begins so, which finds it again behind a torn one
REASON_CHARS = 300  # of a reason; the whole of it was on the screen


def now() -> datetime:
    """Return the time in UTC; tests replace this one clock."""
    return datetime.now(UTC)


def stamp(at: datetime | None = None) -> str:
    """Return ``at`` (default: now) as records write it: ``2026-03-01T09:30:00.000Z``."""
    return (at or now()).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """Return the time that a record holds. Raises ValueError unless it is in UTC."""
    at = datetime.fromisoformat(text)
    if at.utcoffset() != timedelta(0):
        raise ValueError(f"{text!r} is not in UTC")
    return at


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One event: a graded run of the learner's own file, or a reset, a hint or a peek."""

    id: str  # the kata's stable name: a renumbered kata keeps its history
    slug: str  # what its folder was called then
    kind: str = "attempt"
    time: str = field(default_factory=lambda: stamp())
    after: str = ""  # only where the clock went back: the later time of the line that this one followed
    verdict: str = ""
    reason: str = ""  # its first line
    speed: Mapping[str, Any] | None = None
    help: Mapping[str, Any] = field(default_factory=lambda: {"hints": 0, "peek": False})  # in this round so far
    source: str = ""  # sha256 of the learner's file
    seed: int = 0
    whole: bool = True
    device: str = ""
    versions: Mapping[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    @property
    def at(self) -> datetime:
        """What the clock said."""
        return parse_time(self.time)

    @property
    def order(self) -> datetime:
        """The place in the history: what the clock said, or what it had said before it went back."""
        return max(self.at, parse_time(self.after)) if self.after else self.at

    @property
    def passed(self) -> bool:
        """Whether this is a graded run that passed."""
        return self.kind == "attempt" and self.whole and self.verdict == "pass"

    def to_line(self) -> str:
        """Return the line, without its end. Other kinds than attempts leave out what is empty."""
        head = {name: getattr(self, name) for name in ("schema", "kind", "time", "after", "id", "slug")}
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in head}
        rest["reason"] = first_line(self.reason)
        if self.kind != "attempt":
            rest = {name: value for name, value in rest.items() if value and name != "whole"}
        if not self.after:
            del head["after"]
        data = _plain(head | rest)
        return json.dumps(data | {"digest": digest_of(data)}, separators=(",", ":"))


@dataclass(frozen=True)
class Reading:
    """What a line turned out to be: ``ok`` with its event, ``newer`` (a later schema) or ``corrupt``, and why."""

    status: str
    attempt: Attempt | None = None
    why: str = ""


def from_line(line: str | bytes) -> Reading:
    """Read one line; whatever stands in it, this returns."""
    try:
        text = (line.decode("utf-8") if isinstance(line, bytes) else line).strip()
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Reading("corrupt", why="it is not JSON")
    if not isinstance(data, dict) or type(data.get("schema")) is not int or data["schema"] < 1:
        return Reading("corrupt", why="it has no schema")
    if data["schema"] > SCHEMA:  # its digest may be made by another rule
        return Reading("newer", why=f"schema {data['schema']}")
    if not _intact(text, data):
        return Reading("corrupt", why="its digest does not match")
    if why := _fault(data):
        return Reading("corrupt", why=why)
    return Reading("ok", Attempt(**{name: data[name] for name in _TYPES if name in data}))


def digest_of(data: Mapping[str, Any]) -> str:
    """Return the sha256 of ``data`` as JSON in its canonical form: keys in their order, no spaces, ASCII alone."""
    return hashlib.sha256(json.dumps(data, separators=(",", ":")).encode()).hexdigest()


def _intact(text: str, data: dict[str, Any]) -> bool:
    """Return whether a line's digest is right, and take the digest out of ``data``.

    A line that nobody touched is in the canonical form already; one that an editor spaced differently is made so first.
    """
    digest = data.pop("digest", None)
    rest, _, end = text.rpartition(',"digest":"')
    if end == f'{digest}"}}' and hashlib.sha256((rest + "}").encode(errors="replace")).hexdigest() == digest:
        return True
    return digest == digest_of(data)


def file_digest(file: Path) -> str:
    """Return the sha256 of a file's bytes, as ``Attempt.source`` has it."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def first_line(text: str) -> str:
    """Return the first line of a reason, cut to REASON_CHARS."""
    line = (text.strip().splitlines() or [""])[0].rstrip()
    return line if len(line) <= REASON_CHARS else line[: REASON_CHARS - 1] + "…"


def versions(root: Path) -> dict[str, str | None]:
    """Return the versions that a verdict rests on; None for what is not installed. Imports none of it.

    Args:
        root: the checkout whose harness runs; it need not be installed.
    """
    out: dict[str, str | None] = {"python": platform.python_version()}
    for name in ("torch", "triton"):
        try:
            out[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            out[name] = None
    try:
        out["harness"] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    except (OSError, ValueError, KeyError):
        out["harness"] = None
    return out


_TYPES: dict[str, tuple[type, ...]] = {
    "id": (str,), "slug": (str,), "kind": (str,), "time": (str,), "after": (str,), "verdict": (str,), "reason": (str,),
    "speed": (dict, type(None)), "help": (dict,), "source": (str,), "seed": (int,), "whole": (bool,), "device": (str,),
    "versions": (dict,), "schema": (int,),
}  # fmt: skip


def _fault(data: Mapping[str, Any]) -> str:
    """Return what is wrong with a line whose digest is right, or an empty string."""
    for name, types in _TYPES.items():
        if name in data and not isinstance(data[name], types):
            return f"its {name} is {data[name]!r}"
    for name in ("id", "slug", "kind", "time"):
        if not data.get(name):
            return f"it has no {name}"
    if data["kind"] not in KINDS:
        return f"its kind is {data['kind']!r}"
    if type(data.get("help", {}).get("hints", 0)) is not int:
        return f"its help is {data['help']!r}"
    try:
        for name in ("time", "after"):
            if data.get(name):
                parse_time(data[name])
    except ValueError:
        return f"its {name} is {data[name]!r}"
    return ""


def _plain(value: Any) -> Any:
    """Return ``value`` in JSON's own types; a float that JSON lacks (NaN, infinity) is null."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
