"""Memory as a kernel must see it: exactly the elements of the views that were passed, and nothing else."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.interpreted.sanitizer import Memory, Stop, poison, real_bytes, valid_offsets

F32 = np.dtype(np.float32)


@pytest.fixture
def memory():
    """Return a function: named tensors -> a memory in its first launch, and the address of each."""

    def make(counting=False, fill="poison", **tensors):
        memory = Memory(list(tensors.items()), fill, counting)
        memory.begin_launch()
        memory.program = 0
        memory.where = lambda: 7
        return memory, *(memory.pointer(f"{name}_ptr", t) for name, t in tensors.items())

    return make


def at(base: int, *elements: int, width: int = 4) -> np.ndarray:
    """Return addresses of elements."""
    return np.array([base + width * e for e in elements], np.int64).astype(np.uint64)


def violation(memory, act) -> str:
    with pytest.raises(Stop):
        act()
    return memory.violation.text


# which bytes belong to a view


def bytes_of(view: torch.Tensor) -> set[int]:
    """Return every byte offset, from the first element on, that belongs to an element: by counting, one by one."""
    size = view.element_size()
    elements = itertools.product(*map(range, view.shape))
    return {
        size * sum(i * s for i, s in zip(index, view.stride(), strict=True)) + b
        for index in elements
        for b in range(size)
    }


@st.composite
def views(draw):
    dims = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7)), max_size=3))
    dtype = draw(st.sampled_from([torch.int8, torch.float16, torch.float32, torch.int64]))
    shape, strides = [n for n, _ in dims], [s for _, s in dims]
    return torch.zeros(120, dtype=dtype).as_strided(shape, strides)


# the harness takes a view that overlaps itself for one without gaps, and looks at the ends of a wide access only
@given(views(), st.sampled_from([1, 2, 4, 8]))
def test_an_access_is_valid_when_every_byte_of_it_belongs_to_an_element(view, width):
    own = bytes_of(view)
    offsets = np.arange(-12, 240)
    valid = valid_offsets(view)(offsets, width)
    expected = [all(o + b in own for b in range(width)) for o in offsets.tolist()]

    assert valid.tolist() == expected


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "rows", "columns", "expanded", "one row"])
def test_an_access_of_the_element_s_size_is_valid_at_its_elements(layout):
    x = torch.zeros(6, 10)
    view = {
        "contiguous": x, "transposed": x.t(), "rows": x[::2], "columns": x[:, 2:7], "expanded": x[:1].expand(6, 10), "one row": x[3],
    }[layout]  # fmt: skip
    own = bytes_of(view)
    offsets = np.arange(-4, 260, 4)

    assert valid_offsets(view)(offsets, 4).tolist() == [o in own for o in offsets.tolist()]


# loads


def test_a_load_returns_what_the_view_holds(memory):
    x = torch.arange(12.0).view(3, 4)[:, 1:3]
    m, p = memory(x=x)

    assert m.load(at(p, 0, 1, 4, 9), None, None, F32).tolist() == [1, 2, 5, 10]


def test_lanes_that_are_off_are_not_accessed_and_get_other(memory):
    m, p = memory(x=torch.arange(3.0))
    mask = np.array([True, False, True])

    assert m.load(at(p, 0, 99, 2), mask, np.float32(-1), F32).tolist() == [0, -1, 2]
    assert m.unmasked_fill == set()


def test_lanes_that_are_off_are_poison_without_other_or_zero_on_request(memory):
    mask = np.array([True, False])
    m, p = memory(x=torch.arange(3.0))
    values = m.load(at(p, 1, 99), mask, None, F32)

    assert values[0] == 1 and np.isnan(values[1])
    assert m.unmasked_fill == {7}
    m, p = memory(fill="zero", x=torch.arange(3.0))
    assert m.load(at(p, 1, 99), mask, None, F32).tolist() == [1, 0]


def test_nothing_is_accessed_when_all_lanes_are_off(memory):
    m, p = memory(x=torch.zeros(0))
    off = np.zeros(2, bool)

    assert m.load(at(p, 5, 6), off, np.float32(3), F32).tolist() == [3, 3]
    m.store(at(p, 5, 6), np.float32([1, 2]), off)
    assert m.atomic(at(p, 5, 6), off, 4).tolist() == [0, 0]


def test_lanes_may_go_to_different_tensors(memory):
    m, p, q = memory(x=torch.arange(3.0), y=torch.arange(10.0, 13.0))
    both = np.concatenate([at(p, 2), at(q, 1)])

    assert m.load(both, None, None, F32).tolist() == [2, 11]
    m.store(both, np.float32([7, 8]), None)
    assert m.load(both, None, None, F32).tolist() == [7, 8]


def test_the_same_bits_can_be_read_as_another_type(memory):
    m, p = memory(x=torch.tensor([1.0, -2.0]))

    assert m.load(at(p, 0, 1), None, None, np.dtype(np.int32)).tolist() == [0x3F800000, -0x40000000]


def test_a_tensor_that_is_passed_twice_is_one(memory):
    x = torch.zeros(3)
    m, p = memory(x=x)

    assert m.pointer("again", x) == p
    assert m.pointer("other", torch.zeros(3)) != p


def test_an_address_out_of_memory_belongs_to_the_tensor_that_is_there(memory):
    x = torch.arange(8.0)
    m = Memory([("x", x[2:5])])
    m.begin_launch()

    assert m.load(at(x.data_ptr(), 2, 4), None, None, F32).tolist() == [2, 4]
    assert "element 3 of x" in violation(m, lambda: m.load(at(x.data_ptr(), 5), None, None, F32))


# violations


@pytest.mark.parametrize(("element", "says"), [
    (3, "line 7: program (0, 0, 0) reads element 3 of x_ptr, but it has 3 elements, shape [3], strides [1]; the last one is 2 "
        "(1 of 1 lanes are outside)."),
    (-1, "that is before its start"),
    (-(2**28), "so far off looks like 32-bit overflow: make the index int64 before it is multiplied by a stride"),
])  # fmt: skip
def test_a_stray_load_names_argument_index_program_and_line(memory, element, says):
    m, p = memory(x=torch.arange(3.0))

    assert says in violation(m, lambda: m.load(at(p, element), None, None, F32))
    assert m.violation.kind == "out-of-bounds"


def test_only_what_32_bits_can_hold_is_called_an_overflow(memory):
    """A row that lies 2**30 elements off, read without a mask: its index was 64 bits wide."""
    far = torch.empty(2**31 + 7, dtype=torch.int8)  # two GiB of addresses; no page of it is touched
    m, p = memory(x=far.as_strided((3, 7), (2**30, 1)))
    i8 = np.dtype(np.int8)

    assert "the last one is 2,147,483,654 (" in violation(m, lambda: m.load(at(p, 2**31 + 7, width=1), None, None, i8))


def test_gaps_of_a_view_are_somebody_else_s(memory):
    m, p = memory(x=torch.zeros(3, 4)[:, :2])

    assert "lies between the elements of the view, so it is somebody else's data (1 of 2 lanes" in violation(
        m, lambda: m.load(at(p, 1, 2), None, None, F32)
    )


def test_an_empty_tensor_has_nothing_to_read(memory):
    m, p = memory(x=torch.zeros(2, 0))

    assert "which is an empty tensor [2, 0]: there is nothing to read or write." in violation(
        m, lambda: m.store(at(p, 0), np.float32([1]), None)
    )


def test_an_address_of_no_argument_is_refused(memory):
    m, p = memory(x=torch.zeros(3))
    far = np.array([p + (1 << 60)], np.uint64)

    assert "at an address that belongs to no argument of the launch." in violation(
        m, lambda: m.load(far, None, None, F32)
    )


@pytest.mark.parametrize("address", [0, 8, 4096])
def test_a_null_pointer_is_refused(memory, address):
    m, _ = memory(x=torch.zeros(3))

    assert f"address {address:#x}, which belongs to no tensor that was passed" in violation(
        m, lambda: m.load(np.array([address], np.uint64), None, None, F32)
    )


def test_a_misaligned_access_is_refused(memory):
    m, p = memory(x=torch.zeros(3))

    assert "reads 4 bytes at byte 2 of x_ptr: not a multiple of 4" in violation(
        m, lambda: m.load(np.array([p + 2], np.uint64), None, None, F32)
    )
    assert m.violation.kind == "misaligned"


def test_only_the_first_violation_is_told(memory):
    m, p = memory(x=torch.zeros(3))
    first = violation(m, lambda: m.load(at(p, 5), None, None, F32))

    assert violation(m, lambda: m.load(at(p, 6), None, None, F32)) == first


def test_a_refused_store_changes_nothing(memory):
    x = torch.zeros(3)
    m, p = memory(x=x)

    violation(m, lambda: m.store(at(p, 0, 3), np.float32([1, 2]), None))
    assert x.tolist() == [0, 0, 0]


def test_a_stop_passes_an_except_of_the_learner_s():
    assert not issubclass(Stop, Exception)


# stores


def test_what_was_written_and_by_whom(memory):
    x = torch.zeros(2, 3)
    m, p = memory(x=x)
    m.program = 4
    m.store(at(p, 0, 1), np.float32([1, 2]), None)
    m.program = 5
    m.store(at(p, 4), np.float32([9]), None)
    written, writers = m.written_by(x)

    assert x.tolist() == [[1, 2, 0], [0, 9, 0]]
    assert written.tolist() == [[True, True, False], [False, True, False]]
    assert writers.tolist() == [[4, 4, -1], [-1, 5, -1]]


def test_the_result_may_be_another_view_of_what_was_written(memory):
    x = torch.zeros(2, 3)
    m, p = memory(x=x)
    m.store(at(p, 3), np.float32([1]), None)

    assert m.written_by(x.t())[0].tolist() == [[False, True], [False, False], [False, False]]
    assert m.written_by(x[1:])[0].tolist() == [[True, False, False]]
    assert m.written_by(torch.zeros(3)) is None
    assert m.written_by(x[:0]) is None


@pytest.mark.parametrize("act", ["store", "atomic"])
def test_a_view_that_spans_gigabytes_costs_what_is_stored_to_it(memory, act):
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    x = torch.empty_strided((3,), (2**30,), dtype=torch.int8)
    x.zero_()
    m, p = memory(x=x)
    before = resident()
    if act == "store":
        m.store(at(p, 0, 2**31, width=1), np.int8([1, 2]), None)
    else:
        m.atomic(at(p, 0, 2**31, width=1), None, 1)
    m.end_launch()

    assert m.written_by(x)[0].tolist() == [True, False, True]
    assert m.altered(x) == 0
    x[2] += 1  # behind everybody's back
    x[1] += 1  # where no kernel stored
    assert m.altered(x) == 1
    assert resident() - before < 2**27


def test_half_an_element_is_not_written(memory):
    x = torch.zeros(2)
    m, p = memory(x=x)
    m.store(np.array([p, p + 2, p + 4], np.uint64), np.float16([1, 1, 1]), None)

    assert m.written_by(x)[0].tolist() == [True, False]


def test_atomics_write_and_name_no_program(memory):
    x = torch.zeros(3)
    m, p = memory(x=x)
    real = m.atomic(at(p, 2, 0), np.array([True, False]), 4)
    written, writers = m.written_by(x)

    assert real.tolist() == [x.data_ptr() + 8, 0]
    assert written.tolist() == [False, False, True]
    assert writers.tolist() == [-1, -1, -1]


def stores(memory, first, second, same_launch=True, atomic=False):
    m, p = memory(x=torch.zeros(3))
    m.program = 0
    m.store(at(p, 1), np.float32([first]), None)
    if not same_launch:
        m.begin_launch()
        p = m.pointer("x_ptr", m.known[0][1])
    m.program = 1
    if atomic:
        m.atomic(at(p, 1), None, 4)
    else:
        m.store(at(p, 1), np.float32([second]), None)
    return m


def test_two_programs_that_store_different_values_are_a_race(memory):
    race = stores(memory, 1, 2).race

    assert race == (
        "line 7: programs 0 and 1 both store to element 1 of x_ptr, with different values (1.0 and 2.0); on a GPU either may win"
    )


def test_two_programs_that_store_the_same_value_are_a_finding(memory):
    m = stores(memory, 1, 1)

    assert m.race is None
    assert list(m.findings) == ["line 7: several programs store the same values to x_ptr: work done twice"]


def test_nan_of_the_same_bits_is_the_same_value(memory):
    assert stores(memory, np.nan, np.nan).race is None


def test_launches_run_one_after_the_other(memory):
    assert stores(memory, 1, 2, same_launch=False).race is None


def test_atomics_are_no_race(memory):
    assert stores(memory, 1, 2, atomic=True).race is None


def test_one_program_may_store_twice(memory):
    m, p = memory(x=torch.zeros(3))
    m.store(at(p, 1), np.float32([1]), None)
    m.store(at(p, 1), np.float32([2]), None)

    assert m.race is None


def test_one_store_with_two_values_for_one_element_is_a_race(memory):
    m, p = memory(x=torch.zeros(3))
    m.store(at(p, 1, 1), np.float32([1, 1]), None)
    assert m.race is None
    m.store(at(p, 1, 1), np.float32([1, 2]), None)
    assert "one store of program (0, 0, 0) writes different values to the same element of x_ptr" in m.race


# counting


def test_bytes_and_sectors_are_counted(memory):
    x, y = torch.zeros(64 + 8), torch.zeros(64)
    x = x[(-x.data_ptr() // 4) % 8 :][:64]  # starts a sector
    y_sectors = len({(y.data_ptr() + 4 * i) // 32 for i in range(64)})
    m, p, q = memory(counting=True, x=x, y=y)
    m.load(at(p, *range(64)), None, None, F32)  # 256 neighbouring bytes
    m.load(at(p, *range(0, 64, 8)), None, None, F32)  # one element of each sector, again
    m.store(at(q, *range(64)), np.zeros(64, np.float32), None)
    counts = m.counters()

    assert counts["bytes_read"] == 256
    assert counts["bytes_written"] == 32 * y_sectors
    assert counts["sectors"] == 8 + 8 + y_sectors
    assert [(s["kind"], s["argument"], s["executions"], s["lanes"], s["bytes"], s["sectors"]) for s in counts["sites"]] == [
        ("load", "x_ptr", 2, 72, 288, 16), ("store", "y_ptr", 1, 64, 256, y_sectors),
    ]  # fmt: skip


def test_a_sample_is_scaled_up(memory):
    m, p = memory(counting=True, x=torch.zeros(8))
    m.load(at(p, 0), None, None, F32)

    assert m.counters(share=0.25)["bytes_read"] == 4 * 32
    assert m.counters(share=0.25)["sectors"] == 4


# poison and raw memory


def test_every_dtype_has_a_poison_that_no_sum_hides():
    import ml_dtypes

    for dtype in (
        np.float16,
        np.float32,
        np.float64,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
    ):
        assert np.isnan(poison(np.dtype(dtype)).astype(np.float32)), dtype
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.int64):
        assert poison(np.dtype(dtype)) % 2 == 1
        assert poison(np.dtype(dtype)) > 50
    assert poison(np.dtype(bool)) == np.bool_(True)


def test_real_bytes_are_the_process_s_own():
    x = torch.zeros(2, dtype=torch.uint8)
    real_bytes(x.data_ptr(), 2)[1] = 9

    assert x.tolist() == [0, 9]
    assert real_bytes(0, 0).size == 0
