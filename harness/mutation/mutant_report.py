"""Mutant report: the table of a run, its survivors, and what is wrong with it. No torch here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.mutation.mutate import OPERATORS
from harness.mutation.survivors import FILE, KINDS, template

if TYPE_CHECKING:
    from harness.mutation.mutants import Result

LEAST = 0.97  # of each operator's mutants must die, those that are explained aside
_WIDTHS = (5, 7, 11, 9, 9)
_TITLES = ("made", "killed", "equivalent", "no reach", "survived")


def rows(results: Mapping[str, Sequence[Result]]) -> list[dict[str, Any]]:
    """Return one row for each operator over all katas: its name, counts by fate, ``rate`` (None: nothing to kill)."""
    out = []
    for operator in OPERATORS:
        of_it = [r for rs in results.values() for r in rs if r.mutant.operator == operator]
        if of_it:
            out.append({"operator": operator, **_counts(of_it)})
    return out


def _counts(results: Sequence[Result]) -> dict[str, Any]:
    fates = Counter(r.fate for r in results)
    mortal = len(results) - sum(fates[k] for k in KINDS)
    return {
        "made": len(results), "killed": fates["killed"], **{k: fates[k] for k in KINDS}, "survived": fates["survived"],
        "rate": fates["killed"] / mortal if mortal else None,
        "by": dict(Counter(r.word for r in results if r.fate == "killed").most_common()),
    }  # fmt: skip


def shown(results: Mapping[str, Sequence[Result]]) -> Iterator[str]:
    """Yield the lines of the report: each kata by operator, all katas by operator, then the survivors."""
    titles = " ".join(f"{t:>{w}}" for t, w in zip(_TITLES, _WIDTHS, strict=True))
    yield f"{'kata':15} {'operator':17} {titles}  killed by"
    for slug, of_kata in results.items():
        for operator in OPERATORS:
            of_it = [r for r in of_kata if r.mutant.operator == operator]
            if of_it:
                yield _row(slug, operator, _counts(of_it))
    if len(results) > 1:
        for row in rows(results):
            yield _row("all", row["operator"], row)
    everything = [r for rs in results.values() for r in rs]
    if everything:
        yield _row("all", "all", _counts(everything))
    for slug, of_kata in results.items():
        for result in of_kata:
            if result.fate == "survived":
                yield from _survivor(slug, result, of_kata)


def _row(slug: str, operator: str, counts: Mapping[str, Any]) -> str:
    by = ", ".join(f"{word} {n}" for word, n in counts["by"].items())
    counted = [counts[k] for k in ("made", "killed", *KINDS, "survived")]
    numbers = " ".join(f"{n:{w}}" for n, w in zip(counted, _WIDTHS, strict=True))
    return f"{slug:15} {operator:17} {numbers}  {by}".rstrip()


def _survivor(slug: str, result: Result, others: Sequence[Result]) -> Iterator[str]:
    mutant = result.mutant
    repeated = any(o.mutant.before == mutant.before and o.mutant.nth != mutant.nth for o in others)
    yield ""
    yield f"survived: {slug} {mutant.operator}, solutions/{slug}/kernel.py line {mutant.line} ({result.word})"
    yield f"    - {mutant.before}"
    yield f"    + {mutant.after}"
    if result.reason:
        yield f"    {result.reason}"
    yield f"  A test is missing in exercises/{slug}/test_kernel.py, or solutions/{slug}/{FILE} says why not:"
    yield from (f"    {line}" for line in template(mutant, repeated).split("\n"))


def problems_of(results: Mapping[str, Sequence[Result]]) -> list[str]:
    """Return what is wrong: survivors that nobody explained, and operators that kill too few."""
    out = []
    for slug, of_kata in results.items():
        alive = [r.mutant for r in of_kata if r.fate == "survived"]
        if alive:
            lines = ", ".join(f"{m.operator} in line {m.line}" for m in alive)
            out.append(f"{slug}: {len(alive)} unexplained survivors: {lines}.")
    for row in rows(results):
        if row["rate"] is not None and row["rate"] < LEAST:
            out.append(f"{row['operator']}: {row['rate']:.1%} of its mutants die; at least {LEAST:.0%} must.")
    return out
