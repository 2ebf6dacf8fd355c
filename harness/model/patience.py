"""Patience: how long the model of one launch may take; then it gives up, and the speed is undecided. No torch.

CPU time, so that a busy machine does not change a verdict.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

SECONDS = 5.0  # of CPU time, for one launch


class Impatient(Exception):
    """The time that ``within`` gave is over."""


_until = math.inf


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Let ``check`` raise after so many seconds of this process's CPU time."""
    global _until
    before, _until = _until, time.process_time() + seconds
    try:
        yield
    finally:
        _until = before


def check() -> None:
    """Raise Impatient when the time is over; costs a microsecond, so long loops ask now and then."""
    if time.process_time() > _until:
        raise Impatient
