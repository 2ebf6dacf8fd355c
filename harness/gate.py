"""Gate: what a kernel moved, against the least that it must move. No torch here.

This is the coarse gate: it fails what is slow by its counts alone, on any GPU. Within it, a kernel is not timed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.device import Device

BYTES_FACTOR = 2.0  # from and to memory, each sector once a call: twice the least is a wasted pass
SECTOR_FACTOR = 7.5  # requests in 32-byte sectors; 8 is one 4-byte element a request, less a ragged tail
MANY_LAUNCHES = 100  # each costs microseconds of the host's time
SLACK_BYTES = 8192  # tables and partly used sectors, which matter in small cases only
_SECTOR = 32


def coarse(
    counters: Mapping[str, Any],
    cost: Mapping[str, int],
    launches: Sequence[Mapping[str, Any]],
    bench: Sequence[Mapping[str, Any]],
    device: Device,
    max_launches: int = 0,
) -> list[str]:
    """Return the reasons why a right kernel is ``slow`` whatever the GPU, worst first; empty when none applies.

    Args:
        counters: of the interpreted ``traffic`` case (``Memory.counters``).
        cost: ``cost()`` of that case.
        launches: its launches.
        bench: the launches of the bench shape (recorded, not run); empty when unknown.
        device: the GPU in question.
        max_launches: how many launches the kata allows a call; 0 is any number.
    """
    reasons = []
    least = cost["bytes_read"] + cost["bytes_written"]
    moved = counters["bytes_read"] + counters["bytes_written"]
    count = max(len(launches), len(bench))
    if max_launches and count > max_launches:
        names = ", ".join(dict.fromkeys(x["kernel"] for x in launches or bench))
        reasons.append(f"{count} launches a call ({names}); this kata asks for {max_launches}: each one more reads and "
                       "writes memory again.")  # fmt: skip
    if count >= MANY_LAUNCHES:
        reasons.append(
            f"{count:,} launches a call; each costs the host some microseconds. One launch with a bigger grid will do."
        )
    idle = _few_programs(bench, device)
    if idle:
        reasons.append(idle)
    if counters["sectors"] * _SECTOR >= SECTOR_FACTOR * least:
        reasons.append(_sectors(counters, least))
    if moved > BYTES_FACTOR * least + SLACK_BYTES:
        reasons.append(
            f"moves {moved:,} bytes to and from memory where {least:,} would do ({moved / least:.1f} times as many)."
        )
    return reasons


def measured(timing: Mapping[str, Any], gate: float, cost: Mapping[str, int], gpu: str) -> dict[str, Any]:
    """Return ``word``, ``reason`` and ``speed`` of a bench shape that was timed.

    Args:
        timing: ours_s and limit_s (seconds, raw), share with low and high (95 %), and what the limit is.
        gate: the share of the limit that is asked for.
        cost: ``cost()`` of the shape.
        gpu: the name of the GPU that ran it.
    """
    moved = cost["bytes_read"] + cost["bytes_written"]
    share, low, high = timing["share"], timing["low"], timing["high"]
    if timing["limit"]["kind"] == "matmul":
        binds, work = "tensor cores", f"{cost['flops'] / 1e9:,.0f} GFLOP"
        what = "torch's matmul of as many operations"
    else:
        binds, work, what = "DRAM", f"{moved / 1e6:,.0f} MB", "a copy of as many bytes"
    speed = {
        "kind": "measured",
        "share": round(share, 4),
        "gate": gate,
        "band": [round(low, 4), round(high, 4)],
        "binds": binds,
    }
    ours, limit = (sorted(timing[k])[len(timing[k]) // 2] for k in ("ours_s", "limit_s"))
    text = (
        f"{ours * 1e6:,.0f} us on {gpu} for {work}; {what} takes {limit * 1e6:,.0f} us: "
        f"{share:.0%} of the limit ({low:.1%} to {high:.1%}), where {gate:.0%} is asked for"
    )
    if share > 1.1:
        return {
            "word": "undecided",
            "reason": f"{text}. Faster than that cannot be: measure again.",
            "speed": speed,
        }
    if high < gate:
        return {"word": "slow", "reason": text + ".", "speed": speed}
    if low < gate:
        return {
            "word": "undecided",
            "reason": text + ": too close to call; run it again on an idle GPU.",
            "speed": speed,
        }
    return {"word": "pass", "reason": "", "speed": speed | {"text": text}}


def modelled(seconds: float, reference: float, gate: float, band: float, binds: str, device: Device) -> dict[str, Any]:
    """Return ``word``, ``reason`` and ``speed`` of a bench shape whose time was modelled.

    Args:
        seconds: modelled time of the submission; ``reference``: of the kata's reference.
        gate: the share of the reference's speed that is asked for.
        band: half the width of the band around the share.
        binds: what the submission waits for most.
        device: the GPU that was modelled.
    """
    share = reference / seconds
    speed = {
        "kind": "modelled",
        "share": round(share, 4),
        "gate": gate,
        "band": [round(max(0.0, share - band), 4), round(share + band, 4)],
        "binds": binds,
        "seconds": seconds,
    }
    basis = "" if device.calibrated else ", which nobody measured for this project: scaled from its datasheet"
    text = (
        f"{share:.0%} of the reference's speed (give or take {band * 100:.0f} points) on {device.name}{basis}: "
        f"{_duration(seconds)} where the reference takes {_duration(reference)}; what binds is {binds}{_meaning(binds)}"
    )
    speed["text"] = text
    if abs(share - gate) <= band:
        return {
            "word": "undecided",
            "reason": f"modelled at {text}. The gate is {gate:.0%}: too close to call without a GPU; --device cuda "
            "decides there.",
            "speed": speed,
        }
    if share < gate:
        return {"word": "slow", "reason": f"modelled at {text}. The gate is {gate:.0%}.", "speed": speed}
    return {"word": "pass", "reason": "", "speed": speed}


_MEANS = {
    "DRAM": "bytes from and to memory",
    "L2": "more requests than L2 can answer",
    "L1": "each SM's L1 looks up as many lines as it can",
    "shared memory": "it is busy all the time",
    "tensor cores": "they are busy all the time",
    "issue": "the SMs start as many instructions as they can",
    "latency": "warps wait, for data or for each other, and too few others work meanwhile",
    "programs": "starting them takes longer than their work",
    "atomics": "they wait for each other",
}


def _meaning(binds: str) -> str:
    return f" ({_MEANS[binds]})" if binds in _MEANS else ""


def _duration(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} us" if seconds < 1e-4 else f"{seconds * 1e6:,.0f} us"


def _sectors(counters: Mapping[str, Any], least: int) -> str:
    site = max(counters["sites"], key=lambda s: s["sectors"] * _SECTOR / max(1, s["bytes"]) * s["sectors"])
    each, size = site["sectors"] / site["executions"], site["bytes"] / site["executions"]
    ideal = max(1, -(-site["bytes"] // site["executions"] // _SECTOR))
    start = (
        f"asks memory for {counters['sectors']:,} sectors of 32 bytes where {max(1, least // _SECTOR):,} would do. "
        f"Line {site['line']}: each {site['kind']} of {site['argument']} "
    )
    if size >= 8 * _SECTOR and each <= 1.25 * ideal:  # full sectors, so it is their number that is too large
        verb = {"load": "loaded", "store": "stored"}.get(site["kind"], "updated")
        times = counters["sectors"] * _SECTOR / max(1, least)
        return (
            f"{start}fills its sectors ({_number(each)} for {_number(size)} bytes), but the same bytes are {verb} "
            f"again and again, {times:.0f} times as many as there are. Let all that need a value use it while it is "
            "there."
        )
    return (
        f"{start}touches {_number(each)} sector{'s' if each != 1 else ''} for {_number(size)} bytes; {ideal:,} would "
        f"hold {ideal * _SECTOR:,} bytes. Neighbouring lanes should {'read' if site['kind'] == 'load' else 'write'} "
        "neighbouring elements, and a program enough of them."
    )


def _number(value: float) -> str:
    """Return a mean count: whole from 100 on, three digits below."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _few_programs(bench: Sequence[Mapping[str, Any]], device: Device) -> str:
    """One program runs on one SM: fewer programs than half the SMs leave most of the GPU idle."""
    if not bench:
        return ""
    busiest = max(bench, key=_programs)
    if _programs(busiest) * 2 > device.sms:
        return ""
    n = _programs(busiest)
    return (
        f"{n:,} program{'s' if n != 1 else ''} of {busiest['kernel']} for the whole bench shape: {device.sms - n} of "
        f"the {device.sms} SMs of {device.name} have nothing to do. Launch at least one program per SM."
    )


def _programs(launch: Mapping[str, Any]) -> int:
    x, y, z = launch["grid"]
    return x * y * z
