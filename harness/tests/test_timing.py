"""Timing, on a pretended GPU: the work happens here, and the events tell invented times."""

import itertools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e .")

from harness.measured import timing  # noqa: E402 - needs torch
from harness.measured.sampling import State  # noqa: E402 - as above


class Gpu:
    """Counts flushes and calls; every event is as far from the one before as the work between them says."""

    def __init__(self):
        self.now, self.log, self.synchronized = 0.0, [], 0

    def work(self, name, ms):
        def call():
            self.log.append(name)
            self.now += ms

        return call

    def event(self, enable_timing):
        gpu = self

        class Event:
            def record(self):
                self.at = gpu.now

        return Event()


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    gpu = Gpu()
    monkeypatch.setattr(timing, "DEVICE", "cpu")
    monkeypatch.setattr(timing, "FLUSH_BYTES", 64)
    monkeypatch.setattr(timing, "WARM_SECONDS", 0.01)
    monkeypatch.setattr(timing, "_Event", gpu.event)
    monkeypatch.setattr(timing, "_elapsed", lambda start, end: end.at - start.at)
    monkeypatch.setattr(timing, "_synchronize", lambda: setattr(gpu, "synchronized", gpu.synchronized + 1))
    monkeypatch.setattr(
        timing, "driver", lambda: type("Driver", (), {"uuid": "GPU-1", "state": lambda self: State()})()
    )
    monkeypatch.setattr(timing.tempfile, "gettempdir", lambda: str(tmp_path))
    return gpu


def test_ours_and_the_limit_are_timed_in_seconds(gpu):
    found = timing.contest([gpu.work("a", 2.0)], {"limit": gpu.work("limit", 1.0)})

    assert found.seconds["ours"] == pytest.approx([2e-3] * len(found.states))
    assert found.share == pytest.approx(0.5)
    assert gpu.synchronized > len(found.seconds["ours"]) * 2


def test_calls_are_used_in_turn(gpu):
    timing.contest([gpu.work("a", 2.0), gpu.work("b", 2.0)], {"limit": gpu.work("limit", 1.0)})

    used = [name for name in gpu.log[2:] if name != "limit"]
    assert all(x != y for x, y in itertools.pairwise(used[2:]))


def test_a_contender_that_does_another_amount_is_scaled(gpu):
    found = timing.contest([gpu.work("a", 2.0)], {"limit": gpu.work("limit", 1.0)}, scale={"limit": 2.0})

    assert found.share == pytest.approx(1.0)


def test_each_sample_starts_with_flushes_that_keep_the_gpu_busy(gpu, monkeypatch):
    flushes = []
    flush = torch.empty(8, dtype=torch.uint8)
    monkeypatch.setattr(torch.Tensor, "zero_", lambda self: flushes.append(len(gpu.log)) or self)

    assert timing.once(gpu.work("a", 3.0), flush) == pytest.approx(3e-3)
    assert flushes == [0] * timing.FLUSHES
    assert timing.once(gpu.work("a", 3.0), None) == pytest.approx(3e-3)
    assert len(flushes) == timing.FLUSHES


def test_the_copy_moves_half_in_and_half_out(gpu):
    source = timing.copy_of(4096)()

    assert source.numel() == 2048 and source.dtype == torch.uint8


@pytest.mark.parametrize(("flop", "n"), [(2 * 5120**3, 5120), (1, 4096)])
def test_the_product_is_near_the_size_and_its_factor_exact(gpu, monkeypatch, flop, n):
    monkeypatch.setattr(timing, "DEVICE", "meta")  # shapes alone: a CPU takes seconds for this product
    product, factor = timing.matmul_of(flop, torch.bfloat16)

    assert factor * 2 * n**3 == pytest.approx(flop)
    assert product().shape == (n, n)


def test_two_measurements_on_one_gpu_wait_for_each_other(gpu, tmp_path):
    import fcntl

    with timing.alone(), open(tmp_path / "kernel-kata-GPU-1.lock") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
