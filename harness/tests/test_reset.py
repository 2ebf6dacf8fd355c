"""Back to the blank stub: the learner's file is kept, always, and the stub is the pristine one."""

import json
import os
import re
import subprocess

import pytest

from harness.branches import reset
from harness.course import load_course
from harness.tests import toys

MINE = toys.kernel() + "# mine\n"
KATAS = {"01_double": {}, "02_twice": {}}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A course with two katas whose pristine stubs are known."""
    toys.write_course(tmp_path, KATAS)
    monkeypatch.setattr(reset, "pristine_stub", lambda root, slug: toys.STUB)
    return tmp_path


def kernel(root, slug="01_double"):
    """Return the file that a learner edits."""
    return root / "exercises" / slug / "kernel.py"


def run(root, capsys, *args):
    """Return the exit status and what one call prints on both streams; names of kept files become KEPT."""
    status = reset.main([*args], root)
    out = capsys.readouterr()
    return status, re.sub(r"\d{8}T\d{6}Z_(\w+?)_[0-9a-f]{8}(_\d+)?\.py", r"KEPT-\1", out.out), out.err


def kept(root):
    """Return the texts of the kept files."""
    return sorted(p.read_text() for p in (root / "records" / "kept").glob("*.py"))


def events(root):
    """Return kind and slug of each record."""
    found = (root / "records" / "attempts").glob("*.jsonl")
    return [(x["kind"], x["id"], x["slug"]) for f in found for x in map(json.loads, f.read_text().splitlines())]


def test_the_stub_comes_back_and_the_file_is_kept(root, capsys):
    kernel(root).write_text(MINE)

    assert run(root, capsys, "01_double") == (
        0,
        "01_double: your file is kept in records/kept/KEPT-01_double\n"
        "01_double: the blank stub is back, and a new round begins: exercises/01_double/kernel.py\n",
        "",
    )
    assert kernel(root).read_text() == toys.STUB
    assert kept(root) == [MINE]
    assert events(root) == [("reset", "double", "01_double")]
    assert sorted(p.name for p in kernel(root).parent.iterdir()) == [
        "README.md", "exercise.toml", "kernel.py", "reference.py", "test_kernel.py",
    ]  # fmt: skip


def test_an_untouched_stub_has_nothing_to_reset(root, capsys):
    assert run(root, capsys, "double") == (0, "01_double: the stub is untouched, so there is nothing to reset.\n", "")
    assert not (root / "records").exists()


def test_a_stub_that_came_back_by_other_means_after_a_pass_begins_a_round(root, capsys):
    store = reset.Store(root / "records")
    store.append(reset.Attempt(id="double", slug="01_double", verdict="pass"))

    assert run(root, capsys, "double") == (
        0, "01_double: the blank stub was back already; a new round begins: exercises/01_double/kernel.py\n", "",
    )  # fmt: skip
    assert events(root)[1:] == [("reset", "double", "01_double")]
    assert run(root, capsys, "double")[1] == "01_double: the stub is untouched, so there is nothing to reset.\n"
    assert len(events(root)) == 2


def test_a_reset_that_was_killed_before_its_line_is_finished_by_the_next(root, capsys, monkeypatch):
    store = reset.Store(root / "records")
    store.append(reset.Attempt(id="double", slug="01_double", verdict="pass"))
    kernel(root).write_text(MINE)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(reset.Store, "append", _interrupt)
        run(root, capsys, "double")
    assert kernel(root).read_text() == toys.STUB and len(events(root)) == 1

    assert run(root, capsys, "double")[0] == 0
    assert events(root)[1:] == [("reset", "double", "01_double")]
    assert kept(root) == [MINE]


def _interrupt(*_):
    raise KeyboardInterrupt


def test_notes_in_comments_are_work_too(root, capsys):
    kernel(root).write_text(toys.STUB + "# what I found out\n")

    assert run(root, capsys, "01")[0] == 0
    assert kept(root) == [toys.STUB + "# what I found out\n"]
    assert kernel(root).read_text() == toys.STUB


def test_several_katas_at_once_each_once(root, capsys):
    kernel(root).write_text(MINE)
    kernel(root, "02_twice").write_text(MINE + "# twice\n")

    assert run(root, capsys, "01", "02_twice", "double")[1].count("a new round begins") == 2
    assert len(kept(root)) == 2
    assert events(root) == [("reset", "double", "01_double"), ("reset", "twice", "02_twice")]


def test_resets_within_one_second_keep_every_file(root, capsys):
    texts = [f"{MINE}# {i}\n" for i in range(5)]
    for text in [*texts, texts[0]]:
        kernel(root).write_text(text)
        assert run(root, capsys, "01")[0] == 0

    assert set(kept(root)) == set(texts)


def test_a_save_while_the_file_is_put_aside_is_kept_too(root, capsys, monkeypatch):
    kernel(root).write_text(MINE)
    late = MINE + "# saved in the last moment\n"
    keep = reset.Store.keep

    def slow(self, file, *args, **kwargs):
        path = keep(self, file, *args, **kwargs)
        if file.read_text() == MINE:
            file.write_text(late)
        return path

    monkeypatch.setattr(reset.Store, "keep", slow)

    assert run(root, capsys, "01")[0] == 0
    assert kept(root) == [MINE, late]


def test_a_missing_file_comes_back(root, capsys):
    kernel(root).unlink()

    assert run(root, capsys, "01") == (
        0, "01_double: the blank stub is back, and a new round begins: exercises/01_double/kernel.py\n", "",
    )  # fmt: skip
    assert kernel(root).read_text() == toys.STUB
    assert events(root) == [("reset", "double", "01_double")]


def test_a_file_that_is_no_text_is_kept_byte_for_byte(root, capsys):
    kernel(root).write_bytes(b"\xff\xfe\x00 no text")

    assert run(root, capsys, "01")[0] == 0
    assert [p.read_bytes() for p in (root / "records" / "kept").glob("*.py")] == [b"\xff\xfe\x00 no text"]


def test_the_modes_of_the_file_stay(root, capsys):
    kernel(root).write_text(MINE)
    kernel(root).chmod(0o640)
    run(root, capsys, "01")

    assert kernel(root).stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_put_aside_is_not_touched(root, capsys):
    kernel(root).write_text(MINE)
    (root / "records").mkdir()
    (root / "records" / "kept").write_text("a file where the folder should be")
    status, out, err = run(root, capsys, "01")

    assert (status, out) == (1, "")
    assert err.startswith("No reset, for kernel.py could not be put aside: records/kept")
    assert err.count("\n") == 1
    assert kernel(root).read_text() == MINE


def test_a_reset_that_cannot_be_recorded_is_said(root, capsys):
    kernel(root).write_text(MINE)
    (root / "records").mkdir()
    (root / "records" / "attempts").write_text("a file where the folder should be")
    status, _, err = run(root, capsys, "01")

    assert status == 0
    assert err.startswith("Not recorded: ")
    assert kernel(root).read_text() == toys.STUB


def test_a_stub_that_cannot_be_written_leaves_the_file(root, capsys, monkeypatch):
    kernel(root).write_text(MINE)
    monkeypatch.setattr(os, "replace", lambda a, b: _refuse(a) if b.name == "kernel.py" else real(a, b))
    real = os.rename
    status, _, err = run(root, capsys, "01")

    assert (status, err) == (
        1, "exercises/01_double/kernel.py cannot be written: Permission denied; it is as it was.\n",
    )  # fmt: skip
    assert kernel(root).read_text() == MINE
    assert not list(kernel(root).parent.glob(".*"))


def _refuse(path):
    raise PermissionError(13, "Permission denied", str(path))


def test_a_stub_that_is_not_the_known_one_changes_nothing(root, capsys, monkeypatch):
    kernel(root).write_text(MINE)
    kernel(root, "02_twice").write_text(MINE)
    monkeypatch.setattr(reset, "pristine_stub", lambda root, slug: toys.STUB if slug == "01_double" else toys.SOLUTION)

    assert run(root, capsys, "01", "02") == (
        1,
        "",
        "The stub of 02_twice that git has is not the one that harness/stubs.json names; nothing was changed. "
        "`nox -s update` brings both to the same state.\n",
    )
    assert kernel(root).read_text() == MINE


def test_without_any_history_it_says_where_the_stub_is(root, capsys, monkeypatch):
    monkeypatch.setattr(reset, "pristine_stub", lambda root, slug: None)
    assert run(root, capsys, "01")[1] == "01_double: the stub is untouched, so there is nothing to reset.\n"
    kernel(root).write_text(MINE)

    assert run(root, capsys, "01") == (
        1,
        "",
        "The blank stub of 01_double is nowhere here (a ZIP or a shallow clone has no history to take it from); "
        "nothing was changed. Take exercises/01_double/kernel.py from a fresh clone of the course.\n",
    )
    assert kernel(root).read_text() == MINE


def test_an_unknown_kata_changes_nothing(root, capsys):
    kernel(root).write_text(MINE)

    assert run(root, capsys, "01", "03") == (1, "", "There is no kata '03'; there are 01_double, 02_twice.\n")
    assert kernel(root).read_text() == MINE


def test_with_git_the_stub_comes_from_the_history(tmp_path, capsys):
    toys.write_course(tmp_path, KATAS)
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "course"]):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    kernel(tmp_path).write_text(MINE)
    subprocess.run(["git", *who, "commit", "-qam", "solved"], cwd=tmp_path, check=True)

    assert run(tmp_path, capsys, "01")[0] == 0
    assert kernel(tmp_path).read_text() == toys.STUB
    assert load_course(tmp_path).is_untouched(load_course(tmp_path).katas[0], kernel(tmp_path))
