"""Run: what the fixture ``run`` of a suite is, and what a learner reads when a test did not pass. No torch here."""

from __future__ import annotations

import hashlib
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.course import Kata
from harness.desk import Choices, Desk
from harness.errors import HarnessFault
from harness.spec import Case
from harness.verdict import TestFacts

TOLD = 3  # tests of a kata whose failure is told at length; one cause often fails them all
SHRINKS = 12  # further runs that hypothesis gets to make a wrong case smaller
SHRINK_TESTS = 2  # … in this many tests of a suite; one small example is enough to learn from


class KataFailure(Exception):
    """One test of a kata's suite did not pass; carries its facts and the text for the learner."""

    def __init__(self, facts: dict[str, Any], text: str) -> None:
        super().__init__(text)
        self.facts = facts


@dataclass
class Run:
    """What the fixture ``run`` is: judges one case, and raises when it is not right.

    Hypothesis shrinks values only: a wrong result gets some further runs to become smaller; a crash, a timeout or a
    stray access ends the search at the first example.
    """

    desk: Desk
    test: str
    replay: str
    facts: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[str, KataFailure] = field(default_factory=dict)
    left: int = 0
    brief: bool = False

    def __repr__(self) -> str:
        return f"run({self.desk.kata.slug})"  # hypothesis prints fixtures of a failing example

    def __call__(self, case: Case | None) -> None:
        """Judge ``case``. Raises KataFailure, and SpecError for a toml without cases to declare."""
        if case is None:
            raise HarnessFault(f"{self.desk.kata.spec.slug}/exercise.toml declares no case with role = 'small'.")
        case = case.with_seed(seed_of(self.desk.choices.seed, self.test, case))
        key = case.key()
        if key in self.failed:
            raise self.failed[key]
        if self.failed and self.left <= 0:
            return
        self.left -= 1
        if self.desk.ended:
            self.fail(key, {"word": "timeout", "reason": self.desk.ended, "findings": [], "not_checked": []}, case)
        facts = self.desk.judge(case)
        self.facts.append(facts)
        if facts["word"] != "pass":
            self.fail(key, facts, case)

    def fail(self, key: str, facts: dict[str, Any], case: Case | None) -> None:
        """Raise the failure, and remember it for when hypothesis asks again."""
        first = not self.failed
        if first:
            self.brief = self.desk.told >= TOLD
        like = self.desk.first_with.setdefault(facts["reason"], self.test)
        like = "" if like == self.test else like
        failure = KataFailure(facts, failure_text(self.desk, self.replay, facts, case, self.brief, like))
        self.failed[key] = failure
        if first:
            self.desk.told += 1
            self.desk.wrong_tests += 1
            small = facts["word"] == "wrong" and self.desk.wrong_tests <= SHRINK_TESTS
            self.left = SHRINKS if small else 0
        raise failure


def seed_of(seed: int, test: str, case: Case) -> int:
    """Return the seed of one case's values: fixed by the run's seed, the test and the case alone."""
    text = f"{seed}/{test.split('[')[0]}/{case.with_seed(0).key()}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def failure_text(
    desk: Desk, replay: str, facts: dict[str, Any], case: Case | None, brief: bool = False, like: str = ""
) -> str:
    """Return what the learner reads: the word, the case, the reason, what was printed, how to see it again.

    ``brief``: the kata has failed several tests in full already; one line of the reason will do. ``like``: the test
    that failed for the very same reason before.
    """
    head = f"{facts['word']}: {desk.kata.spec.entry} in {_short(desk.file, desk)}"
    name = case.id if case is not None else facts.get("case", "")
    lines = [head + (f", case {name}" if name else ""), facts["reason"]]
    reason = facts["reason"].split("\n")
    if like:
        return f"{lines[0]}\nas in {like}: {reason[0]}"
    if brief:
        return "\n".join([lines[0], reason[0], f"{'see it again' if len(reason) == 1 else 'see all of it'}: {replay}"])
    if (printed := facts.get("printed", "").strip()) and facts["word"] not in ("pass", "undecided"):
        lines += ["your code printed:", *("    " + x for x in printed.splitlines()[-12:])]
    lines += [f"note: {f}" for f in facts["findings"]]
    if facts["word"] != "todo":
        lines.append(f"see it again: {replay}")
    return "\n".join(x for x in lines if x)


def _short(path: Path, desk: Desk) -> str:
    try:
        return str(path.relative_to(desk.kata.folder.parent.parent))
    except ValueError:
        return path.name


def replay_command(kata: Kata, test: str, choices: Choices) -> str:
    """Return the one command that repeats a failure."""
    target = os.path.relpath(kata.folder / "test_kernel.py")
    words = ["pytest", f"{target}::{test}", "--kata-seed", str(choices.seed)]
    if choices.solutions:
        words.append("--solutions")
    if choices.submission is not None:
        words += ["--submission", os.path.relpath(choices.submission)]
    if choices.device == "cuda":
        words += ["--device", "cuda"]
    return " ".join(map(shlex.quote, words))


def as_test_facts(name: str, outcome: str, facts: list[dict[str, Any]], failure: dict[str, Any] | None) -> TestFacts:
    """Fold what one test saw."""
    seen = [*facts, *([failure] if failure else [])]
    word = failure["word"] if failure else ("pass" if outcome == "passed" else "error")
    return TestFacts(
        name=name,
        outcome=outcome,
        word=word,
        reason=failure["reason"] if failure else "",
        findings=tuple(dict.fromkeys(x for f in seen for x in f["findings"])),
        not_checked=tuple(dict.fromkeys(x for f in seen for x in f["not_checked"])),
        speed=next((f["speed"] for f in seen if f.get("speed")), None),
        late=bool(failure and failure.get("late")),
    )
