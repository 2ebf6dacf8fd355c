"""The keeper's part of a host-side kata: it is the world that the learner's plain Python drives, and it judges.

The kata's ``reference.py`` brings ``arguments(ask)``, which the child uses to make the arguments of one call, and
``World(case)`` with ``calls`` (how often the entry is called), ``answer(call, message)`` (one question of the learner's
process, plain JSON in and out) and ``judge(results)`` (``word``, ``reason`` and ``speed``, from what the calls
returned). The world never leaves this process: what it knows cannot be read, only measured.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessFault, KataError
from harness.runner import judge, wire
from harness.runner.cage import Outcome

if TYPE_CHECKING:
    from harness.runner.keeper import Job

LONGEST = 1 << 20  # bytes of one question

_room: Room | None = None


class Room:
    """The server from which children are forked, and the connection to it."""

    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair()
        command = [sys.executable, "-m", "harness.runner.host_server", str(theirs.fileno())]
        env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
        self.process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=env, stdin=subprocess.DEVNULL)
        theirs.close()

    def run(self, request: dict[str, Any], world: Any) -> Outcome:
        """Have a child call the entry, answer its questions meanwhile, and return how it ended.

        Raises:
            KataError: the world refused a question; the message says why.
        """
        ours, childs = socket.socketpair()
        try:
            socket.send_fds(self.sock, [b"!"], [childs.fileno()])
            wire.send(self.sock, request)
        except OSError:
            raise HarnessFault("the process that runs host-side katas is gone. Run `nox -s doctor`.") from None
        finally:
            childs.close()
        with ours:
            refused = self._answer(ours, world)
        answer = wire.receive(self.sock)
        if answer is None:
            raise HarnessFault("the process that runs host-side katas died. Run `nox -s doctor`.")
        if refused is not None:
            raise refused
        return Outcome(**answer | {"report": base64.b64decode(answer["report"])})

    def _answer(self, ours: socket.socket, world: Any) -> KataError | None:
        """Answer until the child hangs up or is over; return why a question was refused."""
        rest = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(ours, selectors.EVENT_READ)
            selector.register(self.sock, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if ours not in ready:
                    return None  # the child is over: its end is what the server has to say
                try:
                    part = ours.recv(1 << 16)
                    rest += part
                    *lines, rest = rest.split(b"\n")
                    for line in lines:
                        ours.sendall(_reply(world, line) + b"\n")
                except KataError as error:
                    return error
                except OSError:
                    return None
                if not part or len(rest) > LONGEST:
                    return None


def _reply(world: Any, line: bytes) -> bytes:
    try:
        message = json.loads(line)
        return json.dumps(world.answer(int(message["call"]), message["ask"])).encode()
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise KataError(f"your code sent a message of its own to the harness ({error!r}).") from error


def interpret(job: Job) -> dict[str, Any]:
    """Run one case of a host-side kata and return the facts about it."""
    global _room
    if _room is None or _room.process.poll() is not None:
        _room = Room()
    world = job.reference.World(job.case)
    request = {
        "folder": str(job.folder), "file": str(job.file), "id": job.spec.id, "entry": job.spec.entry,
        "names": job.spec.names, "calls": world.calls, "seconds": job.seconds,
    }  # fmt: skip
    try:
        outcome = _room.run(request, world)
    except HarnessFault:
        raise
    except KataError as error:
        return judge.fact("error", str(error))
    return facts(job, outcome, world.calls, lambda seen: world.judge(seen["results"])) | {"printed": outcome.printed}


def gpu_facts(job: Job, outcome: Outcome) -> dict[str, Any]:
    """Judge one bench case of a host-side kata that drove a real GPU."""
    judged = job.reference.judge_measured
    return facts(job, outcome, 0, lambda seen: judged(seen["results"], seen["truths"], seen["gpu"]))


def facts(job: Job, outcome: Outcome, calls: int, judged: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Judge what a child reported: the checks that every host-side kata shares, then the kata's own.

    Args:
        calls: how many results there must be; 0: at least one.
        judged: the kata's own judgement of the report.
    """
    ended = judge._ended(job, outcome)
    if ended is not None:
        return ended
    try:
        seen, _ = wire.unpack(outcome.report)
        tampering, looked, results = seen["tampering"], seen["looked"], seen["results"]
    except (ValueError, KeyError) as error:
        return judge.fact("error", f"the report of your code's process cannot be read ({error}).")
    if tampering:
        return judge.fact("cheat", f"your code tried to change {tampering[0]}, which belongs to the course.")
    if looked:
        return judge.fact("cheat", f"your code looked for the answer where it is not measured: {looked[0]}.")
    if seen.get("raised"):
        # whatever raised: no compiler can tell more about plain Python
        return judge._raised(seen["raised"] | {"ours": False})
    if not results or calls and len(results) != calls:
        return judge.fact("error", f"{len(results)} results for {calls} calls of the entry.")
    return judge.fact("pass") | judged(seen)
