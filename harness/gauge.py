"""Gauge: how fast a kata's kernel is at its bench shapes: counted and modelled on a CPU, measured on a GPU. No torch.

A kata's gate is about its first bench shape; its toml may gate further ones, and how the two times compare.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.bound import sentence
from harness.desk import MODEL_SECONDS, Desk
from harness.gate import coarse, measured
from harness.model import times
from harness.spec import Case, Gate

Facts = dict[str, Any]
WORST_FIRST = ("slow", "undecided", "pass")
MOST_FINDINGS = 3
SURE = {"modelled": 0.1, "measured": 0.02}  # how far a ratio of two times of one kernel may be off


@dataclass(frozen=True)
class Shape:
    """What is known about one bench shape: its verdict as facts, the seconds of one call.

    ``left``: its kernel was not compiled here, so that nothing is known about its speed.
    """

    case: Case
    gate: Gate
    facts: Facts
    seconds: float = 0.0
    left: bool = False


def speed_facts(desk: Desk) -> Facts:
    """Return the facts about a kata's speed: on a CPU what the counts and the model say, on a GPU the measurement."""
    if not desk.choices.speed:
        return _speed("undecided", "--no-speed was given; run without it to decide.", {})
    if desk.kata.spec.side == "host":
        return _host(desk)
    if desk.choices.device == "cuda":
        return _timed(desk)
    traffic = desk.kata.spec.with_role("traffic")
    if not traffic:
        return _speed("pass", "", {})
    case = traffic[0].with_seed(desk.choices.seed)
    facts = desk.judge(case)
    if facts["word"] != "pass":
        return facts | {"case": case.id}
    counted = _counted(desk, facts)
    if not desk.gated():
        return counted if counted["word"] == "slow" else counted | _no_hardware(desk)
    modelled = _modelled(desk)
    # what is slow by its counts alone stays so: the model says how slow
    return (counted if counted["word"] == "slow" else modelled) | {
        "findings": list(dict.fromkeys(counted["findings"] + modelled["findings"])),
        "speed": counted["speed"] | modelled.get("speed", {}),
    }


def modelled_time(desk: Desk, case: Case) -> Any:
    """Return the modelled time of the desk's file at one bench shape. Raises NoModel."""
    return _time(desk, desk.connect("compile").ask(desk.request(case, model=MODEL_SECONDS)), case, desk.file)


# -- on a CPU ----------------------------------------------------------------------------------------------------------


def _counted(desk: Desk, facts: Facts) -> Facts:
    """Hold what the traffic case moved, and what each bench shape launches, against what must be."""
    spec, bench, reasons = desk.kata.spec, [], []
    for shape in desk.bench_cases() or [None]:
        if shape is not None:
            bench = desk.connect_compile(shape).get("launches", [])
        reasons += coarse(
            facts["counters"], facts["cost"], facts["launches"], bench, desk.choices.gpu, spec.max_launches
        )
    word = "slow" if reasons else "pass"
    return _speed(word, "\n".join(dict.fromkeys(reasons)), _counts(facts, bench), facts["findings"])


def _no_hardware(desk: Desk) -> Facts:
    """What to say when the GPU in question has no hardware for any bench shape: its speed is not known there."""
    dtypes = list(dict.fromkeys(c.dtype for c in desk.kata.spec.with_role("bench")))
    if not dtypes:
        return {}
    told = _model().undecided(
        f"{desk.choices.gpu.name} has no hardware for {' or '.join(dtypes)}, the bench shape's dtype; --gpu H200 "
        "asks about another GPU."
    )
    return {"word": told["word"], "reason": told["reason"]}


def _modelled(desk: Desk) -> Facts:
    """Model every gated shape and hold it against the reference's modelled time."""
    shapes = [_modelled_shape(desk, case, gate) for case, gate in desk.gated()]
    # a block of 65,536 takes the compiler minutes: where a further shape asks for one, a GPU decides about that shape
    left = [s for s in shapes[1:] if s.left]
    out = _folded([s for s in shapes if s not in left], "modelled")
    told = [
        f"{s.case.id}: speed, because its kernel has a block too large to compile here (--device cuda decides)"
        for s in left
    ]
    return out | {"not_checked": [*out.get("not_checked", []), *told]}


def _modelled_shape(desk: Desk, case: Case, gate: Gate) -> Shape:
    from harness.model.estimate import NotCompiled

    gpu, kata, speed = desk.choices.gpu, desk.kata, _model()
    try:
        compiled = desk.connect_compile(case)
        ours = _time(desk, compiled, case, desk.file)
        version = next(iter(compiled["model"]["facts"].values()))["triton"]
        kept = times.kept(kata.folder.parent.parent, kata, case, gpu, version)
        reference = kept.seconds
        if reference is None and kata.solution.is_file():
            request = desk.request(case, file=str(kata.solution), model=MODEL_SECONDS)
            reference = _time(desk, desk.connect("compile").ask(request), case, kata.solution).seconds
    except (speed.NoModel, times.BrokenTimes) as error:
        told = speed.undecided(f"{str(error).rstrip('.')}.")
        return Shape(case, gate, told, left=isinstance(error, NotCompiled))
    facts = speed.verdict(ours, reference, gate.cpu, gpu, kept.why)
    return Shape(case, gate, _with_bound(desk, facts, compiled["cost"], ours.seconds), ours.seconds)


def _time(desk: Desk, compiled: Facts, case: Case, file: Path) -> Any:
    def trace(layouts: list[Any]) -> Facts:
        return desk.connect("interpret").ask(desk.request(case, file=str(file), layouts=layouts))

    return _model().time_of(compiled, trace, desk.choices.gpu)


def _model() -> Any:
    """The speed model, imported (a tenth of a second) while the fork server loads torch, not before it starts."""
    from harness.model import speed

    return speed


# -- on a GPU ----------------------------------------------------------------------------------------------------------


def _timed(desk: Desk) -> Facts:
    """Time every gated shape on this GPU."""
    shapes: list[Shape] = []
    for case, gate in desk.gated():
        facts = desk.connect("cuda").ask(desk.request(case, timed=True))
        if facts["word"] != "pass":
            return facts | {"case": case.id}
        out = facts | measured(facts["timing"], gate.gpu, facts["cost"], facts["gpu"])
        seconds = statistics.median(facts["timing"]["ours_s"])
        shapes.append(Shape(case, gate, _with_bound(desk, out, facts["cost"], seconds), seconds))
    return _folded(shapes, "measured") if shapes else _speed("pass", "", {})


def _host(desk: Desk) -> Facts:
    """A host-side kata gates on what its own judge counts; on a GPU its bench cases drive the real thing."""
    traffic = [c.with_seed(desk.choices.seed) for c in desk.kata.spec.with_role("traffic")]
    runs = [(case, desk.judge(case)) for case in traffic]
    if desk.choices.device == "cuda":
        runs += [(case, desk.connect("cuda").ask(desk.request(case))) for case in desk.bench_cases()]
    bad = next((facts | {"case": case.id} for case, facts in runs if facts["word"] != "pass"), None)
    return bad or (runs[-1][1] if runs else _speed("pass", "", {}))


# -- both --------------------------------------------------------------------------------------------------------------


def _folded(shapes: Sequence[Shape], kind: str) -> Facts:
    """Return the facts of the shape that is worst off, with a word about each of the others."""
    shapes = [_held_against(shape, shapes[0], kind) for shape in shapes]
    worst = min(shapes, key=lambda s: (WORST_FIRST.index(s.facts["word"]), _margin(s)))
    if len(shapes) == 1:
        return worst.facts
    out = worst.facts | {
        "findings": _told([worst, *shapes]),
        "not_checked": list(dict.fromkeys(x for s in shapes for x in s.facts.get("not_checked", []))),
    }
    if out["reason"]:
        out["reason"] = f"{worst.case.id}: {out['reason']}"
    speed = dict(out.get("speed") or {})
    if speed.get("text"):
        speed["text"] = f"{worst.case.id}: {speed['text']}"
    if bound := (shapes[0].facts.get("speed") or {}).get("bound"):
        speed["bound"] = bound
    shares = ("share", "gate", "band")
    speed["shapes"] = {
        s.case.id: {k: (s.facts.get("speed") or {}).get(k) for k in shares} | {"word": s.facts["word"]} for s in shapes
    }
    return out | {"speed": speed}


def _told(shapes: Sequence[Shape]) -> list[str]:
    """Return the findings of these shapes, each line of the source once, and at most MOST_FINDINGS about lines."""
    lines: dict[str, str] = {}
    others: dict[str, str] = {}
    for text in (x for s in shapes for x in s.facts.get("findings", [])):
        head = text.split(":")[0]
        (lines if head.startswith("line ") else others).setdefault(head if head.startswith("line ") else text, text)
    return [*list(lines.values())[:MOST_FINDINGS], *others]


def _margin(shape: Shape) -> float:
    speed = shape.facts.get("speed") or {}
    return (speed.get("share") or 0.0) - (speed.get("gate") or 0.0)


def _held_against(shape: Shape, first: Shape, kind: str) -> Shape:
    """Where the first shape may take only so many times as long as this one: say so if it takes longer."""
    within = shape.gate.within
    if not within or not shape.seconds or not first.seconds or shape.facts["word"] == "slow":
        return shape
    ratio = first.seconds / shape.seconds
    if ratio <= within:
        return shape
    word = "slow" if ratio > within + SURE[kind] else "undecided"
    reason = f"{first.case.id} takes {ratio:.2f} times as long; at most {within:g} times is asked for. {shape.gate.why}"
    return Shape(shape.case, shape.gate, shape.facts | {"word": word, "reason": reason.strip()}, shape.seconds)


def _with_bound(desk: Desk, facts: Facts, cost: dict[str, int], seconds: float) -> Facts:
    """Add the sentence on what this speed means for a model, where the kata asks for one."""
    asked = desk.kata.spec.bound
    if not asked or not facts.get("speed"):
        return facts
    moved = cost["bytes_read"] + cost["bytes_written"]
    return facts | {"speed": facts["speed"] | {"bound": sentence(asked, moved, seconds, desk.choices.gpu)}}


def _counts(facts: Facts, bench: list[Facts]) -> Facts:
    counters, cost = facts["counters"], facts["cost"]
    least = cost["bytes_read"] + cost["bytes_written"]
    return {
        "bytes": counters["bytes_read"] + counters["bytes_written"],
        "least_bytes": least,
        "sectors": counters["sectors"],
        "least_sectors": -(-least // 32),
        "launches": len(facts["launches"]),
        "programs": sum(x["grid"][0] * x["grid"][1] * x["grid"][2] for x in facts["launches"]),
        "bench_programs": sum(x["grid"][0] * x["grid"][1] * x["grid"][2] for x in bench),
    }


def _speed(word: str, reason: str, counts: Facts, findings: list[str] | None = None) -> Facts:
    speed = {"kind": "counted", "share": None, "gate": None, "band": None, "binds": None, "counts": counts}
    return {"word": word, "reason": reason, "findings": findings or [], "not_checked": [], "speed": speed}
