"""The cage: however a child ends, the caller gets an outcome, in time, and the child is dead."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from harness.course import ROOT
from harness.runner import cage
from harness.tests.toys import python


def test_what_the_work_returns_is_the_report():
    outcome = cage.run(lambda: b"x" * 3_000_000, 20)

    assert (outcome.ended, len(outcome.report), outcome.printed) == ("returned", 3_000_000, "")
    assert 0 < outcome.seconds < 20


def test_an_empty_report_is_a_child_that_left():
    assert cage.run(lambda: b"", 20).ended == "exit 0"


@pytest.mark.parametrize(("work", "ended"), [
    (lambda: os._exit(3), "exit 3"),
    (lambda: os.kill(os.getpid(), signal.SIGTERM), "signal SIGTERM"),
    (lambda: os.abort(), "signal SIGABRT"),
    (lambda: 1 // 0, "exit 70"),
])  # fmt: skip
def test_how_it_ended_is_said(work, ended):
    outcome = cage.run(work, 20)

    assert (outcome.ended, outcome.report) == (ended, b"")


def test_a_fault_of_ours_is_told_where_the_code_under_test_does_not_print():
    outcome = cage.run(lambda: 1 // 0, 20)

    assert "harness: ZeroDivisionError" in outcome.stack
    assert outcome.printed == ""


def test_a_child_that_does_not_end_is_killed_in_time_and_says_where_it_was():
    def spin():
        while True:
            pass

    started = time.monotonic()
    outcome = cage.run(spin, 0.2)

    assert (outcome.ended, outcome.report) == ("timeout", b"")
    assert 0.2 <= time.monotonic() - started < 10
    assert "in spin" in outcome.stack


def test_time_that_a_busy_machine_gives_to_others_does_not_count(monkeypatch):
    monkeypatch.setattr(cage, "_queued", lambda pid: 1.5)

    assert cage.run(lambda: time.sleep(0.8) or b"done", 0.5).report == b"done"
    assert cage.run(lambda: time.sleep(60) or b"done", 0.5).ended == "timeout"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this Linux does not say who waits for how long")
def test_it_is_known_how_long_a_process_waited_for_a_processor():
    here, pids = os.sched_getaffinity(0), []
    os.sched_setaffinity(0, {min(here)})  # two children that never rest share one processor
    try:
        for _ in range(2):
            pids.append(os.fork())
            if pids[-1] == 0:
                while True:
                    pass
    finally:
        os.sched_setaffinity(0, here)
    deadline = time.monotonic() + 20
    while cage._queued(pids[0]) < 0.05 and time.monotonic() < deadline:
        time.sleep(0.02)
    waited = cage._queued(pids[0])
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    assert 0.05 <= waited < 30
    assert cage._queued(pids[0]) == 0.0


def test_a_child_that_gets_no_processor_at_all_is_given_up(monkeypatch):
    monkeypatch.setattr(cage, "_queued", lambda pid: 1e9)
    started = time.monotonic()

    assert cage.run(lambda: time.sleep(60) or b"", 0.2).ended == "timeout"
    assert 1.0 <= time.monotonic() - started < 10


def test_memory_is_limited():
    outcome = cage.run(
        lambda: len(bytearray(os.urandom(1)) * 2_000_000_000).to_bytes(8, "big"), 30, memory_limit=50_000_000
    )

    assert (outcome.ended, outcome.memory_limit) == ("memory", 50_000_000)


def test_the_end_of_what_was_printed_is_kept():
    def work():
        os.write(1, b"a" * 5000 + "ö".encode())
        os.write(2, b"\xff!")
        return b"done"

    assert cage.run(work, 20).printed == "a" * (2000 - 4) + "ö\ufffd!"


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_children_of_the_child_die_with_it():
    def work():
        if (pid := os.fork()) == 0:
            time.sleep(60)
        os.write(1, str(pid).encode())
        return b"done"

    outcome = cage.run(work, 20)  # the grandchild holds the pipe of the report open, so its end never comes
    deadline = time.monotonic() + 10
    while runs(int(outcome.printed)) and time.monotonic() < deadline:
        time.sleep(0.01)  # a signal takes a moment

    assert (outcome.ended, outcome.report) == ("left", b"")
    assert outcome.seconds < 10
    assert not runs(int(outcome.printed))


def test_what_ends_while_it_is_looked_at_has_no_children(monkeypatch):
    """A compiler's process is gone between two looks at /proc: no fault of the harness."""
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert cage._children(pid) == []

    def gone(path):
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(os, "listdir", gone)
    monkeypatch.setattr(os, "scandir", gone)
    assert cage._children(os.getpid()) == []


def alone(text: str) -> str:
    """Run a program that adopts orphans, as a keeper does, and return what it printed."""
    head = "import os, time\nfrom harness.runner import cage\ncage.adopt_orphans()\n"
    done = python("-c", head + text, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_left_the_group_and_closed_our_files_dies_with_the_child():
    printed = alone("""
def work():
    if (pid := os.fork()) == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(3, 256)
        os.write(1, str(os.getpid()).encode())
        time.sleep(60)
    os.waitpid(pid, 0)
    time.sleep(0.3)
    return b"done"
outcome = cage.run(work, 20)
print(outcome.report.decode(), outcome.printed, os.path.exists(f"/proc/{outcome.printed}"))
""")

    report, pid, there = printed.split()
    assert (report, there) == ("done", "False"), pid


def test_memory_of_what_the_child_started_counts():
    printed = alone("""
def work():
    if os.fork() == 0:
        os.setsid()
        held = bytearray(b"x") * 200_000_000
        time.sleep(60)
    time.sleep(60)
print(cage.run(work, 30, memory_limit=50_000_000).ended)
""")

    assert printed.strip() == "memory"


def test_only_the_files_of_the_cage_are_open():
    mine = os.open(os.devnull, os.O_RDONLY)
    outcome = cage.run(lambda: " ".join(os.listdir("/proc/self/fd")).encode(), 20)
    os.close(mine)
    fds = {int(fd) for fd in outcome.report.split()}

    assert {0, 1, 2} < fds
    assert mine not in fds
    assert len(fds) <= 6  # standard ones, the report, the stack, and the one that lists the folder


def test_input_is_empty():
    assert cage.run(lambda: os.read(0, 10) or b"nothing", 20).report == b"nothing"


@pytest.mark.parametrize("close", [lambda: os.closerange(3, 256), lambda: os.closerange(0, 256)])
def test_a_child_that_closes_our_files_returns_no_report(close):
    def work():
        close()
        return b"done"

    outcome = cage.run(work, 20)

    assert outcome.ended == "returned", outcome.printed


def test_no_file_is_left_open():
    before = sorted(os.listdir("/proc/self/fd"))
    cage.run(lambda: b"x", 20)
    cage.run(lambda: os._exit(3), 20)

    assert len(os.listdir("/proc/self/fd")) == len(before)
