"""Asks for the time between two events that the GPU has not reached.

VERDICT: error
KILLED BY: test_declared_cases[plain]
"""


def measure(launch, device):
    start = device.event()
    launch()
    end = device.event()
    time = device.elapsed(start, end)
    return time, (time, time)
