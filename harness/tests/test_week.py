"""A week of a learner's life, and on to the 21-day due date: the real commands, real git, a clock of the learner's.

Every number that is read was worked out by hand from the rules in ``records/README.md``. Times are the learner's own,
eight hours behind UTC: an evening's work has tomorrow's date in the records.
"""

import re
import shutil

import pytest

from harness.tests import toys
from harness.tests.clones import settle
from harness.tests.week import MINE, OTHER_STUB, UNMASKED, WRONG, Want, Week

TODO = "Next: {0}, because it is the next on the path, and its stub is untouched. Start with exercises/{0}/README.md.\n      pytest exercises/{0}"
DUE = "Next: {0} again from blank, because it is due.\n      nox -s reset -- {0}"
ALL = "All of it passes."
IS_WRONG = (
    "Next: {0}, because all 150 elements of double's result are wrong in case M3-N50.\n      pytest exercises/{0}"
)
NEWER = '{"schema":9,"kind":"trophy","id":"double","stars":3}\n'


@pytest.fixture
def week(tmp_path, monkeypatch, server):
    """The learner's clone, on its first day."""
    if shutil.which("git") is None:
        pytest.skip("this is about what git keeps; install git")
    settle(monkeypatch, tmp_path / "home")
    (tmp_path / "week").mkdir()
    return Week(tmp_path / "week", server)


def test_a_week_of_a_learners_life(week):
    double, triple = monday(week)
    double, triple = tuesday(week, double, triple)
    triple = thursday(week, double, triple)
    double, triple = friday(week, double, triple)
    double = saturday(week, double, triple)
    triple = sunday(week, double, triple)
    fourth = next_monday(week, double, triple)
    fourth = the_clock_goes_back(week, double, triple, fourth)
    three_weeks_later(week, double, triple, fourth)


def monday(week):
    """Fail, fail, hint, pass; and a whole grade, which counts as a run, too."""
    week.at("03-02 19:00")
    week.shows(0, TODO.format("01_double"), "-n", "0", k01_double=Want(), k02_triple=Want())
    assert week.me.status() == []

    week.grades("01_double", "03-02 19:10", "wrong", WRONG)
    week.grades("01_double", "03-02 19:20", "out-of-bounds", UNMASKED)
    said = week.chore("hint", "01_double", when="03-02 19:30").out
    assert said.startswith("01_double, hint 1 of 2: What does one program own?\n")
    assert said.endswith("1 hint left. Try this one first; the next: nox -s hint -- 01_double\n")
    week.grades("01_double", "03-02 19:40", "pass", MINE)

    week.at("03-02 19:50")
    runs = "1 wrong, 1 out-of-bounds, 2 pass"
    double = Want("pass", runs, passes=1, streak=1, hints=1, due="03-03 19:40", events="1 hint")
    week.shows(1, TODO.format("02_triple"), "-n", "2", k01_double=double, k02_triple=Want())
    return double, Want()


def tuesday(week, double, triple):
    """Another kata; reset, redo, pass."""
    week.grades("02_triple", "03-03 18:00", "pass", MINE + "# mine\n")
    triple = Want("pass", "1 pass", passes=1, streak=1, due="03-04 18:00")

    said = week.chore("reset", "01_double", when="03-03 19:00").out
    (kept,) = (week.me.root / "records" / "kept").iterdir()
    assert said == (
        f"01_double: your file is kept in records/kept/{kept.name}\n"
        "01_double: the blank stub is back, and a new round begins: exercises/01_double/kernel.py\n"
    )
    assert kept.name.startswith("20260304T030000Z_01_double_") and kept.read_text() == MINE
    assert week.me.read("exercises/01_double/kernel.py") == toys.STUB
    double = double.but(verdict="todo", hints=0, events="1 hint, 1 reset")
    again = "Next: 01_double, because you reset it to do it again from blank.\n      pytest exercises/01_double"
    week.shows(2, again, k01_double=double, k02_triple=triple)

    week.grades("01_double", "03-03 19:10", "pass", MINE)
    double = double.but(verdict="pass", runs="1 wrong, 1 out-of-bounds, 3 pass", passes=2, streak=2, due="03-06 19:10")
    return double, triple


def thursday(week, double, triple):
    """Nothing on Wednesday. A peek before the pass ends the streak, and the pass does not bring it back."""
    week.at("03-04 20:00")
    week.shows(2, DUE.format("02_triple"), k01_double=double, k02_triple=triple)

    week.chore("reset", "triple", when="03-05 18:00")
    week.grades("02_triple", "03-05 18:10", "wrong", WRONG)
    closed = week.chore("compare", "02_triple", when="03-05 18:20", status=1).out
    assert closed == (
        "02_triple: compare opens after a pass, and this round, which began with your reset, has none yet. How to proceed:\n"
        "  pytest exercises/02_triple           grade it: the first failure says what is wrong, and where\n"
        "  nox -s hint -- 02_triple             one more hint; none seen in this round\n"
        "  nox -s compare -- 02_triple --peek   open it now: that is recorded, and your streak ends\n"
    )
    opened = week.chore("compare", "02_triple", "--peek", when="03-05 18:30").out
    assert opened.startswith(
        "02_triple: a peek, recorded. This round can still end in a pass; a new streak begins with the next.\n\n"
    )
    assert re.search(r"^verdict +wrong +pass$", opened, re.MULTILINE)
    triple = triple.but(verdict="wrong", runs="1 pass, 1 wrong", streak=0, peeked=True, events="1 peek, 1 reset")
    week.shows(0, IS_WRONG.format("02_triple"), k01_double=double, k02_triple=triple)

    week.grades("02_triple", "03-05 18:40", "pass", MINE)
    triple = triple.but(verdict="pass", runs="2 pass, 1 wrong", passes=2, due="03-06 18:40")
    week.shows(1, ALL, k01_double=double, k02_triple=triple)
    return triple


def friday(week, double, triple):
    """The streak begins again; compare after a pass changes nothing; practice, and the solutions are out of sight."""
    week.chore("reset", "02", when="03-06 18:45")
    week.grades("02_triple", "03-06 18:50", "pass", MINE + "# mine\n")
    triple = Want("pass", "3 pass, 1 wrong", passes=3, streak=1, due="03-07 18:50", events="1 peek, 2 resets")
    before = week.belongings()
    compared = week.chore("compare", "01_double", when="03-06 19:00").out
    assert re.search(r"^verdict +pass +pass$", compared, re.MULTILINE)
    assert week.belongings() == before

    week.me.commit("My week so far")
    week.writes("01_double", MINE + "# a thought\n")
    week.chore("practice", when="03-06 19:10")
    week.practising = True
    week.solutions_are_out_of_sight()
    assert week.belongings() == before | {"exercises/01_double/kernel.py": (MINE + "# a thought\n").encode()}
    week.shows(2, DUE.format("01_double"), k01_double=double, k02_triple=triple)
    return double, triple


def saturday(week, double, triple):
    """Upstream changes a stub and adds a kata. The reset brings the new stub."""
    week.stub("01_double", OTHER_STUB)
    week.adds("03_fourth")
    week.up.commit("Bigger blocks, and a fourth")

    said = week.chore("update", when="03-07 18:00").words()
    assert "Committed, for upstream changed these katas: exercises/01_double/kernel.py\n" in said
    assert "+    double_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)\n" in said
    assert said.endswith(
        "\n- new: 03_fourth\n- yours is kept: exercises/01_double/kernel.py; upstream changed the stub\n"
        "You have all of origin/main now. Next: nox -s grade\n"
    )
    assert week.me.read("exercises/01_double/kernel.py") == MINE + "# a thought\n"
    next = TODO.format("03_fourth") + "\nDue again from blank: 01_double. Begin: nox -s reset -- 01_double"
    week.shows(2, next, k01_double=double, k02_triple=triple, k03_fourth=Want())

    week.chore("reset", "01_double", when="03-07 19:00")
    assert week.me.read("exercises/01_double/kernel.py") == OTHER_STUB
    week.grades("01_double", "03-07 19:10", "pass", MINE)
    double = double.but(runs="1 wrong, 1 out-of-bounds, 4 pass", passes=3, streak=3, due="03-14 19:10")
    double = double.but(events="1 hint, 2 resets")
    return double


def sunday(week, double, triple):
    """Upstream gives a kata another number and another stub while the learner is at it; the history follows the id."""
    week.chore("reset", "02_triple", when="03-08 18:00")
    week.chore("hint", "02_triple", when="03-08 18:05")
    week.grades("02_triple", "03-08 18:10", "wrong", WRONG)
    week.me.write("exercises/02_triple/notes.md", "the last block is short\n")
    for top in ("exercises", "solutions"):
        week.up.git("mv", f"{top}/02_triple", f"{top}/05_triple")
    week.stub("05_triple", OTHER_STUB)
    week.up.commit("Triple comes later")

    said = week.chore("update", when="03-08 18:20").words()
    assert "- 02_triple is 05_triple now; your files and records went along\n" in said
    assert said.endswith(
        "- yours is kept: exercises/05_triple/kernel.py; upstream changed the stub\n"
        "Moved along: exercises/02_triple/notes.md is now exercises/05_triple/notes.md\n"
        "You have all of origin/main now. Next: nox -s grade\n"
    )
    assert not week.me.has("exercises/02_triple")
    assert week.me.read("exercises/05_triple/kernel.py") == WRONG
    assert week.me.read("exercises/05_triple/notes.md") == "the last block is short\n"
    triple = triple.but(verdict="wrong", runs="3 pass, 2 wrong", hints=1, events="1 hint, 1 peek, 3 resets")
    week.shows(3, TODO.format("03_fourth"), k01_double=double, k03_fourth=Want(), k05_triple=triple)
    assert week.chore("update").words().endswith("\nNothing new: you have all of origin/main.\n")

    week.grades("05_triple", "03-08 18:30", "pass", MINE)
    triple = triple.but(verdict="pass", runs="4 pass, 2 wrong", passes=4, streak=2, due="03-11 18:30")
    return triple


def next_monday(week, double, triple):
    """A corrupt line and one of a newer schema are told, kept and not counted; two runs at once are two runs."""
    (file,) = (week.me.root / "records" / "attempts").iterdir()
    lines = file.read_bytes()
    file.write_bytes(lines + b'{"schema":1,"kind":"attempt","id":"double","verdict":"pass"}\n' + NEWER.encode())
    number = lines.count(b"\n")
    told = [
        f"records/attempts/{file.name}: line {number + 1} is damaged (its digest does not match); kept and not counted.",
        f"records/attempts/{file.name}: line {number + 2} is from a newer Kernel Kata (this one reads schema 1); "
        "kept and not counted until `nox -s update`.",
    ]
    week.chore("hint", "03", when="03-09 18:10", err="".join(f"{line}\n" for line in told))

    week.at("03-09 18:20")
    week.writes("03_fourth", MINE)
    before = week.belongings()
    both = [week.start("pytest", "exercises/03_fourth", "-q") for _ in range(2)]
    for process in both:
        out, err = process.communicate()
        assert (process.returncode, err) == (0, ""), out
        assert all(line in out for line in told)
    week.nothing_is_lost(before)
    fourth = Want("pass", "2 pass", passes=1, streak=1, hints=1, due="03-10 18:20", events="1 hint")
    week.shows(5, ALL, err=told, k01_double=double, k03_fourth=fourth, k05_triple=triple)
    week.told = told
    return fourth


def the_clock_goes_back(week, double, triple, fourth):
    """On Tuesday the computer takes it for the first of March: the order of the records stays, and the rounds with it."""
    week.chore("reset", "03_fourth", when="03-01 19:00")
    week.grades("03_fourth", "03-01 19:10", "pass", MINE)
    fourth = fourth.but(runs="3 pass", passes=2, streak=2, hints=0, due="03-04 19:10", events="1 hint, 1 reset")
    # that day has a pass now, and so has the next, Monday
    week.shows(2, ALL, err=week.told, k01_double=double, k03_fourth=fourth, k05_triple=triple)

    week.at("03-11 18:40")  # mended; by the records nothing passed on Tuesday
    next = DUE.format("03_fourth") + "\nAlso due: 05_triple. Begin: nox -s reset -- 05_triple"
    week.shows(0, next, err=week.told, k01_double=double, k03_fourth=fourth, k05_triple=triple)
    return fourth


def three_weeks_later(week, double, triple, fourth):
    """The fourth round in a row is due after 21 days, the fifth after 60."""
    week.chore("reset", "01_double", when="03-14 19:20")
    week.grades("01_double", "03-14 19:30", "pass", MINE)
    double = double.but(runs="1 wrong, 1 out-of-bounds, 5 pass", passes=4, streak=4, due="04-04 19:30")
    double = double.but(events="1 hint, 3 resets")
    week.at("04-04 19:30")
    first = DUE.format("01_double") + "\nAlso due: 03_fourth, 05_triple. Begin: nox -s reset -- 03_fourth"
    week.shows(0, first, err=week.told, k01_double=double, k03_fourth=fourth, k05_triple=triple)

    week.chore("reset", "01_double")
    week.grades("01_double", "04-04 19:40", "pass", MINE)
    double = double.but(runs="1 wrong, 1 out-of-bounds, 6 pass", passes=5, streak=5, due="06-03 19:40")
    double = double.but(events="1 hint, 4 resets")
    rest = DUE.format("03_fourth") + "\nAlso due: 05_triple. Begin: nox -s reset -- 05_triple"
    week.shows(1, rest, err=week.told, k01_double=double, k03_fourth=fourth, k05_triple=triple)
    assert len(list((week.me.root / "records" / "kept").iterdir())) == 8  # one a reset
