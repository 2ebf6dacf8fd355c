"""What the harness's own tests share: one fork server a session, and a judge that sends it submissions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from harness.course import load_course
from harness.runner.client import Client, Server
from harness.tests import toys


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites golden text: ``pytest harness/tests --golden-update``."""
    parser.addoption("--golden-update", action="store_true", help="write the golden text files instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples at every run and keep none: a test that fails today fails tomorrow, and here as there."""
    settings.register_profile("harness", derandomize=True, database=None, deadline=None, print_blob=False)
    settings.load_profile("harness")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Return a running fork server: torch, and Triton twice, cost seconds; a case then costs milliseconds."""
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="session")
def interpret(server: Server) -> Iterator[Client]:
    """Return a connection that interprets."""
    client = Client(server.folder, "interpret")
    yield client
    client.close()


@pytest.fixture(scope="session")
def kata(tmp_path_factory: pytest.TempPathFactory):
    """Return the toy kata ``double(x)`` with a case for every layout and dtype."""
    return toys.write_kata(tmp_path_factory.mktemp("course"), exercise=toys.MANY_CASES)


@pytest.fixture(scope="session")
def checkout():
    """Return the course of this checkout."""
    return load_course()


@pytest.fixture
def judge(server: Server, interpret: Client, kata, tmp_path) -> toys.Judging:
    """Return a function: source of a submission, ids of cases -> the facts of the first one that fails, or the last."""
    return toys.Judging(server, interpret, tmp_path, kata)


@pytest.fixture(scope="session")
def triton_version() -> tuple[int, ...]:
    """Return the version of the Triton that the fork server uses, without importing it here."""
    from importlib.metadata import version

    return tuple(int(part) for part in version("triton").split(".")[:2])
