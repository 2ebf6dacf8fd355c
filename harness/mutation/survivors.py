"""Survivors: mutants that pass, and the file in which each one is explained (``solutions/NN_name/equivalent.toml``).

::

    [[mutant]]
    operator = "constant"
    line = "BLOCK = 1024"          # the line as it stands in kernel.py, without its indentation
    becomes = "BLOCK = 2048"       # one text, or a list of them
    nth = 1                        # optional: only where the line stands for the nth time; default: wherever it stands
    kind = "equivalent"            # optional: equivalent (the default) or "out of reach"
    why = "The tile's size does not change the result."

``equivalent``: no input that the kata allows tells the two apart. ``out of reach``: some input does, but none that a
suite can hold (2**31 elements). Both are set aside in the kill rate, and both are counted.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import SpecError, did_you_mean
from harness.mutation.mutate import OPERATORS, Mutant

FILE = "equivalent.toml"
KINDS = ("equivalent", "out of reach")
_KEYS = {"operator": str, "line": str, "becomes": (str, list), "nth": int, "kind": str, "why": str}


@dataclass(frozen=True)
class Explanation:
    """Why some mutants of one line live; the file's own words (see above)."""

    operator: str
    line: str
    becomes: tuple[str, ...]
    why: str
    nth: int = 0
    kind: str = "equivalent"

    def covers(self, mutant: Mutant) -> bool:
        """Return whether this explains ``mutant``."""
        return (
            (self.operator, self.line) == (mutant.operator, mutant.before)
            and mutant.after in self.becomes
            and self.nth in (0, mutant.nth)
        )


def load_explanations(folder: Path) -> list[Explanation]:
    """Read ``equivalent.toml`` of a folder in ``solutions/``; no file is no explanation. Raises SpecError."""
    path = folder / FILE
    where = f"solutions/{folder.name}/{FILE}"
    if not path.is_file():
        return []
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{where} is no valid TOML: {error}.") from None
    entries = data.pop("mutant", [])
    if data or not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise SpecError(f"{where}: expected nothing but tables [[mutant]]; found {', '.join(data) or 'mutant'}.")
    return [_explanation(e, f"{where}, mutant {i}") for i, e in enumerate(entries, 1)]


def _explanation(entry: dict[str, Any], where: str) -> Explanation:
    for key, value in entry.items():
        if key not in _KEYS:
            raise SpecError(f"{where}: key {key!r} is unknown; expected {', '.join(_KEYS)}.{did_you_mean(key, _KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise SpecError(f"{where}: {key} = {value!r} has the wrong type; see the other entries.")
    for key in ("operator", "line", "becomes", "why"):
        if not entry.get(key):
            raise SpecError(f"{where}: {key} is missing; expected operator, line, becomes and why.")
    if entry["operator"] not in OPERATORS:
        raise SpecError(
            f"{where}: operator {entry['operator']!r} is unknown; expected one of {', '.join(OPERATORS)}."
            f"{did_you_mean(entry['operator'], OPERATORS)}"
        )
    if entry.get("kind", KINDS[0]) not in KINDS:
        raise SpecError(f"{where}: kind {entry['kind']!r} is unknown; expected {' or '.join(KINDS)}.")
    becomes = entry["becomes"]
    return Explanation(**entry | {"becomes": (becomes,) if isinstance(becomes, str) else tuple(map(str, becomes))})


def stale(explanations: Sequence[Explanation], mutants: Sequence[Mutant], dead: Sequence[Mutant]) -> list[str]:
    """Return what is wrong with the explanations of a file, one sentence each.

    Args:
        mutants: all of the kata's, by every operator.
        dead: those whose result was refused in this run. (One that is merely ``slow`` may be equivalent for all that.)
    """
    problems = []
    for e in explanations:
        for text in e.becomes:
            about = f"{e.operator}: {e.line!r} -> {text!r}"
            covered = [m for m in mutants if m.after == text and e.covers(m)]
            if not covered:
                problems.append(f"explains a mutant that does not exist ({about}); take it out, or mend its text.")
            elif killed := [m for m in covered if m in dead]:
                lines = ", ".join(str(m.line) for m in killed)
                problems.append(f"explains a mutant that dies, in line {lines} ({about}); take it out, or set nth.")
    return problems


def template(mutant: Mutant, repeated: bool) -> str:
    """Return the entry that would explain a mutant, less the reason."""
    lines = ["[[mutant]]", f"operator = {_quoted(mutant.operator)}", f"line = {_quoted(mutant.before)}"]
    lines.append(f"becomes = {_quoted(mutant.after)}")
    if repeated:
        lines.append(f"nth = {mutant.nth}")
    return "\n".join([*lines, 'why = ""'])


def _quoted(text: str) -> str:
    """Return a TOML string, in the quotes that need no escapes where there are such."""
    if "'" not in text and ('"' in text or "\\" in text):
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
