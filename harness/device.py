"""Device: the facts of one GPU, from ``harness/devices/*.toml``. No torch here.

Each number in those files names its source; ``Device.unverified`` has the ones whose source nobody opened. A device
answers for a GPU that is not there: the dict that Triton's driver gives and the object that torch gives.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.errors import DeviceError, did_you_mean

FOLDER = Path(__file__).resolve().parent / "devices"

_HEAD = ("name", "aliases", "arch", "capability")


@dataclass(frozen=True)
class Device:
    """One GPU. Sizes in bytes, clocks in Hz, bandwidths in bytes per second, peaks dense in FLOP/s (int8: OP/s)."""

    id: str
    name: str
    aliases: tuple[str, ...]
    arch: str
    capability: tuple[int, int]
    sms: int
    warp_size: int
    registers_per_sm: int
    registers_per_block: int
    registers_per_thread: int
    shared_per_sm_bytes: int
    shared_per_block_bytes: int
    shared_per_block_optin_bytes: int
    threads_per_block: int
    threads_per_sm: int
    warps_per_sm: int
    blocks_per_sm: int
    l2_bytes: int
    mem_bytes: int
    mem_bw: float
    mem_clock_hz: float
    mem_bus_bits: int
    boost_hz: float
    peaks: Mapping[str, float] = field(hash=False)
    measured: Mapping[str, float] = field(hash=False)
    measured_on: str
    unverified: frozenset[str]

    @property
    def sm(self) -> int:
        """The capability as compilers write it: 90 for 9.0."""
        return self.capability[0] * 10 + self.capability[1]

    @property
    def calibrated(self) -> bool:
        """Whether times were measured on such a GPU, so that a modelled time rests on more than a datasheet."""
        return bool(self.measured)

    def triton_properties(self) -> dict[str, int]:
        """Return the dict that ``get_device_properties`` of Triton's driver returns on this GPU (clocks in kHz)."""
        return {
            "max_shared_mem": self.shared_per_block_optin_bytes,
            "max_num_regs": self.registers_per_block,
            "multiprocessor_count": self.sms,
            "warpSize": self.warp_size,
            "sm_clock_rate": round(self.boost_hz / 1e3),
            "mem_clock_rate": round(self.mem_clock_hz / 1e3),
            "mem_bus_width": self.mem_bus_bits,
        }

    def torch_properties(self) -> SimpleNamespace:
        """Return the attributes of ``torch.cuda.get_device_properties`` on this GPU (clocks in kHz)."""
        return SimpleNamespace(
            name=self.name,
            major=self.capability[0],
            minor=self.capability[1],
            multi_processor_count=self.sms,
            total_memory=self.mem_bytes,
            warp_size=self.warp_size,
            L2_cache_size=self.l2_bytes,
            max_threads_per_block=self.threads_per_block,
            max_threads_per_multi_processor=self.threads_per_sm,
            regs_per_multiprocessor=self.registers_per_sm,
            shared_memory_per_block=self.shared_per_block_bytes,
            shared_memory_per_block_optin=self.shared_per_block_optin_bytes,
            shared_memory_per_multiprocessor=self.shared_per_sm_bytes,
            clock_rate=round(self.boost_hz / 1e3),
            memory_clock_rate=round(self.mem_clock_hz / 1e3),
            memory_bus_width=self.mem_bus_bits,
            gcnArchName=self.name,
            is_integrated=0,
            is_multi_gpu_board=0,
            pci_bus_id=0,
            pci_device_id=0,
            pci_domain_id=0,
            uuid="00000000-0000-0000-0000-000000000000",
        )


@functools.cache
def load_devices(folder: Path = FOLDER) -> dict[str, Device]:
    """Return every device of ``folder`` by id, sorted. Raises DeviceError for a file that lacks or misnames a fact."""
    devices = {path.stem: _read(path) for path in sorted(folder.glob("*.toml"))}
    taken: dict[str, str] = {}
    for device in devices.values():
        for name in {_plain(n) for n in (device.id, device.name, *device.aliases)}:
            other = taken.setdefault(name, device.id)
            if other != device.id:
                raise DeviceError(
                    f"devices/{device.id}.toml: name={name!r} is taken by devices/{other}.toml; rename one."
                )
    return devices


def find_device(name: str, folder: Path = FOLDER) -> Device:
    """Return the device with this id, name or alias; case, spaces and dashes do not matter.

    Raises:
        DeviceError: nobody knows it; the message has the nearest name and all of them.
    """
    devices = load_devices(folder)
    for device in devices.values():
        if _plain(name) in {_plain(n) for n in (device.id, device.name, *device.aliases)}:
            return device
    known = [device.aliases[0] for device in devices.values()]
    hint = did_you_mean(name.upper(), known)
    raise DeviceError(f"gpu={name!r} is no GPU that this project has facts on.{hint} There are {', '.join(known)}.")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("nvidia", ""))


def _read(path: Path) -> Device:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DeviceError(f"devices/{path.name} cannot be read: {error}.") from error
    for key in (*_HEAD, "facts", "peaks", "sources"):
        if key not in raw:
            raise DeviceError(f"devices/{path.name}: {key} is missing.")
    unverified: set[str] = set()
    tables = {
        table: _values(path, table, raw.get(table, {}), raw["sources"], unverified)
        for table in ("facts", "peaks", "measured")
    }
    _check_facts(path, tables["facts"])
    major, _, minor = str(raw["capability"]).partition(".")
    measured = raw.get("measured", {})
    return Device(
        id=path.stem,
        name=raw["name"],
        aliases=tuple(raw["aliases"]),
        arch=raw["arch"],
        capability=(int(major), int(minor)),
        peaks=tables["peaks"],
        measured=tables["measured"],
        measured_on=f"{measured['environment']}, {measured['date']}" if measured else "",
        unverified=frozenset(unverified),
        **tables["facts"],
    )


def _check_facts(path: Path, facts: Mapping[str, float]) -> None:
    not_facts = {"id", *_HEAD, "peaks", "measured", "measured_on", "unverified"}
    wanted = {f.name for f in fields(Device)} - not_facts
    for key in wanted - facts.keys():
        raise DeviceError(f"devices/{path.name}: facts.{key} is missing.")
    for key in facts.keys() - wanted:
        raise DeviceError(f"devices/{path.name}: facts.{key} is no fact of a device.{did_you_mean(key, wanted)}")


def _values(path: Path, table: str, items: Mapping[str, Any], sources: Mapping[str, str], unverified: set[str]) -> dict:
    """Return the numbers of one table; each must name one of ``sources``. Adds to ``unverified``."""
    values = {}
    for key, item in items.items():
        if table == "measured" and isinstance(item, str):
            continue  # the date and the environment, not numbers
        known = isinstance(item, dict) and item.keys() <= {"value", "source", "verified"}
        if not known or "value" not in item or item.get("source") not in sources:
            raise DeviceError(
                f"devices/{path.name}: {table}.{key}={item!r}; expected "
                '{ value = NUMBER, source = "..." } with a source that [sources] lists.'
            )
        values[key] = item["value"]
        if not item.get("verified", True):
            unverified.add(key if table == "facts" else f"{table}.{key}")
    return values
