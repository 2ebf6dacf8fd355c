"""The kept times of references: written per GPU and Triton, read back, and never guessed."""

from __future__ import annotations

import pytest

from harness.errors import HarnessFault
from harness.model import times


def test_what_was_written_is_read_back_beside_what_was_there(tmp_path):
    times.write(tmp_path, "h200_sxm", "3.9.0", "07_softmax", {"rows": {"seconds": 7e-5, "binds": "DRAM"}})
    path = times.write(tmp_path, "h200_sxm", "3.9.0", "01_blocks", {"long": {"seconds": 5e-5, "binds": "L2"}})

    assert path.name == "h200_sxm_triton_3.9.0.json"
    assert times.seconds(tmp_path, "h200_sxm", "3.9.0", "07_softmax", "rows") == 7e-5
    assert list(times.read(tmp_path, "h200_sxm", "3.9.0")) == ["01_blocks", "07_softmax"]


@pytest.mark.parametrize("asked", [
    ("l4", "3.9.0", "07_softmax", "rows"), ("h200_sxm", "3.8.0", "07_softmax", "rows"), ("h200_sxm", "3.9.0", "x", "rows"),
    ("h200_sxm", "3.9.0", "07_softmax", "other"),
])  # fmt: skip
def test_another_gpu_triton_kata_or_case_has_no_time(tmp_path, asked):
    times.write(tmp_path, "h200_sxm", "3.9.0", "07_softmax", {"rows": {"seconds": 7e-5}})

    assert times.seconds(tmp_path, *asked) is None


def test_a_broken_file_is_named_with_what_mends_it(tmp_path):
    path = times.file_of(tmp_path, "h200_sxm", "3.9.0")
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")

    with pytest.raises(HarnessFault, match=r"h200_sxm_triton_3\.9\.0\.json cannot be read .* --write-times"):
        times.read(tmp_path, "h200_sxm", "3.9.0")
