"""Times: the modelled time of each kata's reference, kept per GPU and Triton version. No torch here.

A submission's share is the reference's modelled time over its own, so both must come from the same model and the same
compiler. The files are ours, written by ``nox -s course -- --write-times``; a learner's tree need not hold solutions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.errors import HarnessFault

FOLDER = Path("records") / "reference" / "modelled"


def file_of(root: Path, gpu: str, triton: str) -> Path:
    """Return where the times for this GPU and Triton stand."""
    return root / FOLDER / f"{gpu}_triton_{triton}.json"


def read(root: Path, gpu: str, triton: str) -> dict[str, Any]:
    """Return the times by kata and case; empty when nobody wrote any. Raises HarnessFault for a broken file."""
    path = file_of(root, gpu, triton)
    try:
        return json.loads(path.read_text(encoding="utf-8"))["katas"]
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise HarnessFault(
            f"{path} cannot be read ({error!r}); `nox -s course -- --write-times` writes it anew."
        ) from None


def seconds(root: Path, gpu: str, triton: str, slug: str, case: str) -> float | None:
    """Return the modelled time of the kata's reference at one bench shape, None when it is not known."""
    entry = read(root, gpu, triton).get(slug, {}).get(case)
    return None if entry is None else float(entry["seconds"])


def write(root: Path, gpu: str, triton: str, slug: str, cases: dict[str, dict[str, Any]]) -> Path:
    """Keep the times of one kata, ``seconds`` and ``binds`` for each bench shape, and return the file."""
    path = file_of(root, gpu, triton)
    katas = read(root, gpu, triton) | {slug: cases}
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"schema": 1, "gpu": gpu, "triton": triton, "katas": dict(sorted(katas.items()))}
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path
