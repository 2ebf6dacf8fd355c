"""Tampering: what code under test may not do to the course, refused while it runs. No torch here."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


def forbid_tampering(root: Path, file: Path) -> list[str]:
    """Refuse writes into the course by the learner's code, for the life of this process, and list the attempts.

    An audit hook cannot be removed again; raising in it makes the write fail.
    """
    attempts: list[str] = []
    course, own = str(root) + "/", str(file.parent) + "/"
    guarded = {"README.md", "exercise.toml", "reference.py", "test_kernel.py", "kernel.py"}

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode = args[0], args[1]
            writes = isinstance(mode, str) and any(c in mode for c in "wax+") or (args[2] or 0) & 0o1103
        elif event in ("os.remove", "os.rename", "os.rmdir", "shutil.rmtree", "os.truncate", "os.symlink"):
            path, writes = args[0], True
        else:
            return
        if not writes or not isinstance(path, str | bytes):
            return
        full = os.path.realpath(os.fsdecode(path))
        harmless = full.startswith(own) and os.path.basename(full) not in guarded or "__pycache__" in full
        if full.startswith(course) and not harmless and "/.venv/" not in full:
            attempts.append(full.removeprefix(course))
            raise PermissionError(f"code under test may not change the course: {full.removeprefix(course)}")

    sys.addaudithook(check)
    return attempts
