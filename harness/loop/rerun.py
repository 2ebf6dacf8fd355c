"""Rerun: one kata graded in a process of its own, which can be stopped at any moment. No torch here."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.course import Course, Kata
from harness.runner.client import SERVER, Server
from harness.verdict import Verdict

# a kata, the file for its verdict, further options for pytest -> what grades it
Command = Callable[[Kata, Path, Sequence[str]], list[str]]


@dataclass(frozen=True)
class Rerun:
    """One process that grades one kata."""

    kata: Kata
    text: str  # of the file that it grades
    process: subprocess.Popen[bytes]
    verdicts: Path
    log: Path
    started: float

    def ended(self) -> bool:
        """Return whether the process is over."""
        return self.process.poll() is not None


class Grader:
    """Starts and stops reruns; holds one fork server for all of them, since loading torch takes seconds.

    Args:
        options: further options for pytest.
        cuda: whether the fork server must serve a GPU, too.
        command: what grades a kata (default: pytest, with a fork server).
    """

    def __init__(
        self, course: Course, options: Sequence[str] = (), cuda: bool = False, command: Command | None = None
    ) -> None:
        self.course, self.options, self.cuda = course, list(options), cuda
        self.command = command or self._pytest
        self.warm = command is None
        self.server: Server | None = None
        self.count = 0

    def __enter__(self) -> Grader:
        self._folder = tempfile.TemporaryDirectory(prefix="kata-", ignore_cleanup_errors=True)
        self._have_server()
        return self

    def __exit__(self, *_: object) -> None:
        self._drop_server()
        self._folder.cleanup()

    def start(self, kata: Kata, text: str, options: Sequence[str] = ()) -> Rerun:
        """Start grading ``kata``, whose file holds ``text``, with ``options`` for this rerun alone."""
        self._have_server()
        self.count += 1
        verdicts, log = (Path(self._folder.name) / f"{self.count}.{ending}" for ending in ("json", "log"))
        env = dict(os.environ) | ({SERVER: str(self.server.folder)} if self.server else {})
        with open(log, "wb") as out:
            process = subprocess.Popen(
                self.command(kata, verdicts, [*self.options, *options]), cwd=self.course.root, env=env,
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the one who watches
            )  # fmt: skip
        return Rerun(kata, text, process, verdicts, log, time.monotonic())

    def stop(self, rerun: Rerun) -> None:
        """End a rerun at once: it records nothing, and no code of the learner's goes on."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(rerun.process.pid, signal.SIGKILL)
        rerun.process.wait()
        if self.server is not None:
            end_keepers(self.server.process.pid)
        self._tidy(rerun)

    def result(self, rerun: Rerun) -> tuple[Verdict | None, list[str]]:
        """Return the verdict of a rerun that ended, or None, and the lines to say beside it.

        With a verdict these are about records that could not be written; without one, the last that pytest said.
        """
        try:
            data = json.loads(rerun.verdicts.read_text(encoding="utf-8"))["katas"].get(rerun.kata.slug)
        except (OSError, ValueError):
            data = None
        lines = [line.strip() for line in rerun.log.read_text(encoding="utf-8", errors="replace").splitlines()]
        self._tidy(rerun)
        if data is None or rerun.process.returncode == 3:
            self._drop_server()  # it may be the cause; the next rerun gets another
            last = [line for line in lines if line][-3:]
            return None, last or [f"pytest ended with {rerun.process.returncode} and said nothing."]
        return Verdict.from_json(rerun.kata.slug, data), [line for line in lines if line.startswith("Not recorded")]

    def _tidy(self, rerun: Rerun) -> None:
        for file in (rerun.verdicts, rerun.log):
            file.unlink(missing_ok=True)

    @staticmethod
    def _pytest(kata: Kata, verdicts: Path, options: Sequence[str]) -> list[str]:
        words = ["-q", "--no-header", "--tb=no", "--verdicts", str(verdicts), *options, str(kata.folder)]
        return [sys.executable, "-m", "pytest", *words]

    def _have_server(self) -> None:
        if not self.warm or (self.server is not None and self.server.process.poll() is None):
            return
        self._drop_server()
        self.server = Server(cuda=self.cuda)

    def _drop_server(self) -> None:
        if self.server is not None:
            end_keepers(self.server.process.pid)
            self.server.process.kill()  # it has nothing to finish
            self.server.close()
            self.server = None


def end_keepers(server: int) -> None:
    """Kill the keepers of a fork server and what they caged, not the server itself: they have sessions of their own."""
    parents, sessions = _processes()
    below: list[int] = [server]
    for pid in below:
        below += [child for child, parent in parents.items() if parent == pid]
    for pid in below[1:]:
        if sessions[pid] != sessions.get(server):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """Return parent and session of each process, by the kernel's own table."""
    parents, sessions = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(folder.name)], sessions[int(folder.name)] = int(fields[1]), int(fields[3])
    return parents, sessions
