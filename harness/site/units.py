"""Units: a number to the words of a page. ``to(4.27e12, "TB/s")`` is ``4.27 TB/s``, with a space that never breaks.

What goes in is in base units: bytes, seconds, FLOP, bits, Hz, W, tokens, and quotients of them.
"""

from __future__ import annotations

import math

from harness.errors import did_you_mean
from harness.site.faults import LessonError

NBSP = "\N{NO-BREAK SPACE}"

_SI = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
SCALES: dict[str, float] = {
    **{f"{p}B{per}": f for p, f in (_SI | _BINARY).items() for per in ("", "/s")},
    **{f"{p}FLOP{per}": f for p, f in _SI.items() for per in ("", "/s")},
    **{f"{p}Hz": f for p, f in _SI.items()},
    **{"s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9, "minutes": 60.0, "hours": 3600.0},
    **{"bytes": 1.0, "byte": 1.0, "bits": 1.0, "bit": 1.0, "FLOP/B": 1.0, "W": 1.0, "%": 0.01},
    **{"tokens/s": 1.0, "tokens": 1.0, "requests/s": 1.0, "$": 1.0},
}


def to(value: float, unit: str, digits: int = 3) -> str:
    """Return ``value`` (in base units) in ``unit``, with ``digits`` significant digits and thousands separators.

    Raises:
        LessonError: the unit is not known, or the value is no finite number.
    """
    if unit not in SCALES:
        raise LessonError(f"unit={unit!r} is none that a page can print.{did_you_mean(unit, SCALES)}")
    return f"{n(value / SCALES[unit], digits)}{NBSP}{'µs' if unit == 'us' else unit}"


def n(value: float, digits: int | None = None) -> str:
    """Return a number: integers and, without ``digits``, what is one in full; else ``digits`` significant digits.

    Digits before the point are never rounded away: 1095.4 with 3 digits is 1,095.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise LessonError(f"value={value!r} is no finite number; a role prints numbers only.")
    if value == 0 or (digits is None and float(value).is_integer()):
        return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")
    places = max(0, (3 if digits is None else digits) - 1 - math.floor(math.log10(abs(value))))
    if round(abs(value), places) >= 10 ** (math.floor(math.log10(abs(value))) + 1):
        places = max(0, places - 1)  # 9.996 with three digits is 10.0
    text = f"{value:,.{places}f}"
    if "." in text and math.isclose(float(text.replace(",", "")), value, rel_tol=1e-9):
        text = text.rstrip("0").rstrip(".")  # 4.8 is 4.8, but what was rounded to 4.80 says so
    return text.replace("-", "\N{MINUS SIGN}")


def times(value: float) -> str:
    """Return a ratio: 8.1×, 2×, 41×."""
    return n(value, 2).removesuffix(".0") + "\N{MULTIPLICATION SIGN}"
