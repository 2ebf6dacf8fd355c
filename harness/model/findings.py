"""Findings: at most three things a learner can change, with the line and what each costs. No torch here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from harness.compiled.kernelfacts import KernelFacts
from harness.device import Device
from harness.model.constants import Constants, constants
from harness.model.memory import SECTOR

MOST = 3
WORTH = 0.12  # of the launch's time: what costs less is not said

Weighed = tuple[float, str]  # seconds that it costs at most, the sentence


def findings(
    facts: KernelFacts, trace: Mapping[str, Any], terms: Mapping[str, float], parts: Mapping[str, float],
    seconds: float, device: Device,
) -> list[Weighed]:  # fmt: skip
    """Return what is worth changing in one launch, the costliest first, each with the seconds that it costs at most."""
    c = constants(device)
    found = [
        *_scattered(trace, c), *_parts_of_sectors(trace, c), *_read_again(trace, c), *_tensor_cores(facts, parts),
        *_spills(facts, terms, parts), *_programs(facts, trace, terms, parts, device), *_atomics(trace, terms),
        *_conflicts(facts, parts), *_narrow(trace, parts), *_unstaged(facts, parts),
    ]  # fmt: skip
    worth = [f for f in found if f[0] >= WORTH * seconds]
    return sorted(worth, key=lambda f: -f[0])


def sentences(weighed: list[Weighed]) -> list[str]:
    """Return the sentences of the costliest findings of all launches, each line once."""
    lines: dict[str, str] = {}
    for _, text in sorted(weighed, key=lambda f: -f[0]):
        lines.setdefault(text.split(":")[0] if text.startswith("line ") else text, text)
    return list(lines.values())[:MOST]


def _sites(trace: Mapping[str, Any], *kinds: str) -> Iterator[Mapping[str, Any]]:
    return (s for s in trace["sites"] if s["kind"] in kinds and s["requests"] and not s["tile"])


def _scattered(trace: Mapping[str, Any], c: Constants) -> Iterator[Weighed]:
    for s in _sites(trace, "load", "store"):
        each = s["sectors"] / s["requests"]
        least = max(1.0, s["lanes"] * s["item"] / s["requests"] / SECTOR)
        if each >= 2 * least and each > 2:
            cost = (s["units"] - s["lanes"] * s["item"] / 64) * trace["programs"] / c.l2_requests
            yield (
                cost,
                (
                    f"line {s['line']}: each request of {s['argument']} touches {each:.3g} sectors of 32 bytes; "
                    f"{math.ceil(least - 0.01)} would do. Let neighbouring lanes access neighbouring elements."
                ),
            )


def _parts_of_sectors(trace: Mapping[str, Any], c: Constants) -> Iterator[Weighed]:
    for s in _sites(trace, "store"):
        if s["partial"] >= 0.5 * s["sectors"] and s["sectors"] >= 2 * s["executions"]:
            cost = min(s["partial"], s["units"]) * trace["programs"] * (1 / c.l2_partial - 1 / c.l2_requests)
            each = s["lanes"] * s["item"] / s["sectors"]
            yield (
                cost,
                (
                    f"line {s['line']}: a store to {s['argument']} fills {each:.2g} of the 32 bytes of each sector it "
                    "touches; whole sectors are written twice as fast. Join neighbouring values first, then store once."
                ),
            )


def _read_again(trace: Mapping[str, Any], c: Constants) -> Iterator[Weighed]:
    for t in trace["tensors"]:
        if t["kind"] != "load" or not t["bytes"]:
            continue
        again = sum(s["missed"] for s in trace["sites"] if s["storage"] == t["storage"] and s["kind"] == "load")
        times = again / max(1e-9, t["own"])
        if times >= 1.5 and t["own"] * SECTOR > 4096:
            line = max(
                (s for s in trace["sites"] if s["storage"] == t["storage"] and s["kind"] == "load"),
                key=lambda s: s["missed"],
            )["line"]
            cost = (again - t["own"]) * SECTOR * trace["programs"] / 64 / c.l2_requests
            yield (
                cost,
                (
                    f"line {line}: a program reads {t['argument']} {times:.1f} times from beyond L1; keep it in "
                    "registers, or take what is needed in one pass."
                ),
            )


def _tensor_cores(facts: KernelFacts, parts: Mapping[str, float]) -> Iterator[Weighed]:
    for dot in facts.dots:
        if dot.kind == "fma":
            what = "fp32 with input_precision='ieee'" if dot.a_bits == 32 else f"{dot.a_type} on {facts.sm / 10:.1f}"
            yield (
                max(parts.values(), default=0.0),
                (f"line {dot.line}: tl.dot in {what} uses no tensor cores; 16-bit operands or TF32 would."),
            )


def _spills(facts: KernelFacts, terms: Mapping[str, float], parts: Mapping[str, float]) -> Iterator[Weighed]:
    if facts.spill_bytes >= 16:
        yield (
            0.5 * terms["SM"],
            (
                f"{facts.spill_bytes // 4} registers of each thread are spilled to memory ({facts.registers} are in "
                "use): smaller blocks, or more warps, would keep them."
            ),
        )


def _programs(
    facts: KernelFacts, trace: Mapping[str, Any], terms: Mapping[str, float], parts: Mapping[str, float], device: Device
) -> Iterator[Weighed]:
    programs, name = trace["programs"], trace["kernel"]
    rest = max(terms["DRAM"], terms["L2"])
    if terms["programs"] > rest:
        yield (
            terms["programs"] - rest,
            (
                f"{name} starts {programs:,} programs; starting them takes longer than their work. Give each a larger "
                "block."
            ),
        )
    if not parts.get("latency"):
        return
    blocks = facts.blocks_per_sm(device)
    threads = min(blocks, math.ceil(programs / device.sms)) * facts.threads
    if programs < 2 * device.sms:
        why = f"{programs:,} programs of {facts.threads // 32} warps for {device.sms} SMs: too few bytes are in flight"
        yield terms["SM"] - rest, f"{why}. Launch more programs, or let each keep more loads in flight."
    elif threads < 768 and not facts.dots:
        why = f"an SM holds {threads:,} threads of {name} at once ({facts.registers} registers a thread"
        yield terms["SM"] - rest, f"{why}, {facts.shared_bytes:,} bytes of shared memory): too few to hide latency."
    elif facts.threads >= 512 and not facts.dots:
        yield (
            terms["SM"] - rest,
            (
                f"{name} waits for its slowest warp at each reduction: {facts.threads // 32} warps share "
                f"{_work(trace)} bytes; fewer warps, or more work for each, would wait less."
            ),
        )


def _work(trace: Mapping[str, Any]) -> str:
    return f"{sum(s['lanes'] * s['item'] for s in trace['sites'] if s['kind'] == 'load'):,.0f}"


def _atomics(trace: Mapping[str, Any], terms: Mapping[str, float]) -> Iterator[Weighed]:
    for s in _sites(trace, "atomic"):
        many = s["lanes"] * trace["programs"]
        where = "the same address" if s["addresses"] <= s["executions"] * 1.01 else "few addresses"
        yield (
            terms["atomics"],
            (
                f"line {s['line']}: {many:,.0f} atomics on {s['argument']}, {where}; they wait for each other. Sum "
                "inside the program first, or into separate cells."
            ),
        )


def _conflicts(facts: KernelFacts, parts: Mapping[str, float]) -> Iterator[Weighed]:
    worst = max(facts.program.instructions, key=lambda i: i.conflict, default=None)
    if worst is not None and worst.conflict >= 2:
        yield (
            parts.get("shared memory", 0.0) * (1 - 1 / worst.conflict),
            (
                f"line {worst.line}: an access to shared memory takes {worst.conflict:.0f} times as long as it could "
                "(bank conflicts). Another block shape or another number of warps changes which lanes meet."
            ),
        )


def _narrow(trace: Mapping[str, Any], parts: Mapping[str, float]) -> Iterator[Weighed]:
    for s in _sites(trace, "load", "store"):
        each = s["width"] * s["item"]
        full = s["lanes"] * s["item"] / SECTOR  # sectors, if lanes are neighbours; a table's are fewer
        dense = 0.9 * full <= s["sectors"] <= 1.5 * full
        if each <= 4 and dense and s["instructions"] / s["executions"] >= 4:
            cost = max(parts.get("issue", 0.0), parts.get("L1", 0.0), parts.get("latency", 0.0)) * (1 - each / 16) * 0.5
            yield (
                cost,
                (
                    f"line {s['line']}: each instruction moves {each} bytes a thread where 16 would do. Contiguous, "
                    "aligned blocks (strides and sizes that the compiler knows to be multiples of 16) allow it."
                ),
            )


def _unstaged(facts: KernelFacts, parts: Mapping[str, float]) -> Iterator[Weighed]:
    loops = any(a.how == "async" or a.how == "tma" for a in facts.accesses)
    dots = [d for d in facts.dots if d.kind != "fma"]
    if dots and not loops and parts.get("latency"):
        yield (
            0.5 * parts["latency"],
            (
                f"line {dots[0].line}: each step of the loop waits for its own loads (num_stages={facts.num_stages}): "
                "with more stages the next tiles are on their way meanwhile."
            ),
        )
