"""``nox -s course``: every kata proves itself. No torch here.

The stub is ``todo``, the solution passes, each mutant dies by the word that it names, the solution is the stub plus
lines, the toml is valid, the links of the READMEs resolve, and at least one kata is found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.course import KATA_FILES, Course, Kata, load_course, source_digest
from harness.desk import Choices, Desk
from harness.device import find_device, load_devices
from harness.errors import KataError
from harness.gauge import modelled_time
from harness.loop.grade import add_passed_on, passed_on
from harness.model import times
from harness.model.speed import NoModel
from harness.runner.client import SERVER, Client, Server
from harness.verdict import WORDS

STUBS = Path("harness") / "stubs.json"
STALE = 0.03  # a reference whose modelled time moved by more than this share was not the one that was kept


def main(argv: list[str] | None = None) -> int:
    """Check the katas that ``argv`` names (default: all). Returns 0 when every one proves itself."""
    parser = argparse.ArgumentParser(prog="nox -s course --", description="Every kata proves itself.")
    parser.add_argument("katas", nargs="*", help="slugs, ids or numbers (default: all)")
    parser.add_argument(
        "--write-stubs", action="store_true", help="write harness/stubs.json from the stubs as they stand"
    )
    parser.add_argument("--no-mutants", action="store_true", help="stubs and solutions alone: minutes less")
    parser.add_argument(
        "--write-times", action="store_true", help="model the references for the installed Triton, and keep the times"
    )
    parser.add_argument("--times-for", default="", metavar="GPU,…", help="with --write-times: for these GPUs only")
    add_passed_on(parser)
    args, options = parser.parse_known_args(argv)
    options += passed_on(args)
    try:
        course = load_course()
        katas = [course.kata(k) for k in args.katas] or list(course.katas)
        if not katas:
            raise KataError(f"{course.root}/exercises holds no katas; a course without katas proves nothing.")
        if args.write_stubs:
            write_stubs(course)
            course = load_course()
        if args.write_times:
            print("\n".join(write_times(course, katas, args.times_for)))
            return 0
        problems = check(course, katas, options, mutants=not args.no_mutants)
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    for problem in problems:
        print(f"FAILED {problem}")
    print(f"{len(katas)} katas, {len(problems)} problems")
    return 1 if problems else 0


def check(
    course: Course,
    katas: list[Kata],
    options: list[str] = (),
    mutants: bool = True,  # type: ignore[assignment]
) -> list[str]:
    """Return what is wrong with these katas, one sentence each; prints what holds as it is found."""
    problems = [p for k in katas for p in still(course, k)]
    runs = [run for k in katas for run in _runs(k) if mutants or not run[1].startswith("mutants")]
    workers = ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1))
    with _shared_server(options) as env, workers as pool:
        for (kata, name, want, _), verdict in zip(
            runs, pool.map(lambda r: _verdict(course, r, options, env), runs), strict=True
        ):
            word, reason = verdict
            ok = word in want
            print(f"{'ok    ' if ok else 'FAILED'} {kata.slug:14} {name:34} {word}", flush=True)
            if not ok:
                problems.append(f"{kata.slug} {name}: {word}, expected {' or '.join(want)}. {reason}")
    return problems


@contextlib.contextmanager
def _shared_server(options: list[str]) -> Iterator[dict[str, str]]:
    """Yield the environment of the runs: they borrow one fork server, whose start is half of a short run's time."""
    if SERVER in os.environ or any("cuda" in option for option in options):
        yield dict(os.environ)
        return
    server = Server()
    try:
        yield os.environ | {SERVER: str(server.folder)}
    finally:
        server.close()


def write_stubs(course: Course) -> None:
    """Write the digests of the pristine stubs, by which ``todo`` is told."""
    digests = {k.id: source_digest(k.stub.read_text(encoding="utf-8")) for k in course.katas}
    (course.root / STUBS).write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_times(course: Course, katas: list[Kata], gpus: str = "") -> Iterator[str]:
    """Model the reference of each kata at each gated bench shape, keep the times, and yield a line for each."""
    devices = [find_device(g) for g in gpus.split(",")] if gpus else list(load_devices().values())
    server = Server()
    clients = {kind: Client(server.folder, kind) for kind in ("interpret", "compile")}
    try:
        for device in devices:
            for kata in katas:
                desk = Desk(kata, kata.solution, Choices(0, "cpu", device), clients.__getitem__)
                yield _write_time(course, kata, desk)
    finally:
        for client in clients.values():
            client.close()
        server.close()


def _write_time(course: Course, kata: Kata, desk: Desk) -> str:
    name, triton = desk.choices.gpu.id, metadata.version("triton")
    head = f"{kata.slug:14} {name:14} Triton {triton}"
    if kata.spec.side == "host" or not desk.bench_cases():
        return f"{head}  no bench shape that is modelled"
    entries: dict[str, Any] = {}
    told = []
    for case, _ in desk.gated():
        try:
            found = modelled_time(desk, case)
        except NoModel as error:
            told.append(f"{case.id} not modelled: {error}")
            continue
        of = times.made_of(kata, case, desk.choices.gpu)
        entries[case.id] = {"seconds": float(f"{found.seconds:.5g}"), "binds": found.binds, "of": of}
        told.append(f"{case.id}: {found.seconds * 1e6:,.1f} us, {found.binds}")
    times.write(course.root, name, triton, kata.slug, entries)
    return f"{head}  {'; '.join(told)}"


# -- what can be seen without running anything -------------------------------------------------------------------------


def still(course: Course, kata: Kata) -> Iterator[str]:
    """Yield what is wrong with the files of a kata."""
    for name in KATA_FILES:
        if not (kata.folder / name).is_file():
            yield f"{kata.slug}: exercises/{kata.slug}/{name} is missing."
            return
    extra = {p.name for p in kata.folder.iterdir() if p.name[0] != "."} - set(KATA_FILES) - {"__pycache__"}
    if extra:
        yield f"{kata.slug}: unexpected in exercises/{kata.slug}: {', '.join(sorted(extra))}; a kata has five files."
    try:
        spec = kata.spec
    except KataError as error:
        yield f"{kata.slug}: {error}"
        return
    known = {k.id for k in course.katas}
    for need in spec.needs:
        if need not in known:
            yield f"{kata.slug}: needs {need!r}, which is no kata; expected one of {', '.join(sorted(known))}."
    if not spec.with_role("traffic") or not spec.with_role("bench"):
        yield f"{kata.slug}: exercise.toml needs a case with role = 'traffic' and one with role = 'bench'."
    if not kata.solution.is_file():
        yield f"{kata.slug}: solutions/{kata.slug}/kernel.py is missing."
        return
    yield from _stub_is_contained(kata)
    if len(kata.mutants()) < 5:
        yield f"{kata.slug}: {len(kata.mutants())} mutants; expected at least five."
    if course.stub_digests.get(kata.id) != source_digest(kata.stub.read_text(encoding="utf-8")):
        yield f"{kata.slug}: harness/stubs.json does not know this stub; run `nox -s course -- --write-stubs`."
    yield from _links(kata)
    yield from _stale_times(course, kata)


def _stale_times(course: Course, kata: Kata) -> Iterator[str]:
    """Times of the installed Triton that were made of something else than what is here; nothing is judged by them."""
    triton, found = metadata.version("triton"), {}
    for device in load_devices().values():
        kept = times.read(times.file_of(course.root, device.id, triton)).get(kata.slug, {})
        for case in kata.spec.with_role("bench"):
            changed = case.id in kept and times.stale(kept[case.id], kata, case, device)
            if changed:
                found.setdefault(changed, {})[device.id] = None
    for changed, names in found.items():
        yield (
            f"{kata.slug}: the modelled times for {', '.join(names)} with Triton {triton} are stale: {changed} changed "
            f"since. Run `nox -s course -- {kata.slug} --write-times --times-for {','.join(names)}`."
        )


def _stub_is_contained(kata: Kata) -> Iterator[str]:
    """Solving only adds lines: what the stub has, the solution has, but for TODOs and what raises."""
    solution = iter(kata.solution.read_text(encoding="utf-8").splitlines())
    for number, line in enumerate(kata.stub.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or "TODO" in line or "NotImplementedError" in line:
            continue
        if not any(line == other for other in solution):
            yield f"{kata.slug}: line {number} of the stub is not in the solution, in order: {line.strip()!r}."
            return


def _links(kata: Kata) -> Iterator[str]:
    text = (kata.folder / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"(https?:|mailto:|#)", target) and not (kata.folder / target.split("#")[0]).exists():
            yield f"{kata.slug}: README.md links to {target}, which does not exist."


# -- what must be run --------------------------------------------------------------------------------------------------


def named_words(mutant: Path) -> tuple[str, ...]:
    """Return the verdict words that a mutant's docstring names: ``VERDICT: wrong`` or ``VERDICT: wrong or racy``."""
    match = re.search(r"^VERDICT:\s*(.+?)\.?$", mutant.read_text(encoding="utf-8"), re.MULTILINE)
    words = tuple(w.strip() for w in re.split(r"\bor\b|,", match[1])) if match else ()
    for word in words or ("(none)",):
        if word not in WORDS or word == "pass":
            raise KataError(
                f"{mutant}: names the verdict {word!r}; expected a line VERDICT: and one of {', '.join(WORDS[:-1])}."
            )
    return words


Run = tuple[Kata, str, tuple[str, ...], list[str]]


def _runs(kata: Kata) -> Iterator[Run]:
    if not kata.stub.is_file() or not kata.solution.is_file():
        return
    yield kata, "kernel.py (stub)", ("todo",), ["--submission", str(kata.stub)]
    yield kata, "solution", ("pass",), ["--solutions"]
    for mutant in kata.mutants():
        yield kata, f"mutants/{mutant.name}", named_words(mutant), ["--submission", str(mutant)]


def _verdict(course: Course, run: Run, options: list[str], env: dict[str, str]) -> tuple[str, str]:
    kata, name, _, how = run
    with tempfile.TemporaryDirectory(prefix="kata-") as folder:
        file = Path(folder) / "verdicts.json"
        command = [
            sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--no-record",
            "--verdicts", str(file), *how, *options, str(kata.folder),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=course.root, env=env, capture_output=True, text=True, check=False)
        if not file.exists():
            return "no verdict", (done.stdout + done.stderr)[-1500:]
        data = json.loads(file.read_text(encoding="utf-8"))["katas"].get(kata.slug)
    if done.returncode == 3 or data is None:
        return "no verdict", (done.stdout + done.stderr)[-1500:]
    share = (data.get("speed") or {}).get("share")
    if name == "solution" and share is not None and abs(share - 1) > STALE:
        moved = f"its modelled time is {1 / share:.2f} times the one kept"
        return "stale", f"{moved}; run `nox -s course -- --write-times`."
    return data["verdict"], data["reason"]


if __name__ == "__main__":
    sys.exit(main())
