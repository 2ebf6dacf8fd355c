"""Rounds, streaks and due dates: a scripted week, each rule by itself, and random histories against a slow model."""

import re
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.record import Attempt, stamp
from harness.store import Store
from harness.streaks import Round, Standing, day_streak, due, help_used, pass_streak, rounds, standings

MONDAY = datetime(2026, 3, 2, 18, 0, tzinfo=UTC)
DAY = timedelta(days=1)
BUSY = (HealthCheck.too_slow,)  # other work on the machine is no fault of a test
PLENTY = settings(max_examples=150, deadline=None, database=None, suppress_health_check=BUSY)

# one letter an event: P pass, f fail, h hint, k peek, R reset
KINDS = {"h": "hint", "k": "peek", "R": "reset"}


def make(letter: str, at: datetime = MONDAY, id: str = "nf4", **more) -> Attempt:
    """Return the event that a letter stands for."""
    verdict = {"P": "pass", "f": "wrong"}.get(letter, "")
    return Attempt(
        **{"id": id, "slug": f"05_{id}", "kind": KINDS.get(letter, "attempt"), "verdict": verdict, "time": stamp(at)}
        | more
    )


def history(letters: str, id: str = "nf4", step: timedelta = timedelta(minutes=1)) -> list[Attempt]:
    """Return the events of a word, so far apart."""
    return [make(letter, MONDAY + n * step, id) for n, letter in enumerate(letters)]


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Spare a busy disk."""
    monkeypatch.setattr("harness.store.os.fsync", lambda fd: None)


# -- a week ----------------------------------------------------------------------------------------------------------


def test_a_week_of_a_learners_life(tmp_path):
    """Two katas, from the first failing run to the second week; every number after every day."""
    store = Store(tmp_path / "records")

    def on(day: int, **letters: str) -> tuple[Standing, Standing, int]:
        for id, word in letters.items():
            for n, letter in enumerate(word):
                help_now = help_used(store.history()[0], id) if letter in "Pf" else {}
                store.append(make(letter, MONDAY + day * DAY + n * timedelta(minutes=5), id, help=help_now))
        events, problems = store.history()
        now = MONDAY + day * DAY + timedelta(hours=2)
        assert problems == []
        return *standings(events, ["blocks", "nf4"], now).values(), day_streak(events, now.date(), UTC)

    def at(day: float, minutes: int = 0) -> datetime:
        return MONDAY + day * DAY + timedelta(minutes=minutes)

    def numbers(one: Standing) -> tuple:
        return one.verdict, one.attempts, one.passes, one.streak, one.hints_used, one.peeked, one.in_round

    # Monday: blocks is solved at the third run, and run once more for pleasure; nf4 is begun
    blocks, nf4, days = on(0, blocks="ffPP", nf4="f")
    assert numbers(blocks) == ("pass", 4, 1, 1, 0, False, False)
    assert (blocks.passed_at, blocks.days_since) == (at(0, 10), 0)
    assert (blocks.due_at, blocks.is_due) == (at(1, 10), False)
    assert numbers(nf4) == ("wrong", 1, 0, 0, 0, False, True)
    assert (nf4.passed_at, nf4.days_since, nf4.due_at, nf4.is_due) == (None, None, None, False)
    assert days == 1

    # Tuesday: two hints, and nf4 passes; blocks is due and waits
    blocks, nf4, days = on(1, nf4="hfhP")
    assert numbers(nf4) == ("pass", 3, 1, 1, 2, False, False)
    assert (nf4.due_at, nf4.is_due) == (at(2, 15), False)
    assert (blocks.is_due, blocks.days_since) == (True, 1)
    assert days == 2

    # Wednesday: blocks from blank, a fail, a pass: twice in a row, so three days; nf4 is reset, tried, not finished
    blocks, nf4, days = on(2, blocks="RfP", nf4="Rfh")
    assert numbers(blocks) == ("pass", 6, 2, 2, 0, False, False)
    assert (blocks.due_at, blocks.is_due) == (at(5, 10), False)
    assert numbers(nf4) == ("wrong", 4, 1, 1, 1, False, True)
    assert (nf4.due_at, nf4.is_due) == (at(2, 15), True)
    assert days == 3

    # Thursday: a peek; the streak ends there, and the pass behind it does not bring it back
    blocks, nf4, days = on(3, nf4="k")
    assert numbers(nf4) == ("wrong", 4, 1, 0, 1, True, True)
    assert days == 3  # yesterday's pass still holds it
    blocks, nf4, days = on(3, nf4="fP")
    assert numbers(nf4) == ("pass", 6, 2, 0, 1, True, False)
    assert (nf4.due_at, nf4.is_due) == (at(4, 5), False)
    assert days == 4

    # Friday: reset and redone without help: one in a row
    blocks, nf4, days = on(4, nf4="RP")
    assert numbers(nf4) == ("pass", 7, 3, 1, 0, False, False)
    assert (nf4.due_at, nf4.is_due) == (at(5, 5), False)
    assert days == 5

    # Saturday: nothing. Sunday: the day streak is over, both are due
    blocks, nf4, days = on(5)
    assert days == 5
    assert (blocks.is_due, nf4.is_due) == (True, True)
    blocks, nf4, days = on(6)
    assert days == 0
    assert (blocks.days_since, nf4.days_since) == (4, 2)

    # Monday: blocks a third time in a row: seven days
    blocks, nf4, days = on(7, blocks="RhP")
    assert numbers(blocks) == ("pass", 7, 3, 3, 1, False, False)
    assert (blocks.due_at, blocks.is_due) == (at(14, 10), False)
    assert days == 1
    assert [r.outcome for r in rounds(store.history()[0], "nf4")] == ["pass"] * 3
    assert len(store.history()[0]) == len("ffPPf" + "hfhP" + "RfPRfh" + "kfP" + "RP" + "RhP")


# -- rules -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word, streak",
    [
        ("", 0), ("f", 0), ("P", 1), ("fffP", 1), ("PPP", 1), ("PfP", 1),  # without a reset there is one round
        ("PRP", 2), ("PRfffP", 2), ("PR", 1), ("PRff", 1),  # failing runs break nothing
        ("hP", 1), ("PRhhP", 2),  # nor do hints
        ("kP", 0), ("fkP", 0), ("PRPRk", 0), ("PRPRkP", 0), ("PRPRkPRP", 1),  # a peek does, at once
        ("Pk", 1), ("PkRP", 2),  # after the pass the solution is open
        ("PRkRP", 1), ("kRP", 1),  # a reset starts over, but what the peek ended stays ended
        ("PRfRP", 2), ("PRRRP", 2), ("RP", 1),  # a round given up is none
    ],
)  # fmt: skip
def test_the_pass_streak(word, streak):
    assert pass_streak(history(word), "nf4") == streak


def test_rounds_say_what_was_in_them():
    def at(minute: int) -> datetime:
        return MONDAY + timedelta(minutes=minute)

    assert rounds(history("hffPfPRRkfRh"), "nf4") == [
        Round(at(0), "pass", at(3), attempts=3, hints=1, peeked=False),
        Round(at(7), "reset", at(10), attempts=1, hints=0, peeked=True),
        Round(at(10), "open", None, attempts=0, hints=1, peeked=False),
    ]


def test_help_that_only_an_attempt_tells_of_counts():
    told = [make("f", help={"hints": 2, "peek": True}), make("P", help={})]

    assert rounds(told, "nf4")[0].hints == 2
    assert pass_streak(told, "nf4") == 0


@pytest.mark.parametrize(
    "word, used", [("", (0, False)), ("hfh", (2, False)), ("hkf", (1, True)), ("hkP", (0, False)), ("hkR", (0, False))]
)
def test_help_used_is_that_of_the_open_round(word, used):
    assert help_used(history(word), "nf4") == {"hints": used[0], "peek": used[1]}


def test_runs_of_a_part_of_the_suite_count_for_nothing():
    part = [make("P", whole=False)]

    assert rounds(part, "nf4") == []
    assert standings(part, ["nf4"], MONDAY)["nf4"] == Standing("nf4")
    assert day_streak(part, MONDAY.date(), UTC) == 0


@pytest.mark.parametrize("n, days", [(1, 1), (2, 3), (3, 7), (4, 21), (5, 60), (6, 60), (9, 60)])
def test_due_again_from_blank(n, days):
    events = history("R".join("P" * n))
    passed = events[-1].at

    assert due(events, "nf4", passed + days * DAY - timedelta(seconds=1)) == (passed + days * DAY, False)
    assert due(events, "nf4", passed + days * DAY) == (passed + days * DAY, True)
    assert due(events + [make("P", passed + DAY)], "nf4", passed)[0] == passed + days * DAY  # the same file once more
    assert due(events + [make("R", passed + DAY)], "nf4", passed)[0] == passed + days * DAY


def test_due_after_a_peek_is_the_next_day_and_before_a_pass_never():
    peeked = history("PRPRkP")

    assert due(peeked, "nf4", MONDAY)[0] == peeked[-1].at + DAY
    assert due(history("RfkfRf"), "nf4", MONDAY + 1000 * DAY) == (None, False)


@pytest.mark.parametrize(
    "days, streak",
    [
        ([], 0), ([0], 1), ([-1], 1), ([-2], 0), ([-1, 0], 2), ([-2, -1], 2), ([-3, -2, 0], 1), ([-2, 0, 0, 0], 1),
        ([1], 1), ([0, 1], 2), ([-1, 1], 1), ([9], 0), ([-1, 0, 9], 2),
    ],
)  # fmt: skip
def test_the_day_streak(days, streak):
    events = [make("P", MONDAY + n * DAY, id=f"k{n}") for n in days]

    assert day_streak(events, MONDAY.date(), UTC) == streak


def test_only_passes_make_a_day():
    assert day_streak(history("fhkR"), MONDAY.date(), UTC) == 0


def test_the_days_are_those_of_the_zone():
    late = [make("P", datetime(2026, 3, 2, 23, 30, tzinfo=UTC)), make("P", datetime(2026, 3, 4, 0, 30, tzinfo=UTC))]
    west = timezone(timedelta(hours=-5))

    assert day_streak(late, date(2026, 3, 4), UTC) == 1
    assert day_streak(late, date(2026, 3, 3), west) == 2


def test_a_clock_that_goes_back_gives_no_negative_days():
    events = history("P")
    before = MONDAY - 400 * DAY
    standing = standings(events, ["nf4"], before)["nf4"]

    assert standing.days_since == 0
    assert (standing.streak, standing.is_due, standing.due_at) == (1, False, MONDAY + DAY)
    assert day_streak(events, before.date(), UTC) == 0


def test_events_of_unknown_katas_are_ignored_but_their_day_counts():
    events = [make("P", id="gone"), *history("fP")]

    assert list(standings(events, ["nf4"], MONDAY)) == ["nf4"]
    assert standings(events, ["nf4"], MONDAY)["nf4"].attempts == 2
    assert day_streak([make("P", id="gone")], MONDAY.date(), UTC) == 1


def test_a_kata_without_events_stands_at_nothing():
    assert standings([], ["a", "b"], MONDAY) == {"a": Standing("a"), "b": Standing("b")}


# -- random histories ------------------------------------------------------------------------------------------------


def model_rounds(word: str) -> list[tuple[str, bool]]:
    """Return the text of each round and whether it is the open one: what a reset begins, up to the first pass."""
    parts = word.split("R")
    texts = [re.match("[^P]*P?", part)[0] for part in parts]
    return [(text, n == len(parts) - 1 and "P" not in text and word != "") for n, text in enumerate(texts)]


def model_streak(word: str) -> int:
    """Count from the end: passed rounds up to the first that has a peek; a round without a pass is passed over."""
    streak = 0
    for text, _ in reversed(model_rounds(word)):
        if "k" in text:
            break
        streak += "P" in text
    return streak


@PLENTY
@given(st.text("PfhkR", max_size=25), st.integers(0, 100))
def test_random_histories_follow_the_model(word, later):
    events = history(word, step=timedelta(hours=7))
    now = MONDAY + later * DAY
    mine = model_rounds(word)
    last = next((text for text, is_open in reversed(mine) if text or is_open), "")
    passed = [n for n, letter in enumerate(word) if letter == "P" and "P" not in word[word.rfind("R", 0, n) + 1 : n]]
    got = standings(events, ["nf4"], now)["nf4"]

    assert got.attempts == word.count("P") + word.count("f")
    assert got.passes == len(passed) == sum("P" in text for text, _ in mine)
    assert got.streak == pass_streak(events, "nf4") == model_streak(word)
    assert (got.hints_used, got.peeked) == (last.count("h"), "k" in last)
    assert got.in_round == any(is_open for _, is_open in mine)
    assert got.verdict == {"P": "pass", "f": "wrong"}.get("".join(c for c in word if c in "Pf")[-1:], "")
    if passed:
        row = model_streak(word[: passed[-1] + 1])
        days = {0: 1, 1: 1, 2: 3, 3: 7, 4: 21}.get(row, 60)
        assert got.passed_at == MONDAY + passed[-1] * timedelta(hours=7)
        assert got.due_at == got.passed_at + timedelta(days=days)
        assert got.is_due == (now >= got.due_at) and got.days_since >= 0
    else:
        assert (got.passed_at, got.due_at, got.is_due, got.days_since) == (None, None, False, None)


@PLENTY
@given(st.sets(st.integers(-12, 12)), st.booleans())
def test_random_days_follow_the_model(days, evening):
    events = [make("P", MONDAY.replace(hour=22 if evening else 1) + n * DAY) for n in sorted(days)]
    lengths = [max(n for n in range(15) if set(range(end - n + 1, end + 1)) <= days) for end in (1, 0, -1)]
    model = next(filter(None, lengths), 0)

    assert day_streak(events, MONDAY.date(), UTC) == model


@PLENTY
@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("PfhkR")), max_size=30))
def test_katas_do_not_touch_each_other(events):
    mixed = [make(letter, MONDAY + n * DAY, id) for n, (id, letter) in enumerate(events)]
    for id in "ab":
        alone = [e for e in mixed if e.id == id]
        assert standings(mixed, ["a", "b"], MONDAY)[id] == standings(alone, [id], MONDAY)[id]
        assert rounds(mixed, id) == rounds(alone, id)


@settings(PLENTY, max_examples=25)
@given(st.text("PfhkR", max_size=10), st.lists(st.integers(-600, 600), min_size=10, max_size=10))
def test_a_clock_that_jumps_changes_no_streak(tmp_path_factory, word, minutes):
    store = Store(tmp_path_factory.mktemp("any") / "records")
    for letter, minute in zip(word, minutes, strict=False):
        store.append(make(letter, MONDAY + timedelta(minutes=minute)))
    events, problems = store.history()

    assert problems == []
    assert pass_streak(events, "nf4") == model_streak(word)
