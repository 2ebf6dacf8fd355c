"""Limit: which of the two counts, told from the shape; near the ridge by timing both."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e .")

from harness.device import find_device  # noqa: E402 - as above
from harness.measured import limit, timing  # noqa: E402 - needs torch

H200 = find_device("H200")
RIDGE = H200.peaks["bfloat16"] / H200.mem_bw


def cost(intensity, moved=1 << 16):
    return {"bytes_read": moved // 2, "bytes_written": moved // 2, "flops": round(intensity * moved)}


@pytest.fixture(autouse=True)
def on_a_cpu(monkeypatch):
    monkeypatch.setattr(timing, "DEVICE", "cpu")
    monkeypatch.setattr(timing, "FLUSH_BYTES", 64)
    monkeypatch.setattr(timing, "matmul_of", lambda flop, dtype: (f"{flop} in {dtype}", 2.0))


@pytest.mark.parametrize(("times", "kind"), [(0.0, "copy"), (0.49, "copy"), (2.01, "matmul"), (100.0, "matmul")])
def test_far_from_the_ridge_the_shape_decides(times, kind):
    found = limit.limit_of(cost(times * RIDGE), "bfloat16", H200)

    assert found.kind == kind
    assert (found.scale, bool(found.rules.burst)) == ((2.0, True) if kind == "matmul" else (1.0, False))


@pytest.mark.parametrize(("copy_s", "product_s", "kind"), [(3e-4, 1e-4, "copy"), (1e-4, 1e-4, "matmul")])
def test_near_the_ridge_the_longer_one_counts(monkeypatch, copy_s, product_s, kind):
    monkeypatch.setattr(timing, "once", lambda work, flush: product_s if isinstance(work, str) else copy_s)

    assert limit.limit_of(cost(RIDGE), "bfloat16", H200).kind == kind


def test_a_dtype_without_a_peak_is_bound_by_bytes():
    assert limit.limit_of(cost(1e6), "int32", H200).kind == "copy"


def test_a_record_says_what_the_limit_was():
    found = limit.limit_of(cost(1.0), "bfloat16", H200)

    assert found.to_json(cost(1.0)) == {"kind": "copy", "bytes": 1 << 16, "flop": 1 << 16, "scale": 1.0}
    assert found.work().numel() == 1 << 15
