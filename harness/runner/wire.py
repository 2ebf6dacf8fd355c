"""Messages between processes: a length, then JSON; a child's report may be followed by raw arrays.

Nothing is pickled: a report comes from a process that ran somebody else's code.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_LENGTH = struct.Struct("<Q")
LIMIT = 1 << 32


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """Send one JSON message."""
    data = json.dumps(message).encode()
    sock.sendall(_LENGTH.pack(len(data)) + data)


def receive(sock: socket.socket) -> dict[str, Any] | None:
    """Receive one JSON message; None when the other side is gone."""
    head = _exactly(sock, _LENGTH.size)
    if head is None:
        return None
    data = _exactly(sock, _LENGTH.unpack(head)[0])
    return None if data is None else json.loads(data)


def _exactly(sock: socket.socket, n: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < n:
        part = sock.recv(min(n - len(parts), 1 << 20))
        if not part:
            return None
        parts += part
    return bytes(parts)


def pack(header: dict[str, Any], blobs: list[bytes]) -> bytes:
    """Return a child's report as bytes."""
    data = json.dumps(header).encode()
    sizes = [len(b) for b in blobs]
    return b"".join([_LENGTH.pack(len(data)), data, _LENGTH.pack(len(sizes)), *map(_LENGTH.pack, sizes), *blobs])


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return what ``pack`` packed. Raises ValueError when the bytes are anything else."""
    try:
        at = _LENGTH.size
        (n,) = _LENGTH.unpack(data[:at])
        header = json.loads(data[at : at + n])
        at += n
        (count,) = _LENGTH.unpack(data[at : at + 8])
        at += 8
        sizes = [_LENGTH.unpack(data[at + 8 * i : at + 8 * i + 8])[0] for i in range(count)]
        at += 8 * count
        blobs = []
        for size in sizes:
            blobs.append(data[at : at + size])
            at += size
        if at != len(data) or not isinstance(header, dict):
            raise ValueError("trailing bytes")
    except (struct.error, UnicodeDecodeError, json.JSONDecodeError, MemoryError, OverflowError) as error:
        raise ValueError(f"not a report: {error}") from None
    return header, blobs


def array(described: dict[str, Any], blobs: list[bytes]) -> np.ndarray:
    """Return the array that a report describes as ``{"blob": i, "dtype": …, "shape": …}``."""
    import numpy as np  # not needed by pytest's own process, which starts faster without

    flat = np.frombuffer(blobs[described["blob"]], np.dtype(described["dtype"]))
    return flat.reshape(described["shape"])


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data`` to a file descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
