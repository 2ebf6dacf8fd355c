"""Saves: which katas' files were saved, told from what the file system reports. No torch here.

Editors save in many ways: in place, by a new file that is renamed over the old one, by removing and creating, in two
steps. So an event only says "look": whether a kata was saved is told by the contents and times of its files.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from harness.course import Kata
from harness.errors import KataError

QUIET = 0.15  # seconds without another save that end a burst of them
LONGEST = 0.22  # seconds after which a burst counts as ended; with STEP, a run starts within 0.3 s of a save
STEP = 0.02  # seconds between two looks at the events
_LOOK = 1.0  # seconds between two looks at the files themselves, in case an event was lost
_FILES = ("kernel.py", "exercise.toml", "reference.py", "test_kernel.py")

# file systems that other systems write to, or that tell nobody about it
_SILENT = re.compile(r"9p|drvfs|nfs\d?|cifs|smb\d?|smbfs|vboxsf|virtiofs|fuse(\..*)?|fakeowner|afs|lustre|gpfs|prl_fs")

Stamp = tuple[tuple[int, bytes] | None, ...]


class Stop(Protocol):
    """What ends the loop: a ``threading.Event`` will do."""

    def is_set(self) -> bool:
        """Return whether to end now."""


def stamp(kata: Kata) -> Stamp:
    """Return what tells one save of a kata from the next: time and contents of its files, None for a missing one."""
    return tuple(_look(kata.folder / name) for name in _FILES)


def _look(path: Path) -> tuple[int, bytes] | None:
    try:
        return path.stat().st_mtime_ns, path.read_bytes()
    except OSError:
        return None


class Saves:
    """The saves of some katas: call ``seen`` with every look, ask ``due`` whose burst has ended."""

    def __init__(self, katas: Sequence[Kata]) -> None:
        self.katas = list(katas)
        self._stamps = {k.slug: stamp(k) for k in katas}
        self._bursts: dict[str, tuple[float, float]] = {}  # slug -> first and last save

    def seen(self, now: float) -> list[Kata]:
        """Look at the files; return the katas that were saved since the last look."""
        saved = []
        for kata in self.katas:
            new = stamp(kata)
            if new != self._stamps[kata.slug]:
                self._stamps[kata.slug] = new
                first, _ = self._bursts.get(kata.slug, (now, now))
                self._bursts[kata.slug] = (first, now)
                saved.append(kata)
        return saved

    def due(self, now: float) -> list[Kata]:
        """Return the katas whose burst of saves has ended, and forget those bursts."""
        ended = [s for s, (first, last) in self._bursts.items() if now - last >= QUIET or now - first >= LONGEST]
        for slug in ended:
            del self._bursts[slug]
        return [k for k in self.katas if k.slug in ended]


def looks(katas: Sequence[Kata], stop: Stop, polling: bool | None = None) -> Iterator[bool]:
    """Yield every STEP or so: whether it is time to look at the files. Ends when ``stop`` is set.

    Args:
        polling: look at the files instead of waiting for events; None: where the file system has none.

    Raises:
        KataError: watchfiles is not installed.
    """
    try:
        from watchfiles import watch
    except ImportError:
        raise KataError("watchfiles is not installed; run: pip install -c constraints.txt -e .") from None
    folders = [k.folder for k in katas]
    if polling is None and any(is_silent(f) for f in folders):
        polling = True  # watchfiles itself knows WSL
    step = round(STEP * 1000)
    while not stop.is_set():
        inodes, there = _inodes(folders), [f for f in folders if f.is_dir()]
        yield True  # something may have been saved before the watch begins
        if not there:
            time.sleep(STEP)
            continue
        watching = watch(
            *there, watch_filter=None, debounce=step, step=step, rust_timeout=step, yield_on_timeout=True,
            stop_event=stop, recursive=False, force_polling=polling, poll_delay_ms=2 * step,
            ignore_permission_denied=True,
        )  # fmt: skip
        try:
            with contextlib.closing(watching):
                yield from _until_replaced(watching, folders, inodes)
        except FileNotFoundError:  # a folder went just now
            continue
        except (OSError, RuntimeError) as error:  # this user has no watches left, mostly because of an IDE
            if polling:
                raise KataError(f"The files cannot be watched: {error}.") from None
            polling = True


def _until_replaced(watching: Iterable[Collection[object]], folders: Sequence[Path], inodes: list) -> Iterator[bool]:
    """Yield whether it is time to look; end when a folder was replaced, as by a change of branch."""
    last = time.monotonic()
    for changes in watching:
        late = time.monotonic() - last > _LOOK
        if changes or late:
            last = time.monotonic()
        yield bool(changes) or late
        if late and _inodes(folders) != inodes:
            return


def _inodes(folders: Sequence[Path]) -> list[int | None]:
    out: list[int | None] = []
    for folder in folders:
        try:
            out.append(folder.stat().st_ino)
        except OSError:
            out.append(None)
    return out


def is_silent(path: Path, mounts: str | None = None) -> bool:
    """Return whether ``path`` lies on a file system that reports no events, by the kernel's list of mounts.

    Args:
        mounts: the text of ``/proc/self/mountinfo``; default: read it.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, after = left.split(), right.split()
        if len(fields) < 5 or not after:
            continue
        point = Path(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), fields[4]))  # spaces are written \040
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after[0]
    return bool(_SILENT.fullmatch(kind))
