"""Report: terminal text about verdicts. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.course import Course
from harness.verdict import Verdict


def paragraph(verdict: Verdict) -> list[str]:
    """Return the lines that close a kata's run: the word, why, what was counted, notes, what was not checked."""
    passed = sum(1 for o in verdict.tests.values() if o == "passed")
    lines = ["", f"{verdict.slug}: {verdict.word}   ({passed} of {len(verdict.tests)} tests passed, seed {verdict.seed})"]
    if verdict.word not in ("pass", "todo") and verdict.reason:
        first = verdict.reason.strip().splitlines()[0]
        lines.append(f"  why: {first}" + (f"  [{verdict.failed_in}]" if verdict.failed_in else ""))
    if verdict.word == "todo":
        lines.append(f"  next: exercises/{verdict.slug}/README.md says what to do; then edit kernel.py and run this again")
    if counts := counted(verdict.speed):
        lines.append(f"  counted: {counts}")
    lines += [f"  note: {f}" for f in verdict.findings]
    if verdict.word != "todo":
        lines += [f"  not checked: {n}" for n in verdict.not_checked]
    return lines


def counted(speed: Mapping[str, Any] | None) -> str:
    """Return the counters in one line; empty when nothing was counted."""
    counts = (speed or {}).get("counts") or {}
    if not counts:
        return ""
    return (
        f"{_times(counts['bytes'], counts['least_bytes'])} the least bytes, "
        f"{_times(counts['sectors'], counts['least_sectors'])} the least sectors, "
        f"{counts['launches']:,} launch{'es' if counts['launches'] != 1 else ''}, "
        f"{counts['bench_programs'] or counts['programs']:,} programs"
        f"{' at the bench shape' if counts['bench_programs'] else ''}"
    )


def _times(value: int, least: int) -> str:
    return f"{value / least:.2f}x" if least else f"{value:,} of 0"


_STYLE = {"pass": "green", "todo": "dim", "undecided": "yellow", "slow": "yellow"}


def table(course: Course, verdicts: Sequence[Verdict], width: int | None = None) -> str:
    """Return the table of ``grade`` with what is next below it; plain text when standard output is not a terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=width, highlight=False)
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("kata", "verdict", "tests", "counted", "about"):
        rows.add_column(name, overflow="fold", no_wrap=name in ("kata", "verdict", "tests"))
    for verdict in verdicts:
        spec = course.kata(verdict.slug).spec
        passed = sum(1 for o in verdict.tests.values() if o == "passed")
        rows.add_row(
            verdict.slug,
            f"[{_STYLE.get(verdict.word, 'red')}]{verdict.word}[/]",
            f"{passed}/{len(verdict.tests)}",
            _brief(verdict),
            spec.title,
        )
    with console.capture() as capture:
        console.print(rows)
        console.print()
        console.print(next_step(course, verdicts), markup=False)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _brief(verdict: Verdict) -> str:
    counts = (verdict.speed or {}).get("counts") or {}
    if not counts:
        return ""
    return f"bytes {_times(counts['bytes'], counts['least_bytes'])}, sectors {_times(counts['sectors'], counts['least_sectors'])}"


def next_step(course: Course, verdicts: Sequence[Verdict]) -> str:
    """Return what to do next, and why: the first kata on the path that is not passed and whose needs are."""
    done = {v.slug[3:] for v in verdicts if v.word in ("pass", "undecided")}
    open_ones = [v for v in verdicts if v.word not in ("pass", "undecided")]
    if not open_ones:
        unsure = [v.slug for v in verdicts if v.word == "undecided"]
        if unsure:
            return f"Nothing is wrong; undecided: {', '.join(unsure)}. `pytest exercises/{unsure[0]}` says what would decide."
        return "All of it passes."
    known = {v.slug[3:] for v in verdicts}
    ready = [v for v in open_ones if not (set(course.kata(v.slug).spec.needs) & known - done)]
    chosen = (ready or open_ones)[0]
    why = {
        "todo": f"it is the next on the path, and its stub is untouched. Start with exercises/{chosen.slug}/README.md",
        "slow": "the result is right; now make it fast",
    }.get(chosen.word, chosen.reason.strip().splitlines()[0] if chosen.reason.strip() else chosen.word)
    return f"Next: {chosen.slug}, because {why.rstrip('.')}.\n      pytest exercises/{chosen.slug}"
