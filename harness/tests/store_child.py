"""Runs that append to a store and are killed, or that append side by side; a child process of test_store.

    python -m harness.tests.store_child killed FOLDER TIMES     # prints one JSON list for each kill
    python -m harness.tests.store_child together FOLDER LINES   # two writers of so many lines each

It forks, which a process with threads (a pytest worker) must not. Every tenth line is large, so that the two writers
meet in the middle of one; every second writer that is killed has a slow disk, so that the kill finds it there.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from harness import store as store_module
from harness.record import Attempt
from harness.store import Store

A_FOLDER = 10  # kills in one folder: what one leaves torn, the next must heal


def event(writer: int, number: int) -> Attempt:
    """Return an event that says who wrote it and as which."""
    pad = "x" * 30_000 if number % 10 == 3 else ""
    return Attempt(id="a", slug="01_a", seed=number, source=str(writer), versions={"pad": pad})


def append(folder: Path, writer: int, lines: int, done: int | None = None) -> None:
    """Append so many events; tell ``done``, a pipe, after each."""
    store = Store(folder)
    for number in range(lines):
        store.append(event(writer, number))
        if done is not None:
            os.write(done, b".")


def slowly(fd: int, data: bytes) -> int:
    """Write as a slow disk does: bit by bit."""
    for start in range(0, len(data), 40):
        os.write(fd, data[start : start + 40])
        time.sleep(0.0002)
    return len(data)


def killed(folder: Path, times: int) -> None:
    """Kill a writer so many times; print [writer, appends that had returned, its events on the disk, problems]."""
    for writer in range(times):
        place = folder / str(writer // A_FOLDER)
        heard, says = os.pipe()
        child = os.fork()
        if child == 0:
            if writer % 2:
                store_module._write = slowly
            append(place, writer, 3 if writer % 2 else 10**6, says)  # slow: none of the large ones
            time.sleep(60)
        os.close(says)
        returned = b"".join(os.read(heard, 1) for _ in range(random.randrange(3)))
        time.sleep(random.uniform(0, 0.005))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        returned += b"".join(iter(lambda pipe=heard: os.read(pipe, 1 << 16), b""))
        os.close(heard)
        events, problems = Store(place).history()
        print(json.dumps([writer, len(returned), [e.seed for e in events if e.source == str(writer)], problems]))


def together(folder: Path, lines: int) -> None:
    """Let two runs append to one file at the same time."""
    Store(folder).clone_id()  # two first runs of all could give the clone two names, and write two files
    children = []
    for writer in range(2):
        child = os.fork()
        if child == 0:
            append(folder, writer, lines)
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    os.fsync = lambda fd: None  # a power cut is what it guards against, not a kill; a busy disk makes it slow
    {"killed": killed, "together": together}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
