"""Looks through the memory of its process for the simulator, which knows the answer.

VERDICT: cheat
KILLED BY: test_declared_cases[plain]
"""

import gc


def measure(launch, device):
    for thing in gc.get_objects():
        truth = getattr(thing, "truth", None)
        if isinstance(truth, float):
            return truth, (truth, truth)
    device.synchronize()
    return 1e-4, (0.96e-4, 1.04e-4)
