"""Verdict: the facts of all tests of a kata, folded into one word. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# the first that applies is the verdict
WORDS = (
    "todo", "error", "timeout", "out-of-bounds", "unwritten", "mutated-input", "cheat", "racy", "wrong", "slow",
    "undecided", "pass",
)  # fmt: skip


@dataclass(frozen=True)
class TestFacts:
    """What one test of the suite found: its pytest outcome, its word and why."""

    __test__ = False

    name: str
    outcome: str
    word: str
    reason: str = ""
    findings: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    speed: Mapping[str, Any] | None = None
    late: bool = False  # the word comes from compiling, not from running

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name, "outcome": self.outcome, "word": self.word, "reason": self.reason,
            "findings": list(self.findings), "not_checked": list(self.not_checked),
            "speed": dict(self.speed) if self.speed else None, "late": self.late,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TestFacts:
        """Return the facts that ``to_json`` described."""
        return cls(**{**data, "findings": tuple(data["findings"]), "not_checked": tuple(data["not_checked"])})


@dataclass(frozen=True)
class Verdict:
    """One word for one kata and run, with the reason."""

    slug: str
    word: str
    reason: str
    tests: Mapping[str, str]
    speed: Mapping[str, Any] | None = None
    findings: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    seed: int = 0
    whole: bool = True
    failed_in: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the kata's entry of ``--verdicts FILE``."""
        return {
            "verdict": self.word, "reason": self.reason, "tests": dict(self.tests),
            "speed": dict(self.speed) if self.speed else None, "findings": list(self.findings),
            "not_checked": list(self.not_checked), "seed": self.seed, "whole_suite": self.whole,
        }  # fmt: skip

    @classmethod
    def from_json(cls, slug: str, data: Mapping[str, Any]) -> Verdict:
        """Return the verdict that ``to_json`` described."""
        return cls(
            slug, data["verdict"], data["reason"], data["tests"], data["speed"], tuple(data["findings"]),
            tuple(data["not_checked"]), data["seed"], data["whole_suite"],
        )  # fmt: skip


def worst(words: Sequence[str]) -> str:
    """Return the word that comes first in the table of verdicts; ``pass`` for none."""
    return min(words, key=WORDS.index, default="pass")


def fold(
    slug: str,
    facts: Sequence[TestFacts],
    *,
    seed: int,
    missing: Sequence[str] = (),
    narrowed: bool = False,
    device_limits: str = "",
) -> Verdict:
    """Return the verdict of a kata.

    Args:
        facts: one for each test that ran.
        missing: names of tests of the suite that did not run (deselected, -x): a pass then cannot be said.
        narrowed: the command line asked for a part of the suite (a node id, -k): nor can it then.
        device_limits: what this device can never check.
    """
    outcomes = {f.name: f.outcome for f in facts}
    if any(f.word == "cheat" for f in facts):
        # a kernel that does not compile is then no accident: torch (or Python) stood in for it
        facts = [f for f in facts if not (f.late and f.word == "error")]
    word = worst([f.word for f in facts])
    first = next((f for f in facts if f.word == word and f.reason), None)
    reason, failed_in = (first.reason, first.name) if first and word != "pass" else ("", "")
    if first and "right, but" not in reason and (word == "slow" or word == "undecided" and first.speed):
        reason = f"right, but {reason}"
    if word == "pass" and (missing or narrowed):
        word, names = (
            "undecided",
            f"; not run: {', '.join(missing[:4])}{', …' if len(missing) > 4 else ''}" if missing else "",
        )
        reason = f"only part of the suite ran{names}. Run all of it for a verdict."
    return Verdict(
        slug=slug,
        word=word,
        reason=reason,
        tests=outcomes | dict.fromkeys(missing, "not run"),
        speed=next((f.speed for f in facts if f.speed), None),
        findings=tuple(dict.fromkeys(x for f in facts for x in f.findings)),
        not_checked=tuple(
            dict.fromkeys([x for f in facts for x in f.not_checked] + [device_limits] * bool(device_limits))
        ),
        seed=seed,
        whole=not missing and not narrowed,
        failed_in=failed_in,
    )
