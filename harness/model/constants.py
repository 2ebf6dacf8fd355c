"""Constants: the rates and latencies that the speed model needs of a GPU. No torch here.

Those of a calibrated device come from micro-benchmarks on it (its file's ``[measured]``). For any other they are the
calibrated device's, scaled by what the datasheets say: the same share of the bandwidth, the same requests per clock and
SM. Such a time is a guess with a wider band, and reports say so.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from harness.device import Device, load_devices

CALIBRATED = "h200_sxm"  # the device whose measurements the others are scaled from


@dataclass(frozen=True)
class Constants:
    """Seconds, bytes and cycles of one GPU.

    Attributes:
        clock: cycles per second that kernels run at.
        dram_read, dram_write: bytes per second.
        l2_requests: 64-byte requests per second; shared_gain: how many times faster when many SMs ask for the same.
        l2_partial: 64-byte requests per second that write a sector in part.
        join_s, part_s: seconds for each sector that several programs write in parts, and for each of the parts.
        piece: bytes that a jump between two contiguous runs costs DRAM.
        l2_holds: bytes of L2 that hold a kernel's data.
        sm_fill: bytes per cycle that one SM takes in at most.
        latency_dram, latency_l2, latency_l1: cycles until a load's data is there, in a busy kernel.
        latency_written: cycles that are added, times the written share of the traffic: dirty lines leave L2 first.
        launch, gap: seconds of a call's first launch between two events, and of each further one.
        program: seconds, the least between two programs that start; program_cycles: until a started one runs.
        flushed: bytes that the flush before a measurement leaves to be written back; kept: bytes of the result that L2
            still holds at its end.
        atomic_same: seconds of an atomic on an address that others use; atomics: vector atomics per second.
        wgmma, mma: FLOP per second of 16-bit tensor-core instructions, asynchronous and synchronous ones.
        calibrated: measured on this device.
    """

    clock: float
    dram_read: float
    dram_write: float
    l2_requests: float
    shared_gain: float
    l2_partial: float
    join_s: float
    part_s: float
    piece: float
    l2_holds: float
    sm_fill: float
    latency_dram: float
    latency_written: float
    latency_l2: float
    latency_l1: float
    launch: float
    gap: float
    program: float
    program_cycles: float
    flushed: float
    kept: float
    atomic_same: float
    atomics: float
    wgmma: float
    mma: float
    calibrated: bool


@functools.cache
def constants(device: Device) -> Constants:
    """Return the constants of ``device``: measured, or scaled from the calibrated one."""
    base = device if device.calibrated else load_devices()[CALIBRATED]
    m = base.measured
    bandwidth = device.mem_bw / base.mem_bw
    issue = device.sms * device.boost_hz / (base.sms * base.boost_hz)
    tensor = device.peaks.get("float16", 0.0) / base.peaks["float16"]
    return Constants(
        clock=device.boost_hz,
        dram_read=m["read_bw"] * bandwidth,
        # so that a copy, half reads and half writes, reaches its measured rate
        dram_write=bandwidth / (2 / m["copy_bw"] - 1 / m["read_bw"]),
        l2_requests=m["scattered_reads_per_s"] * issue,
        shared_gain=m["l2_shared_gain"],
        l2_partial=m["scattered_writes_per_s"] * issue,
        join_s=m["l2_join_s"] / issue,
        part_s=m["l2_part_s"] / issue,
        piece=m["dram_piece_bytes"],
        l2_holds=device.l2_bytes * m["l2_share"],
        sm_fill=m["sm_fill_bytes_per_clock"],
        latency_dram=m["latency_dram_clocks"],
        latency_written=m["latency_written_clocks"],
        latency_l2=m["latency_l2_clocks"],
        latency_l1=m["latency_l1_clocks"],
        launch=m["empty_kernel_s"],
        gap=m["next_kernel_s"],
        program=m["cta_launch_s"] * base.boost_hz / device.boost_hz,
        program_cycles=m["cta_start_clocks"],
        flushed=m["flush_bytes"] * device.l2_bytes / base.l2_bytes,
        kept=m["kept_bytes"] * device.l2_bytes / base.l2_bytes,
        atomic_same=m["atomic_same_address_s"] * base.boost_hz / device.boost_hz,
        atomics=m["atomics_per_s"] * issue,
        wgmma=m["bfloat16_matmul"] * tensor,
        mma=m["mma_sync"] * tensor if device.sm == base.sm else m["bfloat16_matmul"] * tensor,
        calibrated=device.calibrated,
    )
