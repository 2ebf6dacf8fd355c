"""The driver's view of a GPU, from a library that we play."""

import ctypes

import pytest

from harness.measured.nvml import Nvml
from harness.measured.sampling import State


class Library:
    """Answers as libnvidia-ml does: 0 and a number in the last argument, or a status."""

    def __init__(self, **answers):
        self.answers = {"nvmlDeviceGetClockInfo": 1755, "nvmlDeviceGetCurrentClocksThrottleReasons": 0} | answers
        self.asked = ""

    def nvmlInit_v2(self):
        return self.answers.get("init", 0)

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        self.asked = name.decode()
        return self.answers.get("handle", 0)

    def nvmlSystemGetDriverVersion(self, text, size):
        text.value = b"580.1"
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle, count, infos):
        count._obj.value = self.answers.get("processes", 1)
        return 7 if count._obj.value else 0

    def __getattr__(self, name):
        def answer(handle, *arguments):
            if name not in self.answers:
                return 3  # not supported
            arguments[-1]._obj.value = self.answers[name]
            return 0

        return answer


def test_state_of_an_undisturbed_gpu():
    nvml = Nvml("1234", Library())

    assert nvml.state() == State(1755, (), 0)
    assert nvml.state().disturbance() == ""
    assert nvml._lib.asked == "GPU-1234"


@pytest.mark.parametrize(
    ("bits", "texts"),
    [
        (0x04, ("power limit",)),
        (0x44, ("power limit", "temperature (hardware)")),
        (0x01 | 0x02 | 0x10 | 0x100, ()),  # idle, a clock that somebody set, boost in step with others, a display
    ],
)
def test_only_what_slows_it_against_its_will_is_a_reason(bits, texts):
    assert Nvml("x", Library(nvmlDeviceGetCurrentClocksThrottleReasons=bits)).state().held_down == texts


def test_others_are_processes_beside_ours():
    assert Nvml("x", Library(processes=3)).state().others == 2
    assert Nvml("x", Library(processes=0)).state().others == 0  # a container that hides even ours


def test_facts_leave_out_nothing_that_was_refused():
    facts = Nvml("GPU-x", Library(nvmlDeviceGetEnforcedPowerLimit=700_000, nvmlDeviceGetMaxClockInfo=1980)).facts()

    assert facts == {
        "driver": "580.1", "max_sm_mhz": 1980, "max_memory_mhz": 1980, "power_limit_w": 700.0, "temperature_c": None,
    }  # fmt: skip


@pytest.mark.parametrize("answers", [{"init": 9}, {"handle": 6}])
def test_a_driver_that_refuses_says_nothing(answers):
    nvml = Nvml("x", Library(**answers))

    assert nvml.state() == State() and nvml.facts() == {}


def test_a_machine_without_the_library_says_nothing(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)

    assert Nvml("x").state() == State()
