"""KernelFacts: what ahead-of-time compilation says about one kernel, as plain values that cross a process boundary.

``extract`` runs where the kernel was compiled and reads the TTGIR, the PTX and the cubin; all else works without torch
and Triton.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.compiled import cubin, sass, ttgir
from harness.compiled.cubin import SassError
from harness.compiled.layout import Layout
from harness.compiled.ptxlines import Parameter, parameters
from harness.compiled.ttgir import Access, Dot
from harness.model import banks

if TYPE_CHECKING:
    from harness.device import Device

__all__ = ["Access", "Dot", "FactsError", "KernelFacts", "Layout", "Parameter", "extract"]

# how the hardware rounds a CTA's resources up: CUDA's occupancy calculator
REGISTER_UNIT = 256  # registers, for each warp
SCHEDULERS = 4  # of an SM, each with a quarter of the registers
SHARED_UNIT = {7: 256, 8: 128, 9: 128, 10: 128, 12: 128}
SHARED_OF_CUDA = {7: 0, 8: 1024, 9: 1024, 10: 1024, 12: 1024}  # bytes that the driver adds to each CTA

SPECIALISED = "warp specialisation: how its partitions overlap is not modelled"

FactsError = SassError


@dataclass(frozen=True)
class KernelFacts:
    """What one compiled kernel is.

    Attributes:
        hash: Triton's own, of source and options.
        sm: the capability it was compiled for, 90 for 9.0.
        num_warps: warps that run the learner's code; ``threads`` counts all warps of a CTA, helpers too.
        registers: of each thread.
        spill_bytes: of each thread, local memory on its stack.
        shared_bytes: of each CTA, static and dynamic.
        parameters: of the kernel as the GPU sees it, in order, from byte ``arguments_at`` of constant bank 0 on.
        notes: what could not be read, a sentence each.
    """

    kernel: str
    hash: str
    sm: int
    triton: str
    num_warps: int
    threads: int
    num_stages: int
    num_ctas: int
    registers: int
    spill_bytes: int
    shared_bytes: int
    accesses: tuple[Access, ...]
    dots: tuple[Dot, ...]
    program: sass.Program
    parameters: tuple[Parameter, ...] = ()
    arguments_at: int = 0
    notes: tuple[str, ...] = ()

    def blocks_per_sm(self, device: Device) -> int:
        """Return how many CTAs of this kernel one SM of ``device`` holds at once, at least 1."""
        warps = max(1, self.threads // 32)
        major = device.capability[0]
        registers = max(1, _up(self.registers * 32, REGISTER_UNIT))
        shared = _up(self.shared_bytes + SHARED_OF_CUDA.get(major, 1024), SHARED_UNIT.get(major, 128))
        limits = [
            device.blocks_per_sm,
            device.warps_per_sm // warps,
            device.registers_per_sm // SCHEDULERS // registers * SCHEDULERS // warps,
            device.shared_per_sm_bytes // shared if shared else device.blocks_per_sm,
        ]
        return max(1, min(limits))

    def to_json(self) -> dict[str, Any]:
        """Return plain values that ``json`` can write."""
        lists = {k: [x.to_json() for x in getattr(self, k)] for k in ("accesses", "dots")}
        given = [[p.name, p.offset, p.size] for p in self.parameters]
        return vars(self) | lists | {"program": self.program.to_json(), "parameters": given, "notes": list(self.notes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> KernelFacts:
        """Return the facts that ``to_json`` wrote."""
        made = {
            "accesses": tuple(map(Access.from_json, data["accesses"])),
            "dots": tuple(map(Dot.from_json, data["dots"])),
            "program": sass.Program.from_json(data["program"]),
            "parameters": tuple(Parameter(*p) for p in data["parameters"]),
            "notes": tuple(data["notes"]),
        }
        return cls(**{**data, **made})


def extract(compiled: Any, device: Device, files: Collection[str]) -> KernelFacts:
    """Return the facts of ``compiled``, a CompiledKernel of Triton, with lines of ``files``, the learner's.

    Raises:
        FactsError: there are no instructions to read: no cubin, no disassembler, or it refused.
    """
    import triton

    made = compiled.metadata
    code = compiled.asm.get("cubin")
    if not code:
        raise FactsError(f"Triton kept no cubin of {made.name}; its speed cannot be modelled.")
    ptx = _text(compiled.asm.get("ptx", ""))
    module = ttgir.read(_text(compiled.asm.get("ttgir", "")), files)
    used = cubin.resources(code, made.name)
    threads = _threads(ptx) or made.num_warps * 32
    program, notes = _program(code, made.name, files, ptx, threads)
    return KernelFacts(
        kernel=made.name,
        hash=str(getattr(compiled, "hash", "") or getattr(made, "hash", "")),
        sm=device.sm,
        triton=triton.__version__,
        num_warps=module.num_warps,
        threads=threads,
        num_stages=int(getattr(made, "num_stages", 0) or 0),
        num_ctas=int(getattr(made, "num_ctas", 1) or 1),
        registers=used.registers,
        spill_bytes=used.stack_bytes,
        shared_bytes=max(int(made.shared), 0),  # Triton asks for all of it at launch; the static KiB is the driver's
        accesses=tuple(module.accesses),
        dots=tuple(module.dots),
        program=program,
        parameters=parameters(ptx, made.name, module.arguments, used.offsets),
        arguments_at=used.arguments_at,
        notes=(*module.notes, *notes, *([SPECIALISED] if module.partitions else [])),
    )


def _program(
    code: bytes, kernel: str, files: Collection[str], ptx: str, threads: int
) -> tuple[sass.Program, list[str]]:
    """Return the instructions, with bank conflicts, and what is not known about them."""
    program = sass.parse(cubin.disassemble(code), kernel, files, ptx)
    notes = [f"opcodes without a description: {', '.join(program.unknown)}"] if program.unknown else []
    program, missing = banks.with_conflicts(program, threads // 32)
    if missing:
        notes.append(f"{missing} shared-memory instructions whose addresses were not found count as free of conflicts")
    return program, notes


def _threads(ptx: str) -> int:
    """Return the threads of a CTA that the PTX asks for (``.reqntid`` or ``.maxntid``), 0 when it does not say."""
    found = re.search(r"\.(?:reqntid|maxntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", ptx)
    x, y, z = (int(n or 1) for n in found.groups()) if found else (0, 1, 1)
    return x * y * z


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
