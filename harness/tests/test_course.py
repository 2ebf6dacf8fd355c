"""Course: the folders of a checkout, told apart by slug, id or number; a stub is known by its digest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.course import KATA_FILES, ROOT, load_course, source_digest
from harness.errors import CourseError
from harness.tests.toys import SOLUTION, STUB, write_course


def test_public_names_are_sorted_and_exist():
    assert harness.__all__ == sorted(harness.__all__)
    assert all(hasattr(harness, name) for name in harness.__all__)


def test_this_checkout_is_a_course():
    course = load_course()

    assert course.root == ROOT
    assert {"01_blocks", "05_nf4", "07_softmax"} <= {k.slug for k in course.katas}
    assert all((k.folder / name).is_file() for k in course.katas for name in KATA_FILES)


@pytest.fixture
def course(tmp_path):
    course = write_course(tmp_path, {"01_double": {}, "05_triple": {"kernel.py": SOLUTION}})
    (tmp_path / "exercises" / "notes").mkdir()
    (tmp_path / "exercises" / "05_file").write_text("no folder")
    (course.katas[0].solutions / "mutants").mkdir()
    for name in ("b.py", "a.py", "notes.txt"):
        (course.katas[0].solutions / "mutants" / name).touch()
    return load_course(tmp_path)


def test_folders_with_a_number_are_katas(course):
    assert [(k.slug, k.id) for k in course.katas] == [("01_double", "double"), ("05_triple", "triple")]


@pytest.mark.parametrize(
    "name", ["05_triple", "triple", "05", "05_triple/", "exercises/05_triple", "exercises/05_triple/"]
)
def test_a_kata_is_found_by_slug_id_or_number(course, name):
    assert course.kata(name).slug == "05_triple"


def test_an_unknown_kata_is_one_sentence_with_the_nearest_name(course):
    with pytest.raises(CourseError) as error:
        course.kata("05_tripel")

    assert (
        str(error.value) == "There is no kata '05_tripel'; there are 01_double, 05_triple. Did you mean \"05_triple\"?"
    )


def test_paths_belong_to_the_kata_whose_folder_holds_them(course):
    kata = course.katas[0]

    assert course.of_path(kata.folder) == kata
    assert course.of_path(kata.folder / "test_kernel.py") == kata
    assert course.of_path(kata.solution) is None
    assert course.of_path(course.root) is None


def test_a_kata_knows_its_files(course):
    kata = course.katas[0]

    assert kata.stub == course.root / "exercises" / "01_double" / "kernel.py"
    assert kata.solution == course.root / "solutions" / "01_double" / "kernel.py"
    assert [m.name for m in kata.mutants()] == ["a.py", "b.py"]
    assert kata.spec.title == "Double: a toy"


def test_a_folder_without_exercises_is_one_sentence(tmp_path):
    with pytest.raises(CourseError, match=r"has no folder exercises/; run from a checkout of Kernel Kata\."):
        load_course(tmp_path)


def test_a_stub_is_untouched_until_a_word_changes(course, tmp_path):
    first, second = course.katas

    assert course.is_untouched(first, first.stub)
    assert not course.is_untouched(second, second.stub)
    assert not course.is_untouched(first, tmp_path / "missing.py")
    first.stub.write_bytes(b"\xff\xfe")
    assert not course.is_untouched(first, first.stub)


@pytest.mark.parametrize("change", [
    lambda s: "# mine\n" + s,
    lambda s: s + "\n\n# the end\n",
    lambda s: s.replace("import torch\n", "import torch  # tensors\n\n\n"),
    lambda s: s.replace("\n", "   \n"),
    lambda s: s.replace("TODO(1/1): write it", "done"),
])  # fmt: skip
def test_comments_and_blanks_do_not_touch_a_stub(change):
    assert source_digest(change(STUB)) == source_digest(STUB)


@pytest.mark.parametrize("change", [
    lambda s: s + "x = 1\n",
    lambda s: s.replace("BLOCK=64", "BLOCK=65"),
    lambda s: s.replace("    mask = offs < n", "    if n:\n        mask = offs < n"),
    lambda s: s + "(",
    lambda s: s + "'",
])  # fmt: skip
def test_code_touches_a_stub(change):
    assert source_digest(change(STUB)) != source_digest(STUB)


@given(st.text(max_size=40))
def test_any_text_has_a_digest(text):
    assert len(source_digest(text)) == 64
