"""Who replaces a part of what judges is told so."""

from __future__ import annotations

import pytest

from harness.runner import seal as sealed
from harness.runner.seal import seal
from harness.tests.toys import SOLUTION

REPLACED = {
    "a check of the ledger": ("harness.runner.ledger.Ledger.knows", "import harness.runner.ledger as m; m.Ledger.knows = lambda *a: True"),
    "a function of the harness": ("harness.runner.ledger._checksum", "import harness.runner.ledger as m; m._checksum = lambda t: 0"),
    "the memory of a kernel": ("harness.interpreted.sanitizer.Memory._note_store", "import harness.interpreted.sanitizer as m; m.Memory._note_store = lambda *a: None"),
    "a store of the interpreter": ("triton.runtime.interpreter.InterpreterBuilder.create_masked_store", "import triton.runtime.interpreter as m\nm.InterpreterBuilder.create_masked_store = lambda *a: None"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "lines"), REPLACED.values(), ids=[k.replace(" ", "-") for k in REPLACED])
def test_what_was_replaced_is_named(judge, name, lines):
    facts = judge(SOLUTION + "\n\n" + lines + "\n")

    assert facts["word"] == "cheat", facts["reason"]
    assert facts["reason"] == f"your code replaced {name}, which belongs to what judges it."


def test_a_seal_holds_until_something_is_replaced(monkeypatch):
    broken = seal()

    assert broken() == ""

    monkeypatch.setattr(sealed, "_methods", lambda *_: iter(()))

    assert broken() != ""
