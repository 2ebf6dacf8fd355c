"""The project's chores: `nox -l` lists them, `nox -s NAME -- ...` runs one with arguments.

Sessions run in the environment that nox itself is started from: it need not be activated, and no second torch is
installed.
"""

from __future__ import annotations

import functools
import importlib.util
import sys

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["grade"]

# in so many words for each session: an environment variable can overrule nox.options.default_venv_backend
chore = functools.partial(nox.session, venv_backend="none")

# the tests start processes that hold torch: more workers than this cost memory and win nothing
WORKERS = ("-n", "logical", "--maxprocesses", "4")


def python(session: nox.Session, *args: str) -> None:
    """Run ``python args`` with the Python that runs nox; the session fails as the command does."""
    session.run(sys.executable, *args, external=True)


@chore()
def grade(session: nox.Session) -> None:
    """Grade your kernels: a table of all katas, and what is next. `-- 05_nf4` grades one."""
    python(session, "-m", "harness.loop.grade", *session.posargs)


@chore()
def watch(session: nox.Session) -> None:
    """Grade again at every save, until Ctrl-C: `-- 05_nf4`."""
    # Ctrl-C reaches nox too: give the watch time to stop what it runs
    session.run(sys.executable, "-m", "harness.loop.watch", *session.posargs, external=True, interrupt_timeout=5)


@chore()
def hint(session: nox.Session) -> None:
    """One more hint, the mildest first; recorded: `-- 05_nf4`."""
    python(session, "-m", "harness.loop.hint", *session.posargs)


@chore()
def reset(session: nox.Session) -> None:
    """Back to the blank stub, to do a kata again; your file is kept: `-- 05_nf4`."""
    python(session, "-m", "harness.branches.reset", *session.posargs)


@chore()
def compare(session: nox.Session) -> None:
    """Yours beside the reference, once you have passed: `-- 05_nf4`, or with `--peek` before."""
    python(session, "-m", "harness.loop.compare_solutions", *session.posargs)


@chore()
def practice(session: nox.Session) -> None:
    """Put the solutions behind a branch of their own, out of sight and search."""
    python(session, "-m", "harness.branches.practice", *session.posargs)


@chore()
def update(session: nox.Session) -> None:
    """Bring upstream's changes in; what you wrote is kept."""
    python(session, "-m", "harness.branches.update", *session.posargs)


@chore()
def doctor(session: nox.Session) -> None:
    """Is everything here that grading needs? One line for each check."""
    python(session, "-m", "harness.doctor")


@chore()
def course(session: nox.Session) -> None:
    """Every kata proves itself: its stub is todo, its solution passes, its mutants are caught."""
    python(session, "-m", "harness.course_check", *session.posargs)


@chore()
def mutants(session: nox.Session) -> None:
    """Small mistakes are made in every solution; each suite must see them: `-- 05_nf4 --operator drop-mask`."""
    python(session, "-m", "harness.mutation.mutants", *session.posargs)


@chore()
def bench(session: nox.Session) -> None:
    """An experiment on a GPU: you predict, it is measured and kept as evidence: `-- 05_nf4`, or `-- --calibrate`."""
    python(session, "-m", "harness.measured.bench", *session.posargs)


@chore()
def model(session: nox.Session) -> None:
    """The speed model against what was measured: a table, a picture, and how often it is wrong."""
    python(session, "-m", "harness.zoo.modelcheck", *session.posargs)


@chore()
def lessons(session: nox.Session) -> None:
    """Build the lesson pages into build/lessons; `-- --serve` shows them in the browser, `-- 04` builds one."""
    # Ctrl-C reaches nox too: give the server time to stop
    session.run(sys.executable, "-m", "harness.site", *session.posargs, external=True, interrupt_timeout=5)


@chore()
def new(session: nox.Session) -> None:
    """Scaffold a kata: `-- 21_formats`."""
    python(session, "-m", "harness.new", *session.posargs)


@chore()
def tests(session: nox.Session) -> None:
    """Run the harness's own tests, then every stub and solution. With arguments (`-- -k device`): those tests alone."""
    python(session, "-m", "pytest", "harness/tests", *WORKERS, *session.posargs)
    if not session.posargs:
        # the mutants take many minutes on two cores: `nox -s course` runs them
        python(session, "-m", "harness.course_check", "--no-mutants")


@chore()
def lint(session: nox.Session) -> None:
    """Check style and format with ruff."""
    if importlib.util.find_spec("ruff") is None:
        session.error("ruff is not installed. Run: pip install -c constraints.txt -e '.[dev]'")
    python(session, "-m", "ruff", "check", ".")
    python(session, "-m", "ruff", "format", "--check", ".")


@chore(name="triton-versions")
def triton_versions(session: nox.Session) -> None:
    """Run doctor and tests under each supported Triton; they are kept outside the checkout."""
    python(session, "-m", "harness.triton_versions", *session.posargs)
