"""Streaks: rounds, streaks and due dates, read off the events of a history. Pure functions; no clock, no files.

All take the events in their order, as ``Store.history`` returns them, and go by a kata's id. Events of an id that no
kata has (any more) stay in the history; only the day streak counts them, for that day had its pass.

A round runs from a reset, or from the first event of all, to the first pass. What comes between that pass and the next
reset belongs to no round: the answer stands in the file then. A reset before the pass starts the round over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from harness.record import Attempt

DUE_AFTER_DAYS = (1, 3, 7, 21, 60)  # after the first, second, … round in a row without a peek; then the last for ever


@dataclass(frozen=True)
class Round:
    """One round of one kata. ``outcome``: ``pass``, ``reset`` (given up) or ``open`` (the last one, still running)."""

    started: datetime
    outcome: str = "open"
    ended: datetime | None = None
    attempts: int = 0
    hints: int = 0
    peeked: bool = False


@dataclass(frozen=True)
class Standing:
    """Where a learner stands with one kata.

    Attributes:
        verdict: of the last graded run; empty before the first.
        passes: rounds that ended in a pass (further passes of the same file are no feat).
        streak: of those, the last ones in a row without a peek.
        hints_used, peeked: in the round that is open, else in the last one.
        attempts: all graded runs.
        in_round: whether a round is open; if not, the kata is solved or was never begun.
        passed_at: the end of the last round that ended in a pass.
        days_since: whole days since then, never negative.
        due_at, is_due: when to do it again from blank; None and False before the first pass.
    """

    id: str
    verdict: str = ""
    passes: int = 0
    streak: int = 0
    hints_used: int = 0
    peeked: bool = False
    attempts: int = 0
    in_round: bool = False
    passed_at: datetime | None = None
    days_since: int | None = None
    due_at: datetime | None = None
    is_due: bool = False


def rounds(events: Iterable[Attempt], id: str) -> list[Round]:
    """Return the rounds of a kata, oldest first; a reset with nothing behind it but another reset makes none."""
    out: list[Round] = []
    current: Round | None = None
    begun = False
    for event in events:
        if event.id != id or not event.whole:
            continue
        if event.kind == "reset":
            if current and (current.attempts or current.hints or current.peeked):
                out.append(dataclasses.replace(current, outcome="reset", ended=event.at))
            current = Round(event.at)
        elif not begun:
            current = Round(event.at)
        begun = True
        if current and event.kind != "reset":
            current = _joined(current, event)
            if current.outcome == "pass":
                out.append(current)
                current = None
    return out + ([current] if current else [])


def _joined(one: Round, event: Attempt) -> Round:
    """Return the round with one more event in it.

    A hint or a peek counts when its own line is there or when an attempt of the round says it: one of the two may stand
    in a line that was damaged, or in another clone.
    """
    if event.kind == "attempt":
        return dataclasses.replace(
            one,
            attempts=one.attempts + 1,
            hints=max(one.hints, event.help.get("hints", 0)),
            peeked=one.peeked or bool(event.help.get("peek")),
            outcome="pass" if event.passed else "open",
            ended=event.at if event.passed else None,
        )
    return dataclasses.replace(one, hints=one.hints + (event.kind == "hint"), peeked=one.peeked or event.kind == "peek")


def pass_streak(events: Iterable[Attempt], id: str) -> int:
    """Return how many rounds in a row ended in a pass without a peek; a peek ends the streak when it happens."""
    return _streak(rounds(events, id))


def _streak(mine: Iterable[Round]) -> int:
    streak = 0
    for one in mine:
        streak = 0 if one.peeked else streak + (one.outcome == "pass")
    return streak


def help_used(events: Iterable[Attempt], id: str) -> dict[str, int | bool]:
    """Return ``Attempt.help`` of the round that is open, or that the next event would open."""
    last = (rounds(events, id) or [None])[-1]
    if last is None or last.outcome != "open":
        return {"hints": 0, "peek": False}
    return {"hints": last.hints, "peek": last.peeked}


def day_streak(events: Iterable[Attempt], today: date, zone: tzinfo | None = None) -> int:
    """Return how many days in a row, up to today or yesterday, have a pass of any kata.

    Args:
        today: the local day. Passes of tomorrow count too (a clock that went back some hours, a journey); those of
            later days do not.
        zone: the time zone whose days count, in which each pass's UTC time is read (default: this system's).
    """
    tomorrow, day = today + timedelta(days=1), timedelta(days=1)
    days = {event.at.astimezone(zone).date() for event in events if event.passed}
    last = max((d for d in days if d <= tomorrow), default=None)
    if last is None or last < today - day:
        return 0
    streak = 0
    while last - streak * day in days:
        streak += 1
    return streak


def due(events: Iterable[Attempt], id: str, now: datetime) -> tuple[datetime | None, bool]:
    """Return when a kata is to be done again from blank, and whether that is now or was.

    It is due 1, 3, 7, 21, 60 days (times 24 hours) after the pass that ended the last round, by how many rounds in a
    row that one was; after a round with a peek, 1 day. A reset does not change it: the next pass does.

    Args:
        now: a time with a zone.
    """
    return _due(rounds(events, id), now)


def _due(mine: Sequence[Round], now: datetime) -> tuple[datetime | None, bool]:
    passed = [n for n, one in enumerate(mine) if one.outcome == "pass"]
    if not passed:
        return None, False
    streak = _streak(mine[: passed[-1] + 1])
    days = DUE_AFTER_DAYS[min(max(streak, 1), len(DUE_AFTER_DAYS)) - 1]
    at = mine[passed[-1]].ended + timedelta(days=days)
    return at, now >= at


def standings(events: Iterable[Attempt], ids: Iterable[str], now: datetime) -> dict[str, Standing]:
    """Return the standing of each kata in ``ids``, in that order; ``now`` is a time with a zone."""
    by_id: dict[str, list[Attempt]] = {id: [] for id in ids}
    for event in events:
        if event.id in by_id:
            by_id[event.id].append(event)
    return {id: _standing(id, mine, now) for id, mine in by_id.items()}


def _standing(id: str, events: Sequence[Attempt], now: datetime) -> Standing:
    runs = [e for e in events if e.kind == "attempt" and e.whole]
    mine = rounds(events, id)
    if not mine:
        return Standing(id)
    passed_at = next((one.ended for one in reversed(mine) if one.outcome == "pass"), None)
    due_at, is_due = _due(mine, now)
    return Standing(
        id=id,
        verdict=runs[-1].verdict if runs else "",
        passes=sum(one.outcome == "pass" for one in mine),
        streak=_streak(mine),
        hints_used=mine[-1].hints,
        peeked=mine[-1].peeked,
        attempts=len(runs),
        in_round=mine[-1].outcome == "open",
        passed_at=passed_at,
        days_since=max(0, (now - passed_at).days) if passed_at else None,
        due_at=due_at,
        is_due=is_due,
    )
