"""Zoo data: what the model needs of each variant of the zoo, computed once and kept outside of the tree; its times.

A variant's facts and traces depend on its file, on Triton and on the modules that make them; all of them are in the
name of the kept file. No torch here.
"""

from __future__ import annotations

import csv
import functools
import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.course import ROOT
from harness.device import Device
from harness.errors import KataError
from harness.model.rehearsal import layouts_of
from harness.runner.client import Client, Server

FOLDER = ROOT / "records" / "reference" / "zoo"
CACHE = "KATA_CACHE"  # the environment variable that names another folder for what is kept
# the modules that an answer depends on
_COMPILES = ("compiled/*.py", "model/banks.py", "zoo/variants.py")
_TRACES = (
    "model/memory.py", "model/rehearsal.py", "model/sites.py", "model/skim.py", "model/trace.py", "model/witness.py",
    "interpreted/interpreter.py",
)  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """One variant and its measured time."""

    file: Path
    family: str
    name: str
    set: str
    seconds: float
    row: dict[str, str]


def table_of(triton: str, folder: Path = FOLDER) -> Path:
    """Return the times that are held against code of this Triton.

    Its own, else those of the newest that is older, else the oldest. Raises KataError when there are none.
    """
    tables = {_number(path.stem.rpartition("_")[2]): path for path in folder.glob("h200_triton_*.csv")}
    if not tables:
        raise KataError(f"{folder} holds no recorded times (h200_triton_*.csv).")
    return tables[max([v for v in tables if v <= _number(triton)], default=min(tables))]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def variants(triton: str | None = None, folder: Path = FOLDER) -> list[Variant]:
    """Return the measured variants in the order of the table of this Triton, by default of the one installed.

    Raises KataError for a variant whose kernel is not there.
    """
    table = table_of(triton or triton_version(), folder)
    with table.open(newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    known = {family: path for path in sorted(folder.glob("*/*.py")) for family in _family_names(path)}
    for row in rows:
        if row["family"] not in known:
            raise KataError(f"{table}: family {row['family']!r} is in no file of {folder}.")
    return [
        Variant(known[r["family"]], r["family"], r["variant"], r["set"], float(r["median_us"]) * 1e-6, r) for r in rows
    ]


def _family_names(path: Path) -> list[str]:
    """Names of the families of a file, from its last assignment, without running it."""
    import ast

    for node in reversed(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "FAMILIES":
            return [ast.literal_eval(k) for k in node.value.keys]  # type: ignore[attr-defined]
    return []


class Source:
    """Facts and traces of variants: kept ones, else from a fork server that is started when it is needed."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.folder = _cache_folder()
        self.server: Server | None = None
        self.clients: dict[str, Client] = {}

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: Any) -> None:
        for client in self.clients.values():
            client.close()
        if self.server:
            self.server.close()

    def get(self, variant: Variant) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return ``model`` (runs and facts) and the answer of the trace (``runs`` or ``failed``)."""
        wanted = {"file": str(variant.file), "family": variant.family, "variant": variant.name}
        request: dict[str, Any] = {"zoo": wanted, "gpu": self.device.id}
        base = (variant.file.read_bytes(), variant.family, variant.name, self.device.id, triton_version())
        compiled = self._kept("facts", request, (*base, _sources(_COMPILES)), "compile")
        if "failed" in compiled:
            return compiled, compiled
        request["layouts"] = layouts_of(compiled, self.device)
        return compiled, self._kept("trace", request, (*base, _sources(_TRACES), request["layouts"]), "interpret")

    def _kept(self, kind: str, request: dict[str, Any], key: tuple[Any, ...], server: str) -> dict[str, Any]:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:24]
        path = self.folder / f"{kind}-{request['zoo']['family']}-{request['zoo']['variant']}-{digest}.json.gz"
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as text:
                return json.load(text)
        answer = self._client(server).ask(request)
        if "failed" in answer or any("failed" in f for f in answer.get("facts", {}).values()):
            return answer  # the next run tries again
        new = path.with_suffix(f".{os.getpid()}")
        with gzip.open(new, "wt", encoding="utf-8", compresslevel=1) as text:
            json.dump(answer, text)
        new.replace(path)
        return answer

    def _client(self, kind: str) -> Client:
        if kind not in self.clients:
            self.server = self.server or Server()
            self.clients[kind] = Client(self.server.folder, kind)
        return self.clients[kind]


def triton_version() -> str:
    """Return the version of the Triton that is installed, without importing it."""
    return metadata.version("triton")


def _cache_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get(CACHE) or home / "kernel-kata") / "zoo"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@functools.cache
def _sources(patterns: tuple[str, ...]) -> str:
    text = b"".join(path.read_bytes() for p in patterns for path in sorted((ROOT / "harness").glob(p)))
    return hashlib.sha256(text).hexdigest()


def all_of(source: Source, chosen: list[Variant]) -> Iterator[tuple[Variant, dict[str, Any], dict[str, Any]]]:
    """Yield every variant with its facts and traces."""
    for variant in chosen:
        yield variant, *source.get(variant)
