"""The recorded zoo: its files load, its table names what they define, and a failing model is said, not raised."""

from __future__ import annotations

import ast
import importlib

import pytest

from harness.device import find_device
from harness.errors import KataError
from harness.model.estimate import NoModel
from harness.zoo import data, kept, modelcheck
from harness.zoo.scores import Row, score

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


@pytest.mark.parametrize("version", ["3.6.0", "3.9.0"])
def test_every_measured_variant_has_a_family_in_a_file(version):
    assert len(data.variants(version)) >= 360


@pytest.mark.parametrize(("version", "table"), [
    ("3.6.0", "3.6.0"), ("3.7.1", "3.6.0"), ("3.8.0", "3.6.0"), ("3.9.0", "3.9.0"), ("3.10.0", "3.9.0"), ("3.5", "3.6.0"),
])  # fmt: skip
def test_code_is_held_against_the_times_of_its_own_compiler_or_of_the_nearest_older_one(version, table):
    assert data.table_of(version).stem == f"h200_triton_{table}"


def test_a_zoo_without_times_says_so(tmp_path):
    with pytest.raises(KataError, match="holds no recorded times"):
        data.table_of("3.9.0", tmp_path)


def test_the_readme_says_what_the_kept_rows_say():
    assert kept.in_readme() == kept.readme_block(kept.read(), find_device("H200")), (
        "README.md's table of the speed model is old; run: nox -s model -- --write"
    )


def test_the_kept_rows_are_those_of_the_zoo():
    for version, rows in kept.read().items():
        measured = {(v.family, v.name): v.seconds for v in data.variants(version)}
        assert {(r.family, r.variant): r.measured for r in rows} == pytest.approx(measured, rel=1e-5), version
        assert [r.variant for r in rows if not r.known] == ["tma128x128x64_special", "whole_w32"]


def test_what_was_said_at_first_sight_is_of_kernels_that_were_timed():
    for version, rows in kept.read(name=kept.FIRST_SIGHT).items():
        measured = {(v.family, v.name): v.seconds for v in data.variants(version)}
        assert rows
        for row in rows:
            assert row.measured == pytest.approx(measured[row.family, row.variant], rel=1e-5)


@pytest.mark.parametrize("version", ["3.6.0", "3.9.0"])
@pytest.mark.parametrize("sets", [("D", "H1"), ("L",), ("D", "H1", "L", "N")])
def test_the_model_is_as_good_as_was_promised_where_its_kinds_are_known(sets, version):
    """Of the decided at most 3 % false on either side, 15 % undecided, error 1.15, 95 % of pairs in order."""
    found = score([r for r in kept.read()[version] if r.set in sets])
    decided = found.decided * found.count

    assert len(found.false_pass) <= max(2, 0.03 * decided)
    assert len(found.false_fail) <= 0.03 * decided
    assert found.decided >= 0.85
    assert found.error <= 1.15
    assert found.ordered >= (0.95 if len(sets) > 1 else 0.85)
    assert found.worst_pass > 0.35


@pytest.mark.parametrize("version", ["3.6.0", "3.9.0"])
def test_the_model_gets_no_worse_on_what_it_saw_last(version):
    """29 families of any kind: less than was promised, which README says."""
    found = score([r for r in kept.read()[version] if r.set == "P"])

    assert found.error <= 1.15
    assert found.ordered >= 0.92
    assert found.decided >= 0.75
    assert len(found.false_pass) <= 0.06 * found.decided * found.count
    assert found.worst_pass >= 0.5  # nothing twice as slow as the best passes


def test_what_was_written_is_read_back(tmp_path):
    rows = [Row("f", "v", 1e-4, 1.25e-4, "DRAM", "D")]
    (tmp_path / "README.md").write_text("before\n<!-- model -->\nold\n<!-- /model -->\nafter\n", encoding="utf-8")
    kept.write(rows, "3.9.0", tmp_path)
    read = kept.read(tmp_path)
    kept.write_readme(read, find_device("H200"), tmp_path / "README.md")

    assert {v: [(r.family, r.variant, r.binds, r.set) for r in of] for v, of in read.items()} == {
        "3.9.0": [("f", "v", "DRAM", "D")]
    }
    assert read["3.9.0"][0].modelled == pytest.approx(1.25e-4)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| Triton 3.9.0, known | 1 | 1.25x | 0.0% | 0 | 0 | 100.0% | 1.00 of the best |" in text
    assert text.startswith("before\n") and text.endswith("<!-- /model -->\nafter\n")


def test_a_part_of_the_zoo_is_not_kept(capsys):
    assert modelcheck.main(["add", "--write"]) == 1
    assert capsys.readouterr().err == "--write keeps the whole zoo; leave out the families and the sets.\n"


def test_what_cannot_be_modelled_is_a_line_and_no_trace(monkeypatch, capsys):
    monkeypatch.setattr(modelcheck, "evaluate", lambda chosen, device: ([], ["add/b64_w1: no disassembler"]))

    assert modelcheck.main(["add"]) == 1
    assert capsys.readouterr().out == "not modelled: add/b64_w1: no disassembler\n"


def test_an_answer_that_failed_is_no_row():
    variant = data.variants()[0]

    with pytest.raises(modelcheck.Broken, match="no ptxas"):
        modelcheck._row(variant, {"failed": "no ptxas"}, {}, None)


def test_a_kernel_that_the_model_says_nothing_about_is_undecided(monkeypatch, tmp_path, capsys):
    def silent(*_):
        raise NoModel("k uses something")

    variant = data.variants()[0]
    monkeypatch.setattr(modelcheck.model, "estimate", silent)
    unknown = modelcheck._row(variant, {}, {"runs": []}, None)
    rows = [Row("add", "good", 1e-4, 1e-4), unknown]
    found = score(rows)

    assert (found.count, found.unknown, found.decided, found.agree, found.error) == (2, 1, 0.5, 1.0, 1.0)
    assert modelcheck.variant_lines(rows)[-1].endswith("us not modelled")
    kept.write(rows, "3.9.0", tmp_path)
    assert [r.known for r in kept.read(tmp_path)["3.9.0"]] == [True, False]
    assert "| add | 2, 1 not modelled | 1.00x | 50.0% |" in kept.readme_block(
        kept.read(tmp_path), find_device("H200"), {}
    )
    monkeypatch.setattr(modelcheck, "evaluate", lambda chosen, device: (rows, []))
    assert modelcheck.main(["add"]) == 0
    assert capsys.readouterr().out.endswith(f"not modelled: add/{variant.name}: k uses something\n")


def test_the_table_marks_what_falls_on_the_other_side_of_the_gate():
    rows = [Row("f", "good", 1e-4, 1e-4), Row("f", "bad", 2e-4, 1.1e-4)]

    assert ["*" in line for line in modelcheck.variant_lines(rows)] == [False, False, True]
