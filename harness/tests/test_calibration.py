"""A calibration becomes a device file of its own that the loader takes, for GPUs that we know and for others."""

import json

import pytest

from harness.device import FOLDER, load_devices
from harness.errors import StoreError
from harness.measured import calibration

PROBES = [
    ("copy_bw", {"value": 4.27e12, "unit": "bytes/s", "samples_s": [1e-3] * 30, "how": "4,000 read and written"}),
    ("dram_latency_s", {"value": 3.39e-7, "unit": "s", "samples_s": [1e-3] * 30, "how": "4096 dependent loads"}),
]
SEEN = {
    "name": "NVIDIA H200", "capability": [9, 0], "sms": 132, "mem_bytes": 150109880320, "l2_bytes": 62914560,
    "warp_size": 32, "registers_per_sm": 65536, "threads_per_sm": 2048, "shared_per_block_bytes": 49152,
    "shared_per_block_optin_bytes": 232448, "shared_per_sm_bytes": 233472, "mem_bus_bits": 6016,
    "mem_clock_hz": 3.201e9, "boost_hz": 1.98e9,
}  # fmt: skip


@pytest.mark.parametrize("name", ["NVIDIA H200", "NVIDIA Something 9000"])
def test_the_device_file_can_be_loaded(tmp_path, name, capsys):
    out = tmp_path / "devices" / "mine.toml"
    assert calibration.main(out, tmp_path, PROBES, SEEN | {"name": name}) == 0

    device = load_devices(out.parent)["mine"]
    assert device.measured == {"copy_bw": 4.27e12, "dram_latency_s": 3.39e-7}
    assert device.calibrated and device.measured_on.startswith(name)
    assert device.sms == 132 and device.capability == (9, 0)
    assert device.blocks_per_sm == 32
    assert ("bfloat16" in device.peaks) == (name == "NVIDIA H200")
    assert "copy_bw                  4.27e+12 bytes/s  (4,000 read and written)" in capsys.readouterr().out


def test_facts_and_peaks_of_a_known_gpu_are_ours_and_its_measurements_are_new(tmp_path):
    calibration.main(tmp_path / "d" / "mine.toml", tmp_path, PROBES, SEEN)
    ours, mine = load_devices()["h200_sxm"], load_devices(tmp_path / "d")["mine"]

    assert mine.peaks == ours.peaks and mine.mem_bw == ours.mem_bw and mine.unverified == ours.unverified
    assert set(mine.measured) < set(ours.measured)


def test_raw_samples_are_kept_beside_it(tmp_path):
    calibration.main(None, tmp_path, PROBES, SEEN)
    raw, file = sorted((tmp_path / "experiments").iterdir())
    data = json.loads(raw.read_text())

    assert raw.stem == file.stem and file.suffix == ".toml"
    assert len(data["probes"]["copy_bw"]["samples_s"]) == 30
    digest = data.pop("digest")
    assert digest == calibration.digest_of(data) and digest[:8] in raw.name


def test_our_own_device_files_are_never_overwritten(tmp_path):
    before = (FOLDER / "h200_sxm.toml").read_bytes()

    with pytest.raises(StoreError, match="exists already"):
        calibration.main(FOLDER / "h200_sxm.toml", tmp_path, PROBES, SEEN)
    assert (FOLDER / "h200_sxm.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4.27e12, "4.27e+12"),
        (132, "132"),
        (6.0, "6.0"),
        (True, "true"),
        (["a", 'b"c'], '["a", "b\\"c"]'),
        ({"value": 1, "source": "x"}, '{ value = 1, source = "x" }'),
    ],
)
def test_values_as_toml_has_them(value, text):
    assert calibration._value(value) == text
