"""Cubin: what the ELF file of a compiled kernel says about it, and its text from NVIDIA's disassembler. No torch.

Resource counts stand in the ELF itself, in ``.nv.info`` records (kind, attribute, length, value) that
``cuobjdump --dump-resource-usage`` prints; reading them saves a process. Only the instructions need ``nvdisasm``, which
Triton's wheel brings along.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.errors import KataError

# attributes of .nv.info: a symbol's index and a count
REGISTERS, FRAME, MIN_STACK = 0x2F, 0x11, 0x12
ARGUMENTS = 0x0A  # a symbol's index, then offset and size of all arguments in constant bank 0, 16 bits each
ARGUMENT = 0x17  # four bytes, then an argument's number and its offset behind the first, 16 bits each
_WITH_SIZE = 0x04  # the format of a record: two bytes of length, then so many bytes


class SassError(KataError):
    """The instructions of a kernel cannot be had: no disassembler, or it refused."""


@dataclass(frozen=True)
class Resources:
    """What one kernel asks for: registers a thread; bytes of local memory a thread; static shared bytes a CTA.

    ``arguments_at``: where its arguments begin in constant bank 0, 0 when the file does not say; ``offsets`` of each
    argument from there.
    """

    registers: int
    stack_bytes: int
    shared_bytes: int
    arguments_at: int = 0
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    info: int
    link: int


def resources(cubin: bytes, kernel: str) -> Resources:
    """Return what the ELF says about ``kernel``. Raises SassError when it is no 64-bit ELF or lacks the kernel."""
    sections = _sections(cubin)
    text = sections.get(f".text.{kernel}")
    if text is None:
        raise SassError(f"The cubin holds no kernel {kernel!r}; it has {', '.join(sorted(sections)) or 'no sections'}.")
    registers, stack, at = text.info >> 24, 0, 0
    offsets: dict[int, int] = {}
    for name in (".nv.info", f".nv.info.{kernel}"):
        for attribute, value in _records(cubin, sections.get(name)):
            if attribute in (FRAME, MIN_STACK) and len(value) == 8:
                stack = max(stack, struct.unpack("<II", value)[1])
            elif attribute == REGISTERS and len(value) == 8:
                registers = max(registers, struct.unpack("<II", value)[1])
            elif attribute == ARGUMENTS and len(value) == 8:
                at = struct.unpack("<IHH", value)[1]
            elif attribute == ARGUMENT and len(value) == 12:
                number, offset = struct.unpack("<IHHI", value)[1:3]
                offsets[number] = offset
    shared = sections.get(f".nv.shared.{kernel}")
    places = tuple(offsets.get(i, -1) for i in range(len(offsets)))
    return Resources(registers, stack, shared.size if shared else 0, at, places)


def _sections(data: bytes) -> dict[str, _Section]:
    if data[:5] != b"\x7fELF\x02":
        raise SassError("The compiled kernel is no 64-bit ELF file; expected the cubin that ptxas writes.")
    (start,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    table = rows[names][4]

    def name(at: int) -> str:
        return data[table + at : data.index(b"\0", table + at)].decode()

    return {name(r[0]): _Section(name(r[0]), r[1], r[4], r[5], r[7], r[6]) for r in rows}


def _records(data: bytes, section: _Section | None):
    """Yield attribute and value bytes of each record of a ``.nv.info`` section."""
    at = section.offset if section else 0
    end = at + section.size if section else 0
    while at + 4 <= end:
        kind, attribute, size = data[at], data[at + 1], struct.unpack_from("<H", data, at + 2)[0]
        at += 4
        if kind == _WITH_SIZE:
            yield attribute, data[at : at + size]
            at += size


def tool(name: str) -> Path | None:
    """Return the path of ``nvdisasm`` or the like: of Triton's wheel, else on PATH; None when there is none."""
    found = importlib.util.find_spec("triton")
    for folder in found.submodule_search_locations or () if found else ():
        path = Path(folder) / "backends" / "nvidia" / "bin" / name
        if path.is_file():
            return path
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


def disassemble(cubin: bytes, *, seconds: float = 20.0) -> str:
    """Return the text of ``nvdisasm``: instructions, their encodings, and the line of the PTX that each comes from.

    Raises:
        SassError: there is no nvdisasm, it failed, or it ran longer than ``seconds``.
    """
    path = tool("nvdisasm")
    if path is None:
        raise SassError("nvdisasm was not found in Triton's wheel or on PATH; reinstall triton for a modelled speed.")
    handle, name = tempfile.mkstemp(suffix=".cubin")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(cubin)
        # -c code only, -ndf no dataflow analysis (half the time), -gp lines of the PTX, -hex encodings
        command = [str(path), "-c", "-ndf", "-gp", "-hex", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SassError(f"nvdisasm did not answer ({error}); the speed of this kernel cannot be modelled.") from None
    finally:
        Path(name).unlink(missing_ok=True)
    if done.returncode:
        words = done.stderr.strip().splitlines()
        raise SassError(f"nvdisasm refused the compiled kernel: {words[0] if words else f'exit {done.returncode}'}.")
    return done.stdout
