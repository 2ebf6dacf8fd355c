"""Launches back to back: from the second on the inputs come from the L2.

VERDICT: wrong
KILLED BY: test_declared_cases[warm-l2]
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
        start = device.event()
        launch()
        end = device.event()
        device.synchronize()
        times.append(device.elapsed(start, end))
    return estimate(times, device.tick)
