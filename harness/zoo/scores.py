"""Scores: how far modelled times lie from measured ones, and how often both give one verdict. No torch here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

GATE = 0.7  # of the best known kernel of the family
BAND = 0.1  # a modelled share this near to the gate is undecided
APART = 1.1  # two kernels whose times differ by more have an order


@dataclass(frozen=True)
class Row:
    """One variant: seconds measured and modelled; ``binds`` is what the model says it waits for.

    ``modelled`` is nan for a kernel that the model says nothing about; ``why`` is the sentence that says why not.
    """

    family: str
    variant: str
    measured: float
    modelled: float
    binds: str = ""
    set: str = ""
    terms: dict[str, float] = field(default_factory=dict)
    why: str = ""

    @property
    def known(self) -> bool:
        """Whether the model says anything about it."""
        return not math.isnan(self.modelled)

    @property
    def ratio(self) -> float:
        """Modelled over measured."""
        return self.modelled / self.measured


@dataclass(frozen=True)
class Scores:
    """What a set of rows comes to.

    Attributes:
        unknown: of ``count``, those that are not modelled: they are undecided, and in no other figure.
        error: geometric mean of the factor between modelled and measured, at least 1.
        bias: geometric mean of modelled over measured.
        ordered: of pairs of one family more than APART apart, the share that the model orders alike.
        agree: of the modelled ones, the share with the same side of the gate; decided: the share that is not undecided.
        false_pass, false_fail: decided ones on the wrong side.
        worst_pass: the smallest measured share among those that pass, 1 for none.
    """

    count: int
    unknown: int
    error: float
    bias: float
    ordered: float
    agree: float
    decided: float
    false_pass: tuple[str, ...]
    false_fail: tuple[str, ...]
    worst_pass: float


def shares(rows: Sequence[Row]) -> list[tuple[Row, float, float]]:
    """Return each row with its share of the family's best kernel, as measured and as modelled.

    As in a verdict, the modelled share is that of one fixed kernel: the one that measured best.
    """
    best = {f: min((r for r in rows if r.family == f), key=lambda r: r.measured) for f in {r.family for r in rows}}
    return [(r, best[r.family].measured / r.measured, best[r.family].modelled / r.modelled) for r in rows]


def score(rows: Sequence[Row], gate: float = GATE, band: float = BAND) -> Scores:
    """Return the scores of ``rows``. Raises ValueError for none."""
    if not rows:
        raise ValueError("no rows to score")
    logs = [math.log(r.ratio) for r in rows if r.known]
    pairs = list(shares(rows))
    known = [p for p in pairs if not math.isnan(p[2])]
    clear = [(r, a, b) for r, a, b in known if abs(b - gate) > band]
    name = "{0.family}/{0.variant}".format
    passed = [a for _, a, b in clear if b > gate]
    return Scores(
        count=len(rows),
        unknown=len(rows) - len(logs),
        error=math.exp(sum(map(abs, logs)) / max(1, len(logs))),
        bias=math.exp(sum(logs) / max(1, len(logs))),
        ordered=_ordered(rows),
        agree=sum((a >= gate) == (b >= gate) for _, a, b in known) / max(1, len(known)),
        decided=len(clear) / len(pairs),
        false_pass=tuple(name(r) for r, a, b in clear if b > gate > a),
        false_fail=tuple(name(r) for r, a, b in clear if b < gate <= a),
        worst_pass=min(passed, default=1.0),
    )


def _ordered(rows: Sequence[Row]) -> float:
    right = total = 0
    rows = [r for r in rows if r.known]
    for i, a in enumerate(rows):
        for b in rows[:i]:
            if a.family == b.family and max(a.measured, b.measured) > APART * min(a.measured, b.measured):
                total += 1
                right += (a.measured < b.measured) == (a.modelled < b.modelled)
    return right / total if total else 1.0
