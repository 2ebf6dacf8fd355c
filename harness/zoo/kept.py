"""Kept: what the model said about each variant of the zoo, one file for each Triton, and the README's table of it.

Written by ``nox -s model -- --write``, which takes minutes; the README and its test read the files. No torch here.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from harness.course import ROOT
from harness.device import Device
from harness.zoo.scores import BAND, GATE, Row, Scores, score

FOLDER = ROOT / "records" / "reference" / "zoo"
README = ROOT / "README.md"
SETS = {"known": ("D", "H1"), "timed second": ("L",), "timed third": ("N",), "timed fourth": ("P",)}
# what the model said about kernels when it had not seen their times, and no change since then touches
FIRST_SIGHT = "first_sight"
_COLUMNS = ("set", "family", "variant", "measured_us", "modelled_us", "binds")
_BLOCK = re.compile(r"(<!-- model -->\n).*?(<!-- /model -->)", re.DOTALL)


def file_of(triton: str, folder: Path = FOLDER) -> Path:
    """Return where the rows of this Triton stand."""
    return folder / f"modelled_triton_{triton}.csv"


def write(rows: Sequence[Row], triton: str, folder: Path = FOLDER) -> Path:
    """Keep one line for each variant and return the file."""
    path = file_of(triton, folder)
    with path.open("w", newline="", encoding="utf-8") as text:
        table = csv.writer(text, lineterminator="\n")
        table.writerow(_COLUMNS)
        for r in rows:
            table.writerow([r.set, r.family, r.variant, _us(r.measured), _us(r.modelled) if r.known else "", r.binds])
    return path


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.6g}"


def read(folder: Path = FOLDER, name: str = "modelled") -> dict[str, list[Row]]:
    """Return the kept rows by Triton version, the oldest first; ``name`` may be FIRST_SIGHT."""
    found = {}
    for path in sorted(folder.glob(f"{name}_triton_*.csv")):
        with path.open(newline="", encoding="utf-8") as text:
            found[path.stem.removeprefix(f"{name}_triton_")] = [
                Row(r["family"], r["variant"], float(r["measured_us"]) * 1e-6,
                    float(r["modelled_us"] or "nan") * 1e-6, r["binds"], r["set"])
                for r in csv.DictReader(text)
            ]  # fmt: skip
    return found


def readme_block(kept: dict[str, list[Row]], device: Device, first: dict[str, list[Row]] | None = None) -> str:
    """Return what README.md says about the model's accuracy: where the times are from, and two tables.

    ``first``: what it said at first sight, for rows of their own; by default what is kept of that.
    """
    first = read(name=FIRST_SIGHT) if first is None else first
    rows = max(kept.values(), key=len)
    families = list(dict.fromkeys(r.family for r in rows))
    columns = ("compiled by", "kernels", "error", "undecided", "passed, but slow", "failed, but fast", "in order",
               "slowest passed")  # fmt: skip
    lines = [
        f"{len(rows)} kernels of {len(families)} families, good ones and bad ones, were timed on one machine "
        f"({device.measured_on}; then again with the code of each newer Triton below). "
        f"Pass means {GATE:.0%} of the best of its family; a modelled share within "
        f"{BAND * 100:.0f} points of that is undecided, and so is what is not modelled. What is wrong is counted among "
        "the decided.",
        "",
        *_table(
            columns,
            [
                _cells(f"Triton {version}, {words}", score(chosen))
                for version, of in kept.items()
                for words, sets in SETS.items()
                if (chosen := [r for r in of if r.set in sets])
            ]
            + [
                _cells(f"Triton {version}, {words}, at first sight", score(chosen))
                for version, of in first.items()
                for words, sets in SETS.items()
                if (chosen := [r for r in of if r.set in sets])
            ],
        ),
    ]
    measured_by = next((v for v in kept if f"triton {v}" in device.measured_on), next(iter(kept)))
    each = [_cells(f, score([r for r in kept[measured_by] if r.family == f])) for f in families]
    lines += [
        "",
        f"<details><summary>Each family, compiled by Triton {measured_by}</summary>",
        "",
        *_table(("family", *columns[1:]), each),
        "",
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _cells(name: str, s: Scores) -> list[str]:
    decided = round(s.count * s.decided)

    def wrong(names: Sequence[str]) -> str:
        return f"{len(names)} of {decided}" if names else "0"

    return [
        name, f"{s.count}{f', {s.unknown} not modelled' if s.unknown else ''}", f"{s.error:.2f}x",
        f"{1 - s.decided:.1%}", wrong(s.false_pass), wrong(s.false_fail),
        f"{s.ordered:.1%}", f"{s.worst_pass:.2f} of the best",
    ]  # fmt: skip


def write_readme(kept: dict[str, list[Row]], device: Device, path: Path = README) -> None:
    """Put the block between its two comments in README.md."""
    text = path.read_text(encoding="utf-8")
    path.write_text(_BLOCK.sub(lambda m: m[1] + readme_block(kept, device) + m[2], text), encoding="utf-8")


def in_readme(path: Path = README) -> str:
    """Return the block as README.md has it; empty when it has none."""
    found = _BLOCK.search(path.read_text(encoding="utf-8"))
    return found[0].removeprefix(found[1]).removesuffix(found[2]) if found else ""
