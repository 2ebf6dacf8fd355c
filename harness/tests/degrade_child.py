"""Run by test_degrade.py: compile a toy for the model where something that the model needs is missing; print what was seen."""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import torch

from harness.compiled import aot, cubin
from harness.device import find_device
from harness.runner import standin
from harness.spec import load_spec
from harness.tests.toys import SOLUTION, write_kata

H200 = find_device("H200")
AGAIN = "\ncalls = []\n"


def seen(device=H200, source=SOLUTION):
    with tempfile.TemporaryDirectory() as folder:
        kata = write_kata(Path(folder))
        file = Path(folder) / "kernel.py"
        file.write_text(source, encoding="utf-8")
        standin.install(device)
        found = aot.compile_calls(load_spec(kata.folder), file, (torch.empty(64, 64),), device, 5.0)
        return {k: found.get(k) for k in ("failed", "unsupported", "raised", "model")} | {
            "compiled": len(found["compiled"])
        }


def no_disassembler(*_, **__):
    raise cubin.SassError("nvdisasm was not found")


def main() -> None:
    """Print {name: what was seen}."""
    aot.prepare()
    out = {"usual": seen()}
    out["second call"] = seen(
        source=SOLUTION.replace("    out = ", "    calls.append(1)\n    assert len(calls) < 2, 'twice'\n    out = ")
        + AGAIN
    )
    out["no compiler"] = seen(dataclasses.replace(H200, capability=(13, 7)))
    cubin.disassemble = no_disassembler
    out["no disassembler"] = seen(source=SOLUTION + "\n# another file\n")
    print("\n" + json.dumps(out), file=sys.stdout)


if __name__ == "__main__":
    main()
