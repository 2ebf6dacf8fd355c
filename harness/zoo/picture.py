"""Picture: modelled against measured times on logarithmic axes, as SVG. No torch here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from harness.zoo.scores import Row

SIZE, MARGIN = 640, 56  # pixels
SPREAD = 1.25  # the band around the diagonal


def log_log(rows: Sequence[Row], title: str = "Modelled against measured") -> str:
    """Return an SVG: one dot a variant, the diagonal, and a band of a factor of 1.25 on either side."""
    rows = [r for r in rows if r.known]
    times = [t for r in rows for t in (r.measured, r.modelled)]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def place(seconds: float) -> float:
        return (math.log10(seconds) - low) / max(1, high - low) * (SIZE - 2 * MARGIN)

    def x(seconds: float) -> float:
        return MARGIN + place(seconds)

    def y(seconds: float) -> float:
        return SIZE - MARGIN - place(seconds)

    least, most = 10.0**low, 10.0**high
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" role="img" font-family="sans-serif" '
        f'font-size="12"><title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>'
    ]
    for exponent in range(low, high + 1):
        at, label = 10.0**exponent, _label(exponent)
        parts.append(
            f'<path d="M{x(at):.1f} {y(least):.1f}V{y(most):.1f}M{x(least):.1f} {y(at):.1f}H{x(most):.1f}" '
            'stroke="#ddd"/>'
            f'<text x="{x(at):.1f}" y="{y(least) + 18:.1f}" text-anchor="middle">{label}</text>'
            f'<text x="{x(least) - 6:.1f}" y="{y(at) + 4:.1f}" text-anchor="end">{label}</text>'
        )
    for factor, colour in ((1 / SPREAD, "#bbb"), (1.0, "#555"), (SPREAD, "#bbb")):
        start, end = max(least, least / factor), min(most, most / factor)
        line = f"M{x(start):.1f} {y(start * factor):.1f}L{x(end):.1f} {y(end * factor):.1f}"
        parts.append(f'<path d="{line}" stroke="{colour}" fill="none"/>')
    for row in rows:
        name = f"{row.family}/{row.variant}: {row.measured * 1e6:.1f} us measured, {row.modelled * 1e6:.1f} us modelled"
        parts.append(
            f'<circle cx="{x(row.measured):.1f}" cy="{y(row.modelled):.1f}" r="3" fill="#1f6feb" fill-opacity=".7">'
            f"<title>{escape(name)}</title></circle>"
        )
    middle = SIZE / 2
    parts.append(f'<text x="{middle}" y="{SIZE - 14}" text-anchor="middle">measured</text>')
    turned = f'transform="rotate(-90 14 {middle})"'
    parts.append(f'<text x="14" y="{middle}" text-anchor="middle" {turned}>modelled</text></svg>')
    return "\n".join(parts) + "\n"


def _label(exponent: int) -> str:
    """10 to this power seconds, in words: 1 us, 10 us, 1 ms, 1 s."""
    for unit, at in (("s", 0), ("ms", -3), ("us", -6)):
        if exponent >= at or unit == "us":
            return f"{10 ** (exponent - at):g} {unit}"
    return ""
