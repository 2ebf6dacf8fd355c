"""The fork server: imports torch once, then Triton twice, and forks a keeper for each client that connects.

``python -m harness.runner.forkserver FOLDER`` listens on two sockets there: ``interpret`` (TRITON_INTERPRET=1, patched)
and ``compile`` (plain Triton with a stand-in driver); a process cannot be both. With ``--cuda`` a third, ``cuda``, is
plain Triton that no stand-in touches; it never opens the GPU itself, since a forked child could not.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import select
import signal
import socket
import sys
import traceback
from pathlib import Path

KINDS = ("interpret", "compile", "cuda")


def main(argv: list[str] | None = None) -> int:
    """Serve until standard input, which the client that started us holds, is closed."""
    parser = argparse.ArgumentParser(prog="harness.runner.forkserver")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args(argv)
    kinds = KINDS if args.cuda else KINDS[:2]
    listeners = {kind: _listen(args.folder / kind) for kind in kinds}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ.pop("TRITON_INTERPRET", None)
    import torch

    torch.set_num_threads(1)  # a pool of threads would not survive the fork
    with contextlib.suppress(RuntimeError):
        torch.set_num_interop_threads(1)
    for kind in kinds[1:]:
        if os.fork() == 0:
            return _serve(kind, listeners)
    return _serve(kinds[0], listeners)


def _listen(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(str(path))
    sock.listen(16)
    return sock


def _serve(kind: str, listeners: dict[str, socket.socket]) -> int:
    listener = listeners[kind]
    for other, sock in listeners.items():
        if other != kind:
            sock.close()
    if kind == "interpret":
        os.environ["TRITON_INTERPRET"] = "1"
    trouble = ""
    try:
        from harness.runner import keeper

        keeper.preload(kind)
    except BaseException as error:  # said to every client, who can say it to a person
        trouble = f"{error!r}\n{traceback.format_exc()[-2000:]}"
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:  # end of file: the client is gone
            return 0
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            _keep(kind, connection, trouble)
        connection.close()


def _keep(kind: str, connection: socket.socket, trouble: str) -> None:
    """Never returns."""
    from harness.runner import wire

    status = 0
    try:
        if trouble:
            while wire.receive(connection) is not None:
                wire.send(connection, {"fault": f"the {kind} server could not start: {trouble}"})
        else:
            from harness.runner import cage, keeper

            cage.adopt_orphans()
            keeper.serve(kind, connection)
    except (BrokenPipeError, ConnectionResetError):
        pass
    except BaseException:
        traceback.print_exc()
        status = 70
    finally:
        os._exit(status)


if __name__ == "__main__":
    os._exit(main())  # torch takes a fifth of a second to be taken apart, for nobody
