"""Messages between processes: what is sent arrives, and bytes from somebody else's code never do more than fail."""

from __future__ import annotations

import os
import socket

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.runner import wire

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
headers = st.dictionaries(st.text(max_size=6), plain, max_size=4)


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    yield left, right
    left.close()
    right.close()


def test_messages_arrive_in_order(pair):
    for message in ({"a": 1}, {}, {"ö": ["x" * 100, None]}):
        wire.send(pair[0], message)

    assert [wire.receive(pair[1]) for _ in range(3)] == [{"a": 1}, {}, {"ö": ["x" * 100, None]}]


@pytest.mark.parametrize("sent", [b"", b"\x05", b"\x05\0\0\0\0\0\0\0", b"\x05\0\0\0\0\0\0\0{}"])
def test_a_side_that_hangs_up_in_the_middle_is_gone(pair, sent):
    pair[0].sendall(sent)
    pair[0].close()

    assert wire.receive(pair[1]) is None


@given(headers, st.lists(st.binary(max_size=20), max_size=3))
def test_a_report_is_unpacked_as_it_was_packed(header, blobs):
    assert wire.unpack(wire.pack(header, blobs)) == (header, blobs)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_report_or_a_value_error(data):
    try:
        header, blobs = wire.unpack(data)
    except ValueError:
        return
    assert isinstance(header, dict)
    assert all(isinstance(b, bytes) for b in blobs)


@given(headers, st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=2), st.data())
def test_a_damaged_report_is_a_value_error_or_another_report(header, blobs, data):
    packed = bytearray(wire.pack(header, blobs))
    cut = data.draw(st.integers(0, len(packed) - 1))

    with pytest.raises(ValueError):
        wire.unpack(bytes(packed[:cut]))
    with pytest.raises(ValueError, match="trailing bytes"):
        wire.unpack(bytes(packed) + b"x")


@pytest.mark.parametrize("array", [np.arange(6, dtype="<i4").reshape(2, 3), np.zeros((0, 2)), np.array([True, False])])
def test_an_array_comes_back_as_described(array):
    described = {"blob": 0, "dtype": array.dtype.str, "shape": list(array.shape)}
    again = wire.array(described, [array.tobytes()])

    assert again.dtype == array.dtype
    np.testing.assert_array_equal(again, array)


def test_all_of_it_is_written_even_if_the_pipe_is_smaller(tmp_path):
    fd = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    wire.write_all(fd, b"x" * 3_000_000)
    os.close(fd)

    assert (tmp_path / "out").stat().st_size == 3_000_000
