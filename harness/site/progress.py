"""Progress: what ``records/`` says of each kata, in the words that the pages print. Read while they are built."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.record import now
from harness.store import Store
from harness.streaks import Standing, standings


@dataclass(frozen=True)
class Progress:
    """Where a learner stands with one kata.

    Attributes:
        state: ``new`` (no attempt), ``tried``, ``passed`` or ``due`` (passed, and due again from blank).
        words: the same for people: ``passed, due again in 3 days``.
    """

    state: str
    words: str


def read_progress(records: Path, ids: Iterable[str], at: datetime | None = None) -> dict[str, Progress]:
    """Return the progress of each kata id. Damaged records count as not there, as they do in ``grade``."""
    at = at or now()
    events, _ = Store(records).history()
    return {id: _progress(standing, at) for id, standing in standings(events, ids, at).items()}


def _progress(standing: Standing, at: datetime) -> Progress:
    if standing.passes:
        times = f"passed {standing.passes} times" if standing.passes > 1 else "passed"
        if standing.is_due:
            return Progress("due", f"{times}, due again from blank")
        days = max(1, -((at - standing.due_at).days)) if standing.due_at else 0
        return Progress("passed", f"{times}, due again in {days} day{'s' if days != 1 else ''}")
    if standing.attempts:
        runs = f"{standing.attempts} attempt{'s' if standing.attempts != 1 else ''}"
        return Progress("tried", f"{runs}, last verdict {standing.verdict}")
    return Progress("new", "not tried yet")
