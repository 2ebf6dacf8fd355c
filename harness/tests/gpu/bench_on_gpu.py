"""All of the measurement on a GPU, in one call: experiments, calibration, a verdict 30 times over, kata 09.

``python -m harness.tests.gpu.bench_on_gpu OUT [--only PART …] [--repeat 30] [--kata 07_softmax …]`` writes to the folder
OUT: ``experiments/`` as `nox -s bench` does (records, pictures, the device file) and ``report.json``. Each part says how
long it took, and one that fails does not keep the others from running. Needs neither nox nor a network.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.course import Kata, load_course
from harness.device import find_device, load_devices
from harness.measured import bench, calibration, sampling
from harness.runner.client import Client, Server

# what one would write first, or what the kata replaces; it runs beside the reference
NAIVE = {
    "stream": ["one_element_programs"], "blocks": ["one_element_programs"], "amortize": ["launch_per_token"],
    "strides": ["along_the_output_only"], "coalescing": ["row_per_program"], "nf4": ["three_launches"],
    "matmul": ["one_row_per_program"], "softmax": ["one_step_per_launch"], "attention": ["scores_in_memory"],
}  # fmt: skip
MUTANTS = ("no_sync", "host_clock", "too_wide", "milliseconds")  # of kata 09, wrong on a real GPU too


def main(argv: list[str] | None = None) -> int:
    """Run the parts that were asked for and return how many failed."""
    parts: dict[str, Callable[[argparse.Namespace], Any]] = {
        "driver": driver, "calibrate": calibrate, "experiments": experiments, "repeat": repeat, "host": host,
    }  # fmt: skip
    parser = argparse.ArgumentParser(prog="harness.tests.gpu.bench_on_gpu", description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", choices=parts, default=list(parts))
    parser.add_argument("--repeat", type=int, default=30, help="how often one verdict is taken")
    parser.add_argument("--kata", nargs="*", default=[], help="katas (default: all with a bench shape)")
    parser.add_argument("--case", nargs="*", default=[], help="bench cases of experiments (default: all)")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {}
    for name in args.only:
        started = time.monotonic()
        print(f"== {name}", flush=True)
        try:
            report[name] = {"result": parts[name](args)}
        except BaseException as error:
            traceback.print_exc()
            report[name] = {"failed": repr(error)}
        report[name]["seconds"] = round(time.monotonic() - started, 1)
        (args.out / "report.json").write_text(json.dumps(report, indent=1, default=str) + "\n", encoding="utf-8")
        print(f"== {name}: {report[name]['seconds']} s", flush=True)
    return sum("failed" in part for part in report.values())


def katas(args: argparse.Namespace) -> list[Kata]:
    """Return the katas in question that measure a kernel."""
    course = load_course()
    chosen = [course.kata(k) for k in args.kata] or list(course.katas)
    return [k for k in chosen if k.spec.side == "gpu" and k.spec.with_role("bench") and k.solution.is_file()]


def driver(args: argparse.Namespace) -> dict[str, Any]:
    """What the driver says before and during work: the clock must be known, and nobody else be here."""
    code = (
        "import json, torch; from harness.measured.timing import driver; d = driver(); x = torch.randn(8192, 8192, device='cuda')\n"
        "idle = vars(d.state())\nfor _ in range(20): x @ x\nbusy = vars(d.state()); torch.cuda.synchronize()\n"
        "print(json.dumps({'facts': d.facts(), 'idle': idle, 'busy': busy}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    print(done.stdout)
    return json.loads(done.stdout)


def calibrate(args: argparse.Namespace) -> dict[str, Any]:
    """Calibrate in a process of its own, and hold the file against ours."""
    file = args.out / "device" / "measured.toml"
    command = [
        sys.executable,
        "-m",
        "harness.measured.bench",
        "--calibrate",
        "--out",
        str(file),
        "--records",
        str(args.out),
    ]
    subprocess.run(command, check=True)
    device = load_devices(file.parent)["measured"]
    ours = find_device(device.name).measured if calibration.known(device.name) else {}
    ratios = {k: round(v / ours[k], 3) for k, v in device.measured.items() if k in ours}
    print("measured over what our device file has:", json.dumps(ratios, indent=1))
    return ratios


def experiments(args: argparse.Namespace) -> dict[str, Any]:
    """One experiment for each bench case of each kata, of kernel.py and of fast.py where there is one."""
    with contextlib.closing(Server(cuda=True)) as server, contextlib.closing(Client(server.folder, "cuda")) as client:
        return _experiments(args, client)


def _experiments(args: argparse.Namespace, client: Client) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kata in katas(args):
        kinds = ["--solutions"] + ["--fast"] * (kata.solutions / "fast.py").is_file()
        for case in kata.spec.with_role("bench"):
            if args.case and case.id not in args.case:
                continue
            for kind in kinds:
                started = time.monotonic()
                command = [kata.slug, kind, "--case", case.id, "--predict", "none", "--records", str(args.out)]
                naive = [str(kata.solutions / "mutants" / f"{name}.py") for name in NAIVE.get(kata.id, ())]
                beside = [word for file in naive for word in ("--beside", file)]
                status = bench.main(command + beside, client.ask)
                if status and beside:  # the naive version may not know this shape, or not fit into memory
                    status = bench.main(command, client.ask)
                found[f"{kata.slug} {case.id} {kind}"] = status
                print(f"-- {time.monotonic() - started:.1f} s", flush=True)
    return found


def repeat(args: argparse.Namespace) -> dict[str, Any]:
    """Take the measured verdict of each reference again and again: none may flip."""
    found = {}
    for kata in katas(args):
        from harness.gate import measured

        case = kata.spec.with_role("bench")[0].with_seed(1)
        gpu = find_device("H200")
        request = {"kata": str(kata.folder), "file": str(kata.solution), "case": case.to_json(), "gpu": gpu.id}
        server = Server(cuda=True)
        client = Client(server.folder, "cuda")
        words, shares = [], []
        for _ in range(args.repeat):
            facts = client.ask(request | {"timed": True})
            if facts["word"] == "pass":
                facts = measured(facts["timing"], kata.spec.gates[0].gpu, facts["cost"], facts["gpu"])
                shares.append(facts["speed"]["share"])
            words.append(facts["word"])
        client.close()
        server.close()
        spread = [round(q, 4) for q in sampling.quartiles(shares)] if shares else []
        found[kata.slug] = {"words": {w: words.count(w) for w in set(words)}, "quartiles": spread, "shares": shares}
        off = statistics.pstdev(shares) / statistics.fmean(shares) if shares else None
        print(f"{kata.slug}: {found[kata.slug]['words']}, share {spread}, spread {off}", flush=True)
    return found


def host(args: argparse.Namespace) -> dict[str, Any]:
    """Kata 09 on this GPU: the reference passes, careless measurements do not."""
    kata = load_course().kata("benchmark")
    files = {"solution": kata.solution} | {m: kata.solutions / "mutants" / f"{m}.py" for m in MUTANTS}
    server = Server(cuda=True)
    client = Client(server.folder, "cuda")
    found = {}
    for name, file in files.items():
        case = kata.spec.with_role("bench")[0].with_seed(1)
        request = {"kata": str(kata.folder), "file": str(file), "case": case.to_json(), "gpu": "h200_sxm"}
        facts = client.ask(request)
        found[name] = {"word": facts["word"], "reason": facts["reason"]}
        print(f"{name:14} {facts['word']:10} {facts['reason']}", flush=True)
    client.close()
    server.close()
    found["suite"] = suite(kata)
    return found


def suite(kata: Kata) -> str:
    """Return the verdict of the whole suite with ``--device cuda``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "verdicts.json"
        options = ["-q", "--no-record", "--solutions", "--device", "cuda", "--verdicts", str(file)]
        command = [sys.executable, "-m", "pytest", *options, str(kata.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not file.exists():
            return (done.stdout + done.stderr)[-1500:]
        return json.loads(file.read_text(encoding="utf-8"))["katas"][kata.slug]["verdict"]


if __name__ == "__main__":
    sys.exit(main())
