"""What torch does around the launches: moving data is free, computing is noted, fresh memory is poisoned."""

from __future__ import annotations

import pytest
import torch

from harness.runner.hostwatch import HostWatch, fill, poison_pattern


@pytest.fixture
def watch():
    return HostWatch(0, lambda: False)


X = torch.arange(200.0).view(10, 20)

FREE = {
    "view": lambda: X.view(20, 10).t()[1:, ::2],
    "copy": lambda: X.clone(),
    "contiguous": lambda: X.t().contiguous(),
    "cast": lambda: X.to(torch.float16),
    "pad": lambda: torch.nn.functional.pad(X, (0, 4)),
    "cat": lambda: torch.cat([X, X]),
    "zeros": lambda: torch.zeros(1000).fill_(3),
    "arange": lambda: torch.arange(1000),
    "item": lambda: X[0, 0].item(),
    "a small table": lambda: torch.linspace(0, 1, 64) * 2,
    "a check of the input": lambda: torch.isnan(X).any(),
}

COMPUTES = {
    "mul": lambda: X * 2,
    "add_": lambda: torch.zeros(200).add_(1),
    "sum": lambda: X.sum(),
    "mm": lambda: X @ X.t(),
    "_softmax": lambda: torch.softmax(X, -1),
    "index": lambda: X[torch.arange(10)],
    "sort": lambda: X.sort(),
}


@pytest.mark.parametrize("act", FREE.values(), ids=FREE)
def test_allocating_and_moving_is_free(watch, act):
    with watch:
        act()

    assert watch.computed == {}


@pytest.mark.parametrize("name", COMPUTES)
def test_computing_is_noted_with_its_size(watch, name):
    with watch:
        COMPUTES[name]()

    assert max(watch.computed.values()) >= 200
    assert name in watch.computed


def test_torch_inside_a_kernel_is_noted_apart():
    running = [False]
    watch = HostWatch(0, lambda: running[0])
    with watch:
        X.view(-1)
        running[0] = True
        torch.ones(4)

    assert watch.during_kernel == {"ones": 4}
    assert watch.computed == {}


def test_reading_a_value_back_is_noted(watch):
    with watch:
        assert not watch.read_back
        X[0, 0].item()

    assert watch.read_back


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    "make",
    [torch.empty, lambda n, dtype: X.new_empty(n, dtype=dtype), lambda n, dtype: torch.empty_like(X, dtype=dtype)],
)
def test_fresh_memory_is_poisoned(which, make):
    watch = HostWatch(which, lambda: False)
    with watch:
        fresh = [make(10, dtype=d) for d in (torch.float32, torch.float16, torch.bfloat16, torch.float64)]

    assert all(t.isnan().all() for t in fresh)
    assert all(
        (
            t.view(torch.uint8)
            == t.view(torch.uint8).flatten()[: t.element_size()].repeat(t.numel()).view(*t.shape[:-1], -1)
        ).all()
        for t in fresh
    )
    assert len(watch.allocated) == 4


def test_zeros_stay_zero(watch):
    with watch:
        zeros = torch.zeros(5)

    assert zeros.tolist() == [0] * 5


# the harness's poisons of the 8-bit floats are numbers, but for one
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_the_two_poisons_of_a_float_are_nan_and_differ(dtype):
    poisons = []
    for which in (0, 1):
        t = torch.zeros(3, dtype=getattr(torch, dtype))
        fill(t, which)
        poisons.append(t.view(torch.uint8).tolist())
        assert t.float().isnan().all()

    assert poisons[0] != poisons[1]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_the_two_poisons_of_whole_numbers_are_large_and_odd(dtype):
    for which in (0, 1):
        t = torch.zeros(3, dtype=getattr(torch, dtype))
        fill(t, which)

        assert t.unique().tolist() == [poison_pattern(t.dtype, which)]
        assert t[0] % 2 == 1 and t[0] > 50
    assert poison_pattern(t.dtype, 0) != poison_pattern(t.dtype, 1)


def test_memory_with_gaps_is_filled_in_its_elements_alone():
    whole = torch.zeros(6)
    fill(whole[::2], 0)

    assert whole[::2].isnan().all()
    assert whole[1::2].tolist() == [0, 0, 0]
