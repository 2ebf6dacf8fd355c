"""What the project promises at its top level: dependencies, chores, and that its documents name what exists."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(PYPROJECT)
SESSIONS = set(
    re.findall(r"^(?:@chore\(\)\ndef (\w+)|@chore\(name=\"([\w-]+)\"\))", (ROOT / "noxfile.py").read_text(), re.M)
)
SESSIONS = {plain or named for plain, named in SESSIONS}


def names(requirements: list[str]) -> set[str]:
    """Return the package names of requirement strings."""
    return {re.match(r"[\w-]+", line)[0] for line in requirements}


def test_constraints_pin_torch_and_never_triton():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line.strip() and not line.startswith("#")]

    assert pins == ["torch==2.13.0"]


def test_dependencies_are_what_grading_imports():
    assert names(PROJECT["project"]["dependencies"]) == {
        *("torch", "triton", "numpy", "ml_dtypes", "pytest", "pytest-xdist", "hypothesis", "nox", "rich", "watchfiles"),
        # the lesson pages
        *("markdown-it-py", "mdit-py-plugins", "jinja2", "latex2mathml", "pygments"),
    }
    assert names(PROJECT["project"]["optional-dependencies"]["dev"]) == {
        *("ruff", "bitsandbytes", "playwright", "axe-playwright-python"),
    }


def test_dependencies_are_ranges_with_a_reason_above():
    lines = PYPROJECT.splitlines()
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["dev"]]
    for requirement in wanted:
        versions = requirement.partition(";")[0]
        assert ">=" in versions
        assert "==" not in versions
        (at,) = [i for i, line in enumerate(lines) if f'"{requirement}"' in line]
        assert lines[at - 1].strip().startswith("#"), requirement


def test_triton_is_asked_for_on_linux_alone():
    (triton,) = [r for r in PROJECT["project"]["dependencies"] if r.startswith("triton")]

    assert triton == "triton>=3.6,<3.11; sys_platform == 'linux'"


def test_the_set_up_commands_are_the_promised_ones():
    commands = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)

    assert commands == [
        "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e . && .venv/bin/nox -s grade",
        "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[dev]' && .venv/bin/nox -s tests",
    ]


@pytest.mark.parametrize("text", [README, AGENTS], ids=["README.md", "AGENTS.md"])
def test_every_chore_that_a_document_names_exists(text):
    assert set(re.findall(r"nox -s ([\w-]+)", text)) <= SESSIONS


@pytest.mark.parametrize("text", [README, AGENTS], ids=["README.md", "AGENTS.md"])
def test_every_file_that_a_document_names_exists(text):
    named = set(re.findall(r"`((?:harness|exercises|solutions|\.ci)/[\w/.]+)`|\]\((\w[\w./]*)\)", text))
    paths = [path for pair in named for path in pair if path and "NN_" not in path]
    missing = [path for path in paths if not (ROOT / path).exists()]

    assert not missing


def test_every_module_that_a_chore_runs_exists():
    modules = re.findall(r'"-m", "(harness\.\w+)"', (ROOT / "noxfile.py").read_text(encoding="utf-8"))

    assert modules
    assert not [name for name in modules if importlib.util.find_spec(name) is None]


def test_nox_lists_the_chores_with_a_sentence_each():
    if importlib.util.find_spec("nox") is None:
        pytest.skip("nox is not needed where pytest is called directly, as on a GPU server")
    listing = subprocess.run([sys.executable, "-m", "nox", "-l"], cwd=ROOT, capture_output=True, text=True).stdout
    listed = dict(re.findall(r"^[*-] ([\w-]+) -> (.+)$", listing, re.MULTILINE))

    assert set(listed) == SESSIONS
    assert SESSIONS == {
        *("grade", "watch", "hint", "reset", "compare", "practice", "update"),
        *("bench", "model", "mutants", "lessons"),
        *("doctor", "course", "new", "tests", "lint", "triton-versions"),
    }
    assert all(line.endswith((".", "`")) or line.endswith("before.") for line in listed.values())
    assert re.findall(r"^\* ([\w-]+)", listing, re.MULTILINE) == ["grade"]


def test_the_contributing_section_stays_short():
    section = README.partition("## I want to")[2].partition("\n## ")[0]

    assert section.count("\n") <= 40


def test_the_tour_has_its_places():
    assert re.findall(r"<!-- tour:([\w-]+) -->", README) == ["todo", "out-of-bounds", "pass", "grade"]
    assert README.count("<!-- /tour -->") == 4


def test_documents_name_no_machine_of_ours():
    ours = re.compile(r"(?<![\w.])/(work|tmp|root|home)/|pypi\.org|files\.pythonhosted")
    for path in (*ROOT.glob("*.*"), ROOT / ".ci" / "run", *(ROOT / "harness" / "devices").glob("*.toml")):
        if path.is_file() and path.suffix != ".pyc":
            assert not ours.search(path.read_text(encoding="utf-8")), path.name
