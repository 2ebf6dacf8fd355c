"""Evidence: what was measured of the course's own kernels, as the README's table. No torch here.

``python -m harness.measured.evidence`` prints it; ``--write`` puts it into the README. The experiments stand in
``records/reference/experiments``, each with its raw samples; ``nox -s bench -- 05_nf4 --solutions --records
records/reference`` adds one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from harness.course import ROOT
from harness.errors import KataError
from harness.measured.experiment import FOLDER, Experiment, read, sha256

MARKS = ("<!-- evidence -->", "<!-- /evidence -->")
NOTHING = "Nothing was measured yet.\n"


def experiments(folder: Path) -> list[Experiment]:
    """Return the newest experiment of each kernel and case below ``folder``, in the order of the course.

    Raises:
        StoreError: a file there is no experiment, or was changed.
    """
    newest: dict[tuple[str, str, str], Experiment] = {}
    for path in sorted((folder / FOLDER).glob("*.json")):
        one = read(path)
        key = (one.slug, str(one.case["id"]), one.file)
        if key not in newest or one.time >= newest[key].time:
            newest[key] = one
    return [newest[key] for key in sorted(newest)]


def table(found: Iterable[Experiment], root: Path = ROOT) -> str:
    """Return the Markdown table: time, share of the limit, and how many times as fast as what ran beside it."""
    found = list(found)
    if not found:
        return NOTHING
    lines = ["| kata, shape | kernel | median | of the limit | times as fast as |", "|---|---|--:|--:|---|"]
    for one in found:
        r, file = one.result(), Path(one.file)
        others = ", ".join(f"{name} {_times(x)}" for name, x in r["times_as_fast_as"].items())
        mark = "" if (root / file).is_file() and sha256(root / file) == one.source else " (since changed)"
        lines.append(
            f"| {one.slug}, {one.case['id']} | `{file.name}`{mark} | {r['median_s'] * 1e6:,.1f} us | "
            f"{r['share']:.3f} of a {one.measured['limit']['kind']} | {others} |"
        )
    return "\n".join([*lines, "", _where(found), ""])


def _times(x: float) -> str:
    return f"{x:.2f}" if x < 10 else f"{x:,.0f}"


def _where(found: list[Experiment]) -> str:
    """The machines and days, each once."""
    seen = dict.fromkeys(
        "{gpu}, torch {torch}, Triton {triton}, driver {driver}".format_map(
            dict.fromkeys(("gpu", "torch", "triton", "driver"), "unknown") | one.measured["environment"]
        )
        for one in found
    )
    days = sorted({one.time[:10] for one in found})
    return f"Measured on {' and '.join(seen)}, {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''}."


def written(readme: str, made: str) -> str:
    """Return the README with the table between its marks. Raises KataError where it has none."""
    pattern = re.compile(rf"({re.escape(MARKS[0])}\n).*?(?={re.escape(MARKS[1])})", re.S)
    if not pattern.search(readme):
        raise KataError(f"README.md has no lines {MARKS[0]} and {MARKS[1]}; put them where the table belongs.")
    return pattern.sub(lambda m: m[1] + made, readme, count=1)


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Print the table, or write it into the README."""
    parser = argparse.ArgumentParser(prog="harness.measured.evidence", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    args = parser.parse_args(argv)
    try:
        made = table(experiments(root / "records" / "reference"), root)
        if args.write:
            readme = root / "README.md"
            readme.write_text(written(readme.read_text(encoding="utf-8"), made), encoding="utf-8")
        else:
            print(made, end="")
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
