"""Experiment: a prediction, what was measured, and everything that a doubter would ask for; one new file each.

``records/experiments/<UTC>_<slug>_<digest>.json`` is never written twice. No torch here.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import StoreError
from harness.measured.sampling import quartiles
from harness.record import digest_of, now

SCHEMA = 1
FOLDER = "experiments"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One measurement of one kata's bench shape. Times in seconds, rates in bytes/s and FLOP/s."""

    slug: str
    case: Mapping[str, Any]
    file: str  # what was measured, as its path in the course
    source: str  # sha256 of it
    spec: str  # sha256 of exercise.toml: another spec makes another experiment
    prediction: float | None  # the share of the limit that was expected
    cost: Mapping[str, int]
    measured: Mapping[str, Any]  # ``Samples.to_json`` with limit, rules and environment
    versions: Mapping[str, Any]
    time: str = field(default_factory=lambda: now().strftime("%Y-%m-%dT%H:%M:%SZ"))

    @property
    def moved(self) -> int:
        """The bytes that have to move."""
        return self.cost["bytes_read"] + self.cost["bytes_written"]

    def counted(self, name: str = "ours") -> list[float]:
        """Return the samples of a contender that count."""
        left_out = {d["round"] for d in self.measured["discarded"]} if self.measured.get("trusted", True) else set()
        return [s for i, s in enumerate(self.measured["seconds"][name]) if i not in left_out]

    def result(self) -> dict[str, Any]:
        """Return what follows from the samples: quartiles, rates, shares of every contender."""
        q1, median, q3 = quartiles(self.counted())
        limit = quartiles(self.counted("limit"))[1]
        others = [n for n in self.measured["seconds"] if n not in ("ours", "limit")]
        out = {
            "share": self.measured["share"], "low": self.measured["low"], "high": self.measured["high"],
            "median_s": median, "q1_s": q1, "q3_s": q3, "limit_s": limit, "samples": len(self.counted()),
            "bytes_per_s": self.moved / median, "flop_per_s": self.cost["flops"] / median,
            "times_as_fast_as": {n: round(quartiles(self.counted(n))[1] / median, 4) for n in others},
        }  # fmt: skip
        if self.prediction:
            out["measured_over_predicted"] = self.measured["share"] / self.prediction
        return out

    def to_json(self) -> dict[str, Any]:
        """Return the record, without its digest."""
        return {"schema": SCHEMA, "kind": "experiment", **vars(self), "result": self.result()}


def write(folder: Path, experiment: Experiment) -> Path:
    """Write ``experiment`` as one new file below ``folder`` (the records) and return it.

    Raises:
        StoreError: it cannot be written, or a file of this name is there already.
    """
    data = json.loads(json.dumps(experiment.to_json(), allow_nan=False))
    data["digest"] = digest_of(data)
    name = f"{experiment.time.replace('-', '').replace(':', '')}_{experiment.slug}_{data['digest'][:8]}.json"
    return put(folder / FOLDER / name, json.dumps(data, indent=1) + "\n")


def put(path: Path, text: str) -> Path:
    """Write a new file and return its path. Raises StoreError when it is there already or cannot be written."""
    try:
        if path.exists():
            raise StoreError(f"{path} exists already; a record is never written twice. Run it again.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"Not recorded: {path} cannot be written ({error.strerror}). Name another folder with "
                         "--records DIR.") from None  # fmt: skip
    return path


def read(path: Path) -> Experiment:
    """Return the experiment in ``path``. Raises StoreError when it is none, or was changed since."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        digest = data.pop("digest")
        if digest != digest_of(data):
            raise StoreError(f"{path.name}: its digest does not match; somebody changed it after it was measured.")
        names = Experiment.__dataclass_fields__
        return Experiment(**{k: v for k, v in data.items() if k in names})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path.name} is no experiment: {error}.") from None


def sha256(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
