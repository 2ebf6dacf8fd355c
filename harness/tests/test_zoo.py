"""The recorded zoo: its files load, its table names what they define, and a failing model is said, not raised."""

from __future__ import annotations

import ast
import importlib

import pytest

from harness.model.estimate import NoModel
from harness.zoo import data, modelcheck
from harness.zoo.scores import Row

FILES = sorted(data.FOLDER.glob("**/*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_what_a_file_takes_from_the_harness_is_there(path):
    """Read, not run: running it needs Triton."""
    taken = [
        (node.module, name.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("harness")
        for name in node.names
    ]

    assert taken
    assert [t for t in taken if not hasattr(importlib.import_module(t[0]), t[1])] == []


def test_every_measured_variant_has_a_family_in_a_file():
    assert len(data.variants()) >= 200


def test_what_cannot_be_modelled_is_a_line_and_no_trace(monkeypatch, capsys):
    monkeypatch.setattr(modelcheck, "evaluate", lambda chosen, device: ([], ["add/b64_w1: no disassembler"]))

    assert modelcheck.main(["add"]) == 1
    assert capsys.readouterr().out == "not modelled: add/b64_w1: no disassembler\n"


def test_an_answer_that_failed_is_no_row():
    variant = data.variants()[0]

    with pytest.raises(NoModel, match="no ptxas"):
        modelcheck._row(variant, {"failed": "no ptxas"}, {}, None)


def test_the_table_marks_what_falls_on_the_other_side_of_the_gate():
    rows = [Row("f", "good", 1e-4, 1e-4), Row("f", "bad", 2e-4, 1.1e-4)]

    assert ["*" in line for line in modelcheck.variant_lines(rows)] == [False, False, True]
