"""course: each kata proves itself, and every way not to is found."""

from __future__ import annotations

import json

import pytest

from harness import course_check
from harness.course import load_course
from harness.errors import KataError
from harness.tests.toys import LEAN, SOLUTION, STUB, TOML, environment, write_course

MUTANTS = {f"m{i}.py": SOLUTION.replace("x * 2", f"x * {i + 3}") for i in range(5)}
NAMED = {name: f'"""Wrong.\n\nVERDICT: wrong\n"""\n{source}' for name, source in MUTANTS.items()}


@pytest.fixture
def course(tmp_path):
    """Return a function: changed files (path from the checkout -> text, None to remove) -> a course that else proves itself."""

    def make(changes=None, katas=None):
        write_course(tmp_path, katas)
        for kata in load_course(tmp_path).katas:
            (kata.solutions / "mutants").mkdir()
            for name, text in NAMED.items():
                (kata.solutions / "mutants" / name).write_text(text, encoding="utf-8")
        for path, text in (changes or {}).items():
            if text is None:
                (tmp_path / path).unlink()
            else:
                (tmp_path / path).write_text(text, encoding="utf-8")
        return load_course(tmp_path)

    return make


FOLDER = "exercises/01_double/"


def problems(course):
    return [p for kata in course.katas for p in course_check.still(course, kata)]


def test_a_whole_kata_has_no_problems(course):
    assert problems(course()) == []


@pytest.mark.parametrize(("changes", "says"), [
    ({FOLDER + "README.md": None}, ["01_double: exercises/01_double/README.md is missing."]),
    ({FOLDER + "notes.txt": ""}, ["01_double: unexpected in exercises/01_double: notes.txt; a kata has five files."]),
    ({FOLDER + "exercise.toml": "title = 3\n"}, ["01_double: "]),
    ({FOLDER + "exercise.toml": TOML.replace("entry", 'needs = ["single"]\nentry', 1)}, ["01_double: needs 'single', which is no kata; expected one of double."]),
    ({FOLDER + "exercise.toml": TOML.replace('role = "bench"', 'role = "small"')}, ["01_double: exercise.toml needs a case with role = 'traffic' and one with role = 'bench'."]),
    ({"solutions/01_double/kernel.py": None}, ["01_double: solutions/01_double/kernel.py is missing."]),
    ({"solutions/01_double/kernel.py": SOLUTION.replace("mask = offs < n", "mask = offs <= n - 1")},
     ["01_double: line 9 of the stub is not in the solution, in order: 'mask = offs < n'."]),
    ({"solutions/01_double/mutants/m0.py": None}, ["01_double: 4 mutants; expected at least five."]),
    ({"harness/stubs.json": "{}"}, ["01_double: harness/stubs.json does not know this stub; run `nox -s course -- --write-stubs`."]),
    ({FOLDER + "README.md": "[a](kernel.py) [b](https://x.org) [c](#part) [d](no.md#part)"}, ["01_double: README.md links to no.md#part, which does not exist."]),
])  # fmt: skip
def test_each_fault_of_the_files_is_one_sentence(course, changes, says):
    found = problems(course(changes))

    assert len(found) == len(says), found
    assert all(f.startswith(s) for f, s in zip(found, says, strict=True)), found


def test_the_stub_s_digest_is_written_without_touching_the_stub(course, tmp_path):
    made = course(
        {
            "harness/stubs.json": "{}",
            FOLDER + "kernel.py": STUB + "x = 1\n",
            "solutions/01_double/kernel.py": SOLUTION + "x = 1\n",
        }
    )
    course_check.write_stubs(made)

    assert problems(load_course(tmp_path)) == []
    assert list(json.loads((tmp_path / "harness" / "stubs.json").read_text())) == ["double"]


@pytest.mark.parametrize(("line", "words"), [
    ("VERDICT: wrong", ("wrong",)),
    ("VERDICT: out-of-bounds.", ("out-of-bounds",)),
    ("VERDICT: wrong or racy", ("wrong", "racy")),
    ("VERDICT: wrong, racy", ("wrong", "racy")),
])  # fmt: skip
def test_a_mutant_names_what_must_catch_it(tmp_path, line, words):
    (tmp_path / "m.py").write_text(f'"""A mutant.\n\n{line}\n"""\n', encoding="utf-8")

    assert course_check.named_words(tmp_path / "m.py") == words


@pytest.mark.parametrize("line", ["", "VERDICT: bad", "VERDICT: pass", "VERDICT: wrong or pass"])
def test_a_mutant_that_names_nothing_that_fails_is_refused(tmp_path, line):
    (tmp_path / "m.py").write_text(f'"""A mutant.\n\n{line}\n"""\n', encoding="utf-8")

    with pytest.raises(KataError, match="expected a line VERDICT: and one of todo, error, "):
        course_check.named_words(tmp_path / "m.py")


@pytest.fixture
def main(monkeypatch, capsys, server):
    def main(made, *args):
        monkeypatch.setattr(course_check, "load_course", lambda: load_course(made.root))
        for name, value in environment(server).items():
            monkeypatch.setenv(name, value)
        status = course_check.main([*args])
        return status, *capsys.readouterr()

    return main


def test_every_run_is_held_against_its_word(course, main):
    """One mutant is right, so it survives; another dies by a word that it did not name."""
    made = course({
        FOLDER + "test_kernel.py": LEAN, "solutions/01_double/mutants/m3.py": None, "solutions/01_double/mutants/m4.py": None,
        "solutions/01_double/mutants/m0.py": f'"""VERDICT: wrong\n\nVERDICT: wrong\n"""\n{SOLUTION}',
        "solutions/01_double/mutants/m1.py": f'"""x\n\nVERDICT: racy\n"""\n{MUTANTS["m1.py"]}',
        "solutions/01_double/mutants/m2.py": f'"""x\n\nVERDICT: racy or wrong\n"""\n{MUTANTS["m2.py"]}',
    })  # fmt: skip
    status, out, _ = main(made)
    rows = [line.split() for line in out.splitlines()[:5]]

    assert status == 1
    assert rows == [
        ["ok", "01_double", "kernel.py", "(stub)", "todo"], ["ok", "01_double", "solution", "pass"],
        ["FAILED", "01_double", "mutants/m0.py", "pass"], ["FAILED", "01_double", "mutants/m1.py", "wrong"],
        ["ok", "01_double", "mutants/m2.py", "wrong"],
    ]  # fmt: skip
    assert "FAILED 01_double: 3 mutants; expected at least five." in out
    assert "FAILED 01_double mutants/m1.py: wrong, expected racy. All 150 elements of double's result are wrong" in out
    assert out.splitlines()[-1] == "1 katas, 3 problems"


def test_no_kata_is_no_proof(course, main):
    status, out, err = main(course(katas={}), "")

    assert (status, out) == (1, "")
    assert "Which kata?" in err


def test_an_unknown_kata_is_one_sentence(course, main):
    status, _, err = main(course(), "01_dobule")

    assert status == 1
    assert err.endswith('Did you mean "01_double"?\n')
