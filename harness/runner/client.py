"""The pytest process's side of the fork server: start it early, send it cases, get facts back. No torch here."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.course import ROOT
from harness.errors import HarnessFault
from harness.runner import wire

SERVER = "KATA_SERVER"  # the environment variable that names the folder of a fork server which is there already


class Server:
    """A running fork server, owned by the process that started it."""

    def __init__(self, cuda: bool = False) -> None:
        # sockets have short names (108 bytes with the path), so they live in the system's folder for such things
        self.folder = Path(tempfile.mkdtemp(prefix="kata-"))
        env = dict(os.environ)
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [env.get("PYTHONPATH")])])
        env.pop("TRITON_INTERPRET", None)
        env["PYTHONDONTWRITEBYTECODE"] = env.get("PYTHONDONTWRITEBYTECODE", "")
        env["PYTHONUNBUFFERED"] = "1"  # what code under test printed is kept in order, and to the last word if it dies
        self.log = open(self.folder / "log", "wb")  # noqa: SIM115 - lives as long as the server
        command = [sys.executable, "-m", "harness.runner.forkserver", str(self.folder), *(["--cuda"] if cuda else [])]
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log, cwd=self.folder
        )

    def close(self) -> None:
        """Stop the server and forget its folder."""
        if self.process.stdin:
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=2)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Client:
    """One connection to one kind of server: requests are answered in order.

    Raises (from every method): HarnessFault when the server is gone or says that it failed.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind, self.folder = kind, folder
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connect()
        self.waiting = 0

    def _connect(self) -> None:
        import time

        for _ in range(2000):  # the socket exists within milliseconds of the server's start
            try:
                self.sock.connect(str(self.folder / self.kind))
                return
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.005)
        raise HarnessFault(f"the {self.kind} server never answered.{self._log()} Run `nox -s doctor`.")

    def send(self, request: dict[str, Any]) -> None:
        """Send a request without waiting for its answer."""
        try:
            wire.send(self.sock, request)
        except OSError:
            raise HarnessFault(f"the {self.kind} server is gone.{self._log()} Run `nox -s doctor`.") from None
        self.waiting += 1

    def receive(self) -> dict[str, Any]:
        """Wait for the answer to the oldest request."""
        try:
            answer = wire.receive(self.sock)
        except OSError:
            answer = None
        self.waiting -= 1
        if answer is None:
            raise HarnessFault(f"the {self.kind} server died.{self._log()} Run `nox -s doctor`.")
        if "fault" in answer:
            raise HarnessFault(answer["fault"])
        return answer

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.send(request)
        return self.receive()

    def close(self) -> None:
        """Hang up; the keeper at the other end goes away."""
        self.sock.close()

    def _log(self) -> str:
        with contextlib.suppress(OSError):
            text = (self.folder / "log").read_text(errors="replace").strip()[-1500:]
            return f" It said: {text}" if text else ""
        return ""
