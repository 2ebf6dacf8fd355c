"""Report: terminal text about verdicts. No torch here."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from textwrap import shorten
from typing import Any

from harness.course import Course
from harness.streaks import Standing
from harness.verdict import Verdict

BARS = 24  # characters of the longest bar


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
        lines.append(f"  {(verdict.speed or {}).get('kind', 'measured')}: {text}")
    lines += [f"    {bar}" for bar in bars(verdict.speed)]
    if shares := each_shape(verdict.speed):
        lines.append(f"  each shape: {shares}")
    if bound := (verdict.speed or {}).get("bound"):
        lines.append(f"  what it means: {bound}")
    if counts := counted(verdict.speed):
        lines.append(f"  counted: {counts}")
    lines += [f"  note: {f}" for f in verdict.findings]
    if verdict.word != "todo":
        lines += [f"  not checked: {n}" for n in verdict.not_checked]
    return lines


def bars(speed: Mapping[str, Any] | None) -> list[str]:
    """Return one line a resource: its name, a bar, the time that it needs; the longest first."""
    found = (speed or {}).get("bars") or {}
    longest = max(found.values(), default=0.0)
    return [
        f"{name:13} {'#' * max(1, round(BARS * t / longest)):{BARS}} {t * 1e6:,.1f} us"
        for name, t in found.items()
        if t >= 0.02 * longest
    ]


def each_shape(speed: Mapping[str, Any] | None) -> str:
    """Return the shares of all gated shapes, where there are several and their times are known."""
    shapes = (speed or {}).get("shapes") or {}
    known = {name: s for name, s in shapes.items() if s.get("share")}
    return ", ".join(f"{name} {s['share']:.0%}" for name, s in known.items()) if len(known) > 1 else ""


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
    zone: tzinfo | None = None,
) -> str:
    """Return the table of ``grade`` with what is next below it; plain text when standard output is not a terminal.

    Args:
        standings: by kata id, from the learner's records; a fresh course has none.
        days: days in a row with a pass.
        width: columns (default: those of the terminal).
        zone: the time zone in which a kata is due on a day (default: this system's).
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    known = standings or {}
    console = Console(width=width or (None if sys.stdout.isatty() else 110), highlight=False)
    rows = Table(box=None, pad_edge=False, header_style="bold")
    begun = any(map(_has_history, known.values()))
    columns = ["kata", "verdict", "tests", *(["streak", "due", "help"] if begun else []), "speed", "about"]
    for name in columns:
        rows.add_column(name, overflow="ellipsis", no_wrap=True)
    cells = []
    for verdict in verdicts:
        kata = course.kata(verdict.slug)
        passed = sum(1 for o in verdict.tests.values() if o == "passed")
        history = _history(known.get(kata.id), zone) if begun else []
        tests = f"{passed}/{len(verdict.tests)}" if verdict.word != "todo" else ""
        cells.append([verdict.slug, verdict.word, tests, *history, brief(verdict.speed)])
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


def _has_history(standing: Standing) -> bool:
    return bool(standing.attempts or standing.hints_used or standing.peeked)


def _history(standing: Standing | None, zone: tzinfo | None) -> list[str]:
    """Return the cells for the pass streak, the day on which the kata is due again, and the help of this round."""
    if standing is None or not _has_history(standing):
        return ["", "", ""]
    hints = f"{standing.hints_used} hint{'s' if standing.hints_used != 1 else ''}" if standing.hints_used else ""
    when = f"{standing.due_at.astimezone(zone):%Y-%m-%d}" if standing.due_at else ""
    words = ", ".join(filter(None, [hints, "peek" if standing.peeked else ""]))
    return [str(standing.streak) if standing.passes else "", "now" if standing.is_due else when, words]


def brief(speed: Mapping[str, Any] | None) -> str:
    """Return the speed in a few words: the share with half its band and where it is from, else the worst count."""
    share, band = (speed or {}).get("share"), (speed or {}).get("band")
    if share is not None and band:
        half = max(band[1] - share, share - band[0])  # the lower end of a small share is cut off at 0
        return f"{share:.2f} ± {half:.2f} {(speed or {})['kind']}"
    counts = (speed or {}).get("counts") or {}
    shares = [(counts[k] / counts[f"least_{k}"], k) for k in ("bytes", "sectors") if counts.get(f"least_{k}")]
    return "{1} {0:.2f}x counted".format(*max(shares)) if shares else ""


def next_step(course: Course, verdicts: Sequence[Verdict], standings: Mapping[str, Standing] | None = None) -> str:
    """Return what to do next, and why: the first kata on the path that is not passed and whose needs are, else what
    is due to be done again from blank. What is due besides is named below it."""
    known = standings or {}
    due = [v.slug for v in verdicts if (s := known.get(v.slug[3:])) is not None and s.is_due and not s.in_round]
    besides = "Due again from blank"
    if all(v.word in ("pass", "undecided") for v in verdicts):
        unsure = [v.slug for v in verdicts if v.word == "undecided"]
        if unsure:
            names = ", ".join(unsure)
            text = f"Nothing is wrong; undecided: {names}. `pytest exercises/{unsure[0]}` says what would decide."
        elif due:
            first, besides = due.pop(0), "Also due"
            text = f"Next: {first} again from blank, because it is due.\n      nox -s reset -- {first}"
        else:
            text = "All of it passes."
    else:
        text = _open_step(course, verdicts, known)
    return text + (f"\n{besides}: {', '.join(due)}. Begin: nox -s reset -- {due[0]}" if due else "")


def _open_step(course: Course, verdicts: Sequence[Verdict], known: Mapping[str, Standing]) -> str:
    """Return the step for the first kata that is open and whose needs are met."""
    done = {v.slug[3:] for v in verdicts if v.word in ("pass", "undecided")}
    graded = {v.slug[3:] for v in verdicts}
    open_ones = [v for v in verdicts if v.word not in ("pass", "undecided")]
    ready = [v for v in open_ones if not (set(course.kata(v.slug).spec.needs) & graded - done)]
    chosen = (ready or open_ones)[0]
    standing = known.get(chosen.slug[3:])
    if chosen.word == "todo" and standing is not None and standing.passes:
        why = "you reset it to do it again from blank"
    else:
        why = {
            "todo": "it is the next on the path, and its stub is untouched. "
            f"Start with exercises/{chosen.slug}/README.md",
            "slow": "the result is right; now make it fast",
        }.get(chosen.word, _first_sentence(chosen.reason) or chosen.word)
    return f"Next: {chosen.slug}, because {why.rstrip('.')}.\n      pytest exercises/{chosen.slug}"


def _first_sentence(text: str) -> str:
    """Return the first sentence of a reason as it stands behind ``because``: without its full stop and its capital."""
    line = (text.strip().splitlines() or [""])[0]
    line = re.sub(r"^(All|The) ", lambda m: m[0].lower(), line)
    return re.split(r"(?<=[.?]) (?=[A-Z])", line)[0].rstrip(".")
