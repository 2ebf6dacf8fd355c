"""Check and time the variants of the zoo on this GPU; writes a table like ``records/reference/zoo/h200_triton_3.6.0.csv``.

    python harness/tests/gpu/zoo_on_gpu.py OUT.csv [--set N] [--folder records/reference/zoo/third] [--only FAMILY …]

Each variant's result is compared with its family's expectation first; a wrong one, or one that does not compile, is
reported in OUT.json and not timed. Times follow ``harness/measured/timing.py``: device events, cold L2, bursts with rests. Needs
torch and Triton alone. The table is written anew after each variant, so that a run that is cut off is not lost.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
import triton

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from harness.measured import timing  # noqa: E402 - found through the line above when run as a script
from harness.measured.sampling import Rules  # noqa: E402
from harness.zoo import variants as zoo  # noqa: E402 - found through the line above when run as a script

RULES = Rules(least=15, most=40, target=0.004, seconds=1.2, burst=10, pause=0.1)
SLOW = Rules(least=3, most=5, target=0.01, seconds=2.0)  # for what takes a hundredth of a second or more
COLUMNS = (
    "set",
    "family",
    "variant",
    "median_us",
    "p20_us",
    "p80_us",
    "samples",
    "registers",
    "spills",
    "shared_bytes",
)


def main(argv: list[str] | None = None) -> int:
    """Time everything. Returns 1 when a variant is wrong or failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--set", default="N", help="what the column `set` says")
    parser.add_argument("--folder", type=Path, default=ROOT / "records" / "reference" / "zoo" / "third")
    parser.add_argument("--only", nargs="*", default=[], help="families")
    parser.add_argument("--check", action="store_true", help="compare results only")
    args = parser.parse_args(argv)
    rows: list[dict[str, Any]] = []
    troubles: dict[str, str] = {}
    started = time.time()
    for path in sorted(args.folder.glob("*.py")):
        for name, family in zoo.families(path).items():
            if args.only and name not in args.only:
                continue
            for row in _family(name, family, troubles, args.check):
                rows.append({"set": args.set} | row)
                _write(args.out, rows, troubles, started)
            torch.cuda.empty_cache()
    _write(args.out, rows, troubles, started)
    print(f"{len(rows)} timed, {len(troubles)} in trouble, {time.time() - started:.0f} s")
    return 1 if troubles else 0


def _family(name: str, family: zoo.Family, troubles: dict[str, str], check_only: bool):
    tensors = zoo.tensors(family, None, "cuda", lazy=False)
    try:
        expected = family.expected(tensors).float() if family.expected else None
    except Exception as trouble:
        troubles[name] = f"{type(trouble).__name__}: {str(trouble)[:300]}"
        print(f"{name:40} {troubles[name]}", flush=True)
        return
    for variant, calls in family.variants.items():
        key = f"{name}/{variant}"
        try:
            error = _error(family, calls, tensors, expected)
            if not error <= family.tolerance:
                raise ValueError(f"relative error {error:.3g}, allowed {family.tolerance:g}")
            if check_only:
                print(f"{key:40} right ({error:.1e})", flush=True)
                continue
            row = {"family": name, "variant": variant} | _timed(calls, tensors) | _resources(calls, tensors)
        except Exception as trouble:
            troubles[key] = f"{type(trouble).__name__}: {str(trouble)[:300]}"
            print(f"{key:40} {troubles[key]}", flush=True)
            continue
        print(f"{key:40} {row['median_us']:10.2f} us  error {error:.1e}", flush=True)
        yield row


def _error(family: zoo.Family, calls: Any, tensors: dict[str, Any], expected: Any) -> float:
    """Run once on poisoned results, and return the relative error (0 when nothing is expected)."""
    out = tensors[family.result]
    out.copy_(torch.full((), 1e4 if out.dtype != torch.float32 else float("nan"), device="cuda").expand(out.shape))
    for zeroed in family.zeroed:
        tensors[zeroed].zero_()
    for call in calls:
        zoo.launch(call, tensors)
    torch.cuda.synchronize()
    if expected is None:
        return 0.0
    got = out.float().reshape(expected.shape)
    return float((got - expected).norm() / expected.norm())


def _timed(calls: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    prepared = [(c, zoo.arguments(c, tensors)) for c in calls]

    def work() -> None:
        for call, args in prepared:
            call.kernel[call.grid](
                *args, **call.constants, num_warps=call.warps, num_stages=call.stages, **call.options
            )

    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    rules = SLOW if time.perf_counter() - start > 0.01 else RULES
    found = timing.contest([work], {"limit": timing.copy_of(2**24)}, rules)
    times = sorted(1e6 * t for i, t in enumerate(found.seconds["ours"]) if i not in found.discarded)
    times = times or sorted(1e6 * t for t in found.seconds["ours"])
    n = len(times)
    return {
        "median_us": round(statistics.median(times), 2), "p20_us": round(times[n // 5], 2),
        "p80_us": round(times[4 * n // 5], 2), "samples": n,
    }  # fmt: skip


def _resources(calls: Any, tensors: dict[str, Any]) -> dict[str, str]:
    registers, spills, shared = [], [], []
    for call in calls:
        made = call.kernel.warmup(
            *zoo.arguments(call, tensors), **call.constants, num_warps=call.warps, num_stages=call.stages,
            **call.options, grid=call.grid,
        )  # fmt: skip
        made._init_handles()
        registers.append(made.n_regs)
        spills.append(made.n_spills)
        shared.append(made.metadata.shared)
    return {
        k: "/".join(map(str, v)) for k, v in (("registers", registers), ("spills", spills), ("shared_bytes", shared))
    }


def _write(out: Path, rows: list[dict[str, Any]], troubles: dict[str, str], started: float) -> None:
    with out.open("w", newline="", encoding="utf-8") as text:
        table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    environment = {
        "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__,
        "seconds": round(time.time() - started, 1),
    }  # fmt: skip
    report = {"environment": environment, "troubles": troubles}
    out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
