"""Synchronizes, but times with the host's clock: the launch and the wait are in every sample.

VERDICT: wrong
KILLED BY: test_declared_cases[plain]
"""

import math
import statistics


def warm_up(launch, device):
    device.refill()
    for _ in range(40):
        launch()
    device.synchronize()
    started = device.clock()
    while device.clock() - started < 0.25:
        for _ in range(50):
            device.flush()
        device.synchronize()


def estimate(times, tick):
    median = statistics.median(times)
    near = [t for t in times if abs(t - median) <= max(2 * tick, 0.15 * median)]
    centre = statistics.fmean(near)
    error = 2.6 * statistics.stdev(near) / math.sqrt(len(near))
    return centre, (centre - error, centre + error)


def measure(launch, device):
    warm_up(launch, device)
    times = []
    for _ in range(400):
        device.flush()
        device.synchronize()
        start = device.clock()
        launch()
        device.synchronize()
        times.append(device.clock() - start)
    return estimate(times, device.tick)
