"""Golden text: what a learner reads, kept in files beside the tests and compared exactly."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def check_golden(name: str, text: str, request: pytest.FixtureRequest | None = None) -> None:
    """Fail unless ``text`` is what ``golden/<name>`` holds; with ``--golden-update`` write it instead.

    Args:
        name: the file's name, such as ``mismatch_tail.txt``.
        text: what the code under test says.
        request: the test's ``request``, which knows the option; without it the file is only compared.
    """
    path = GOLDEN / name
    text = text.rstrip("\n") + "\n"
    if request is not None and request.config.getoption("--golden-update", default=False):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        pytest.fail(f"golden/{name} does not exist; make it with --golden-update. The text:\n{text}", pytrace=False)
    kept = path.read_text(encoding="utf-8")
    if text != kept:
        diff = difflib.unified_diff(kept.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
        message = "\n".join(diff)
        pytest.fail(f"the text changed; if it should, run once with --golden-update.\n{message}", pytrace=False)
