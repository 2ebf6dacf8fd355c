"""Trusts a single launch, and allows for some percent.

VERDICT: wrong
KILLED BY: test_declared_cases[coarse-timer]
"""


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
    (time,) = samples(launch, device, 1)
    return time, (0.975 * time, 1.025 * time)
