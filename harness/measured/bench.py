"""``nox -s bench -- 05_nf4``: an experiment. You predict, the GPU is measured, and the evidence is kept.

Writes one new file to ``records/experiments/`` and a picture beside it. ``--calibrate`` measures the GPU itself.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import physics
from harness.course import ROOT, Kata, load_course
from harness.device import Device, find_device
from harness.errors import DeviceError, KataError
from harness.measured import chart
from harness.measured.experiment import Experiment, put, sha256, write
from harness.measured.sampling import POWER_LIMIT, State
from harness.record import versions
from harness.runner.client import Client, Server
from harness.session import device_of
from harness.spec import Case

NO_GPU = (
    "A measurement needs an NVIDIA GPU with its driver, and a torch built for CUDA; there is no GPU here. Without one "
    "the speed is modelled: pytest exercises/{slug} --gpu {gpu}"
)
Measure = Callable[[dict[str, Any]], dict[str, Any]]


def main(argv: list[str] | None = None, measure: Measure | None = None, ask: Callable[[str], str] = input) -> int:
    """Run one experiment, or a calibration. Returns 0 when there is evidence now.

    Args:
        measure: sends a request to a GPU and returns facts (default: through a fork server of our own).
        ask: puts a question to the person at the terminal.
    """
    args = _parser().parse_args(argv)
    try:
        if args.calibrate:
            from harness.measured import calibration

            return calibration.main(args.out, args.records)
        return experiment(args, measure, ask)
    except KataError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nox -s bench --", description="Predict, measure, record as evidence.")
    parser.add_argument("kata", nargs="?", default="", help="slug, id or number")
    parser.add_argument("--predict", metavar="SHARE", help="the share of the limit you expect, 0 to 1.2; or: none")
    parser.add_argument("--case", metavar="ID", help="a bench case of the kata (default: its first)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--solutions", action="store_true", help="measure the reference instead of your file")
    which.add_argument("--fast", action="store_true", help="measure the reference's fast.py")
    which.add_argument("--submission", type=Path, metavar="FILE.py", help="measure this file")
    parser.add_argument(
        "--beside",
        type=Path,
        action="append",
        default=[],
        metavar="FILE.py",
        help="also run this file's kernel, in turns with the one that is measured; may be given again",
    )
    parser.add_argument("--html", type=Path, metavar="FILE.html", help="also write the picture as a page")
    parser.add_argument("--gpu", default="", help="whose datasheet is drawn (default: the GPU that is here)")
    parser.add_argument("--records", type=Path, default=ROOT / "records", metavar="DIR")
    parser.add_argument("--calibrate", action="store_true", help="measure the GPU itself, and write a device file")
    parser.add_argument("--out", type=Path, metavar="FILE.toml", help="where --calibrate writes the device file")
    return parser


def experiment(args: argparse.Namespace, measure: Measure | None, ask: Callable[[str], str]) -> int:
    """Predict, measure, write, say. Raises KataError."""
    course = load_course()
    kata = course.kata(args.kata)
    if kata.spec.side == "host":
        raise KataError(f"{kata.slug} is no kernel; `pytest exercises/{kata.slug}` measures what there is to measure.")
    file, case = _file(kata, args), _case(kata, args.case)
    if course.is_untouched(kata, file):
        raise KataError(f"{_short(file)} is still the stub: there is nothing to measure yet.")
    if measure is None and device_of("auto") != "cuda":
        raise KataError(NO_GPU.format(slug=kata.slug, gpu=args.gpu or "H200"))
    print(f"{kata.slug}, {case.id}{f' ({case.model})' if case.model else ''}: {case.dtype}, {_dims(case)}")
    prediction = _prediction(args.predict, ask)
    request = {
        "kata": str(kata.folder), "file": str(file), "case": case.to_json(), "gpu": _device(args.gpu).id,
        "timed": True, "bench": True, "beside": _beside(args.beside),
    }  # fmt: skip
    facts = (measure or on_gpu)(request)
    if facts["word"] != "pass":
        raise KataError(f"{facts['word']}: {facts['reason']}\nA time of something wrong is no evidence: not recorded.")
    done = Experiment(
        slug=kata.slug, case=case.to_json(), file=_short(file), source=sha256(file),
        spec=sha256(kata.folder / "exercise.toml"), prediction=prediction, cost=facts["cost"],
        measured=facts["timing"], versions=versions(ROOT),
    )  # fmt: skip
    device = _known(args.gpu or done.measured["environment"]["gpu"])
    path = write(args.records, done)
    picture = put(path.with_suffix(".svg"), chart.svg(done, device))
    if args.html:
        args.html.write_text(chart.html(done, device), encoding="utf-8")
    for line in lines(done, device):
        print(line)
    print(f"recorded: {_short(path)}, picture: {_short(picture)}")
    return 0


def lines(done: Experiment, device: Device | None) -> list[str]:
    """Return what a person reads: the result, the prediction beside it, baselines, what did not count and why."""
    r, measured = done.result(), done.measured
    out = [f"measured: {chart.sentence(done)}", f"stopped: {measured['stopped']}; {r['samples']} rounds counted"]
    gone = [d["why"] for d in measured["discarded"]]
    if gone and measured["trusted"]:
        out.append(f"left out: {len(gone)} rounds ({'; '.join(sorted(set(gone)))})")
    elif gone:
        out.append(_untrusted(gone))
    clocks = [c for c in measured["sm_mhz"] if c]
    if clocks:
        out.append(f"clock: {min(clocks)} to {max(clocks)} MHz")
    out += [f"against {n}: {x:.3f} times as fast" for n, x in r["times_as_fast_as"].items() if n != "copy"]
    at = physics.intensity(done.cost["flops"], done.moved)
    rate = f"{r['bytes_per_s'] / 1e12:.3f} TB/s, {r['flop_per_s'] / 1e12:.4g} TFLOP/s at {at:.3g} FLOP/byte"
    if device is not None:
        rate += f"; {physics.mbu(done.moved, r['median_s'], device.mem_bw):.2f} of the datasheet's bandwidth"
    out.append(f"rate: {rate}")
    if done.prediction:
        off = r["measured_over_predicted"]
        word = "as predicted" if 0.95 <= off <= 1.05 else f"{off:.2f} times your prediction: why?"
        out.append(f"prediction: {done.prediction:.2f}, {word}")
    return out


def _untrusted(gone: list[str]) -> str:
    """Say what it means that so many rounds were disturbed."""
    why = sorted(set(gone))
    if why == [State(held_down=(POWER_LIMIT,)).disturbance()]:
        return (
            f"clock: the power limit held it down in {len(gone)} rounds, too many to leave them out; all ran under it "
            "in turns, so the share holds, and the times are those of that clock"
        )
    return (
        f"not trusted: {len(gone)} rounds were disturbed ({'; '.join(why)}), too many to leave them out; run it again "
        "on an idle GPU"
    )


def on_gpu(request: dict[str, Any]) -> dict[str, Any]:
    """Ask a fork server of our own, started for this one request."""
    server = Server(cuda=True)
    try:
        client = Client(server.folder, "cuda")
        try:
            return client.ask(request)
        finally:
            client.close()
    finally:
        server.close()


def _prediction(given: str | None, ask: Callable[[str], str]) -> float | None:
    """Return the predicted share, or None for ``none``. Raises KataError for anything that is no share."""
    if given is None:
        try:
            given = ask("What share of the limit will it reach? 0 to 1.2, or none: ")
        except EOFError:
            raise KataError("No prediction was given; pass one, as in --predict 0.85, or --predict none.") from None
    if given.strip().lower() in ("none", ""):
        return None
    try:
        share = float(given)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1.2:
        raise KataError(f"prediction={given!r} is no share of the limit; expected a number such as 0.85, or none.")
    return share


def _file(kata: Kata, args: argparse.Namespace) -> Path:
    file = args.submission or (kata.solution if args.solutions else kata.stub)
    if args.fast:
        file = kata.solutions / "fast.py"
    if not file.is_file():
        raise KataError(f"{_short(file)} does not exist; nothing to measure.")
    return file.resolve()


def _beside(files: list[Path]) -> dict[str, str]:
    """Return the further files by the name under which they are reported. Raises KataError."""
    named = {file.stem: str(file.resolve()) for file in files}
    for file in files:
        if not file.is_file():
            raise KataError(f"--beside {file}: there is no such file; nothing was measured.")
    if len(named) < len(files):
        raise KataError(f"--beside: two of the files are called {files[-1].stem}; rename one, for the record's sake.")
    return named


def _case(kata: Kata, name: str | None) -> Case:
    cases = kata.spec.with_role("bench")
    found = next((c for c in cases if name in (None, c.id)), None)
    if found is None:
        raise KataError(f"case={name!r} is no bench case of {kata.slug}; there are {', '.join(c.id for c in cases)}.")
    return found.with_seed(1)


def _device(name: str) -> Device:
    """The GPU that is named, else the one that is here, else the H200: its facts say which limit binds."""
    return find_device(name) if name else (_known(_here()) or find_device("H200"))


def _known(name: str) -> Device | None:
    try:
        return find_device(name)
    except DeviceError:
        return None


@functools.cache
def _here() -> str:
    """The name of the first GPU as its driver reports it; empty without one."""
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Model:"):
                return line.partition(":")[2].strip()
    return ""


def _dims(case: Case) -> str:
    return ", ".join(f"{k} = {v}" for k, v in case.dims.items())


def _short(path: Path) -> str:
    path = path.resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
