"""A scaffold is a kata that works as it is; a bad slug is one sentence."""

import ast
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import new
from harness.errors import CourseError
from harness.spec import load_spec

ROOT = Path(__file__).resolve().parents[2]


def test_it_writes_the_files_of_a_kata_and_says_what_next(tmp_path, capsys):
    code = new.main(["21_formats"], tmp_path)

    assert code == 0
    assert capsys.readouterr().out == (
        "wrote exercises/21_formats/README.md\n"
        "wrote exercises/21_formats/exercise.toml\n"
        "wrote exercises/21_formats/kernel.py\n"
        "wrote exercises/21_formats/reference.py\n"
        "wrote exercises/21_formats/test_kernel.py\n"
        "wrote solutions/21_formats/kernel.py\n"
        "wrote solutions/21_formats/mutants/floor_grid.py\n"
        "wrote solutions/21_formats/mutants/no_mask.py\n"
        "wrote solutions/21_formats/mutants/one_stride.py\n"
        "wrote solutions/21_formats/mutants/through_float16.py\n"
        "wrote solutions/21_formats/mutants/torch_copy.py\n"
        "\n"
        "It works as it is: a copy kernel. Make it yours, fill what says TODO outside the stub, then run\n"
        "  pytest exercises/21_formats --solutions\n"
        "  nox -s course -- 21_formats --write-stubs\n"
    )


def test_the_files_hold_the_words_of_the_kata_and_parse(tmp_path):
    for file in new.scaffold("21_two_words", tmp_path):
        text = file.read_text(encoding="utf-8")
        assert "{{" not in text
        assert "21_two_words" in text or "two_words" in text
        if file.suffix == ".py":
            ast.parse(text)


def test_the_spec_is_valid_and_complete(tmp_path):
    new.scaffold("21_formats", tmp_path)
    spec = load_spec(tmp_path / "exercises" / "21_formats")

    assert spec.entry == "formats"
    assert len(spec.with_role("traffic")) == 1
    assert [case.model for case in spec.with_role("bench")] == ["Llama 3.1 8B"]
    assert any("transposed" in case.layout.values() for case in spec.cases)


def test_the_solution_is_the_stub_plus_lines(tmp_path):
    new.scaffold("21_formats", tmp_path)
    stub, solution = (
        (tmp_path / top / "21_formats" / "kernel.py").read_text(encoding="utf-8").splitlines()
        for top in ("exercises", "solutions")
    )
    rest = iter(solution)

    assert all(line in rest for line in stub if "TODO(" not in line)


def test_the_stub_says_what_must_be_true(tmp_path):
    new.scaffold("21_formats", tmp_path)
    stub = (tmp_path / "exercises" / "21_formats" / "kernel.py").read_text(encoding="utf-8")

    assert stub.count("# TODO(") == 2
    assert "tl.load" not in stub


def test_ruff_has_nothing_to_say(tmp_path):
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff comes with the dev extra")
    new.scaffold("21_formats", tmp_path)
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())

    for command in (["check"], ["format", "--check"]):
        run = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
        result = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr


def test_it_proves_itself_as_it_is(tmp_path):
    """The course check, in a checkout of its own: the stub is todo, the solution passes, each mutant is caught."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for part in ("harness", "exercises/01_blocks"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    new.scaffold("21_formats", tmp_path)
    command = [sys.executable, "-m", "harness.course_check", "21_formats", "--write-stubs"]

    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("\nok ") + result.stdout.startswith("ok ") == 7
    assert result.stdout.endswith("1 katas, 0 problems\n")


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("formats", "slug='formats': expected two digits and a name in small letters, such as 21_formats."),
        ("../21_x", "slug='../21_x': expected two digits and a name in small letters, such as 21_formats."),
        ("21_lambda", "slug='21_lambda': lambda is a word of Python and cannot name a function; choose another name."),
        ("07_softmax", "slug='07_softmax': exercises/07_softmax exists; remove it or choose another slug."),
        ("08_left", "slug='08_left': solutions/08_left exists; remove it or choose another slug."),
        ("07_other", "slug='07_other': number 07 belongs to 07_softmax; choose another number."),
        (
            "21_softmax",
            "slug='21_softmax': softmax is the id of 07_softmax, and records go by id; choose another name.",
        ),
    ],
)
def test_a_bad_slug_is_one_sentence_and_writes_nothing(tmp_path, capsys, slug, message):
    (tmp_path / "exercises" / "07_softmax").mkdir(parents=True)
    (tmp_path / "solutions" / "08_left").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))

    assert new.main([slug], tmp_path) == 2
    assert capsys.readouterr().err == message + "\n"
    assert sorted(tmp_path.rglob("*")) == before


def test_no_slug_shows_how_to_call_it(capsys):
    assert new.main([]) == 2
    assert capsys.readouterr().err == "Expected one slug, got 0: nox -s new -- 21_formats\n"


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    written = []

    def write_text(path, *args, **kwargs):
        if len(written) == 3:
            raise OSError(28, "No space left on device", str(path))
        written.append(path)
        path.write_bytes(b"")

    monkeypatch.setattr(Path, "write_text", write_text)

    with pytest.raises(CourseError, match=r"slug='21_formats': .* cannot be written: No space left on device\."):
        new.scaffold("21_formats", tmp_path)
    assert not list(tmp_path.rglob("*.*"))
