"""Devices are data with sources, and answer as the GPU would."""

import re
from pathlib import Path

import pytest

from harness.device import FOLDER, find_device, load_devices
from harness.errors import DeviceError

IDS = ["a100_80_sxm", "b200_sxm", "h100_sxm", "h200_sxm", "l4", "rtx_4090", "t4"]
SMS = 'sms = { value = 40, source = "query" }'


def edited(tmp_path: Path, old: str, new: str) -> Path:
    """Return a folder with one device file: the T4's, one piece replaced."""
    text = (FOLDER / "t4.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "toy.toml").write_text(text.replace(old, new), encoding="utf-8")
    return tmp_path


def test_all_devices_load():
    assert list(load_devices()) == IDS


@pytest.mark.parametrize("device", load_devices().values(), ids=IDS)
def test_facts_agree_with_each_other(device):
    assert device.threads_per_sm == device.warps_per_sm * device.warp_size
    assert device.shared_per_block_optin_bytes in (device.shared_per_sm_bytes, device.shared_per_sm_bytes - 1024)
    assert device.peaks["float16"] == device.peaks.get("bfloat16", device.peaks["float16"])
    # a DRAM pin moves two bits a clock; vendors round the product
    assert device.mem_bw == pytest.approx(device.mem_clock_hz * 2 * device.mem_bus_bits / 8, rel=0.005)
    # float32 pipes: 128 lanes an SM (64 before 8.6), two operations each; vendors round here too
    lanes = 128 if device.sm >= 86 else 64
    assert device.peaks["float32"] == pytest.approx(device.sms * lanes * 2 * device.boost_hz, rel=0.1)


@pytest.mark.parametrize("device", load_devices().values(), ids=IDS)
def test_peaks_are_dense(device):
    """With sparsity every tensor-core peak would be twice as high."""
    dense_fp16 = {"7.5": 512, "8.0": 1024, "8.9": 512, "9.0": 2048, "10.0": 4096}  # FMAs an SM and clock
    fmas = dense_fp16[".".join(map(str, device.capability))]
    most = device.sms * fmas * 2 * device.boost_hz
    assert device.peaks["float16"] <= most * 1.01


def test_only_the_h200_is_calibrated():
    calibrated = [device.id for device in load_devices().values() if device.calibrated]

    assert calibrated == ["h200_sxm"]
    h200 = find_device("H200")
    assert h200.measured["copy_bw"] < h200.mem_bw
    assert "triton 3.6.0" in h200.measured_on


def test_every_source_is_used():
    for path in FOLDER.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        listed = set(re.findall(r'^(\w+) = "', text.partition("\n[sources]\n")[2], re.MULTILINE))
        assert listed == set(re.findall(r'source = "(\w+)"', text)), path.name


def test_unverified_facts_are_marked():
    assert "l2_bytes" in find_device("B200").unverified
    assert "peaks.int8" in find_device("T4").unverified
    assert not find_device("H200").unverified


@pytest.mark.parametrize("name", ["H200", "h200", "h200_sxm", "NVIDIA H200", "H200 SXM", "H200-141GB"])
def test_a_device_has_many_names(name):
    assert find_device(name).id == "h200_sxm"


def test_every_driver_name_finds_its_device():
    assert [find_device(device.name).id for device in load_devices().values()] == IDS


def test_an_unknown_gpu_gets_the_nearest_name():
    with pytest.raises(DeviceError) as error:
        find_device("h20")

    assert str(error.value) == (
        "gpu='h20' is no GPU that this project has facts on. Did you mean \"H200\"? "
        "There are A100, B200, H100, H200, L4, RTX 4090, T4."
    )


def test_triton_reads_the_properties_of_its_driver():
    assert find_device("H200").triton_properties() == {
        "max_shared_mem": 232448,
        "max_num_regs": 65536,
        "multiprocessor_count": 132,
        "warpSize": 32,
        "sm_clock_rate": 1980000,
        "mem_clock_rate": 3201000,
        "mem_bus_width": 6016,
    }


def test_torch_reads_the_properties_that_an_h200_has():
    """As a query of the device printed them; the bus ids differ from machine to machine."""
    printed = {
        "L2_cache_size": 62914560,
        "clock_rate": 1980000,
        "gcnArchName": "NVIDIA H200",
        "is_integrated": 0,
        "is_multi_gpu_board": 0,
        "major": 9,
        "max_threads_per_block": 1024,
        "max_threads_per_multi_processor": 2048,
        "memory_bus_width": 6016,
        "memory_clock_rate": 3201000,
        "minor": 0,
        "multi_processor_count": 132,
        "name": "NVIDIA H200",
        "regs_per_multiprocessor": 65536,
        "shared_memory_per_block": 49152,
        "shared_memory_per_block_optin": 232448,
        "shared_memory_per_multiprocessor": 233472,
        "total_memory": 150109880320,
        "warp_size": 32,
    }
    ours = vars(find_device("H200").torch_properties())

    assert {key: ours[key] for key in printed} == printed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("boost_hz =", "bost_hz =", "devices/toy.toml: facts.boost_hz is missing."),
        ('arch = "', 'arc = "', "devices/toy.toml: arch is missing."),
        ("[facts]\n", "[facts]\nsm = { value = 1, source = 'cccl' }\n", "facts.sm is no fact of a device."),
        (SMS, "sms = 40", "devices/toy.toml: facts.sms=40; expected { value = NUMBER"),
        (SMS, SMS.replace("query", "hearsay"), "with a source that [sources] lists"),
        ("[facts]\n", "[facts\n", "devices/toy.toml cannot be read: "),
    ],
)
def test_a_broken_file_is_named_with_its_key(tmp_path, old, new, message):
    with pytest.raises(DeviceError, match=re.escape(message)):
        load_devices(edited(tmp_path, old, new))


def test_two_devices_of_one_name_are_refused(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text((FOLDER / "t4.toml").read_text(encoding="utf-8"), encoding="utf-8")

    with pytest.raises(DeviceError, match=r"devices/two\.toml: name='.*' is taken by devices/one\.toml; rename one\."):
        load_devices(tmp_path)
