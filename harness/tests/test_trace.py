"""Traced programs of a bench-shape launch: addresses, loops, dots, counters, and what no program can be followed to."""

from __future__ import annotations

import pytest

from harness.model.trace import PROGRAMS, spread, together

HEAD = """
import torch
import triton
import triton.language as tl
from harness.zoo.variants import Call, Family, Tensor
"""
TENSORS = {
    "x": 'Tensor((2**24,), "float32")', "i": 'Tensor((4096,), "int32", "below", below=7)',
    "out": 'Tensor((2**24,), "float32", "empty")', "n": 'Tensor((1,), "int32", "zeros")',
}  # fmt: skip


@pytest.fixture
def traced(interpret, tmp_path):
    """Return a function: body of a kernel on (x, i, out, n), grid, further arguments -> the trace of its launch."""

    def trace(body, grid="(1024,)", layouts=None, **constants):
        parameters = "".join(f", {k}: tl.constexpr" for k in constants)
        kernel = f"@triton.jit\ndef kernel(x, i, out, n, size{parameters}):\n" + "".join(
            f"    {line}\n" for line in body.strip().splitlines()
        )
        tensors = ", ".join(f'"{k}": {v}' for k, v in TENSORS.items())
        call = f'Call(kernel, {grid}, ("x", "i", "out", "n", 2**24), {constants!r})'
        family = f'FAMILIES = {{"f": Family({{{tensors}}}, {{"v": [{call}]}}, "out")}}\n'
        path = tmp_path / "kernels.py"
        path.write_text(HEAD + kernel + family, encoding="utf-8")
        request = {"zoo": {"file": str(path), "family": "f", "variant": "v"}, "gpu": "H200"}
        answer = interpret.ask(request | {"layouts": [layouts or []]})
        assert "failed" not in answer, answer
        return answer["runs"][0][0]

    return trace


def only(trace, kind="load"):
    (found,) = [s for s in trace["sites"] if s["kind"] == kind]
    return found


def test_each_access_is_counted_once_a_program_with_its_place(traced):
    trace = traced("""
offs = tl.program_id(0) * B + tl.arange(0, B)
tl.store(out + offs, tl.load(x + offs))
""", B=1024)  # fmt: skip

    load, store = only(trace), only(trace, "store")
    assert (load["line"], load["executions"], load["sectors"], load["lanes"]) == (9, 1, 128, 1024)
    assert (store["line"], store["partial"], store["argument"]) == (9, 0, "out")
    assert trace["programs"] == 1024 and len(trace["samples"]) == PROGRAMS
    assert trace["scalars"] == {"size": 2**24}
    assert [t["own"] for t in trace["tensors"]] == [128, 128]


def test_a_long_loop_counts_all_of_its_iterations(traced):
    trace = traced("""
acc = tl.zeros((B,), tl.float32)
for k in range(0, 5000):
    acc += tl.load(x + k * B + tl.arange(0, B))
tl.store(out + tl.arange(0, B), acc)
""", grid="(2,)", B=64)  # fmt: skip

    assert only(trace)["executions"] == pytest.approx(5000)
    assert only(trace)["missed"] == pytest.approx(5000 * 8)
    assert not trace["cut"]


def test_loops_inside_of_loops_multiply(traced):
    trace = traced("""
for j in range(0, 100):
    for k in tl.range(0, 60):
        tl.store(out + tl.arange(0, B), tl.load(x + (j * 60 + k) * B + tl.arange(0, B)))
""", grid="(1,)", B=32)  # fmt: skip

    assert only(trace)["executions"] == pytest.approx(6000)


def test_programs_that_do_unlike_work_are_sampled_evenly(traced):
    trace = traced("""
for k in range(0, tl.program_id(0) + 1):
    tl.store(out + tl.arange(0, B), tl.load(x + k * B + tl.arange(0, B)))
""", grid="(400,)", B=32)  # fmt: skip

    assert only(trace)["executions"] == pytest.approx(200, rel=0.15)
    assert trace["unlike"] > 1.5


def test_a_table_of_integers_steers_what_is_loaded(traced):
    trace = traced("""
row = tl.load(i + tl.program_id(0))
tl.store(out + tl.arange(0, B), tl.load(x + row * B + tl.arange(0, B)))
""", B=32)  # fmt: skip

    x = next(t for t in trace["tensors"] if t["argument"] == "x")
    assert x["anywhere"][2] <= 7 * 4


def test_lengths_in_a_table_end_loops(traced):
    """Drawn from 0 to 6; the sampled programs' mean is near 3."""
    trace = traced("""
for k in range(0, tl.load(i + tl.program_id(0))):
    tl.store(out + tl.arange(0, B), tl.load(x + k * B + tl.arange(0, B)))
""", grid="(4096,)", B=32)  # fmt: skip

    executions = next(s["executions"] for s in trace["sites"] if s["argument"] == "x")
    assert 1 < executions < 5
    assert not trace["cut"]


def test_dots_are_counted_with_their_shape_and_dtype(traced):
    trace = traced("""
a = tl.load(x + tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :]).to(tl.float16)
acc = tl.zeros((32, 32), tl.float32)
for k in range(0, 100):
    acc = tl.dot(a, tl.trans(a), acc)
tl.store(out + tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :], acc)
""", grid="(1,)")  # fmt: skip

    (dot,) = trace["dots"]
    assert (dot["shape"], dot["a"], dot["count"]) == ([32, 16, 32], "float16", pytest.approx(100))


def test_a_counter_that_hands_out_work_ends(traced):
    trace = traced("""
k = tl.atomic_add(n, 1)
while k < 5000:
    tl.store(out + k * B + tl.arange(0, B), tl.load(x + k * B + tl.arange(0, B)))
    k = tl.atomic_add(n, 1)
""", grid="(1000,)", B=32)  # fmt: skip

    assert only(trace)["executions"] == pytest.approx(5, abs=1)
    assert not trace["cut"]


def test_a_loop_that_ends_where_data_says_so_is_cut_and_said(traced):
    trace = traced("""
k = tl.load(n)
while k == 0:
    k = tl.load(n)
tl.store(out, k.to(tl.float32))
""", grid="(1,)")  # fmt: skip

    assert trace["cut"]


def test_an_operation_that_the_interpreter_does_not_know_is_an_answer(interpret, tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(
        f"{HEAD}\n@triton.jit\ndef kernel(x):\n    tl.store(x, tl.no_such_operation(1.0))\n"
        f'FAMILIES = {{"f": Family({{"x": {TENSORS["x"]}}}, {{"v": [Call(kernel, (8,), ("x",), {{}})]}}, "x")}}\n',
        encoding="utf-8",
    )
    request = {"zoo": {"file": str(path), "family": "f", "variant": "v"}, "gpu": "H200", "layouts": [[]]}
    failed = interpret.ask(request)["failed"]

    assert "no_such_operation" in failed
    assert "\n" not in failed


def test_a_known_layout_decides_what_a_request_is(traced):
    # lanes along rows of 32 elements: neighbouring lanes lie 128 bytes apart
    layout = [[32, 32], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], []]
    access = {
        "line": 8, "column": 1, "kind": "load", "how": "direct", "shape": [32, 32], "layout": layout, "widths": [4],
    }  # fmt: skip
    trace = traced("""
v = tl.load(x + tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :])
tl.store(out + tl.arange(0, 32), tl.sum(v, 1))
""", grid="(1,)", layouts=[{"accesses": [access], "warps": 1, "l1_bytes": 65536.0, "concurrent": 1}])  # fmt: skip

    load = only(trace)
    assert (load["requests"], load["sectors"] / load["requests"], load["width"]) == (32, 32, 1)


@pytest.mark.parametrize("total", [1, 5, 8, 9, 4096, 10**6])
def test_the_programs_that_run_in_full_lie_all_over_the_grid(total):
    chosen = list(spread(total, PROGRAMS))

    assert len(set(chosen)) == len(chosen) == min(total, PROGRAMS)
    assert all(0 <= n < total for n in chosen)
    if total > 1000:
        assert sum(chosen) / len(chosen) == pytest.approx(total / 2, rel=0.1)


@pytest.mark.parametrize(("first", "wave"), [(0, 1), (10, 64), (100, 2112)])
def test_a_wave_is_looked_at_in_a_row_and_anywhere(first, wave):
    row, anywhere = together(first, wave)

    assert all(first <= n < first + wave for n in [*row, *anywhere])
    assert list(row) == list(range(row[0], row[0] + len(row)))
    assert len(set(anywhere)) == len(anywhere) == min(128, wave)
