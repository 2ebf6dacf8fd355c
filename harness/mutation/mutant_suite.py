"""Mutant suite: a pytest plugin that runs one kata's suite on many files, each in a fork, until a test says no.

``python -m pytest -p harness.mutation.mutant_suite --mutants FILE.json exercises/05_nf4``, where the JSON has ``files``
(paths) and ``workers`` (how many at a time). If the first file has the text of the ``--submission``, which is the
solution, it runs alone, and the others only if it is not refused. The suite is collected once; a file then costs what
its tests cost and nothing else. What came out is written beside each file, as JSON. No torch here: the fork server has
it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.plugin import STATE
from harness.run import SHRINK_TESTS, TOLD
from harness.runner.client import Client
from harness.session import Session

SECONDS = 240  # for one file; a kernel has its kata's own limit, so only a harness that hangs gets here
_LATE = ("compiles", "speed")  # fixtures of the tests that cost most: they come last


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the work."""
    parser.addoption("--mutants", metavar="FILE.json", required=True, help="what to run: files and workers")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the collected suite once for each file, several at a time."""
    if session.testsfailed or not session.items:
        return None
    work = json.loads(Path(session.config.getoption("--mutants")).read_text(encoding="utf-8"))
    session.items.sort(key=lambda item: bool(set(_LATE) & set(getattr(item, "fixturenames", ()))))
    files, running = [Path(f) for f in reversed(work["files"])], set()
    if _is_solution(session, files[-1]):
        os.waitpid(_start(session, first := files.pop()), 0)
        seen = first.with_suffix(".json")
        if not seen.exists() or json.loads(seen.read_text(encoding="utf-8"))["word"] not in ("pass", "undecided"):
            return True
    while files or running:
        while files and len(running) < work["workers"]:
            running.add(_start(session, files.pop()))
        running.discard(os.wait()[0])
    return True


def _is_solution(session: pytest.Session, file: Path) -> bool:
    solution = session.config.stash[STATE].choices.submission
    return solution is not None and file.read_bytes() == solution.read_bytes()


def _start(session: pytest.Session, file: Path) -> int:
    """Fork; the child writes what it saw beside ``file``. Returns the child's process number."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        signal.alarm(SECONDS)
        seen = first_refusal(session, file)
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(seen), encoding="utf-8")
        partial.rename(file.with_suffix(".json"))
    except BaseException as error:  # the reader finds no result, and says so
        print(f"{file.name}: {error!r}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)


def first_refusal(session: pytest.Session, file: Path) -> dict[str, Any]:
    """Run the suite on one file up to the first test that does not pass; return its word, its name and its reason.

    The word is ``pass`` when every test does, and ``fault`` when the harness failed.
    """
    state: Session = session.config.stash[STATE]
    state.choices = dataclasses.replace(state.choices, submission=file)
    slug = state.kata_of(session.items[0]).slug  # type: ignore[union-attr]
    _compile_when_asked(state, slug)
    desk = state.desk(session.items[0])
    desk.wrong_tests, desk.told = SHRINK_TESTS, TOLD  # no smaller example and no long text: nobody reads them
    for item in session.items:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if state.faults:
            return {"word": "fault", "test": item.name, "reason": state.faults[0]}
        facts = state.facts[slug][item.name]
        if facts.word != "pass":
            return {"word": facts.word, "test": item.name, "reason": facts.reason.split("\n")[0]}
    found = [f for t in state.facts[slug].values() for f in t.findings]
    return {"word": "pass", "test": "", "reason": found[0].split("\n")[0] if found else ""}


def _compile_when_asked(state: Session, slug: str) -> None:
    """Compilations wait until a test needs one: most mutants die before."""
    connect = state.connect
    waiting = Waiting(functools.partial(connect, slug, "compile"))
    state.connect = lambda slug, kind: waiting if kind == "compile" else connect(slug, kind)  # type: ignore


class Waiting:
    """Stands for a connection to the compiler: keeps requests until the first answer is wanted."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        self.connect = connect
        self.kept: list[dict[str, Any]] = []
        self.client: Client | None = None

    def send(self, request: dict[str, Any]) -> None:
        """Keep a request."""
        self.kept.append(request)

    def receive(self) -> dict[str, Any]:
        """Send what was kept, and wait for the answer to the oldest request."""
        if self.client is None:
            self.client = self.connect()
        while self.kept:
            self.client.send(self.kept.pop(0))
        return self.client.receive()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.send(request)
        return self.receive()
