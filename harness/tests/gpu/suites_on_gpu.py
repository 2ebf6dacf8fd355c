"""Grade solutions, stubs, mutants and a folder of further submissions on a GPU, and say where the CPU says otherwise.

``python -m harness.tests.gpu.suites_on_gpu OUT.json [FOLDER]``: FOLDER holds ``NN_name/*.py``, whose docstrings name a
verdict after ``VERDICT:`` in any words. Needs no nox. Several files are graded at once, so correctness alone is
compared; then the solutions are graded one by one, speed included.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.course import Kata, load_course

JOBS = 10


def main(out: Path, folder: Path | None) -> int:
    """Grade everything on both devices, print a table of verdicts and write them to ``out``."""
    course = load_course()
    runs: list[tuple[Kata, Path]] = []
    for kata in course.katas:
        runs += [(kata, kata.stub), (kata, kata.solution), *((kata, m) for m in kata.mutants())]
        if folder is not None:
            runs += [(kata, f) for f in sorted((folder / kata.slug).glob("*.py"))]
    jobs = [(kata, file, device) for kata, file in runs for device in ("cuda", "cpu")]
    with ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(_grade, jobs))
    rows = []
    for (kata, file), cuda, cpu in zip(runs, results[::2], results[1::2], strict=True):
        same = cuda["verdict"] == cpu["verdict"] or (cuda["verdict"], cpu["verdict"]) in (
            ("undecided", "pass"),
            ("undecided", "slow"),
        )
        rows.append({"kata": kata.slug, "file": file.name, "cuda": cuda, "cpu": cpu, "same": same})
        mark = " " if same else "*"
        words = f"cuda {cuda['verdict']:14} cpu {cpu['verdict']:14}"
        print(f"{mark} {kata.slug:11} {file.name:42} {words} {cuda['seconds']:.0f} s")
        if not same or cuda["verdict"] == "no verdict":
            print(f"      cuda: {cuda['reason'][:600]}\n      cpu:  {cpu['reason'][:300]}")
    alone = [_grade((kata, kata.solution, "cuda"), speed=True) for kata in course.katas]
    for kata, row in zip(course.katas, alone, strict=True):
        print(f"  {kata.slug:11} {row['verdict']:10} {row.get('speed')}")
    report = {"environment": environment(), "speed": dict(zip((k.slug for k in course.katas), alone, strict=True))}
    out.write_text(json.dumps(report | {"rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"{sum(r['same'] for r in rows)} of {len(rows)} the same")
    return 0


def environment() -> dict[str, str]:
    """Return what the verdicts rest on."""
    import torch
    import triton

    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "gpu": torch.cuda.get_device_name(), "driver": driver.stdout.strip(), "torch": torch.__version__,
        "triton": triton.__version__, "python": sys.version.split()[0],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }  # fmt: skip


def _grade(job: tuple[Kata, Path, str], speed: bool = False) -> dict:
    kata, file, device = job
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        verdicts = Path(temporary) / "v.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-record", "--device", device,
                   "--submission", str(file), "--verdicts", str(verdicts), str(kata.folder)]  # fmt: skip
        if device == "cuda" and not speed:
            command.append("--no-speed")
        done = subprocess.run(command, cwd=kata.folder.parent.parent, capture_output=True, text=True, check=False)
        seconds = round(time.monotonic() - started, 1)
        if not verdicts.exists():
            return {"verdict": "no verdict", "reason": (done.stdout + done.stderr)[-1500:], "seconds": seconds}
        data = json.loads(verdicts.read_text())["katas"].get(kata.slug)
    if data is None or done.returncode == 3:
        return {"verdict": "no verdict", "reason": (done.stdout + done.stderr)[-1500:], "seconds": seconds}
    failed = [n for n, o in data["tests"].items() if o != "passed"]
    out = {"verdict": data["verdict"], "reason": data["reason"], "failed": failed, "seconds": seconds}
    return out | {"speed": data["speed"]} if speed else out


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
