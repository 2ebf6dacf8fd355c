"""A cage for one run of somebody else's code: a forked child with limits of time, memory and output.

Whatever the child starts dies with it, also what left its process group: orphans come to the process that runs the cage
(``adopt_orphans``), which kills them.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from harness.runner import wire

MEMORY_LIMIT = 6 * 2**30  # bytes resident above what the fork server already holds; half of what is free, if less
_NO_REPORT = 71  # the exit status of a child whose report could not be sent
FILE_LIMIT = 2**28  # bytes of one file that the child writes, and of what it prints
MANY = 32  # processes: nobody waits for so many to end
_TICK = 0.02  # seconds between two looks at the child's memory
_PATIENCE = 5  # times the limit: after so long a child is given up, whatever else the machine had to do


@dataclass(frozen=True)
class Outcome:
    """How a caged run ended.

    Attributes:
        report: what the child wrote, or b"" when it never got there.
        ended: "returned", "timeout", "memory", "left" (it ended, and a process that it started did not; or it started
            many), "exit <status>" or "signal <NAME>"; "returned" without a report when the code under test closed our
            files.
        printed: the end of what it printed.
        stack: where it was when the time was up.
    """

    report: bytes
    ended: str
    printed: str
    stack: str
    seconds: float
    memory_limit: int = MEMORY_LIMIT


def run(
    work: Callable[[], bytes], seconds: float, memory_limit: int | None = None, keep: Collection[int] = ()
) -> Outcome:
    """Fork, run ``work`` in the child, and return how it ended; the child never outlives this call.

    Args:
        seconds: how long it may take. Time in which it was ready to run and a busy machine served others counts for
            nothing, up to some times this limit.
        keep: files that stay open in the child, beside its own.
    """
    read_end, write_end = os.pipe()
    printed, stack = os.memfd_create("printed"), os.memfd_create("stack")
    started = time.monotonic()
    memory_limit = memory_limit or min(MEMORY_LIMIT, _available() // 2)
    base, before = _resident(os.getpid()), set(_children(os.getpid()))
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(work, write_end, printed, stack, keep)
    os.close(write_end)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, pid)
    try:
        report, ended = _watch(pid, read_end, stack, seconds, base, memory_limit, before)
    finally:
        os.close(read_end)
        kill(pid)
    _, status = os.waitpid(pid, 0)
    _kill_orphans(before)
    if ended == "":
        ended = "returned" if os.waitstatus_to_exitcode(status) == _NO_REPORT else how(status)
    out = Outcome(report, ended, tail(printed), tail(stack, 20000), time.monotonic() - started, memory_limit)
    os.close(printed)
    os.close(stack)
    return out


def _child(work: Callable[[], bytes], write_end: int, printed: int, stack: int, keep: Collection[int]) -> None:
    """Never returns."""
    status = 70
    try:
        settle(printed, stack, keep=(write_end, *keep))
        data = work()
        status = _NO_REPORT
        with contextlib.suppress(Exception):  # the code under test may have closed standard output, or the pipe
            sys.stdout.flush()
        with contextlib.suppress(OSError):
            wire.write_all(write_end, data)
            status = 0
    except BaseException as error:  # a fault of ours: say it where the keeper can read it
        with contextlib.suppress(BaseException):
            import traceback

            os.write(stack, f"harness: {error!r}\n{traceback.format_exc()[-1500:]}".encode())
    finally:
        os._exit(status)


def settle(printed: int, stack: int, keep: Collection[int] | None = None) -> None:
    """In the child: own process group, no input, output to ``printed``, a stack dump to ``stack`` on SIGUSR1.

    All files but those and ``keep`` are closed (None: they stay open): one of them is the keeper's connection to
    pytest, on which the learner's code could answer for the keeper.
    """
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    if keep is not None:
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and fd != stack and fd not in keep:
                with contextlib.suppress(OSError):  # the one that listed the folder is closed already
                    os.close(fd)
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=False)
    for what, most in ((resource.RLIMIT_FSIZE, FILE_LIMIT), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # a lower limit of the system's stays
            resource.setrlimit(what, (most, most))


def _watch(
    pid: int, read_end: int, stack: int, seconds: float, base: int, limit: int, others: set[int]
) -> tuple[bytes, str]:
    """Read the report. ``base``: bytes resident at the fork; ``others``: processes that are none of the child's."""
    parts, started, dead = bytearray(), time.monotonic(), False
    with selectors.DefaultSelector() as selector:
        selector.register(read_end, selectors.EVENT_READ)
        while True:
            if selector.select(_TICK):
                part = os.read(read_end, 1 << 20)
                if not part:
                    return bytes(parts), ("returned" if parts or _lives(pid) else "")
                parts += part
                if len(parts) > wire.LIMIT:
                    return b"", "memory"
            elif dead:  # since before the last look, and yet the pipe is open: somebody else holds it
                return b"", "left"
            dead = _dead(pid)
            taken = time.monotonic() - started
            if taken > seconds and (taken > _PATIENCE * seconds or taken - _queued(pid) > seconds):
                ask_where(pid, stack)
                return b"", "timeout"
            family = _family(pid, others)
            if len(family) > MANY:
                return b"", "left"
            if sum(max(0, _resident(p) - base) for p in family) > limit:
                return b"", "memory"


def ask_where(pid: int, stack: int) -> None:
    """Have the child write where it is to ``stack``; wait for that, but not for ever: it may hear nothing."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGUSR1)
    for _ in range(40):
        time.sleep(0.025)
        if os.fstat(stack).st_size:
            break
    time.sleep(0.025)  # the rest of the stack follows its first bytes


def _lives(pid: int) -> bool:
    """Whether a child that hung up goes on living: it closed its files, and will never report."""
    for _ in range(20):
        if _dead(pid):
            return False
        time.sleep(0.005)  # a process that ends closes its files a moment before its status can be seen
    return True


def _dead(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (Linux's PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def _children(pid: int) -> list[int]:
    """Return the children of a process; none of one that has ended since it was seen."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def _family(pid: int, others: set[int]) -> list[int]:
    """The child, its descendants, and those of them that lost their parents and were adopted."""
    found = [p for p in {pid, *_children(os.getpid())} if p not in others]
    for p in found:
        found += [c for c in _children(p) if c not in found]
    return found


def _kill_orphans(others: set[int]) -> None:
    """Kill what the child left behind; what is killed may leave orphans in turn."""
    for _ in range(100):
        left = [p for p in _children(os.getpid()) if p not in others]
        if not left:
            return
        for pid in left:
            kill(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def kill(pid: int) -> None:
    """Kill a process and its group."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def how(status: int) -> str:
    """Return how a process ended, in words: ``exit 3`` or ``signal SIGSEGV``."""
    if os.WIFSIGNALED(status):
        return f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit {os.WEXITSTATUS(status)}"


def _available() -> int:
    """Bytes of memory that are free to use."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024
    return 2 * MEMORY_LIMIT


def _queued(pid: int) -> float:
    """Seconds for which a process was ready to run while no processor was free for it; 0 where Linux does not say."""
    try:
        with open(f"/proc/{pid}/schedstat") as f:
            return int(f.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def tail(fd: int, limit: int = 2000) -> str:
    """Return the end of what was written to a memfd."""
    size = os.fstat(fd).st_size
    return os.pread(fd, limit, max(0, size - limit)).decode("utf-8", "replace")
