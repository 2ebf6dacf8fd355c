"""Evidence: the README's table of measurements is what the records say."""

from __future__ import annotations

import dataclasses

import pytest

from harness.course import ROOT
from harness.measured import evidence
from harness.measured.experiment import Experiment, sha256, write

COST = {"bytes_read": 2**29, "bytes_written": 2**29, "flops": 0}
BASE = Experiment(
    slug="01_blocks", case={"id": "large"}, file="solutions/01_blocks/kernel.py", source="0" * 64, spec="0" * 64,
    prediction=None, cost=COST, versions={}, time="2030-01-02T00:00:00Z",
    measured={
        "seconds": {"ours": [250e-6] * 5, "limit": [240e-6] * 5, "torch": [300e-6] * 5, "naive": [2.5e-3] * 5},
        "share": 0.96, "low": 0.95, "high": 0.97, "discarded": [], "trusted": True, "limit": {"kind": "copy"},
        "environment": {"gpu": "NVIDIA H200", "torch": "2.11", "triton": "3.6.0", "driver": "580"},
    },
)  # fmt: skip
ROW = "| 01_blocks, large | `kernel.py`{} | 250.0 us | 0.960 of a copy | torch 1.20, naive 10 |"


@pytest.fixture
def root(tmp_path):
    file = tmp_path / BASE.file
    file.parent.mkdir(parents=True)
    file.write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("before\n<!-- evidence -->\nold\n<!-- /evidence -->\nafter\n", encoding="utf-8")
    return tmp_path


def test_the_table_has_a_row_for_each_kernel_and_says_where_it_ran(root):
    current = dataclasses.replace(BASE, source=sha256(root / BASE.file))

    assert evidence.table([current], root).splitlines() == [
        "| kata, shape | kernel | median | of the limit | times as fast as |",
        "|---|---|--:|--:|---|",
        ROW.format(""),
        "",
        "Measured on NVIDIA H200, torch 2.11, Triton 3.6.0, driver 580, 2030-01-02.",
    ]


def test_a_kernel_that_changed_since_is_marked(root):
    assert ROW.format(" (since changed)") in evidence.table([BASE], root)


def test_of_one_kernel_and_case_the_newest_counts(root):
    records = root / "records" / "reference"
    for day, share in ((3, 0.5), (1, 0.7), (2, 0.6)):
        measured = dict(BASE.measured) | {"share": share}
        write(records, dataclasses.replace(BASE, time=f"2030-01-0{day}T00:00:00Z", measured=measured))
    write(records, dataclasses.replace(BASE, case={"id": "small"}))

    assert [(one.case["id"], one.measured["share"]) for one in evidence.experiments(records)] == [
        ("large", 0.5),
        ("small", 0.96),
    ]


def test_it_is_written_between_its_marks(root, capsys):
    assert evidence.main(["--write"], root) == 0
    assert (root / "README.md").read_text() == (
        "before\n<!-- evidence -->\nNothing was measured yet.\n<!-- /evidence -->\nafter\n"
    )
    (root / "README.md").write_text("no marks\n")
    assert evidence.main(["--write"], root) == 1
    assert capsys.readouterr().err.startswith("README.md has no lines <!-- evidence -->")


def test_an_experiment_that_was_changed_is_no_evidence(root, capsys):
    path = write(root / "records" / "reference", BASE)
    path.write_text(path.read_text().replace("0.96", "0.99"))

    assert evidence.main([], root) == 1
    assert "its digest does not match" in capsys.readouterr().err


def test_the_readme_s_table_is_what_the_records_say():
    made = evidence.table(evidence.experiments(ROOT / "records" / "reference"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert evidence.written(readme, made) == readme, "run: python -m harness.measured.evidence --write"
