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
from harness.report import table
from harness.verdict import Verdict


def main(argv: list[str] | None = None) -> int:
    """Grade what ``argv`` names (default: everything). Returns 0 unless a verdict could not be produced."""
    parser = argparse.ArgumentParser(prog="nox -s grade --", description="Grade katas and say what is next.")
    parser.add_argument("katas", nargs="*", help="slugs, ids or numbers, such as 05_nf4 (default: all)")
    parser.add_argument("--verdicts", metavar="FILE.json", help="also write the verdicts as JSON")
    args, options = parser.parse_known_args(argv)
    try:
        course = load_course()
        katas = [course.kata(k) for k in args.katas] or list(course.katas)
        verdicts, trouble = grade(course, katas, options, args.verdicts)
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(course, verdicts))
    if trouble:
        print(f"\n{trouble}", file=sys.stderr)
    return 1 if trouble else 0


def grade(
    course: Course, katas: list[Kata], options: list[str], keep: str | None = None
) -> tuple[list[Verdict], str]:
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
        workers = ["-n", str(min(2, os.cpu_count() or 1, len(katas)))] if len(katas) > 1 and not _cuda(options) else []
        command = [
            sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", *workers, "--verdicts", str(file), *options,
            *(str(k.folder) for k in katas),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, check=False)
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        if not file.exists():
            raise HarnessFault(f"pytest ended with {done.returncode} and no verdicts. Its last lines:\n{tail}")
        data = json.loads(file.read_text(encoding="utf-8"))["katas"]
    lost = [k.slug for k in katas if k.slug not in data]
    trouble = ""
    if lost or done.returncode == 3:
        trouble = f"No verdict for {', '.join(lost) or 'part of it'}; the end of what pytest printed:\n{tail}"
    return [Verdict.from_json(k.slug, data[k.slug]) for k in katas if k.slug in data], trouble


def _cuda(options: list[str]) -> bool:
    """One GPU is one worker."""
    return any("cuda" in o for o in options)


if __name__ == "__main__":
    sys.exit(main())
