"""The kept times of references: written per GPU and Triton, read back, never guessed, and never used when stale."""

from __future__ import annotations

import dataclasses
import json

import pytest

from harness import course_check
from harness.course import load_course
from harness.device import find_device
from harness.model import times
from harness.tests.toys import SOLUTION, write_course

H200, L4 = find_device("H200"), find_device("L4")


@pytest.fixture
def kata(tmp_path):
    write_course(tmp_path)
    return load_course(tmp_path).katas[0]


@pytest.fixture
def case(kata):
    return kata.spec.with_role("bench")[0]


def keep(root, kata, case, device=H200, triton="3.9.0"):
    entry = {"seconds": 7e-5, "binds": "DRAM", "of": times.made_of(kata, case, device)}
    return times.write(root, device.id, triton, kata.slug, {case.id: entry})


def test_what_was_written_is_read_back_beside_what_was_there(tmp_path, kata, case):
    times.write(tmp_path, "h200_sxm", "3.9.0", "00_stream", {"long": {"seconds": 5e-5, "binds": "L2"}})
    path = keep(tmp_path, kata, case)

    assert path.name == "h200_sxm_triton_3.9.0.json"
    assert list(times.read(path)) == ["00_stream", kata.slug]
    assert times.kept(tmp_path, kata, case, H200, "3.9.0") == times.Kept(7e-5)


def test_another_gpu_triton_or_case_has_no_time(tmp_path, kata, case):
    keep(tmp_path, kata, case)
    other = dataclasses.replace(case, id="other")
    found = [
        times.kept(tmp_path, kata, case, L4, "3.9.0"), times.kept(tmp_path, kata, case, H200, "3.8.0"),
        times.kept(tmp_path, kata, other, H200, "3.9.0"),
    ]  # fmt: skip

    assert [k.seconds for k in found] == [None] * 3
    assert found[0].why == "no modelled time of the reference is kept for NVIDIA L4 and Triton 3.9.0"


def test_a_time_of_other_code_is_stale(tmp_path, kata, case):
    keep(tmp_path, kata, case)
    kata.solution.write_text(SOLUTION.replace("x * 2", "x + x"), encoding="utf-8")
    found = times.kept(tmp_path, kata, case, H200, "3.9.0")

    assert found.seconds is None
    assert found.why == "the modelled time of the reference that is kept is stale: the reference's code changed since"


def test_a_comment_or_a_docstring_makes_nothing_stale(tmp_path, kata, case):
    keep(tmp_path, kata, case)
    kata.solution.write_text(f'"""Said anew."""\n# why\n{SOLUTION.split(chr(10), 1)[1] if SOLUTION.startswith(chr(34)) else SOLUTION}',
                             encoding="utf-8")  # fmt: skip

    assert times.kept(tmp_path, kata, case, H200, "3.9.0").seconds == 7e-5


@pytest.mark.parametrize("change", [{"dims": {"N": 8}}, {"dtype": "float16"}, {"layout": {"x": "transposed"}}])
def test_a_time_of_another_shape_is_stale(tmp_path, kata, case, change):
    keep(tmp_path, kata, case)
    found = times.kept(tmp_path, kata, dataclasses.replace(case, **change), H200, "3.9.0")

    assert "the bench shape changed" in found.why


def test_a_time_of_another_model_is_stale(tmp_path, kata, case, monkeypatch):
    keep(tmp_path, kata, case)
    monkeypatch.setattr(times, "model_digest", lambda device: "another")

    assert "the speed model changed" in times.kept(tmp_path, kata, case, H200, "3.9.0").why


def test_the_model_is_its_code_and_what_it_knows_of_the_gpu():
    measured = dict(H200.measured) | {"copy_bw": 1e12}

    assert times.model_digest(H200) != times.model_digest(L4)
    assert times.model_digest(H200) != times.model_digest(dataclasses.replace(H200, measured=measured, sms=131))
    assert times.model_digest(H200) == times.model_digest(dataclasses.replace(H200, measured_on="another day", sms=132))


def test_without_the_solution_its_code_is_not_asked_for(tmp_path, kata, case):
    keep(tmp_path, kata, case)
    kata.solution.unlink()

    assert times.kept(tmp_path, kata, case, H200, "3.9.0").seconds == 7e-5


def test_a_time_that_names_no_origin_is_stale(tmp_path, kata, case):
    times.write(tmp_path, "h200_sxm", "3.9.0", kata.slug, {case.id: {"seconds": 7e-5, "binds": "DRAM"}})

    assert times.kept(tmp_path, kata, case, H200, "3.9.0").seconds is None


def test_the_course_says_which_times_are_stale(tmp_path, kata, case, monkeypatch):
    monkeypatch.setattr(course_check.metadata, "version", lambda name: "3.9.0")
    keep(tmp_path, kata, case)
    keep(tmp_path, kata, case, L4)
    path = keep(tmp_path, kata, case, H200, "3.8.0")
    path.write_text(path.read_text().replace(times.made_of(kata, case, H200)["kernel"], "old"))
    course = load_course(tmp_path)
    before = [p for p in course_check.still(course, kata) if "stale" in p]
    kata.solution.write_text(SOLUTION + "\nx = 1\n", encoding="utf-8")
    after = [p for p in course_check.still(course, kata) if "stale" in p]

    assert before == []
    assert after == [
        "01_double: the modelled times for h200_sxm, l4 with Triton 3.9.0 are stale: the reference's code changed since. "
        "Run `nox -s course -- 01_double --write-times --times-for h200_sxm,l4`."
    ]


def test_a_broken_file_is_named_with_what_mends_it(tmp_path, kata, case):
    path = times.file_of(tmp_path, "h200_sxm", "3.9.0")
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")

    with pytest.raises(times.BrokenTimes, match=r"h200_sxm_triton_3\.9\.0\.json cannot be read .* --write-times"):
        times.kept(tmp_path, kata, case, H200, "3.9.0")


def test_what_is_kept_is_small():
    for path in (load_course().root / times.FOLDER).glob("*.json"):
        assert path.stat().st_size < 10_000
        assert json.loads(path.read_text(encoding="utf-8"))["schema"] == 2
