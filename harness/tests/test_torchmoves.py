"""What torch copies on the way of a call takes a GPU time, and counts."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e .")

from harness.compiled.torchmoves import TorchMoves  # noqa: E402 - needs torch
from harness.device import find_device  # noqa: E402 - as above
from harness.model.constants import constants  # noqa: E402 - as above
from harness.model.estimate import torch_time  # noqa: E402 - as above

X = torch.zeros(4, 8)  # 128 bytes


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (lambda: X.clone(), (1, 128, 128)),
        (lambda: X.contiguous(), (0, 0, 0)),
        (lambda: X.t().contiguous(), (1, 128, 128)),
        (lambda: X[:1].expand(4, 8).contiguous(), (1, 32, 128)),
        (lambda: X.to(torch.float16), (1, 128, 64)),
        (lambda: torch.empty(4, 8).copy_(X), (1, 128, 128)),
        (lambda: torch.cat([X, X]), (1, 256, 256)),
        (lambda: torch.zeros(4, 8), (1, 0, 128)),
        (lambda: torch.empty(4, 8), (0, 0, 0)),
        (lambda: X.view(8, 4)[::2].t(), (0, 0, 0)),
        (lambda: torch.empty(0).clone(), (0, 0, 0)),
    ],
)
def test_copies_and_fills_are_counted_in_bytes_and_views_are_not(work, expected):
    with TorchMoves() as moves:
        work()

    assert (moves.calls, moves.bytes_read, moves.bytes_written) == expected


def test_a_copy_takes_the_time_of_a_copy_and_a_launch():
    gpu = find_device("H200")
    (launch,) = torch_time({"calls": 1, "bytes_read": 2_000_000_000, "bytes_written": 2_000_000_000}, constants(gpu))

    assert launch.seconds == pytest.approx(4e9 / gpu.measured["copy_bw"] + gpu.measured["next_kernel_s"])
    assert launch.findings[0][1] == "torch copies or fills before your kernel runs: 4,000 MB"
    assert not torch_time({"calls": 0, "bytes_read": 0, "bytes_written": 0}, constants(gpu))
