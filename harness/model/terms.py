"""Terms: the time that one resource needs for a launch when nothing else is in the way. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.compiled.sass import Instruction
from harness.device import Device
from harness.model.constants import Constants
from harness.model.memory import SECTOR
from harness.model.tensorcore import operand_bytes
from harness.model.traffic import Traffic


def tensor_cycles(instruction: Instruction, device: Device, c: Constants) -> float:
    """Return for how long one warp's quarter of the SM's tensor cores is busy with this instruction.

    The shape is in the opcode: HGMMA.64x256x16.F32.BF16 multiplies for the four warps of a group, HMMA.16816.F32.BF16
    for one warp. fp8 and int8 go twice as fast as 16-bit floats, TF32 half as fast.
    """
    op = instruction.op
    if instruction.base in ("HGMMA", "QGMMA", "IGMMA", "BGMMA"):
        m, n, k = (int(x) for x in op.split(".")[1].split("x"))
        flops, rate = 2.0 * m * n * k / 4, c.wgmma
        shared = 4 * operand_bytes(instruction) / 128  # cycles
    elif instruction.base in ("HMMA", "IMMA", "QMMA"):
        digits = next((p for p in op.split(".")[1:] if p.isdigit()), "16816")
        m, n, k = (int(x) for x in {"1688": (16, 8, 8), "1684": (16, 8, 4), "16832": (16, 8, 32), "884": (8, 8, 4)}.get(
            digits, (16, 8, 16)))  # fmt: skip
        flops, rate, shared = 2.0 * m * n * k, c.mma, 0.0
    else:
        return 0.0
    if instruction.base[0] in "QI":
        rate *= 2
    elif "TF32" in op:
        rate /= 2
    return max(shared, flops / (rate / device.sms / c.clock / 4))


def dram(moved: Traffic, c: Constants) -> float:
    """Return the seconds that DRAM needs: what is read and written, the jumps, and what the flush left behind."""
    read = moved.dram_read + c.piece * moved.pieces + c.flushed
    return read / c.dram_read + max(0.0, moved.dram_written - c.kept) / c.dram_write


def l2(moved: Traffic, local_bytes: float, c: Constants, meanwhile: float = 0.0) -> float:
    """Return the seconds that L2 needs for its requests, ``local_bytes`` of spilled registers among them.

    Parts of a sector that one warp stores one after the other meet on their way, unless L2 is what everybody waits for:
    then other warps' stores come in between. ``meanwhile``: the seconds that the rest of the launch needs.
    """
    spilled = local_bytes / 64
    asked = moved.l2_units + moved.shared_units / c.shared_gain + moved.store_units + spilled
    if moved.joined:
        return asked / c.l2_requests + moved.joined * c.join_s + moved.partial_units * c.part_s
    calm = asked / c.l2_requests + moved.calm_units / c.l2_partial
    return calm if calm <= meanwhile else asked / c.l2_requests + moved.crowded_units / c.l2_partial


def atomics(trace: Mapping[str, Any], c: Constants) -> float:
    """Return the seconds that atomics need.

    Those on one address go one after the other; those on many addresses are bound by the rate of L2.
    """
    programs, total = trace["programs"], 0.0
    for site in (s for s in trace["sites"] if s["kind"] == "atomic"):
        lanes = site["lanes"] * programs
        alone = site["addresses"] <= site["executions"] * 1.01  # one address an execution
        sectors = _distinct_sectors(trace, site["storage"])
        queue = lanes / sectors / (1.0 if alone else SECTOR / site["item"]) * c.atomic_same
        total += max(queue, 0.0 if alone else lanes / c.atomics)
    return total


def _distinct_sectors(trace: Mapping[str, Any], storage: int) -> float:
    """How many sectors the atomics of all programs go to."""
    tensor = next(t for t in trace["tensors"] if t["storage"] == storage and t["kind"] == "atomic")
    samples = max(1, len(trace["samples"]))
    _, apart, distinct = tensor["samples"]
    if samples > 1 and distinct < apart:  # programs far apart meet: as many as the tensor has, at most
        most = tensor["own"] * trace["programs"] * (distinct / apart if distinct > apart / samples * 1.01 else 0.0)
        return max(1.0, tensor["own"], min(most, tensor["bytes"] / SECTOR))
    return max(1.0, min(tensor["own"] * trace["programs"], tensor["bytes"] / SECTOR))
