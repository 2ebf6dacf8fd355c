"""Calibration: what the probes found, as a device file of its own. Ours in ``harness/devices`` are never touched.

No torch at import; ``main`` runs the probes where there is a GPU.
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.course import ROOT
from harness.device import FOLDER, find_device
from harness.errors import DeviceError, KataError
from harness.measured.experiment import FOLDER as EXPERIMENTS
from harness.measured.experiment import put
from harness.record import digest_of, now, versions
from harness.session import device_of

NEEDED = (
    "Calibrating needs an NVIDIA GPU with its driver, and a torch built for CUDA; there is no GPU here. The device "
    "files in harness/devices say what is known of seven GPUs."
)
# CUDA C++ Programming Guide, technical specifications of each compute capability
_BLOCKS_PER_SM = {75: 16, 80: 32, 86: 16, 87: 16, 89: 24, 90: 32, 100: 32, 103: 32, 120: 24}
Probes = Iterable[tuple[str, Mapping[str, Any]]]


def main(out: Path | None, records: Path, probes: Probes | None = None, seen: Mapping[str, Any] | None = None) -> int:
    """Measure this GPU and write a device file and the raw samples. Returns 0.

    Args:
        out: the device file (default: in the records, beside the samples); it must not exist.
        probes, seen: results and the driver's facts (default: of the GPU that is here).

    Raises:
        KataError: there is no GPU, or a file cannot be written.
    """
    if probes is None or seen is None:
        if device_of("auto") != "cuda":
            raise KataError(NEEDED)
        from harness.measured import gpu_probes

        probes, seen = gpu_probes.run(), gpu_probes.facts()
    found = {}
    for name, result in probes:
        found[name] = dict(result)
        print(f"{name:24} {result['value']:.4g} {result['unit']}  ({result['how']})", flush=True)
    at = now()
    base = known(seen["name"]) or unknown(seen)
    environment = ", ".join(f"{k} {v}" for k, v in versions(ROOT).items() if v and k != "harness")
    text = device_file(base, found, f"{at:%Y-%m-%d}", f"{seen['name']}, {environment}")
    data = {
        "schema": 1, "kind": "calibration", "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "facts": dict(seen),
        "probes": found, "versions": versions(ROOT),
    }  # fmt: skip
    data["digest"] = digest_of(json.loads(json.dumps(data)))
    stem = f"{at:%Y%m%dT%H%M%SZ}_calibrate_{data['digest'][:8]}"
    raw = put(records / EXPERIMENTS / f"{stem}.json", json.dumps(data, indent=1) + "\n")
    file = put(out or records / EXPERIMENTS / f"{stem}.toml", text)
    print(f"device file: {file}\nsamples: {raw}\nTo have verdicts use it, put it into harness/devices/ in place of the "
          "GPU's own file, or under a new name.")  # fmt: skip
    return 0


def known(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """Return the tables of the device file for this GPU, or None when there is none."""
    try:
        device = find_device(name, folder)
    except DeviceError:
        return None
    return tomllib.loads((folder / f"{device.id}.toml").read_text(encoding="utf-8"))


def unknown(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables for a GPU that nobody described: what its driver says, and no peaks."""
    major, minor = seen["capability"]
    query = functools.partial(dict, source="query")
    facts = {k: query(value=v) for k, v in seen.items() if k not in ("name", "capability")}
    facts |= {
        "registers_per_block": query(value=65_536), "registers_per_thread": query(value=255),
        "threads_per_block": query(value=1024), "warps_per_sm": query(value=seen["threads_per_sm"] // 32),
        "blocks_per_sm": query(value=_BLOCKS_PER_SM.get(10 * major + minor, 16), verified=False),
        "mem_bw": query(value=seen["mem_clock_hz"] * 2 * seen["mem_bus_bits"] / 8, verified=False),
    }  # fmt: skip
    return {
        "name": seen["name"], "aliases": [seen["name"].replace("NVIDIA ", "")], "arch": "as its driver names it",
        "capability": f"{major}.{minor}", "facts": facts, "peaks": {},
        "sources": {"query": "what the driver said when this file was written"},
    }  # fmt: skip


def device_file(base: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]], date: str, environment: str) -> str:
    """Return a device file: the facts and peaks of ``base``, and [measured] from the probes alone."""
    source = "measured by `nox -s bench -- --calibrate` on the device and in the environment that [measured] names"
    tables = {
        "facts": base["facts"],
        "peaks": base["peaks"],
        "measured": {k: {"value": v["value"], "source": "calibrate"} for k, v in found.items()},
    }
    lines = [f"{key} = {_value(base[key])}" for key in ("name", "aliases", "arch", "capability")]
    for table, items in tables.items():
        lines += ["", f"[{table}]"]
        if table == "measured":
            lines += [f"date = {_value(date)}", f"environment = {_value(environment)}"]
        lines += [f"{key} = {_value(item)}" for key, item in items.items()]
    used = {item["source"] for items in tables.values() for item in items.values()}
    sources = {k: v for k, v in {**base["sources"], "calibrate": source}.items() if k in used}
    return "\n".join([*lines, "", "[sources]", *(f"{k} = {_value(v)}" for k, v in sources.items())]) + "\n"


def _value(value: Any) -> str:
    """Return ``value`` as TOML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        text = f"{value:.6g}"
        return text if any(c in text for c in ".e") else text + ".0"
    return str(value) if isinstance(value, int) else json.dumps(value, ensure_ascii=False)
