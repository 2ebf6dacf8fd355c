"""Warms up with one launch and other work: the samples are launches that still try configurations.

VERDICT: wrong
KILLED BY: test_declared_cases[tuning]
"""

import math
import statistics


def samples(launch, device, count):
    times = []
    for _ in range(count):
        device.flush()
        start = device.event()
        launch()
        end = device.event()
        device.synchronize()
        times.append(device.elapsed(start, end))
    return times


def estimate(times, tick):
    median = statistics.median(times)
    near = [t for t in times if abs(t - median) <= max(2 * tick, 0.15 * median)]
    centre = statistics.fmean(near)
    error = 2.6 * statistics.stdev(near) / math.sqrt(len(near))
    return centre, (centre - error, centre + error)


def measure(launch, device):
    device.refill()
    launch()
    for _ in range(1500):
        device.flush()
    device.synchronize()
    return estimate(samples(launch, device, 21), device.tick)
