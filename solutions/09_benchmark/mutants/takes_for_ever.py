"""Warms up for five seconds before each measurement: twenty times as long as it takes.

VERDICT: slow or timeout
KILLED BY: test_speed
"""

import math
import statistics


def warm_up(launch, device):
    device.refill()
    for _ in range(40):
        launch()
    device.synchronize()
    started = device.clock()
    while device.clock() - started < 5.0:
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


def estimate(times, tick):
    median = statistics.median(times)
    near = [t for t in times if abs(t - median) <= max(2 * tick, 0.15 * median)]
    centre = statistics.fmean(near)
    error = 2.6 * statistics.stdev(near) / math.sqrt(len(near))
    return centre, (centre - error, centre + error)


def measure(launch, device):
    warm_up(launch, device)
    return estimate(samples(launch, device, 400), device.tick)
