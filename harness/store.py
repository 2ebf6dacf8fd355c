"""Store: ``records/``, append-only files that are the learner's. No torch, no git, no lock.

A line reaches its file in one write behind everything that is there (``O_APPEND``), so two runs at once cannot spoil
each other's, and a kill spoils at most the line that was being written. Each clone writes a file of its own, so merging
two clones' records never conflicts. Nothing here ever rewrites or removes a line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import itertools
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import StoreError
from harness.record import SCHEMA, START, Attempt, Reading, from_line, now

_CLONE_ID = re.compile(r"[0-9a-f]{12}")
_TAIL = 1 << 16  # bytes at the end of a file in which its last whole line is looked for
_WHY = {
    errno.ENOSPC: ("the disk is full", "make room and run it again"),
    errno.EDQUOT: ("your disk quota is used up", "make room and run it again"),
    errno.EROFS: ("the file system is read-only", "make it writable, or name another folder with --records DIR"),
    errno.EACCES: ("you may not write there", "make it writable, or name another folder with --records DIR"),
    errno.EPERM: ("you may not write there", "make it writable, or name another folder with --records DIR"),
}

_write = os.write  # the one call that tests make fail


class Store:
    """The records in one folder, which need not exist until the first write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.attempts = folder / "attempts"
        self.kept = folder / "kept"
        self._clone = ""

    # -- writing -------------------------------------------------------------------------------------------------

    def clone_id(self) -> str:
        """Return this clone's random name, made on first use.

        It stands where no clone, branch or commit takes it along: in the git directory, or without one (or where that
        cannot be written) in ``.clone-id``, which ``.gitignore`` excludes. Two first runs at once may make two names;
        both then have their file, and both are read. Raises StoreError.
        """
        if self._clone:
            return self._clone
        git = _git_dir(self.folder)
        places = [*([git / "kata-clone-id"] if git else []), self.folder / ".clone-id"]
        for place in places:
            with contextlib.suppress(OSError):
                if _CLONE_ID.fullmatch(known := place.read_text(encoding="ascii", errors="replace").strip()):
                    self._clone = known
                    return known
        for place in places:
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                _put(place, secrets.token_hex(6).encode() + b"\n")
                self._clone = place.read_text(encoding="ascii").strip()
                return self._clone
            except OSError as error:
                refused = error
        raise self._refusal("Not recorded", places[-1], refused)

    def append(self, attempt: Attempt) -> Attempt:
        """Write one event behind this clone's others and return it as written. It is on the disk when this returns.

        Raises:
            StoreError: one sentence; whatever was recorded before is still there.
        """
        path = self.attempts / f"{self.clone_id()}.jsonl"
        try:
            self.attempts.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                torn, last, first = _tail(fd)
                if last is not None and last.order > attempt.at:
                    attempt = dataclasses.replace(attempt, after=last.time if last.order == last.at else last.after)
                _write_line(fd, attempt.to_line().encode(), torn)
                os.fsync(fd)
            finally:
                os.close(fd)
            if first:
                _sync_folder(self.attempts)
        except OSError as error:
            raise self._refusal("Not recorded", path, error) from None
        return attempt

    def keep(self, file: Path, why: str, slug: str | None = None, at: datetime | None = None) -> Path:
        """Copy a learner's file, byte for byte, to ``kept/<UTC>_<slug>_<digest>.py`` and return the copy.

        A file of that name is never overwritten; one with the same bytes is the copy.

        Args:
            why: what is about to change the file, for the message: ``reset``.
            slug: the kata's folder name (default: that of the file's folder).

        Raises:
            StoreError: there is no copy, so ``file`` must not be touched.
        """
        try:
            data = file.read_bytes()
        except OSError as error:
            raise StoreError(
                f"No {why}: {file} cannot be read ({error.strerror}), so it cannot be put aside."
            ) from None
        when = (at or now()).astimezone(UTC)
        name = f"{when:%Y%m%dT%H%M%SZ}_{slug or file.parent.name}_{hashlib.sha256(data).hexdigest()[:8]}"
        path = self.kept / f"{name}{file.suffix}"
        try:
            self.kept.mkdir(parents=True, exist_ok=True)
            for number in itertools.count(2):
                if not path.exists():
                    _put(path, data)
                if path.read_bytes() == data:
                    break
                path = self.kept / f"{name}_{number}{file.suffix}"
        except OSError as error:
            raise self._refusal(f"No {why}, for {file.name} could not be put aside", path, error) from None
        return path

    # -- reading -------------------------------------------------------------------------------------------------

    def history(self) -> tuple[list[Attempt], list[str]]:
        """Return all events of all clones in their order, and a sentence about each thing that could not be counted.

        Within one clone's file, its own order counts, also where the clock went back. Never raises.
        """
        events: list[Attempt] = []
        problems: list[str] = []
        kept: Counter[str] = Counter()
        try:
            names = sorted(n for n in os.listdir(self.attempts) if n.endswith(".jsonl"))
        except FileNotFoundError:
            return [], []
        except OSError as error:
            return [], [f"{self._name(self.attempts)} cannot be read ({error.strerror}); its history is not counted."]
        for name in names:
            path = self.attempts / name
            try:
                data = path.read_bytes()
            except OSError as error:
                problems.append(f"{self._name(path)} cannot be read ({error.strerror}); its history is not counted.")
                continue
            mine: Counter[bytes] = Counter()
            for line, event in self._read(path, data, problems):
                mine[line] += 1
                if mine[line] > kept[line]:  # else somebody copied this line from another clone's file
                    kept[line] += 1
                    events.append(event)
        return sorted(events, key=lambda e: e.order), problems

    def _read(self, path: Path, data: bytes, problems: list[str]) -> Iterator[tuple[bytes, Attempt]]:
        """Yield the events of one file with their lines; add to ``problems`` what is none."""
        lines = data.split(b"\n")
        newer: list[int] = []
        damaged: list[tuple[int, str]] = []
        for number, line in enumerate(lines, 1):
            for piece, reading in _readings(line):
                if reading.attempt is not None:
                    yield piece, reading.attempt
                elif reading.status == "newer":
                    newer.append(number)
                else:
                    damaged.append((number, reading.why))
        where = self._name(path)
        if damaged and damaged[-1][0] == len(lines):  # no line feed behind it
            number, _ = damaged.pop()
            problems.append(
                f"{where}: the last line, {number}, is incomplete, as after a kill or on a full disk; it is kept and "
                "not counted."
            )
        if damaged:
            why = damaged[0][1] if len({why for _, why in damaged}) == 1 else f"the first: {damaged[0][1]}"
            problems.append(f"{where}: {_lines([n for n, _ in damaged], 'damaged')} ({why}); kept and not counted.")
        if newer:
            problems.append(
                f"{where}: {_lines(newer, 'from a newer Kernel Kata')} (this one reads schema {SCHEMA}); kept and not "
                "counted until `nox -s update`."
            )

    # -- words ---------------------------------------------------------------------------------------------------

    def _name(self, path: Path) -> str:
        return str(Path(self.folder.name) / path.relative_to(self.folder)) if self.folder in path.parents else str(path)

    def _refusal(self, what: str, path: Path, error: OSError) -> StoreError:
        why, then = _WHY.get(error.errno or 0, (error.strerror or str(error), "mend that and run it again"))
        return StoreError(f"{what}: {self._name(path)} cannot be written ({why}); {then}.")


def _readings(line: bytes) -> Iterator[tuple[bytes, Reading]]:
    """Yield what stands in one line: nothing, one event, or a torn one with whole ones glued behind it."""
    if not line.strip():
        return
    whole = from_line(line)
    starts = [] if whole.status != "corrupt" else [m.start() for m in re.finditer(re.escape(START).encode(), line)]
    for begin, end in itertools.pairwise(sorted({0, *starts, len(line)})):
        piece = line[begin:end].strip()
        yield piece, from_line(piece) if starts else whole


def _lines(numbers: list[int], what: str) -> str:
    """Return ``line 3 is damaged``, or the same for several."""
    numbers = list(dict.fromkeys(numbers))
    if len(numbers) == 1:
        return f"line {numbers[0]} is {what}"
    named = ", ".join(map(str, numbers[:5]))
    return f"lines {named}{f' and {len(numbers) - 5} more' if len(numbers) > 5 else ''} are {what}"


def _tail(fd: int, window: int = _TAIL) -> tuple[bool, Attempt | None, bool]:
    """Return whether the file ends in a torn line, its last whole event, and whether it is empty."""
    size = os.fstat(fd).st_size
    data = os.pread(fd, window, max(0, size - window))
    torn = bool(data) and not data.endswith(b"\n")
    for line in reversed(data.split(b"\n")):
        for _, reading in reversed(list(_readings(line))):
            if reading.attempt is not None:
                return torn, reading.attempt, False
    return _tail(fd, size) if window < size else (torn, None, not data)


def _write_line(fd: int, line: bytes, torn: bool) -> None:
    """Write ``line`` in one go. Raises OSError.

    The disk may take only a part of it. The rest would not join that part if another run wrote between the two, so the
    whole line is tried once more, on a line of its own.
    """
    data = (b"\n" if torn else b"") + line + b"\n"
    if _write(fd, data) == len(data):
        return
    data = b"\n" + line + b"\n"
    if _write(fd, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _put(path: Path, data: bytes) -> None:
    """Make ``path`` with these bytes, all of them or not at all. Raises OSError."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[_write(fd, rest) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Let a new name in ``folder`` survive a power cut, where the file system can do that."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _git_dir(folder: Path) -> Path | None:
    """Return the git directory of the checkout that ``folder`` lies in (a worktree has its own), or None."""
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        git = place / ".git"
        with contextlib.suppress(OSError, ValueError):  # no right to look, or a file of nonsense: then it is none
            if git.is_file():
                git = place / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            if (git / "HEAD").is_file():
                return git
    return None
