"""One more hint at a time, the mildest first; each is recorded, and a new round begins with none."""

import io
import json

import pytest
from rich.console import Console

from harness.errors import CourseError
from harness.loop import hint
from harness.record import Attempt
from harness.store import Store
from harness.tests import toys

README = """# 01 double

## Hints

<details><summary>1. Where do I start?</summary>

Load `x` with a mask.

</details>
<details>
<summary>2. And then?</summary>

Multiply by two:

    y = x * 2  # [BLOCK]

</details>
"""


@pytest.fixture
def root(tmp_path):
    toys.write_course(tmp_path, {"01_double": {"README.md": README}})
    return tmp_path


def shown(root, capsys, *args):
    """Return the exit status and what one call prints on both streams."""
    status = hint.main([*args], root)
    out = capsys.readouterr()
    return status, out.out, out.err


def lines(root):
    """Return the records as dicts."""
    return [json.loads(x) for f in (root / "records" / "attempts").glob("*.jsonl") for x in f.read_text().splitlines()]


def test_each_call_shows_the_next_hint_and_records_it(root, capsys):
    first, second = shown(root, capsys, "01_double"), shown(root, capsys, "double")

    assert first == (
        0,
        "01_double, hint 1 of 2: Where do I start?\n\n"
        "  Load `x` with a mask.\n\n"
        "1 hint left. Try this one first; the next: nox -s hint -- 01_double\n",
        "",
    )
    assert second == (
        0,
        "01_double, hint 2 of 2: And then?\n\n"
        "  Multiply by two:\n\n      y = x * 2  # [BLOCK]\n\n"
        "That was the last hint of this kata.\n",
        "",
    )
    assert [(x["kind"], x["id"], x["slug"], x["reason"], x["help"]) for x in lines(root)] == [
        ("hint", "double", "01_double", "Where do I start?", {"hints": 1}),
        ("hint", "double", "01_double", "And then?", {"hints": 2}),
    ]


def test_after_the_last_one_it_says_what_else_helps_and_records_nothing(root, capsys):
    (root / "lessons" / "01_double").mkdir(parents=True)
    shown(root, capsys, "01"), shown(root, capsys, "01")

    assert shown(root, capsys, "01") == (
        0,
        "01_double: all 2 hints were shown in this round. What else helps:\n"
        "  nox -s hint -- 01_double --again     the hints of this round once more\n"
        "  pytest exercises/01_double           the argument, index, program and line that the first failure names\n"
        "  lessons/01_double                    the idea behind the kata, with a worked example\n"
        "  nox -s compare -- 01_double --peek   the reference beside yours; recorded, ends the streak\n",
        "",
    )
    assert len(lines(root)) == 2


def test_again_repeats_those_of_this_round_and_records_nothing(root, capsys):
    assert shown(root, capsys, "01", "--again")[1] == (
        "01_double: no hint was shown in this round yet. The first: nox -s hint -- 01_double\n"
    )
    shown(root, capsys, "01")

    assert shown(root, capsys, "01", "--again")[1] == (
        "01_double, hint 1 of 2: Where do I start?\n\n  Load `x` with a mask.\n\n"
    )
    assert len(lines(root)) == 1


@pytest.mark.parametrize(
    "between",
    [Attempt(id="double", slug="01_double", kind="reset"), Attempt(id="double", slug="01_double", verdict="pass")],
)
def test_a_new_round_begins_with_the_mildest(root, capsys, between):
    shown(root, capsys, "01"), shown(root, capsys, "01")
    Store(root / "records").append(between)

    assert "hint 1 of 2" in shown(root, capsys, "01")[1]
    assert "hint 2 of 2" in shown(root, capsys, "01")[1]


def test_failing_attempts_and_other_katas_do_not_begin_a_round(root, capsys):
    shown(root, capsys, "01")
    Store(root / "records").append(Attempt(id="double", slug="01_double", verdict="wrong"))
    Store(root / "records").append(Attempt(id="other", slug="02_other", kind="reset"))

    assert "hint 2 of 2" in shown(root, capsys, "01")[1]


def test_an_attempt_remembers_the_hints_whose_own_lines_are_lost():
    told = Attempt(id="double", slug="01_double", verdict="wrong", help={"hints": 2, "peek": False})

    assert hint.hints_seen([told], "double") == 2


def test_other_records_folder(root, capsys, tmp_path):
    shown(root, capsys, "01", "--records", str(tmp_path / "mine"))

    assert list((tmp_path / "mine" / "attempts").glob("*.jsonl"))
    assert not (root / "records").exists()


def test_a_hint_that_cannot_be_recorded_is_shown_all_the_same(root, capsys):
    (root / "records").write_text("a file where the folder should be")
    status, out, err = shown(root, capsys, "01")

    assert (status, out.splitlines()[0]) == (0, "01_double, hint 1 of 2: Where do I start?")
    assert "\nNot recorded: " in err
    assert err.endswith("So the next call shows this hint again; exercises/01_double/README.md has all of them.\n")


def test_a_terminal_gets_the_markdown_rendered(root, capsys, monkeypatch):
    text = io.StringIO()
    made = Console(file=text, force_terminal=True, width=60, highlight=False, color_system=None)
    monkeypatch.setattr("rich.console.Console", lambda **_: made)

    assert shown(root, capsys, "01")[0] == 0
    assert "Load x with a mask." in text.getvalue()


def test_an_unknown_kata_is_one_sentence(root, capsys):
    assert shown(root, capsys, "02_double") == (
        1, "", 'There is no kata \'02_double\'; there are 01_double. Did you mean "01_double"?\n',
    )  # fmt: skip


def test_a_readme_without_hints_is_one_sentence(tmp_path, capsys):
    toys.write_course(tmp_path)

    assert shown(tmp_path, capsys, "01") == (
        1, "", "exercises/01_double/README.md has no hints; expected <details> blocks, mildest first.\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("<details><summary>1. A</summary>a</details>\n<details><summary>B</summary>b", [("A", "a"), ("B", "b")]),
        ("<details>only text</details>", [("", "only text")]),
        ("<details open>\n<summary> 2) C </summary>\n\nc `<x>`\n\n</details> after", [("C", "c `<x>`")]),
    ],
)
def test_hints_are_found_however_the_blocks_are_written(tmp_path, text, hints):
    kata = toys.write_course(tmp_path, {"01_double": {"README.md": text}}).katas[0]

    assert [(h.title, h.text) for h in hint.read_hints(kata)] == hints


def test_a_missing_readme_is_one_sentence(tmp_path):
    kata = toys.write_course(tmp_path).katas[0]
    (kata.folder / "README.md").unlink()

    with pytest.raises(
        CourseError, match=r"^exercises/01_double/README\.md cannot be read: No such file or directory\.$"
    ):
        hint.read_hints(kata)


def test_every_kata_of_the_course_has_hints():
    from harness.course import load_course

    for kata in load_course().katas:
        assert len(hint.read_hints(kata)) >= 3, kata.slug
        assert all(h.title and h.text for h in hint.read_hints(kata)), kata.slug


def test_no_torch_is_loaded(root):
    code = (
        f"import sys; from pathlib import Path; from harness.loop.hint import main; main(['01'], Path({str(root)!r}))"
    )
    done = toys.python("-c", f"{code}; sys.exit('torch' in sys.modules)", cwd=root)

    assert done.returncode == 0, done.stderr
