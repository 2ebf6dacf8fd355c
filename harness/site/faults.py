"""What can be wrong with a lesson; each message names the file, what was expected and what to do."""

from __future__ import annotations

from harness.errors import KataError


class LessonError(KataError):
    """A lesson's files do not follow ``lessons/README.md``."""
