"""Takes the mean of all samples: one disturbed launch in twenty moves it by a quarter.

VERDICT: wrong
KILLED BY: test_declared_cases[outliers]
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


def measure(launch, device):
    warm_up(launch, device)
    times = samples(launch, device, 400)
    centre = statistics.fmean(times)
    error = 2 * statistics.stdev(times) / math.sqrt(len(times))
    return centre, (centre - error, centre + error)
