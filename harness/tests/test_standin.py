"""A GPU that is not there answers as the named one would, and tensors meant for it stay on the CPU."""

from __future__ import annotations

import pytest
import torch

from harness.device import find_device
from harness.runner.standin import CudaIsCpu, Driver
from harness.tests.toys import python

CALLS = {
    "by name": lambda x: torch.empty(3, device="cuda"),
    "by name and number": lambda x: torch.zeros(3, device="cuda:0"),
    "by device": lambda x: torch.ones(3, device=torch.device("cuda")),
    "by device and number": lambda x: torch.arange(3, device=torch.device("cuda", 0)),
    "to": lambda x: x.to("cuda"),
    "to, by keyword": lambda x: x.to(device="cuda", dtype=torch.float16),
    "cuda()": lambda x: x.cuda(),
    "pinned": lambda x: x.pin_memory(),
    "like": lambda x: torch.rand_like(x, device="cuda"),
    "a tensor": lambda x: torch.tensor([1, 2, 3], device="cuda"),
    "new": lambda x: x.new_empty(3, device="cuda"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_tensors_for_cuda_are_made_on_the_cpu(call):
    with CudaIsCpu():
        out = call(torch.ones(3))

    assert out.device.type == "cpu"
    assert out.numel() == 3


def test_other_devices_are_left_alone():
    with CudaIsCpu():
        assert torch.empty(3, device="meta").device.type == "meta"
        assert torch.device("meta").type == "meta"
        assert str(torch.device("cpu")) == "cpu"


def test_it_ends_with_the_block():
    with CudaIsCpu():
        pass

    assert torch.device("cuda", 0).type == "cuda"


def test_the_driver_has_the_named_gpu_s_figures():
    device = find_device("A100")
    driver = Driver(device, "target")

    assert driver.get_current_target() == "target"
    assert driver.utils.get_device_properties(0)["multiprocessor_count"] == 108
    assert driver.get_device_capability() == (8, 0)
    assert driver.get_active_torch_device() == torch.device("cpu")
    assert (driver.get_current_device(), driver.get_current_stream(0), driver.is_active()) == (0, 0, True)
    with pytest.raises(RuntimeError, match="there is no GPU here to load a kernel onto"):
        driver.utils.load_binary()


def test_the_driver_s_benchmark_runs_once_and_reports_a_number():
    runs = []
    bench = Driver(find_device("L4"), None).get_benchmarker()

    assert bench(lambda: runs.append(1)) == 1.0
    assert bench(lambda: runs.append(2), quantiles=(0.5, 0.2, 0.8)) == [1.0, 1.0, 1.0]
    assert runs == [1, 2]


SCRIPT = """
from harness.device import find_device
from harness.runner import standin
import torch
standin.install(find_device("T4"))
import triton
active = triton.runtime.driver.active
print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device())
print(torch.cuda.get_device_name(), torch.cuda.get_device_capability(0))
print(torch.cuda.get_device_properties("cuda").multi_processor_count, torch.cuda.is_bf16_supported())
print(active.get_current_target().arch, active.get_current_target().backend, active.utils.get_device_properties(0)["max_shared_mem"])
torch.cuda.synchronize()
with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
    event = torch.cuda.Event(enable_timing=True)
    event.record()
print(event.elapsed_time(event), torch.cuda.memory_allocated())
"""


def test_torch_and_triton_answer_for_the_named_gpu(tmp_path):
    result = python("-W", "ignore", "-c", SCRIPT, cwd=tmp_path)

    assert result.stdout.splitlines() == [
        "True 1 0", "Tesla T4 (7, 5)", "40 False", "75 cuda 65536", "1.0 0",
    ], result.stderr  # fmt: skip
