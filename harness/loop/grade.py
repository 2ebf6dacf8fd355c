"""``nox -s grade``: grade the katas side by side and print the table, what is next, and why. No torch here."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.course import Course, Kata, load_course
from harness.errors import HarnessFault, KataError
from harness.record import now
from harness.report import table
from harness.session import DONE
from harness.store import Store
from harness.streaks import day_streak, standings
from harness.verdict import Verdict


def main(argv: list[str] | None = None) -> int:
    """Grade what ``argv`` names (default: everything). Returns 0 unless a verdict could not be produced."""
    parser = argparse.ArgumentParser(prog="nox -s grade --", description="Grade katas and say what is next.")
    parser.add_argument("katas", nargs="*", help="slugs, ids or numbers, such as 05_nf4 (default: all)")
    parser.add_argument("--verdicts", metavar="FILE.json", help="also write the verdicts as JSON")
    parser.add_argument("--html", metavar="FILE.html", help="also write one page to look at or share")
    parser.add_argument("--records", metavar="DIR", help="where records are kept (default: records/)")
    parser.add_argument("-n", metavar="N", help="how many katas at once (default: 2; 0: in one process)")
    add_passed_on(parser)
    args, options = parser.parse_known_args(argv)
    options += [*passed_on(args), *([f"-n{args.n}"] if args.n is not None else [])]
    try:
        course = load_course()
        katas = [course.kata(k) for k in args.katas] or list(course.katas)
        if args.records:
            options += ["--records", str(Path(args.records).resolve())]
        verdicts, trouble = grade(course, katas, options, args.verdicts)
        events, problems = Store(Path(args.records or course.root / "records")).history()
        known = standings(events, [k.id for k in course.katas], now())
        if args.html:
            from harness.loop.page import page

            Path(args.html).write_text(page(course, verdicts, known, events), encoding="utf-8")
            print(f"The page is in {args.html}.", file=sys.stderr)
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename} cannot be written: {error.strerror}.", file=sys.stderr)
        return 1
    print(table(course, verdicts, known, day_streak(events, now().astimezone().date())))
    for problem in problems:
        print(problem, file=sys.stderr)
    if trouble:
        print(f"\n{trouble}", file=sys.stderr)
    return 1 if trouble else 0


_PASSED_ON = ("--gpu", "--device", "--kata-seed", "--submission")


def add_passed_on(parser: argparse.ArgumentParser) -> None:
    """Add pytest's options that take a value, so that the value is not taken for a kata."""
    for name in _PASSED_ON:
        parser.add_argument(name, help="as for pytest")


def passed_on(args: argparse.Namespace) -> list[str]:
    """Return what was given of those options, for pytest."""
    given = [(name, getattr(args, name[2:].replace("-", "_"))) for name in _PASSED_ON]
    return [f"{name}={value}" for name, value in given if value is not None]


def grade(course: Course, katas: list[Kata], options: list[str], keep: str | None = None) -> tuple[list[Verdict], str]:
    """Run the suites of ``katas`` in one pytest; return their verdicts, in order, and what went wrong with the rest.

    Args:
        options: further options for pytest, such as ``--solutions``.
        keep: a file that gets the verdicts as JSON too.

    Raises:
        HarnessFault: pytest ended without any verdict; the message holds its last lines.
    """
    if not katas:
        raise HarnessFault(f"{course.root}/exercises has no katas; this checkout is not complete.")
    with tempfile.TemporaryDirectory(prefix="kata-") as folder:
        file = Path(keep).resolve() if keep else Path(folder) / "verdicts.json"
        busy = [k for k in katas if not course.is_untouched(k, k.stub)] or "--solutions" in options
        side_by_side = busy and len(katas) > 1 and not _cuda(options)
        workers = ["-n", str(min(2, os.cpu_count() or 1, len(katas)))] if side_by_side else []
        command = [
            sys.executable, "-m", "pytest", "-q", "--no-header", "--kata-progress", *workers, "--verdicts", str(file),
            *options, *(str(k.folder) for k in katas),
        ]  # fmt: skip
        status, printed = _run(command, course.root)
        tail = "\n".join(printed[-25:])
        if not file.exists():
            raise HarnessFault(f"pytest ended with {status} and no verdicts. Its last lines:\n{tail}")
        data = json.loads(file.read_text(encoding="utf-8"))["katas"]
    lost = [k.slug for k in katas if k.slug not in data]
    trouble = ""
    if lost or status == 3:
        trouble = f"No verdict for {', '.join(lost) or 'part of it'}; the end of what pytest printed:\n{tail}"
    return [Verdict.from_json(k.slug, data[k.slug]) for k in katas if k.slug in data], trouble


def _run(command: list[str], root: Path) -> tuple[int, list[str]]:
    """Run pytest, say on stderr which kata is done as it ends, and return the exit status and all lines."""
    lines: list[str] = []
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            if line.startswith(DONE):
                print(f"graded {line.removeprefix(DONE).strip()}", file=sys.stderr, flush=True)
            elif line.strip():
                lines.append(line.rstrip())
    return process.returncode, lines


def _cuda(options: list[str]) -> bool:
    """One GPU is one worker."""
    return "--device=cuda" in options


if __name__ == "__main__":
    sys.exit(main())
