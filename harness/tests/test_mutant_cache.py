"""mutant_cache: a result is found again as long as nothing that it depends on has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.course import load_course
from harness.mutation import mutant_cache
from harness.mutation.mutant_cache import Cache, folder_of
from harness.tests.toys import SOLUTION, SUITE, write_course

SEEN = {"word": "wrong", "test": "t", "reason": "because"}


@pytest.fixture
def course(tmp_path):
    return write_course(tmp_path / "course")


def test_what_was_put_is_found_again(course, tmp_path):
    Cache(course, course.katas[0], 0, tmp_path / "c").put(SOLUTION, SEEN)

    assert Cache(course, course.katas[0], 0, tmp_path / "c").get(SOLUTION) == SEEN
    assert Cache(course, course.katas[0], 0, tmp_path / "c").get(SOLUTION + "\n") is None
    assert Cache(course, course.katas[0], 1, tmp_path / "c").get(SOLUTION) is None


@pytest.mark.parametrize("name", mutant_cache.SUITE)
def test_another_suite_knows_nothing(course, tmp_path, name):
    Cache(course, course.katas[0], 0, tmp_path / "c").put(SOLUTION, SEEN)
    file = course.katas[0].folder / name
    file.write_text(file.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")

    again = load_course(course.root)
    assert Cache(again, again.katas[0], 0, tmp_path / "c").get(SOLUTION) is None


def test_another_harness_or_stored_time_knows_nothing(course, tmp_path, monkeypatch):
    Cache(course, course.katas[0], 0, tmp_path / "c").put(SOLUTION, SEEN)
    (course.root / "records" / "reference").mkdir(parents=True)
    (course.root / "records" / "reference" / "double.json").write_text("{}", encoding="utf-8")
    assert Cache(course, course.katas[0], 0, tmp_path / "c").get(SOLUTION) is None

    Cache(course, course.katas[0], 0, tmp_path / "c").put(SOLUTION, SEEN)
    monkeypatch.setattr(mutant_cache, "harness_digest", lambda: "another")
    assert Cache(course, course.katas[0], 0, tmp_path / "c").get(SOLUTION) is None


def test_a_broken_file_is_as_good_as_none(course, tmp_path):
    cache = Cache(course, course.katas[0], 0, tmp_path / "c")
    cache.put(SOLUTION, SEEN)
    (file,) = (tmp_path / "c").rglob("*.json")
    file.write_text('{"word": ', encoding="utf-8")

    assert cache.get(SOLUTION) is None


def test_it_lies_below_the_user_s_cache_and_not_in_the_checkout(tmp_path):
    assert folder_of({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "kernel-kata" / "mutants"
    assert folder_of({}) == Path.home() / ".cache" / "kernel-kata" / "mutants"


def test_the_digest_covers_what_judges_and_not_the_chores():
    names = mutant_cache.modules()

    assert {
        "desk",
        "session",
        "strategies",
        "runner.judge",
        "runner.inputs",
        "interpreted.interpreter",
        "diagnosis.compare",
    } <= set(names)
    assert not {"mutants", "mutate", "grade", "doctor"} & set(names)
    assert SUITE  # the suites import harness.strategies, which is why it is among them
