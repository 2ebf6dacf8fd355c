"""The process from which children of host-side katas are forked: ``python -m harness.runner.host_server FD``. No torch.

It knows no case and no seed, so nothing that a learner's code finds in its own memory tells it the truth. Each request
brings a socket for the child's questions; the answer says how the child ended.
"""

from __future__ import annotations

import base64
import os
import socket
import sys

from harness.runner import cage, host_child, wire


def main(argv: list[str] | None = None) -> int:
    """Serve until the keeper, which holds the other end of the socket, hangs up."""
    (number,) = argv or sys.argv[1:]
    keeper = socket.socket(fileno=int(number))
    keeper.set_inheritable(False)
    while True:
        mark, files, _, _ = socket.recv_fds(keeper, 1, 1)
        if not mark:
            return 0
        request = wire.receive(keeper)
        if request is None:
            return 0
        (child,) = files
        outcome = cage.run(lambda: host_child.run_calls(request, child), request["seconds"], keep=(child,))  # noqa: B023 - run before the next turn
        os.close(child)
        answer = vars(outcome) | {"report": base64.b64encode(outcome.report).decode()}
        try:
            wire.send(keeper, answer)
        except OSError:
            return 0


if __name__ == "__main__":
    sys.exit(main())
