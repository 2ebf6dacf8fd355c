"""How long does a kernel take? An estimate and how sure it is, on a device that does its best to mislead.

Source: https://github.com/NVIDIA/nvbench/blob/main/docs/benchmarks.md
"""

import math
import statistics


def warm_up(launch, device):
    """Bring the device to where it is after a while of work: compiled, tuned, at full clock, with real inputs."""
    # TODO(1/4, ~8 lines): all four hold


def samples(launch, device, count):
    """Return ``count`` durations of a cold launch, in seconds."""
    times = []
    # TODO(2/4, ~7 lines): times holds them; nothing but the launch lies between the two ends of each
    return times


def estimate(times, tick):
    """Return the typical duration and an interval for it."""
    # TODO(3/4, ~5 lines): returned; a disturbed launch has no say, and a tick that is coarse does not show
    raise NotImplementedError("measure: TODO 3/4, see README.md")


def measure(launch, device):
    """Measure a kernel.

    Args:
        launch: queues the kernel once, on the same inputs each time.
        device: ``clock()``, ``synchronize()``, ``event()``, ``elapsed(start, end)``, ``flush()``, ``refill()`` and
            ``tick``; README.md says what each does.

    Returns:
        ``(median, (low, high))`` in seconds: how long a launch takes on the GPU at full clock, with inputs that are not
        in its L2; the interval holds the truth with 95 %.
    """
    # TODO(4/4, ~7 lines): returned, from as many samples as it takes to be sure within some percent
    raise NotImplementedError("measure: TODO 4/4, see README.md")
