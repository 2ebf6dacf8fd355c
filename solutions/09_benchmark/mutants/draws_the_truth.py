"""Makes the simulator's kernel again from the harness's own code.

VERDICT: cheat
KILLED BY: test_declared_cases[plain]
"""

import random


def measure(launch, device):
    from harness.measured.simgpu import SimGpu

    truth = SimGpu(random.Random(0), ()).truth
    return truth, (truth, truth)
