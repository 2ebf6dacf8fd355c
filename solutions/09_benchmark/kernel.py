"""How long does a kernel take? An estimate and how sure it is, on a device that does its best to mislead.

Source: https://github.com/NVIDIA/nvbench/blob/main/docs/benchmarks.md
"""

import math
import statistics

WARM_SECONDS = 0.25  # of work: an idle GPU takes its time to reach full clock
WARM_LAUNCHES = 40  # the first ones compile, and try configurations
SAMPLES = 100  # before the first look at how sure we are
ENOUGH = 0.02  # width of the interval, as a share of the estimate
MOST = 2000  # samples, if it stays wider


def warm_up(launch, device):
    """Bring the device to where it is after a while of work: compiled, tuned, at full clock, with real inputs."""
    device.refill()
    for _ in range(WARM_LAUNCHES):
        launch()
    device.synchronize()
    started = device.clock()
    while device.clock() - started < WARM_SECONDS:
        for _ in range(50):
            device.flush()
        device.synchronize()


def samples(launch, device, count):
    """Return ``count`` durations of a cold launch, in seconds."""
    times = []
    for _ in range(count):
        device.flush()  # evicts the inputs, and keeps the GPU busy while the host queues what follows
        start = device.event()
        launch()
        end = device.event()
        device.synchronize()
        times.append(device.elapsed(start, end))
    return times


def estimate(times, tick):
    """Return the typical duration and an interval for it."""
    # disturbed launches lie far from the median and are left out. Of the others a mean is taken: events fall anywhere
    # between two ticks, so that it is right on average, where a median could only be a multiple of the tick
    median = statistics.median(times)
    near = [t for t in times if abs(t - median) <= max(2 * tick, 0.15 * median)]
    centre = statistics.fmean(near)
    error = 2.6 * statistics.stdev(near) / math.sqrt(len(near))
    return centre, (centre - error, centre + error)


def measure(launch, device):
    """Measure a kernel.

    Args:
        launch: queues the kernel once, on the same inputs each time.
        device: ``clock()``, ``synchronize()``, ``event()``, ``elapsed(start, end)``, ``flush()``, ``refill()`` and
            ``tick``; README.md says what each does.

    Returns:
        ``(median, (low, high))`` in seconds: how long a launch takes on the GPU at full clock, with inputs that are not
        in its L2; the interval holds the truth with 95 %.
    """
    warm_up(launch, device)
    times = samples(launch, device, SAMPLES)
    centre, (low, high) = estimate(times, device.tick)
    while high - low > ENOUGH * centre and len(times) < MOST:
        times += samples(launch, device, SAMPLES)
        centre, (low, high) = estimate(times, device.tick)
    return centre, (low, high)
