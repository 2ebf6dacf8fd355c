"""The keeper for a real GPU: one long-lived child runs a file's cases, compiled; a device error ends only that child.

Opening the GPU costs half a second, so the child stays for the next case of the same file. It draws the inputs from
the seed itself; the expected values are computed here, on the CPU, after it has answered.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import struct
import time
from typing import Any

from harness.course import ROOT
from harness.runner import cage, wire
from harness.runner.cage import Outcome

_LENGTH = struct.Struct("<Q")
COMPILE_SECONDS = 90.0  # opening the GPU and compiling, which any case may need; the kata's own limit is added


class Keeper:
    """Answers ``cuda`` requests; holds at most one child."""

    def __init__(self) -> None:
        self.cell: Cell | None = None
        self.file = ""

    def measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one case compiled, on the GPU, and return the facts about it."""
        from harness.runner import host_keeper, judge
        from harness.runner.keeper import Job

        job = Job(request)
        timed, host = bool(request.get("timed")), job.spec.side == "host"
        contents = [] if timed or host else [job.inputs(0), job.inputs(1)]
        if self.cell is None or self.file != request["file"]:
            self._drop()
            self.cell, self.file = Cell(), request["file"]
        outcome = self.cell.ask(request, job.seconds + COMPILE_SECONDS)
        if outcome.ended != "returned":
            self._drop()
        if host:
            facts = host_keeper.gpu_facts(job, outcome)
        else:
            facts = judge.timed_facts(job, outcome) if timed else judge.gpu_facts(job, contents, outcome)
        if facts.pop("device_error", False):
            self._drop()
        return facts

    def _drop(self) -> None:
        if self.cell is not None:
            self.cell.close()
            self.cell = None


class Cell:
    """A forked child that answers requests over two pipes until it dies."""

    def __init__(self) -> None:
        ask_read, self.ask_write = os.pipe()
        self.answer_read, answer_write = os.pipe()
        self.printed, self.stack = os.memfd_create("printed"), os.memfd_create("stack")
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.ask_write)
            os.close(self.answer_read)
            _live(ask_read, answer_write, self.printed, self.stack)
        os.close(ask_read)
        os.close(answer_write)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.setpgid(self.pid, self.pid)

    def ask(self, request: dict[str, Any], seconds: float) -> Outcome:
        """Send a request and wait for the answer, the child's death, or the end of its time."""
        started = time.monotonic()
        os.ftruncate(self.printed, 0)
        data = wire.pack(request, [])
        with contextlib.suppress(BrokenPipeError):
            wire.write_all(self.ask_write, _LENGTH.pack(len(data)) + data)
        report, ended = self._wait(started + seconds)
        return Outcome(report, ended, cage.tail(self.printed), cage.tail(self.stack, 20000), time.monotonic() - started)

    def _wait(self, deadline: float) -> tuple[bytes, str]:
        parts = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self.answer_read, selectors.EVENT_READ)
            while True:
                if selector.select(0.05):
                    part = os.read(self.answer_read, 1 << 20)
                    if not part:
                        return b"", self._how()
                    parts += part
                    if len(parts) >= 8 and len(parts) >= 8 + _LENGTH.unpack(parts[:8])[0]:
                        return bytes(parts[8:]), "returned"
                if time.monotonic() > deadline:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self.pid, signal.SIGUSR1)
                        time.sleep(0.1)
                    return b"", "timeout"

    def _how(self) -> str:
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return cage.how(status)

    def close(self) -> None:
        """Kill the child and forget it."""
        if self.pid:
            cage.kill(self.pid)
            os.waitpid(self.pid, 0)
        for fd in (self.ask_write, self.answer_read, self.printed, self.stack):
            os.close(fd)


def _live(ask_read: int, answer_write: int, printed: int, stack: int) -> None:
    """The child. Never returns."""
    status = 70
    try:
        cage.settle(printed, stack)
        status = _answer_all(ask_read, answer_write)
    except BaseException as error:
        with contextlib.suppress(BaseException):
            import traceback

            os.write(stack, f"harness: {error!r}\n{traceback.format_exc()[-1500:]}".encode())
    finally:
        os._exit(status)


def _answer_all(ask_read: int, answer_write: int) -> int:
    from pathlib import Path

    from harness.measured import gpu_bench, gpu_child
    from harness.runner import host_gpu
    from harness.runner.child import Blobs
    from harness.runner.keeper import Job
    from harness.runner.tampering import forbid_tampering

    attempts: list[str] | None = None
    while True:
        head = _exactly(ask_read, 8)
        if head is None:
            return 0
        request, _ = wire.unpack(_exactly(ask_read, _LENGTH.unpack(head)[0]) or b"")
        job = Job(request)
        if attempts is None:
            attempts = forbid_tampering(ROOT, Path(request["file"]))
        blobs = Blobs()
        if job.spec.side == "host":
            seen = host_gpu.run_calls(job)
        elif request.get("bench"):
            seen = gpu_bench.experiment(job, request.get("beside"))
        elif request.get("timed"):
            seen = gpu_child.time_calls(job)
        else:
            seen = gpu_child.run_calls(job.spec, job.file, [job.inputs(0), job.inputs(1)], blobs)
        data = wire.pack(seen | {"tampering": attempts}, blobs.parts)
        wire.write_all(answer_write, _LENGTH.pack(len(data)) + data)


def _exactly(fd: int, n: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < n:
        part = os.read(fd, n - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


__all__ = ["Cell", "Keeper"]
