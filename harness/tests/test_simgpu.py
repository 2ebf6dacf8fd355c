"""The simulated GPU: each trap misleads the one measurement that it is made for, and hides nothing else."""

import random
import statistics

import pytest

from harness.errors import KataError
from harness.measured.simgpu import BATCH, TRAPS, Device, Launch, SimGpu


def machine(*traps, seed=1):
    """Return the truth's side, and the device and launch of the measuring side."""
    gpu = SimGpu(random.Random(seed), traps)
    device = Device(gpu.handle, gpu.tick)
    return gpu, device, Launch(device)


def timed(device, launch, count=50, cold=True):
    """Return durations by events, the queue never empty."""
    times = []
    for _ in range(count):
        if cold:
            device.flush()
        start = device.event()
        launch()
        end = device.event()
        device.synchronize()
        times.append(device.elapsed(start, end))
    return times


def test_without_traps_the_plain_measurement_is_right():
    gpu, device, launch = machine()

    assert statistics.median(timed(device, launch)) == pytest.approx(gpu.truth, rel=0.01)


def test_the_host_goes_on_while_work_is_queued():
    gpu, device, launch = machine("queue")
    launch()
    before = device.clock()
    for _ in range(100):
        device.flush()
        launch()
    queued = device.clock() - before
    device.synchronize()

    assert queued < 200 * gpu.launch_cost * 1.1
    assert device.clock() - before > 100 * 220e-6


def test_events_are_unknown_until_the_gpu_was_there():
    _, device, launch = machine()
    device.flush()
    start = device.event()
    launch()
    end = device.event()

    with pytest.raises(RuntimeError, match=r"call device\.synchronize\(\) before elapsed\(\)"):
        device.elapsed(start, end)
    device.clock()  # the host asks, but the GPU is still at work
    with pytest.raises(RuntimeError):
        device.elapsed(start, end)
    device.synchronize()
    assert device.elapsed(start, end) > 0


def test_an_idle_gpu_waits_for_a_slow_host():
    gpu, device, launch = machine("queue")
    wait = statistics.median(timed(device, launch, cold=False))

    assert wait > gpu.truth + 0.9 * gpu.launch_cost
    assert statistics.median(timed(device, launch)) == pytest.approx(gpu.truth, rel=0.05)


def test_inputs_that_the_l2_holds_are_faster():
    gpu, device, launch = machine("warm")
    launch()

    assert statistics.median(timed(device, launch, cold=False)) < 0.75 * gpu.truth
    device.refill()  # writing them leaves them there as well
    device.synchronize()
    assert timed(device, launch, 1, cold=False)[0] < 0.75 * gpu.truth
    assert statistics.median(timed(device, launch)) == pytest.approx(gpu.truth, rel=0.01)


def test_the_first_launch_compiles_and_that_time_is_not_held_against_anybody():
    gpu, device, launch = machine("compile")
    before = device.clock()
    launch()

    assert device.clock() - before > 0.3
    assert gpu.used < 0.01


def test_tuning_ends_after_some_launches():
    gpu, device, launch = machine("tuning")
    times = timed(device, launch, 60)

    assert all(t > 1.2 * gpu.truth for t in times[: gpu.configurations])
    assert statistics.median(times[gpu.configurations :]) == pytest.approx(gpu.truth, rel=0.01)


def test_zeros_are_faster_until_refilled():
    gpu, device, launch = machine("zeros")

    assert statistics.median(timed(device, launch)) < 0.92 * gpu.truth
    device.refill()
    assert statistics.median(timed(device, launch)) == pytest.approx(gpu.truth, rel=0.01)


def test_the_clock_rises_with_work_of_any_kind_and_falls_in_idleness():
    gpu, device, launch = machine("clock")
    first = timed(device, launch, 1)[0]
    for _ in range(1000):
        device.flush()
    device.synchronize()
    warm = statistics.median(timed(device, launch, 20))
    gpu.host += 1.0
    again = timed(device, launch, 1)[0]

    assert first > 1.4 * gpu.truth and again > 1.4 * gpu.truth
    assert warm == pytest.approx(gpu.truth, rel=0.01)


def test_outliers_move_the_mean_and_not_the_median():
    gpu, device, launch = machine("outliers")
    times = timed(device, launch, 1000)

    assert statistics.fmean(times) > 1.1 * gpu.truth
    assert statistics.median(times) == pytest.approx(gpu.truth, rel=0.01)


def test_a_coarse_tick_is_right_on_average_only():
    gpu, device, launch = machine("tick")
    times = timed(device, launch, 3000)

    assert len({round(t / gpu.tick) for t in times}) <= 3
    assert all(t / gpu.tick == pytest.approx(round(t / gpu.tick), abs=1e-6) for t in times)
    assert statistics.fmean(times) == pytest.approx(gpu.truth, rel=0.015)


@pytest.mark.parametrize("trap", TRAPS)
def test_every_trap_can_be_drawn_from_many_seeds(trap):
    for seed in range(20):
        gpu, device, launch = machine(trap, seed=seed)
        timed(device, launch, 3)

        assert 1e-6 < gpu.truth < 2e-3 and 0 < gpu.tick < gpu.truth


def test_an_unknown_trap_is_named_with_the_nearest():
    with pytest.raises(KataError, match=r"trap='wram' is none of queue, .*Did you mean \"warm\"\?"):
        machine("wram")


def test_what_was_done_is_counted_and_has_an_end():
    gpu, device, launch = machine()
    for _ in range(BATCH):
        launch()
    device.clock()

    assert gpu.launches == gpu.letters == BATCH
    gpu.letters = 10**9
    with pytest.raises(KataError, match="calls of the device in one measurement"):
        device.clock()


@pytest.mark.parametrize("traps", [(), ("warm",), ("zeros",), ("queue", "outliers"), ("clock", "tuning")])
def test_mistakes_name_only_what_this_gpu_has(traps):
    gpu, _, _ = machine(*traps)
    found = " ".join(gpu.mistakes())

    assert ("L2" in found) == ("warm" in traps)
    assert ("zeros" in found) == ("zeros" in traps)
    assert ("mean" in found) == ("outliers" in traps)
    assert ("configurations" in found) == ("tuning" in traps)
