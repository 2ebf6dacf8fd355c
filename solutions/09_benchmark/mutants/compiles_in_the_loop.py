"""Divides the time of a whole loop by its turns: the first turn compiles.

VERDICT: wrong
KILLED BY: test_declared_cases[first-call-compiles]
"""


def measure(launch, device):
    device.refill()
    for _ in range(1500):
        device.flush()
    device.synchronize()
    loops = []
    for _ in range(2):
        start = device.clock()
        for _ in range(200):
            device.flush()
            launch()
        device.synchronize()
        middle = device.clock()
        for _ in range(200):
            device.flush()
        device.synchronize()
        loops.append((2 * middle - start - device.clock()) / 200)
    time = max(1e-9, sum(loops) / 2)
    return time, (0.975 * time, 1.025 * time)
