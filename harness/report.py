"""Report: terminal text about verdicts. No torch here."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

from harness.course import Course
from harness.streaks import Standing
from harness.verdict import Verdict


def paragraph(verdict: Verdict) -> list[str]:
    """Return the lines that close a kata's run: the word, why, what was counted, notes, what was not checked."""
    passed = sum(1 for o in verdict.tests.values() if o == "passed")
    ran = f"   ({passed} of {len(verdict.tests)} tests passed, seed {verdict.seed})" if verdict.word != "todo" else ""
    lines = ["", f"{verdict.slug}: {verdict.word}{ran}"]
    if verdict.word not in ("pass", "todo") and verdict.reason:
        first = shorten(verdict.reason.strip().splitlines()[0], 100, placeholder=" …")
        lines.append(f"  why: {first}" + (f"  [{verdict.failed_in}]" if verdict.failed_in else ""))
    if verdict.word == "todo":
        lines.append(
            f"  next: exercises/{verdict.slug}/README.md says what to do; then edit kernel.py and run this again"
        )
    if text := (verdict.speed or {}).get("text"):
        lines.append(f"  measured: {text}")
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


STYLES = {"pass": "green", "todo": "dim", "undecided": "yellow", "slow": "yellow"}


def table(
    course: Course,
    verdicts: Sequence[Verdict],
    standings: Mapping[str, Standing] | None = None,
    days: int = 0,
    width: int | None = None,
) -> str:
    """Return the table of ``grade`` with what is next below it; plain text when standard output is not a terminal.

    Args:
        standings: by kata id, from the learner's records; a fresh course has none.
        days: days in a row with a pass.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    known = standings or {}
    console = Console(width=width or (None if sys.stdout.isatty() else 110), highlight=False)
    rows = Table(box=None, pad_edge=False, header_style="bold")
    begun = any(s.attempts for s in known.values())
    columns = ["kata", "verdict", "tests", *(["streak", "due", "help"] if begun else []), "counted", "about"]
    for name in columns:
        rows.add_column(name, overflow="ellipsis", no_wrap=True)
    cells = []
    for verdict in verdicts:
        kata = course.kata(verdict.slug)
        passed = sum(1 for o in verdict.tests.values() if o == "passed")
        history = _history(known.get(kata.id)) if begun else []
        tests = f"{passed}/{len(verdict.tests)}" if verdict.word != "todo" else ""
        cells.append([verdict.slug, verdict.word, tests, *history, _brief(verdict)])
    used = sum(max(len(row[i]) for row in [columns, *cells]) + 2 for i in range(len(columns) - 1)) if cells else 0
    for verdict, row in zip(verdicts, cells, strict=True):
        title = shorten(course.kata(verdict.slug).spec.title, max(12, console.width - used), placeholder=" …")
        rows.add_row(row[0], f"[{STYLES.get(verdict.word, 'red')}]{verdict.word}[/]", *row[2:], escape(title))
    with console.capture() as capture:
        console.print(rows)
        console.print()
        if days:
            console.print(f"{days} day{'s' if days != 1 else ''} in a row with a pass.", markup=False)
        console.print(next_step(course, verdicts, known), markup=False, soft_wrap=True)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _history(standing: Standing | None) -> list[str]:
    """Return the cells for the pass streak, when the kata is due again, and the help of this round."""
    if standing is None or not standing.attempts and not standing.hints_used:
        return ["", "", ""]
    hints = f"{standing.hints_used} hint{'s' if standing.hints_used != 1 else ''}" if standing.hints_used else ""
    when = f"{standing.due_at:%Y-%m-%d}" if standing.due_at else ""
    words = ", ".join(filter(None, [hints, "peek" if standing.peeked else ""]))
    return [str(standing.streak) if standing.passes else "", "now" if standing.is_due else when, words]


def _brief(verdict: Verdict) -> str:
    counts = (verdict.speed or {}).get("counts") or {}
    if not counts:
        return ""
    sectors = _times(counts["sectors"], counts["least_sectors"])
    return f"bytes {_times(counts['bytes'], counts['least_bytes'])}, sectors {sectors}"


def next_step(course: Course, verdicts: Sequence[Verdict], standings: Mapping[str, Standing] | None = None) -> str:
    """Return what to do next, and why: the first kata on the path that is not passed and whose needs are, else what
    is due to be done again from blank."""
    done = {v.slug[3:] for v in verdicts if v.word in ("pass", "undecided")}
    open_ones = [v for v in verdicts if v.word not in ("pass", "undecided")]
    if not open_ones:
        unsure = [v.slug for v in verdicts if v.word == "undecided"]
        if unsure:
            names = ", ".join(unsure)
            return f"Nothing is wrong; undecided: {names}. `pytest exercises/{unsure[0]}` says what would decide."
        due = [v.slug for v in verdicts if (s := (standings or {}).get(v.slug[3:])) is not None and s.is_due]
        if due:
            return f"Next: {due[0]} again from blank, because it was due.\n      nox -s reset -- {due[0]}"
        return "All of it passes."
    known = {v.slug[3:] for v in verdicts}
    ready = [v for v in open_ones if not (set(course.kata(v.slug).spec.needs) & known - done)]
    chosen = (ready or open_ones)[0]
    why = {
        "todo": f"it is the next on the path, and its stub is untouched. Start with exercises/{chosen.slug}/README.md",
        "slow": "the result is right; now make it fast",
    }.get(chosen.word, _first_sentence(chosen.reason) or chosen.word)
    return f"Next: {chosen.slug}, because {why.rstrip('.')}.\n      pytest exercises/{chosen.slug}"


def _first_sentence(text: str) -> str:
    """Return the first sentence of a reason, without its full stop."""
    line = (text.strip().splitlines() or [""])[0]
    return re.split(r"(?<=[.?]) (?=[A-Z])", line)[0].rstrip(".")
