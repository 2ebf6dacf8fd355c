"""Every error that the harness raises on purpose.

::

    KataError                   something a person can mend; str(error) is the whole message
    ├── SpecError               an exercise.toml says something that cannot be
    ├── CourseError             a folder of the course is not as it must be, or does not exist
    ├── DeviceError             a GPU nobody knows
    ├── SubmissionError         the file to grade cannot be used
    ├── StoreError              records/ cannot be written: the verdict stands, its record is missing
    ├── GitError                git is missing or refuses, or this is no clone to work on
    └── HarnessFault            the harness itself failed: pytest exits with 3, never a learner's verdict

Each message is one sentence of what is wrong with which value, one of what was expected or what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class KataError(Exception):
    """Something a person can mend; ``str(error)`` is the whole message, no traceback is needed."""


class SpecError(KataError):
    """An ``exercise.toml`` says something that cannot be."""


class CourseError(KataError):
    """A folder of the course is not as it must be, or does not exist."""


class DeviceError(KataError):
    """A GPU, or a device, that nobody knows."""


class SubmissionError(KataError):
    """The file to grade cannot be used."""


class StoreError(KataError):
    """``records/`` cannot be written. A verdict stands all the same; a file that cannot be put aside is not touched."""


class GitError(KataError):
    """git is missing or refuses, or this is no clone to work on."""


class HarnessFault(KataError):
    """The harness itself failed. Never the learner's fault: pytest then exits with 3."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean "x"?`` when one of ``known`` is close to ``name``, else an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f' Did you mean "{close[0]}"?' if close else ""
