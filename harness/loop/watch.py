"""``nox -s watch -- 05_nf4``: grade a kata anew at every save, until Ctrl-C. No torch here."""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.course import Kata, load_course
from harness.errors import KataError
from harness.loop.rerun import Grader, Rerun
from harness.loop.saves import Saves, Stop, looks
from harness.report import STYLES, counted
from harness.verdict import Verdict


def main(argv: Sequence[str] | None = None, root: Path | None = None) -> int:
    """Watch the katas that ``argv`` names. Returns 0 when Ctrl-C ends it, 1 after a sentence about what is wrong."""
    parser = argparse.ArgumentParser(
        prog="nox -s watch --", description="Grade at every save.", epilog="Further options go to pytest: --gpu A100."
    )
    parser.add_argument("katas", nargs="*", default=[""], help="slugs, ids or numbers, such as 05_nf4")
    parser.add_argument("--poll", action="store_true", help="where saves go unnoticed: look at the files all the time")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: cuda if there is one")
    args, options = parser.parse_known_args(argv)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):  # a flag, so that nothing is cut in the middle
        signal.signal(number, lambda *_: stop.set())
    try:
        course = load_course(root)
        katas = list({kata.slug: kata for kata in map(course.kata, args.katas)}.values())
        with Grader(course, ["--device", args.device, *options], _cuda(args.device)) as grader:
            watcher = Watcher(katas, grader, Screen())
            try:
                watcher.loop(stop, args.poll or None)
            finally:
                watcher.end()
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _cuda(choice: str) -> bool:
    from harness.session import device_of

    return device_of(choice) == "cuda"


class Watcher:
    """Grades katas one at a time, the one saved last first."""

    def __init__(self, katas: Sequence[Kata], grader: Grader, screen: Screen) -> None:
        self.katas, self.grader, self.screen = list(katas), grader, screen
        self.queue = list(katas)
        self.rerun: Rerun | None = None
        self.last: dict[str, tuple[str, Verdict]] = {}  # slug -> the text and the verdict of the last rerun
        self.count = 0

    def loop(self, stop: Stop, polling: bool | None = None) -> None:
        """Grade what is there, then at every save, until ``stop`` is set. Raises KataError."""
        self.screen.started(self.katas)
        saves = Saves(self.katas)
        for look in looks(self.katas, stop, polling):
            if look:
                for kata in saves.seen(time.monotonic()):
                    self._saved(kata)
            for kata in saves.due(time.monotonic()):
                self.queue = [kata, *(k for k in self.queue if k is not kata)]
            self._collect()
            if self.rerun is None and self.queue:
                self._start(self.queue.pop(0))

    def end(self) -> None:
        """Stop what runs, and say that the watch is over."""
        if self.rerun is not None:
            self.grader.stop(self.rerun)
            self.rerun = None
        self.screen.ended(self.count)

    def _saved(self, kata: Kata) -> None:
        """A verdict on what is no longer there is of no use."""
        self._collect()
        if self.rerun is not None and self.rerun.kata is kata:
            self.grader.stop(self.rerun)
            self.rerun = None
            self.screen.stopped(kata)

    def _start(self, kata: Kata) -> None:
        try:
            text = kata.stub.read_text(encoding="utf-8", errors="replace")
        except OSError:
            self.screen.gone(kata)
            return
        self.rerun = self.grader.start(kata, text)
        self.screen.grading(kata)

    def _collect(self) -> None:
        rerun = self.rerun
        if rerun is None or not rerun.ended():
            return
        self.rerun = None
        seconds = time.monotonic() - rerun.started
        verdict, lines = self.grader.result(rerun)
        if verdict is None:
            self.screen.fault(rerun.kata, lines)
            return
        self.count += 1
        text, before = self.last.get(rerun.kata.slug, (rerun.text, None))
        self.last[rerun.kata.slug] = (rerun.text, verdict)
        self.screen.graded(verdict, before, edited(text, rerun.text), seconds, lines)


def edited(before: str, after: str) -> str:
    """Return which lines changed, counted in ``after``: ``+2 -1 lines at 38``; empty when none did."""
    old, new = before.splitlines(), after.splitlines()
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    blocks = [b for b in blocks if b[0] != "equal"]
    if not blocks:
        return ""
    more, less = sum(b[4] - b[3] for b in blocks), sum(b[2] - b[1] for b in blocks)
    counts = " ".join(f"{sign}{n}" for sign, n in (("+", more), ("-", less)) if n)
    places = [str(b[3] + 1) for b in blocks]
    where = ", ".join(places[:3]) + (" and below" if len(places) > 3 else "")
    return f"{counts} line{'s' if more + less > 1 else ''} at {where}"


def moved(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Return which counters changed from one rerun to the next: ``launches 3 -> 1``; empty when none did."""
    old, new = (((s or {}).get("counts") or {}) for s in (before, after))
    return ", ".join(
        f"{name} {old[name]:,} -> {new[name]:,}"
        for name in ("bytes", "sectors", "launches", "programs")
        if name in old and name in new and old[name] != new[name]
    )


class Screen:
    """What the learner sees: a line or three for each rerun."""

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console

        self.console = console or Console(highlight=False)
        self.status: Any = None

    def started(self, katas: Sequence[Kata]) -> None:
        """Say what is watched."""
        names = ", ".join(f"exercises/{k.slug}/kernel.py" for k in katas)
        self._say(f"Watching {names}: graded at every save. Ctrl-C ends.")

    def grading(self, kata: Kata) -> None:
        """Show, in a terminal only, that a rerun is under way."""
        self._hush()
        if self.console.is_terminal:
            self.status = self.console.status(f"{kata.slug}: grading …", refresh_per_second=5)
            self.status.start()

    def graded(
        self, verdict: Verdict, before: Verdict | None, edit: str, seconds: float, remarks: Sequence[str] = ()
    ) -> None:
        """Say the verdict, why, and what changed since the last one of this kata."""
        passed = sum(1 for o in verdict.tests.values() if o == "passed")
        rest = f"   {passed} of {len(verdict.tests)} tests, {seconds:.1f} s"
        self._say(f"{_clock()}  {verdict.slug}  ", (verdict.word, STYLES.get(verdict.word, "red")), rest)
        if verdict.word != "pass" and verdict.reason.strip():
            self._say(f"          {verdict.reason.strip().splitlines()[0]}")
        if verdict.word in ("pass", "slow", "undecided") and (counts := counted(verdict.speed)):
            self._say(f"          counted: {counts}")
        changes = [f"was {before.word}"] if before and before.word != verdict.word else []
        changes += [c for c in (edit, moved(before.speed, verdict.speed) if before else "") if c]
        if changes:
            self._say(f"          changed: {'; '.join(changes)}")
        for remark in remarks:
            self._say(f"          {remark}")

    def stopped(self, kata: Kata) -> None:
        """Say that a rerun was given up, since the file was saved again."""
        self._say(f"{_clock()}  {kata.slug}  changed meanwhile: starting anew")

    def gone(self, kata: Kata) -> None:
        """Say that there is nothing to grade."""
        self._say(f"{_clock()}  {kata.slug}  kernel.py is gone; it is graded when it is back")

    def fault(self, kata: Kata, lines: Sequence[str]) -> None:
        """Say that no verdict came, and the last that was said instead."""
        self._say(f"{_clock()}  {kata.slug}  no verdict; `nox -s doctor` looks for the cause. What was said last:")
        for line in lines:
            self._say(f"          {line}")

    def ended(self, count: int) -> None:
        """Say that the watch is over."""
        self._say(f"Watch ended; graded {count} time{'' if count == 1 else 's'}.")

    def _say(self, *parts: Any) -> None:
        from rich.text import Text

        self._hush()
        self.console.print(Text.assemble(*parts), soft_wrap=True)

    def _hush(self) -> None:
        if self.status is not None:
            self.status.stop()
            self.status = None


def _clock() -> str:
    return f"{datetime.now():%H:%M:%S}"


if __name__ == "__main__":
    sys.exit(main())
