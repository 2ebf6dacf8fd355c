"""mutants: the mistakes in a toy's solution die or are reported, and nothing is run twice."""

from __future__ import annotations

import json

import pytest

from harness.errors import HarnessFault, KataError
from harness.mutation import mutant_cache, mutants
from harness.mutation.mutant_report import problems_of, rows, shown
from harness.mutation.mutants import Result, run
from harness.mutation.mutate import mutants as made
from harness.mutation.survivors import Explanation
from harness.runner.client import SERVER
from harness.tests.toys import LEAN, SOLUTION, TOML, write_course

# a mask that lets 16 lanes more pass is seen where the tensor ends; other=1 is never stored; the rest is not run
FEW = ["widen-mask", "other-value"]
OTHER = "x = tl.load(x_ptr + offs, mask=mask, other=0)"
EXPLAINED = f"""
[[mutant]]
operator = "other-value"
line = "{OTHER}"
becomes = "{OTHER.replace("other=0", "other=1")}"
why = "It is not stored."
"""


@pytest.fixture
def course(tmp_path, server, monkeypatch):
    """Return a toy course whose suite compiles nothing; results are kept in the test's own folder."""
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_CURRENT_TEST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(SERVER, str(server.folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    course = write_course(tmp_path / "course", {"01_double": {"test_kernel.py": LEAN}})
    monkeypatch.setattr(mutants, "load_course", lambda: course)
    return course


def explain(course, text=EXPLAINED):
    (course.katas[0].solutions / "equivalent.toml").write_text(text, encoding="utf-8")


def test_a_mistake_dies_by_its_verdict_and_a_harmless_change_survives(course):
    results, problems = run(course, course.katas, FEW)

    assert [(r.mutant.operator, r.word, r.fate) for r in results["01_double"]] == [
        ("widen-mask", "out-of-bounds", "killed"),
        ("other-value", "pass", "survived"),
    ]
    assert results["01_double"][0].test == "test_declared_cases[M3-N50]"
    assert "x_ptr" in results["01_double"][0].reason or "x" in results["01_double"][0].reason
    assert problems == []


def test_a_second_run_runs_nothing(course, monkeypatch):
    first = run(course, course.katas, FEW)
    monkeypatch.setattr(mutants, "_pytest", lambda *_: pytest.fail("a mutant was run again"))

    assert run(course, course.katas, FEW) == first
    assert not [p for p in course.root.rglob("*") if "cache" in p.name.lower() and p.name != "__pycache__"]


def test_an_unexplained_survivor_fails_and_an_explained_one_does_not(course, capsys, tmp_path):
    options = [x for o in FEW for x in ("--operator", o)]
    assert mutants.main([*options, "--json", str(tmp_path / "out.json")]) == 1
    printed = capsys.readouterr().out
    assert "survived: 01_double other-value, solutions/01_double/kernel.py line 10 (pass)" in printed
    assert "FAILED 01_double: 1 unexplained survivors: other-value in line 10." in printed
    assert "FAILED other-value: 0.0% of its mutants die; at least 97% must." in printed
    assert printed.endswith("1 katas, 2 mutants, 2 problems\n")
    data = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [r["fate"] for r in data["katas"]["01_double"]] == ["killed", "survived"]

    explain(course)
    assert mutants.main(options) == 0
    assert capsys.readouterr().out.endswith("1 katas, 2 mutants, 0 problems\n")


def test_an_explanation_that_explains_nothing_fails(course, capsys):
    explain(course, EXPLAINED.replace("other=1", "other=2"))

    assert mutants.main(["--operator", "widen-mask"]) == 1
    assert "FAILED 01_double: equivalent.toml explains a mutant that does not exist" in capsys.readouterr().out


def test_a_solution_that_fails_its_own_suite_ends_the_run(course):
    course.katas[0].solution.write_text(SOLUTION.replace("x * 2", "x * 3"), encoding="utf-8")

    with pytest.raises(KataError, match=r"^01_double: the solution itself is wrong \(test_declared_cases\[M3-N50\]\)"):
        run(course, course.katas, FEW)


def test_a_suite_that_cannot_be_collected_is_said(course):
    (course.katas[0].folder / "test_kernel.py").write_text("import nothing_like_it\n", encoding="utf-8")

    with pytest.raises(HarnessFault, match="(?s)the solution got no verdict; pytest said:.*nothing_like_it"):
        run(course, course.katas, FEW)


def test_a_fault_of_the_harness_is_no_kill(course):
    toml = course.katas[0].folder / "exercise.toml"
    toml.write_text(
        TOML.replace("dims = { M = 3, N = 50 }", "dims = { M = 3 }"), encoding="utf-8"
    )  # no N to build x with

    with pytest.raises(KataError, match="01_double"):
        run(course, course.katas, FEW)


def test_list_runs_nothing(course, capsys, monkeypatch):
    monkeypatch.setattr(mutants, "run", lambda *_: pytest.fail("--list ran a mutant"))

    assert mutants.main(["--list", "double", "--operator", "widen-mask"]) == 0
    printed = capsys.readouterr().out
    assert "01_double widen-mask " in printed and "    + mask = offs < n + 16\n" in printed


def test_a_missing_solution_and_an_unknown_kata_are_one_sentence(course, capsys):
    course.katas[0].solution.unlink()

    assert mutants.main(["double"]) == 1
    assert capsys.readouterr().err == "solutions/01_double/kernel.py is missing: there is nothing to make mutants of.\n"
    assert mutants.main(["trouble"]) == 1
    assert capsys.readouterr().err.startswith("There is no kata 'trouble'")


# -- the report, on results that were made up --------------------------------------------------------------------------

MUTANTS = [m for m in made(SOLUTION) if m.operator == "arithmetic"]


def results(*words, explained=()):
    why = {i: Explanation("arithmetic", "", (), "so", kind=kind) for i, kind in explained}
    return {
        "01_double": [Result(m, w, "t", "", why.get(i)) for i, (m, w) in enumerate(zip(MUTANTS, words, strict=False))]
    }


def test_the_kill_rate_sets_explained_mutants_aside():
    (row,) = rows(results("wrong", "slow", "pass", "pass", explained=[(2, "equivalent"), (3, "out of reach")]))

    assert (row["made"], row["killed"], row["equivalent"], row["out of reach"], row["survived"]) == (4, 2, 1, 1, 0)
    assert row["rate"] == 1.0
    assert row["by"] == {"wrong": 1, "slow": 1}


def test_undecided_is_no_kill():
    (row,) = rows(results("wrong", "undecided"))

    assert (row["killed"], row["survived"], row["rate"]) == (1, 1, 0.5)


def test_what_is_explained_and_yet_merely_slow_is_killed():
    (row,) = rows(results("slow", explained=[(0, "equivalent")]))

    assert (row["killed"], row["equivalent"]) == (1, 0)


def test_the_report_has_a_row_for_each_operator_and_each_survivor_s_entry():
    lines = list(shown(results("wrong", "pass")))

    assert lines[1].split() == ["01_double", "arithmetic", "2", "1", "0", "0", "1", "wrong", "1"]
    assert lines[2].split()[:3] == ["all", "all", "2"]
    text = "\n".join(lines)
    assert f"    - {MUTANTS[1].before}\n    + {MUTANTS[1].after}\n" in text
    assert 'operator = "arithmetic"' in text and 'why = ""' in text


def test_nothing_to_kill_is_no_problem():
    assert problems_of(results("pass", explained=[(0, "equivalent")])) == []
    assert problems_of({"01_double": []}) == []


def test_the_folder_of_results_is_not_the_home_of_who_runs_the_tests(course, tmp_path):
    assert tmp_path in mutant_cache.folder_of().parents
