"""Launches are recorded alike by whoever runs them; a grid is what CUDA takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from harness.interpreted import launches


@pytest.mark.parametrize(("grid", "full"), [
    ((4,), (4, 1, 1)),
    ([4, 5], (4, 5, 1)),
    ((4, 5, 6), (4, 5, 6)),
    ((0,), (0, 1, 1)),
    ((np.int64(3), torch.tensor(2)), (3, 2, 1)),
    (torch.Size((2, 3)), (2, 3, 1)),
    ((True,), (1, 1, 1)),
    ((2**31 - 1, 65535, 65535), (2**31 - 1, 65535, 65535)),
])  # fmt: skip
def test_a_grid_is_one_to_three_whole_numbers(grid, full):
    assert launches.full_grid(grid) == full


@pytest.mark.parametrize(("grid", "error", "message"), [
    ((), ValueError, "grid = () has 0 entries; a grid has one to three"),
    ((1, 1, 1, 1), ValueError, "grid = (1, 1, 1, 1) has 4 entries; a grid has one to three"),
    ((-1,), ValueError, "grid = (-1,): axis 0 is -1; CUDA allows 0 to 2,147,483,647 there"),
    ((2**31,), ValueError, "grid = (2147483648,): axis 0 is 2,147,483,648; CUDA allows 0 to 2,147,483,647 there"),
    ((1, 65536), ValueError, "grid = (1, 65536): axis 1 is 65,536; CUDA allows 0 to 65,535 there"),
    ((2.5,), TypeError, "grid = (2.5,): the number of programs is a whole number; use // or triton.cdiv"),
    (("4",), TypeError, "grid = ('4',): the number of programs is a whole number; use // or triton.cdiv"),
    (4, TypeError, "grid = 4 is no tuple or list; write kernel[(4,)](…)"),
    (None, TypeError, "grid = None is no tuple or list; write kernel[(None,)](…)"),
])  # fmt: skip
def test_any_other_grid_is_one_sentence(grid, error, message):
    with pytest.raises(error) as caught:
        launches.full_grid(grid)

    assert str(caught.value) == message


def add_kernel(x_ptr, y_ptr, n, BLOCK):
    """Stand for a kernel: only its name is read."""


VALUES = {"x_ptr": torch.zeros(2, dtype=torch.bfloat16), "y_ptr": torch.zeros(2), "n": 2, "BLOCK": 64}


def test_a_launch_is_described_in_plain_values():
    launch = launches.describe(add_kernel, (2, 3, 4), VALUES, {"BLOCK", "NOT_GIVEN"}, {"num_warps": 8})

    assert launch.programs == 24
    assert launch.to_json() == {
        "kernel": "add_kernel", "grid": (2, 3, 4), "dtypes": {"x_ptr": "bfloat16", "y_ptr": "float32"},
        "constants": {"BLOCK": "64"}, "options": {"num_warps": "8"}, "tuned": None, "facts": "",
        "key": launch.key(),
    }  # fmt: skip


def test_what_a_compiler_would_compile_anew_for_has_another_key():
    def key(grid=(1, 1, 1), constants=frozenset({"BLOCK"}), options=(), **values):
        return launches.describe(add_kernel, grid, VALUES | values, set(constants), dict(options)).key()

    assert key() == key(grid=(9, 9, 9)) == key(n=3)
    assert (
        len({key(), key(BLOCK=128), key(options={"num_warps": 8}), key(y_ptr=torch.zeros(2, dtype=torch.float16))}) == 4
    )


def test_a_constexpr_is_shown_by_its_value_or_name():
    class Constexpr:
        value = 7

    launch = launches.describe(
        add_kernel, (1, 1, 1), {"A": Constexpr(), "B": add_kernel, "C": "text"}, {"A", "B", "C"}, {}
    )

    assert launch.constants == {"A": "7", "B": "add_kernel", "C": "'text'"}


def test_a_warmed_up_kernel_can_be_asked_and_launched():
    class Kernel:
        fn = staticmethod(add_kernel)
        ran: list = []

        def run(self, **kwargs):
            self.ran.append(kwargs)

    stand_in = launches.StandInKernel(Kernel(), (1, 2, 3), {"BLOCK": 64, "grid": (1,)})
    stand_in._init_handles()
    stand_in[(5, 1, 1)](10, 20, 30)

    assert stand_in.n_regs > 0 and stand_in.metadata.shared == 0
    assert Kernel.ran == [{"x_ptr": 10, "y_ptr": 20, "n": 30, "BLOCK": 64, "grid": (5, 1, 1), "warmup": False}]
