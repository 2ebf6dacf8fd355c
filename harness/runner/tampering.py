"""Tampering: what code under test may not do to the course, refused while it runs. No torch here."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

_CHANGES = (
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
    "shutil.rmtree",
)  # fmt: skip
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn")
_GUARDED = {"README.md", "exercise.toml", "reference.py", "test_kernel.py", "kernel.py"}


def forbid_tampering(root: Path, file: Path) -> list[str]:
    """Refuse what the learner's code has no business to do, for the life of this process.

    Writes into the course fail, and are listed in what this returns; so do starting a program and signals to others.
    An audit hook cannot be removed again; raising in it makes the call fail.
    """
    attempts: list[str] = []
    course, own = str(root) + "/", str(file.parent) + "/"

    def check(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode = args[0], args[1]
            if isinstance(mode, str) and any(c in mode for c in "wax+") or (args[2] or 0) & 0o1103:
                _refuse_change(path)
        elif event in _CHANGES:
            for path in args[:2]:
                _refuse_change(path)
        elif event in _STARTS and _caller() == str(file):
            raise PermissionError(f"code under test may not start a program: {event}. A kernel needs none")
        elif event in ("os.kill", "os.killpg") and args[0] not in (0, os.getpid(), os.getpgrp()):
            raise PermissionError(f"code under test may not send a signal to another process: {event}({args[0]})")

    def _refuse_change(path: Any) -> None:
        if not isinstance(path, str | bytes):
            return
        full = os.path.realpath(os.fsdecode(path))
        harmless = full.startswith(own) and os.path.basename(full) not in _GUARDED or "__pycache__" in full
        if full.startswith(course) and not harmless and "/.venv/" not in full:
            attempts.append(full.removeprefix(course))
            raise PermissionError(f"code under test may not change the course: {full.removeprefix(course)}")

    sys.addaudithook(check)
    return attempts


_LIBRARY = sysconfig.get_path("stdlib") + os.sep


def _caller() -> str:
    """The file of the innermost frame that is neither this module's nor the standard library's."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        inside = name.startswith(_LIBRARY) and "-packages" not in name
        if name != __file__ and not inside and not name.startswith("<"):
            return name
        frame = frame.f_back
    return ""
