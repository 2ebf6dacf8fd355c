"""A stand-in for the GPU that is not there: launchers may ask for it, and get the named GPU's figures.

Code that people write for a GPU says ``device="cuda"``, asks ``torch.cuda`` for the number of SMs, or asks Triton's
driver. On a machine without a GPU those calls would end the run before the kernel is looked at.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from harness.device import Device

_CPU = torch.device("cpu")


class CudaIsCpu(TorchFunctionMode):
    """While active, every request for a tensor on ``cuda`` is met on the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.device and args and str(args[0]).startswith("cuda"):  # also torch.device("cuda", 0)
            return _CPU
        kwargs = {k: _on_cpu(v) for k, v in (kwargs or {}).items()}
        return func(*(_on_cpu(a) for a in args), **kwargs)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device):
        return _CPU if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return _CPU
    return value


class Driver:
    """Stands in for ``triton.runtime.driver.active``."""

    def __init__(self, device: Device, target: Any) -> None:
        self._target = target
        self.utils = SimpleNamespace(
            get_device_properties=lambda index=0: dict(device.triton_properties()),
            load_binary=_no_binary,
            set_printf_fifo_size=lambda size: None,
        )
        self.binary_ext = "cubin"
        self.get_device_capability = lambda index=0: device.capability
        self.launcher_cls = None

    def get_current_target(self) -> Any:
        """Return the named GPU's target, so that ``.arch`` answers as on that GPU."""
        return self._target

    def get_active_torch_device(self) -> torch.device:
        """Return the device that the call's tensors are on."""
        return _CPU

    def get_current_device(self) -> int:
        """Return device 0."""
        return 0

    def set_current_device(self, index: int) -> None:
        """There is one device."""

    def get_current_stream(self, index: int = 0) -> int:
        """Return the default stream."""
        return 0

    def get_device_interface(self) -> Any:
        """Return ``torch.cuda``, which ``install`` has taught to answer."""
        return torch.cuda

    def get_benchmarker(self) -> Any:
        """Return a benchmarker that runs the function once and reports a millisecond: nothing is timed here."""

        def bench(fn, *args, quantiles=None, **kwargs):
            fn()
            return [1.0] * len(quantiles) if quantiles else 1.0

        return bench

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Return a small buffer: there is no L2 to flush."""
        return torch.empty(256, dtype=torch.int8)

    def clear_cache(self, cache: Any) -> None:
        """There is no L2 to flush."""

    def is_active(self) -> bool:
        """Yes."""
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Launch stubs are never built here."""
        return ty

    def assemble_tensormap_to_arg(self, info: Any, args: Any) -> Any:
        """Descriptors are passed on as they are."""
        return args


def _no_binary(*args: Any) -> Any:
    raise RuntimeError("there is no GPU here to load a kernel onto")


class _Event:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def record(self, *args: Any) -> None: ...
    def synchronize(self) -> None: ...
    def wait(self, *args: Any) -> None: ...
    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        return 1.0


class _Stream(_Event):
    cuda_stream = 0
    device = _CPU

    def wait_stream(self, other: Any) -> None: ...
    def wait_event(self, other: Any) -> None: ...
    def record_event(self, event: Any = None) -> _Event:
        return event or _Event()


def install(device: Device) -> None:
    """Teach ``torch.cuda`` and Triton's driver to answer for ``device``. For a child process only: it is not undone."""
    import triton
    from triton.backends.compiler import GPUTarget

    triton.runtime.driver.set_active(Driver(device, GPUTarget("cuda", device.sm, 32)))
    properties = device.torch_properties()
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda index: None,
        "get_device_name": lambda index=None: device.name,
        "get_device_capability": lambda index=None: device.capability,
        "get_device_properties": lambda index=None: properties,
        "synchronize": lambda index=None: None,
        "empty_cache": lambda: None,
        "current_stream": lambda index=None: _Stream(),
        "default_stream": lambda index=None: _Stream(),
        "Stream": _Stream,
        "Event": _Event,
        "stream": lambda s: contextlib.nullcontext(s),
        "device": lambda index=None: contextlib.nullcontext(),
        "device_of": lambda t: contextlib.nullcontext(),
        "memory_allocated": lambda index=None: 0,
        "max_memory_allocated": lambda index=None: 0,
        "reset_peak_memory_stats": lambda index=None: None,
        "is_bf16_supported": lambda *a, **k: device.sm >= 80,
        "manual_seed": lambda seed: None,
        "is_current_stream_capturing": lambda: False,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
