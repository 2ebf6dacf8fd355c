"""What the driver says about a GPU while it works: clock, why it is held down, who else is there. No torch here.

The library comes with every NVIDIA driver; without it, or where it refuses (as in some containers), answers are None.
Source: https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

from harness.measured.sampling import POWER_LIMIT, State

# only what slows it against its will: an idle GPU or a clock that somebody set are no disturbance
REASONS = {
    0x04: POWER_LIMIT,
    0x08: "hardware slowdown",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}
_SM, _MEMORY = 1, 2  # nvmlClockType_t
_TOO_SMALL = 7  # NVML_ERROR_INSUFFICIENT_SIZE: the count is right all the same


class Nvml:
    """The driver's view of one GPU.

    Args:
        uuid: ``GPU-…``, as torch's device properties have it with or without the prefix.
        library: the loaded library; None loads it.
    """

    def __init__(self, uuid: str, library: Any = None) -> None:
        self.uuid = uuid
        self._lib, self._handle = library, ctypes.c_void_p()
        with contextlib.suppress(OSError):
            self._lib = library or ctypes.CDLL("libnvidia-ml.so.1")
        if self._lib is None:
            return
        name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
        if self._lib.nvmlInit_v2() or self._lib.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(self._handle)):
            self._lib = None

    def state(self) -> State:
        """Return what the GPU is doing now."""
        if self._lib is None:
            return State()
        reasons = self._number(ctypes.c_ulonglong(), "nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        held = tuple(text for bit, text in REASONS.items() if reasons & bit)
        return State(self._number(ctypes.c_uint(), "nvmlDeviceGetClockInfo", _SM), held, self._others())

    def facts(self) -> dict[str, Any]:
        """Return what does not change: driver, largest clocks in MHz, the power limit in W, and the temperature."""
        if self._lib is None:
            return {}
        text = ctypes.create_string_buffer(96)
        driver = None if self._lib.nvmlSystemGetDriverVersion(text, ctypes.c_uint(96)) else text.value.decode()
        power = self._number(ctypes.c_uint(), "nvmlDeviceGetEnforcedPowerLimit")
        return {
            "driver": driver,
            "max_sm_mhz": self._number(ctypes.c_uint(), "nvmlDeviceGetMaxClockInfo", _SM),
            "max_memory_mhz": self._number(ctypes.c_uint(), "nvmlDeviceGetMaxClockInfo", _MEMORY),
            "power_limit_w": None if power is None else power / 1000,
            "temperature_c": self._number(ctypes.c_uint(), "nvmlDeviceGetTemperature", 0),
        }

    def _others(self) -> int | None:
        count = ctypes.c_uint(0)
        status = self._lib.nvmlDeviceGetComputeRunningProcesses_v3(self._handle, ctypes.byref(count), None)
        return max(0, count.value - 1) if status in (0, _TOO_SMALL) else None

    def _number(self, out: Any, function: str, *arguments: int) -> int | None:
        numbers = [ctypes.c_uint(a) for a in arguments]
        return None if getattr(self._lib, function)(self._handle, *numbers, ctypes.byref(out)) else out.value
