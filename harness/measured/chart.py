"""Chart: an experiment as one SVG that needs nothing else: the roofline with the kata's point, and all samples.

Colours follow the reader's light or dark scheme; what is said by colour is also said in words. No torch here.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from html import escape

from harness import physics
from harness.device import Device
from harness.measured.experiment import Experiment

WIDTH, HEIGHT, PANEL, LEFT, TOP, BOTTOM = 960, 420, 390, 70, 64, 56
_STYLE = """
svg { color-scheme: light dark; background: #fff; font: 13px system-ui, sans-serif; }
text { fill: #1d2129; } .soft { fill: #5b6472; } .axis { stroke: #9aa4b2; fill: none; } .grid { stroke: #e3e7ec; }
.roof { stroke: #1d2129; stroke-width: 2; fill: none; } .paper { stroke: #5b6472; stroke-dasharray: 5 4; fill: none; }
.ours { fill: #5b4bb7; stroke: #5b4bb7; } .limit { fill: #1a7f37; stroke: #1a7f37; }
.other { fill: #9a6700; stroke: #9a6700; } .out { fill: none; } text.ours, text.limit, text.other { stroke: none; }
@media (prefers-color-scheme: dark) { svg { background: #14171c; } text { fill: #e6e9ee; } .soft { fill: #9aa4b2; }
.grid { stroke: #2a3038; } .roof { stroke: #e6e9ee; } .paper { stroke: #9aa4b2; }
.ours { fill: #a99cf5; stroke: #a99cf5; } .limit { fill: #4cc267; stroke: #4cc267; }
.other { fill: #d9a441; stroke: #d9a441; } .out { fill: none; } }
"""


@dataclass(frozen=True)
class Axis:
    """A range of values on a range of pixels, logarithmic or not."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of ``value``; what lies outside is put on the edge."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def svg(experiment: Experiment, device: Device | None) -> str:
    """Return the picture.

    Args:
        device: the GPU's datasheet, for the dashed roof; None when nobody has facts on it.
    """
    title = f"{experiment.slug}, {experiment.case['id']}, {experiment.measured['environment']['gpu']}"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(sentence(experiment))}</desc>',
        f"<style>{_STYLE}</style>",
        f'<text x="20" y="26" font-weight="600">{escape(title)}</text>',
        f'<text x="20" y="46" class="soft">{escape(sentence(experiment))}</text>',
        *roofline(experiment, device, LEFT),
        *samples(experiment, LEFT + PANEL + 90),
        "</svg>",
    ]) + "\n"  # fmt: skip


def html(experiment: Experiment, device: Device | None) -> str:
    """Return a page with the picture in it, which works from disk."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(experiment.slug)}</title></head>\n'
        f'<body style="margin:1rem;max-width:72rem">\n{svg(experiment, device)}</body></html>\n'
    )


def sentence(experiment: Experiment) -> str:
    """Return the result in one sentence."""
    r, kind = experiment.result(), experiment.measured["limit"]["kind"]
    text = f"{r['median_s'] * 1e6:,.4g} us, {r['share']:.3f} of the limit ({r['low']:.3f} to {r['high']:.3f})"
    text += f"; a {kind} of as much takes {r['limit_s'] * 1e6:,.4g} us"
    return text + (f"; predicted {experiment.prediction:.2f}" if experiment.prediction else "")


def roofline(experiment: Experiment, device: Device | None, left: float) -> list[str]:
    """Return the roofline: intensity against FLOP/s, measured roof solid, datasheet dashed, the kata as a point."""
    flop, moved, r = experiment.cost["flops"], experiment.moved, experiment.result()
    kind = experiment.measured["limit"]["kind"]
    peak = device.peaks.get(experiment.case["dtype"], 0.0) if device else 0.0
    flop_rate = flop / r["limit_s"] if kind == "matmul" else peak
    bandwidth = moved / (r["limit_s"] if kind == "copy" else statistics.median(experiment.counted("copy")))
    at = physics.intensity(flop, moved)
    lowest, highest = min(at or 0.25, 0.25) / 2, max(4 * physics.ridge(flop_rate, bandwidth), 4 * at, 64.0)
    x = Axis(lowest, highest, left, left + PANEL, log=True)
    top = max(flop_rate, peak, highest * bandwidth / 64) * 2
    y = Axis(lowest * bandwidth / 8, top, HEIGHT - BOTTOM, TOP, log=True)
    at = at or lowest  # no arithmetic at all: the left edge
    done = r["share"] * physics.roofline(at, flop_rate or math.inf, bandwidth)
    lines = [*_decades(x, y, "FLOP per byte", "FLOP/s")]
    if device and peak:
        lines.append(_roof(x, y, peak, device.mem_bw, "paper"))
    lines.append(_roof(x, y, flop_rate or math.inf, bandwidth, "roof"))
    cx, cy = x.at(at), y.at(done)
    lines.append(f'<circle class="ours" cx="{cx:.1f}" cy="{cy:.1f}" r="6"/>')
    place = f'x="{min(cx + 26, left + PANEL - 4):.1f}" y="{cy + 24:.1f}" text-anchor="middle"'
    lines.append(f'<text class="ours" {place}>{r["share"]:.2f}</text>')
    note = "solid: measured in this run" + ("; dashed: datasheet" if device and peak else "")
    lines.append(f'<text class="soft" x="{left}" y="{HEIGHT - 8}">{note}</text>')
    return lines


def _roof(x: Axis, y: Axis, flop_rate: float, bandwidth: float, name: str) -> str:
    bend = min(flop_rate / bandwidth, x.high)
    points = [(v, physics.roofline(v, flop_rate, bandwidth)) for v in (x.low, bend, x.high)]
    path = " ".join(f"{'L' if i else 'M'}{x.at(a):.1f} {y.at(b):.1f}" for i, (a, b) in enumerate(points))
    return f'<path class="{name}" d="{path}"/>'


def samples(experiment: Experiment, left: float) -> list[str]:
    """Return all samples of all contenders in the order in which they were taken; discarded ones are hollow."""
    seconds = experiment.measured["seconds"]
    gone = {d["round"] for d in experiment.measured["discarded"]}
    every = sorted(s for times in seconds.values() for s in times)
    high = every[min(len(every) - 1, math.ceil(0.98 * len(every)))] * 1.1
    x = Axis(0, max(1, len(seconds["ours"]) - 1), left, left + PANEL - 40)
    y = Axis(every[0] * 0.9, max(high, every[0] * 1.2), HEIGHT - BOTTOM, TOP)
    lines = _frame(x, y, "round", "us")
    for step in range(5):
        value = y.low + (y.high - y.low) * step / 4
        lines.append(_tick(x.start - 6, y.at(value) + 4, f"{value * 1e6:.3g}", "end"))
    for order, (name, times) in enumerate(seconds.items()):
        kind = name if name in ("ours", "limit") else "other"
        for i, value in enumerate(times):
            hollow = " out" if i in gone else ""
            lines.append(f'<circle class="{kind}{hollow}" cx="{x.at(i):.1f}" cy="{y.at(value):.1f}" r="2"/>')
        said = f"{name} {statistics.median(times) * 1e6:.4g}"
        lines.append(f'<text class="{kind}" x="{left + 95 * order:.0f}" y="{HEIGHT - 8}">{escape(said)}</text>')
    return lines


def _decades(x: Axis, y: Axis, across: str, up: str) -> list[str]:
    lines = []
    for power in range(math.ceil(math.log10(x.low)), math.floor(math.log10(x.high)) + 1):
        at = x.at(10.0**power)
        lines.append(f'<path class="grid" d="M{at:.1f} {y.start}V{y.end}"/>')
        lines.append(_tick(at, y.start + 18, f"{10.0**power:g}", "middle"))
    for power in range(math.ceil(math.log10(y.low)), math.floor(math.log10(y.high)) + 1):
        at = y.at(10.0**power)
        lines.append(f'<path class="grid" d="M{x.start} {at:.1f}H{x.end}"/>')
        lines.append(_tick(x.start - 6, at + 4, f"1e{power}", "end"))
    return lines + _frame(x, y, across, up)


def _frame(x: Axis, y: Axis, across: str, up: str) -> list[str]:
    return [
        f'<path class="axis" d="M{x.start} {y.end}V{y.start}H{x.end}"/>',
        f'<text class="soft" x="{x.end}" y="{y.start + 34}" text-anchor="end">{across}</text>',
        f'<text class="soft" x="{x.start + 6}" y="{y.end + 10}">{up}</text>',
    ]


def _tick(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="soft" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="11">{text}</text>'
