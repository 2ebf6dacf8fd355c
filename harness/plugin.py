"""The pytest plugin: options, fixtures and hooks, nothing else. Imports neither torch nor triton.

Tests of a kata carry their facts in ``user_properties``; the controller (the only process without xdist) folds them.
"""

from __future__ import annotations

import argparse

import pytest

from harness import session
from harness.errors import KataError
from harness.run import KataFailure

STATE = pytest.StashKey[session.Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of DESIGN's ``pytest exercises/…`` commands."""
    group = parser.getgroup("kata", "Kernel Kata")
    group.addoption("--solutions", action="store_true", help="grade the reference solutions instead of your files")
    group.addoption("--submission", metavar="FILE.py", help="grade this file against the selected kata")
    group.addoption("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: cuda if there is one")
    group.addoption("--gpu", default="H200", metavar="NAME", help="the GPU a CPU verdict is made for (default: H200)")
    group.addoption("--kata-seed", type=int, metavar="N", help="repeat a run: every failure prints its seed")
    group.addoption("--no-speed", action="store_true", help="judge correctness only; the verdict stays undecided")
    group.addoption("--no-record", action="store_true", help="write nothing to records/")
    group.addoption("--records", metavar="DIR", help="where records are kept (default: records/)")
    group.addoption("--verdicts", metavar="FILE.json", help="write the verdicts as JSON")
    group.addoption("--kata-progress", action="store_true", help=argparse.SUPPRESS)  # grade reads these lines


def pytest_configure(config: pytest.Config) -> None:
    """Read the options; a wrong value is one sentence and pytest's exit status 4."""
    try:
        config.stash[STATE] = session.Session.from_config(config)
    except KataError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the fork server."""
    if STATE in config.stash:
        config.stash[STATE].close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """xdist: workers share the controller's fork server and seed."""
    node.workerinput["kata"] = node.config.stash[STATE].for_worker()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """xdist: the tests of one kata stay on one worker."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getvalue("dist") == "load" else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the fork server now: it loads torch while the tests are collected."""
    session.config.stash[STATE].start(session.config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``declared`` runs over the small cases of the kata's toml."""
    if "declared" in metafunc.fixturenames:
        cases = metafunc.config.stash[STATE].declared(metafunc.definition.path) or [None]
        metafunc.parametrize("declared", cases, ids=[c.id if c else "none" for c in cases])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Seed hypothesis, and remember the whole suite before anything is deselected."""
    spare = set(config.stash[STATE].collected(items))
    if spare:
        items[:] = [i for i in items if i not in spare]
        config.hook.pytest_deselected(items=list(spare))


@pytest.fixture
def run(request: pytest.FixtureRequest):
    """Judge one case: ``run(case)`` raises when it is not right."""
    return request.config.stash[STATE].runner(request.node)


@pytest.fixture
def compiles(request: pytest.FixtureRequest):
    """Judge the ahead-of-time compilation of what the cases launched."""
    return request.config.stash[STATE].compiles(request.node)


@pytest.fixture
def speed(request: pytest.FixtureRequest):
    """Judge the speed."""
    return request.config.stash[STATE].speed(request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Give the report its facts, and a learner's failure its own words instead of a traceback."""
    report = yield
    return item.config.stash[STATE].reported(item, call, report)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect the facts (in the controller, where reports of all workers arrive)."""
    if session.collecting is not None:
        session.collecting.collect(report)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids: list[str]) -> None:
    """xdist: a worker tells which tests each suite has."""
    node.config.stash[STATE].collected_elsewhere(ids)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fold the verdicts, write them, and set the exit status."""
    session.exitstatus = session.config.stash[STATE].finish(session, int(session.exitstatus))


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print one paragraph a kata."""
    for line in config.stash[STATE].summary():
        terminalreporter.write_line(line)


__all__ = ["KataFailure", "STATE"]
