"""Probes: what this GPU really does, each as a few samples in seconds and the rate that follows. Needs a GPU.

Loaded only in a process that owns the GPU. Every probe returns ``{"value": …, "unit": …, "samples_s": […], "how": …}``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
import triton.language as tl

from harness.measured import timing

GRID = 2**20  # programs, for the cost of starting one
HOPS = 4096


@triton.jit
def empty_kernel(out_ptr):
    if tl.program_id(0) < 0:
        tl.store(out_ptr, 0)


@triton.jit
def read_kernel(x_ptr, out_ptr, blocks, repeats, BLOCK: tl.constexpr):
    """Read BLOCK elements ``repeats`` times, each time another block of ``blocks``; the sum is stored if it is odd."""
    acc = tl.zeros((BLOCK,), tl.int32)
    for repeat in range(repeats):
        block = ((tl.program_id(0) + repeat * 61) % blocks).to(tl.int64)
        acc += tl.load(x_ptr + block * BLOCK + tl.arange(0, BLOCK), cache_modifier=".cg")
    total = tl.sum(acc, axis=0)
    if total == -1:  # the contents are zeros, which the compiler cannot know
        tl.store(out_ptr, total)


@triton.jit
def chase_kernel(next_ptr, out_ptr, hops):
    """Follow a chain: each load needs the one before."""
    at = tl.load(next_ptr)
    for _ in range(hops):
        at = tl.load(next_ptr + at)
    tl.store(out_ptr, at)


@triton.jit
def atomic_kernel(out_ptr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    """Add 1 to BLOCK neighbours, or (STEP 0) all programs to one address."""
    if STEP == 0:
        tl.atomic_add(out_ptr, 1.0)
    else:
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.atomic_add(out_ptr + offs, tl.full((BLOCK,), 1.0, tl.float32))


def facts() -> dict[str, Any]:
    """Return what the driver says about this GPU, with the names of ``harness.device``."""
    p = torch.cuda.get_device_properties(0)
    clocks = timing.driver().facts()
    return {
        "name": p.name, "capability": [p.major, p.minor], "sms": p.multi_processor_count, "mem_bytes": p.total_memory,
        "l2_bytes": p.L2_cache_size, "warp_size": p.warp_size, "registers_per_sm": p.regs_per_multiprocessor,
        "threads_per_sm": p.max_threads_per_multi_processor, "shared_per_block_bytes": p.shared_memory_per_block,
        "shared_per_block_optin_bytes": p.shared_memory_per_block_optin,
        "shared_per_sm_bytes": p.shared_memory_per_multiprocessor,
        "mem_bus_bits": getattr(p, "memory_bus_width", 0) or 0,
        "mem_clock_hz": (clocks.get("max_memory_mhz") or 0) * 1e6, "boost_hz": (clocks.get("max_sm_mhz") or 0) * 1e6,
    }  # fmt: skip


def run() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each probe's name and result, the names as in a device file's [measured]."""
    p = torch.cuda.get_device_properties(0)
    big = min(2 * 10**9, p.total_memory // 8)
    flush = torch.empty(timing.FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    _warm(flush)
    yield from memory(big, p.L2_cache_size, flush)
    yield from matmuls(torch.cuda.is_bf16_supported())
    yield from launches(flush)
    yield from latency(p.L2_cache_size, flush)
    yield from atomics(flush)


def memory(big: int, l2: int, flush: torch.Tensor) -> Iterator[tuple[str, dict[str, Any]]]:
    """Bandwidths in bytes/s: copy, read, fill from memory, and reads that the L2 answers."""
    source, target = (torch.zeros(big // 4, dtype=torch.int32, device="cuda") for _ in range(2))
    out, block = torch.zeros(1, dtype=torch.int32, device="cuda"), 4096
    blocks = len(source) // block
    yield "copy_bw", _rate(lambda: target.copy_(source), flush, 2 * 4 * len(source), "bytes/s", "read and written")
    yield (
        "read_bw",
        _rate(
            lambda: read_kernel[(blocks,)](source, out, blocks, 1, block), flush, 4 * block * blocks, "bytes/s", "read"
        ),
    )
    yield "fill_bw", _rate(lambda: target.fill_(1), flush, 4 * len(target), "bytes/s", "written")
    held, repeats = max(1, l2 // 3 // (4 * block)), 64
    moved = 4 * block * held * repeats
    yield (
        "l2_read_bw",
        _rate(
            lambda: read_kernel[(held,)](source, out, held, repeats, block), None, moved, "bytes/s", "a third of the L2"
        ),
    )


def matmuls(bfloat16: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rates in FLOP/s of torch's square products, in bursts."""
    for name, dtype, n in (
        ("bfloat16", torch.bfloat16, 8192),
        ("float16", torch.float16, 8192),
        ("float32", torch.float32, 4096),
    ):
        if name == "bfloat16" and not bfloat16:
            continue
        a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        call = lambda a=a, b=b: a @ b  # noqa: E731 - one expression
        yield f"{name}_matmul", _rate(call, None, 2 * n**3, "FLOP/s", f"{n} cubed, without TF32", pause=0.25)


def launches(flush: torch.Tensor) -> Iterator[tuple[str, dict[str, Any]]]:
    """Costs in s: an empty kernel between events, its launch by Python, one program, one kernel of a CUDA graph."""
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    one, many = (lambda: empty_kernel[(1,)](out, num_warps=1)), (lambda: empty_kernel[(GRID,)](out, num_warps=1))
    empty = _samples(one, flush)
    yield "empty_kernel_s", _cost(empty, 1, "between two events")
    started, count = time.perf_counter(), 500  # fewer than the queue holds
    for _ in range(count):
        one()
    host = (time.perf_counter() - started) / count
    torch.cuda.synchronize()
    yield "python_launch_s", {"value": host, "unit": "s", "samples_s": [host], "how": "host time of a Triton launch"}
    grids = _samples(many, flush)
    program = (statistics.median(grids) - statistics.median(empty)) / GRID
    yield "cta_launch_s", {"value": program, "unit": "s", "samples_s": grids, "how": f"one of {GRID} empty programs"}
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        one()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(100):
            one()
    yield "graph_launch_s", _cost(_samples(graph.replay, flush), 100, "one of 100 empty kernels in a graph")


def latency(l2: int, flush: torch.Tensor) -> Iterator[tuple[str, dict[str, Any]]]:
    """The time in s of a load that needs the one before, and finds no cache that has its line."""
    lines = 4 * max(l2, 2**20) // 128
    order = torch.randperm(lines) * 32  # int32 elements: one a line of 128 bytes
    chain = torch.zeros(lines * 32, dtype=torch.int32)
    chain[order] = order.roll(-1).to(torch.int32)
    chain, out = chain.cuda(), torch.zeros(1, dtype=torch.int32, device="cuda")
    call = lambda: chase_kernel[(1,)](chain, out, HOPS, num_warps=1)  # noqa: E731 - one expression
    yield (
        "dram_latency_s",
        _cost(_samples(call, flush), HOPS, f"{HOPS} dependent loads over {4 * lines * 32 >> 20} MiB"),
    )


def atomics(flush: torch.Tensor) -> Iterator[tuple[str, dict[str, Any]]]:
    """Atomic additions: how many a second to different addresses, and s of each to the same one."""
    out = torch.zeros(2**24, dtype=torch.float32, device="cuda")
    spread = _samples(lambda: atomic_kernel[(len(out) // 1024,)](out, 1, 1024), flush)
    median = statistics.median(spread)
    yield (
        "atomics_per_s",
        {"value": len(out) / median, "unit": "1/s", "samples_s": spread, "how": "float32, neighbours"},
    )
    count = 2**17
    same = _samples(lambda: atomic_kernel[(count,)](out, 0, 1024, num_warps=1), flush)
    yield "atomic_same_address_s", _cost(same, count, "one address, one addition a program")


def _warm(flush: torch.Tensor) -> None:
    until = time.monotonic() + timing.WARM_SECONDS
    while time.monotonic() < until:
        for _ in range(20):
            flush.zero_()
        torch.cuda.synchronize()


def _samples(call: Callable[[], Any], flush: torch.Tensor | None, count: int = 30, pause: float = 0.0) -> list[float]:
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times = []
    for i in range(count):
        if pause and i % 10 == 0:
            time.sleep(pause)
        times.append(timing.once(call, flush))
    return times


def _rate(
    call: Callable[[], Any], flush: torch.Tensor | None, amount: int, unit: str, how: str, pause: float = 0.0
) -> dict[str, Any]:
    times = _samples(call, flush, pause=pause)
    return {"value": amount / statistics.median(times), "unit": unit, "samples_s": times, "how": f"{amount:,}, {how}"}


def _cost(times: list[float], count: int, how: str) -> dict[str, Any]:
    return {"value": statistics.median(times) / count, "unit": "s", "samples_s": times, "how": how}
