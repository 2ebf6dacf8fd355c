"""09_benchmark, the truth: simulated GPUs whose kernels take a known time, and what is asked of an estimate."""

import math
import random

from harness.measured import simgpu

SLACK = 0.01  # of the truth, by which an interval of twice the width may miss it: chance must not fail anybody
WIDEST = 0.06  # of the truth, an interval
ALLOWED = 3.0  # s of the machine's time for one measurement, compiling left out
SPINS = (50e-6, 400e-6, 2e-3)  # s; kernels of known duration on a real GPU
COPIED = 16 * 2**20  # bytes, in and out; the L2 of a big GPU holds both
COVERED = 2 / 3  # of the intervals of 24 devices hold the truth if each does with 95 %, but for one time in a million


class World:
    """Some simulated GPUs with the same traps, one for each call of ``measure``; options: ``traps``, ``devices``."""

    def __init__(self, case):
        draw = random.Random(case.seed)
        traps = [name for name in case.options.get("traps", "").split("+") if name]
        self.gpus = [simgpu.SimGpu(draw, traps) for _ in range(case.options.get("devices", 3))]
        self.calls = len(self.gpus)
        self.covers, self.timed = case.options.get("covers", False), case.role == "traffic"

    def answer(self, call, message):
        """Return what the learner's side asks: ``{"open": …}`` for the tick, else letters of work."""
        gpu = self.gpus[call]
        return {"tick": gpu.tick} if "open" in message else gpu.handle(message)

    def judge(self, results):
        """Return the facts: the first device whose estimate is wrong says why."""
        for number, (gpu, result) in enumerate(zip(self.gpus, results, strict=True), 1):
            where = f"device {number} of {self.calls}: " if self.calls > 1 else ""
            if problem := misshapen(result) or (not self.covers and missed(gpu, *result)) or too_wide(gpu, *result):
                return {"word": "wrong", "reason": where + problem}
        hits = sum(low <= gpu.truth <= high for gpu, (_, (low, high)) in zip(self.gpus, results, strict=True))
        if self.covers and hits < COVERED * self.calls:
            return {"word": "wrong", "reason": f"{hits} of {self.calls} intervals hold the truth; 95 % of them should. "
                    "How sure you are of the median is what belongs into an interval."}  # fmt: skip
        used = max(gpu.used for gpu in self.gpus)
        speed = {"kind": "counted", "share": None, "gate": None, "band": None, "binds": None, "counts": {},
                 "used_s": round(used, 3), "allowed_s": ALLOWED}  # fmt: skip
        if self.timed and used > ALLOWED:
            return {"word": "slow", "reason": f"one measurement kept the machine for {used:.3g} s, compiling left out; "
                    f"{ALLOWED:g} s are allowed.", "speed": speed}  # fmt: skip
        return {"word": "pass", "speed": speed}


def misshapen(result):
    """Return what is wrong with the form of one result, or an empty string."""
    numbers = isinstance(result, list) and len(result) == 2 and isinstance(result[1], list) and len(result[1]) == 2
    if not numbers or not all(isinstance(x, float) for x in (result[0], *result[1])):
        return f"measure returned {said(result)}; expected (median, (low, high)) in seconds."
    median, (low, high) = result
    if not (0 < low <= median <= high < math.inf):
        return f"measure returned {said(result)}; expected 0 < low <= median <= high, in seconds."
    return ""


def missed(gpu, median, interval):
    """Return that the interval does not hold the truth, and the likely cause; or an empty string."""
    low, high = interval
    allowed = (high - low) / 2 + SLACK * gpu.truth
    if low - allowed <= gpu.truth <= high + allowed:
        return ""
    text = (f"the interval {us(low)} to {us(high)} does not hold the {us(gpu.truth)} that the kernel takes, cold and "
            "at full clock.")  # fmt: skip
    near = [why for why, (a, b) in gpu.mistakes().items() if a * 0.98 <= median <= b * 1.02]
    return text + (f"\nThat is about {near[0]}." if near else "")


def too_wide(gpu, median, interval):
    """Return that the interval says too little, or an empty string."""
    width = (interval[1] - interval[0]) / gpu.truth
    if width <= WIDEST:
        return ""
    return (f"the interval {us(interval[0])} to {us(interval[1])} is {width:.0%} of the {us(gpu.truth)} that the "
            f"kernel takes; at most {WIDEST:.0%} are asked for. More samples make it narrower.")  # fmt: skip


def arguments(ask):
    """Return the arguments of one call, in the learner's process: a kernel and its device."""
    device = simgpu.Device(ask, ask({"open": True})["tick"])
    return simgpu.Launch(device), device


def gpu_kernels(case):
    """Return kernel, device and a function that measures the truth, for kernels on a real GPU (its process only)."""
    from harness.measured import cuda_device

    pairs = [*map(cuda_device.spin, SPINS), cuda_device.copy(COPIED)]
    return [(*pair, lambda pair=pair: cuda_device.truth(*pair)) for pair in pairs]


def judge_measured(results, truths, gpu):
    """Return the facts of estimates on a real GPU: within 3 % of what the harness measured right after."""
    for result, seconds, truth in zip(results, (*SPINS, None), truths, strict=True):
        if seconds and not seconds <= truth <= seconds * 1.02 + 10e-6:
            return {"word": "undecided", "reason": f"a kernel of {us(seconds)} took {us(truth)} on this {gpu}; is "
                    "anything else running on it?"}  # fmt: skip
        if problem := misshapen(result):
            return {"word": "wrong", "reason": problem}
        low, high = result[1]
        if not low - 0.03 * truth <= truth <= high + 0.03 * truth or high - low > WIDEST * truth:
            return {"word": "wrong", "reason": f"on this {gpu}: the interval {us(low)} to {us(high)} for a kernel of "
                    f"{us(truth)}; it should hold that, within 3 %, and be at most {WIDEST:.0%} wide."}  # fmt: skip
    return {"word": "pass", "speed": {"kind": "measured", "share": None, "gate": None, "band": None, "binds": None}}


def us(seconds):
    """Return a duration in microseconds, a long one in milliseconds."""
    return f"{seconds * 1e6:.4g} us" if seconds < 1e-2 else f"{seconds * 1e3:.4g} ms"


def said(result):
    """Return a short text for what was returned."""
    if isinstance(result, dict):
        return result["kind"]
    if isinstance(result, list):
        return f"({', '.join(said(r) for r in result[:4])})"
    return f"{result:.4g}" if isinstance(result, float) else repr(result)[:40]
