"""grade: one table for all katas; a verdict that cannot be produced is said, and only that fails it."""

from __future__ import annotations

import json

import pytest

from harness.errors import HarnessFault
from harness.loop import grade
from harness.tests.toys import LEAN, REFERENCE, SOLUTION, environment, write_course


@pytest.fixture
def run(tmp_path, monkeypatch, capsys, server):
    """Return a function: katas, arguments -> exit status, standard output, standard error of ``nox -s grade``."""

    def run(katas, *args):
        course = write_course(
            tmp_path / "course", {slug: {"test_kernel.py": LEAN} | files for slug, files in katas.items()}
        )
        monkeypatch.setattr(grade, "load_course", lambda: course)
        for name, value in environment(server).items():
            monkeypatch.setenv(name, value)
        status = grade.main([*args])
        return status, *capsys.readouterr()

    return run


def test_the_table_says_what_is_next(run, tmp_path):
    status, out, err = run(
        {"01_double": {"kernel.py": SOLUTION}, "02_triple": {}}, "--verdicts", str(tmp_path / "v.json")
    )

    assert status == 0
    assert [line.split() for line in out.splitlines()[1:3]] == [
        ["01_double", "pass", "2/2", *out.splitlines()[1].split()[3:]], ["02_triple", "todo", "Double:", "a", "toy"],
    ]  # fmt: skip
    assert out.splitlines()[-2:] == [
        "Next: 02_triple, because it is the next on the path, and its stub is untouched. Start with exercises/02_triple/README.md.",
        "      pytest exercises/02_triple",
    ]
    assert sorted(err.splitlines()) == ["graded 01_double pass", "graded 02_triple todo"]
    katas = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))["katas"]
    assert {slug: kata["verdict"] for slug, kata in katas.items()} == {"01_double": "pass", "02_triple": "todo"}


def test_one_kata_can_be_named(run):
    status, out, _ = run({"01_double": {}, "02_triple": {}}, "triple")

    assert status == 0
    assert "02_triple" in out and "01_double" not in out


def test_a_kata_that_failed_is_no_failure_of_grade(run):
    status, out, _ = run({"01_double": {"kernel.py": SOLUTION.replace("x * 2", "x * 3")}})

    assert status == 0
    assert "Next: 01_double, because all 150 elements of double's result are wrong in case M3-N50." in out


def test_a_verdict_that_is_missing_is_said_and_the_others_are_shown(run):
    broken = REFERENCE.replace("return 2 *", "raise ValueError('oops')\n    return 2 *")
    status, out, err = run({"01_double": {"kernel.py": SOLUTION, "reference.py": broken}, "02_triple": {}})

    assert status == 1
    assert "02_triple" in out
    assert "No verdict for " in err
    assert "ValueError('oops')" in err


def test_an_unknown_kata_is_one_sentence(run):
    status, out, err = run({"01_double": {}}, "01_duoble")

    assert (status, out) == (1, "")
    assert err == "There is no kata '01_duoble'; there are 01_double. Did you mean \"01_double\"?\n"


def test_a_wrong_option_shows_pytest_s_own_words(run):
    status, out, err = run({"01_double": {}}, "--gpu=H2000")

    assert (status, out) == (1, "")
    assert err.startswith("pytest ended with 4 and no verdicts. Its last lines:\n")
    assert "gpu='H2000' is no GPU" in err


# the harness takes the value for the name of a kata
def test_an_option_s_value_may_stand_apart(run):
    status, out, err = run({"01_double": {}}, "--gpu", "A100")

    assert status == 0, err
    assert "01_double" in out


def test_workers_may_be_given_as_to_pytest(run):
    status, out, err = run({"01_double": {}, "02_triple": {}}, "-n", "0")

    assert status == 0, err
    assert "01_double" in out and "02_triple" in out


def test_a_course_without_katas_is_a_fault(tmp_path):
    course = write_course(tmp_path)

    with pytest.raises(HarnessFault, match="has no katas; this checkout is not complete"):
        grade.grade(course, [], [])
