"""Serve: the built pages on this machine alone, built again at every save."""

from __future__ import annotations

import functools
import http.server
import threading
import webbrowser
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.errors import KataError


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each; a browser asks every time, so that a new build shows."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


def server(folder: Path, port: int = 0) -> http.server.ThreadingHTTPServer:
    """Return a server of ``folder`` on the loopback address; ``port`` 0 takes a free one. Raises KataError."""
    handler = functools.partial(Quiet, directory=str(folder))
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise KataError(f"port={port} cannot be used ({error.strerror}); name another one with --port.") from error


def serve(
    folder: Path, watched: Iterable[Path], rebuild: Callable[[], None], *, port: int = 8000, open_page: str = ""
) -> None:
    """Serve until Ctrl-C, rebuild when a file below ``watched`` changes. ``open_page``: what the browser shows first.

    Raises:
        KataError: the port cannot be used.
    """
    from watchfiles import watch

    with server(folder, port) as running:
        address = f"http://127.0.0.1:{running.server_address[1]}/{open_page}"
        print(f"{address}   Ctrl-C ends it.")
        threading.Thread(target=running.serve_forever, daemon=True).start()
        webbrowser.open(address)
        try:
            for _ in watch(*watched, raise_interrupt=True):
                rebuild()
        except KeyboardInterrupt:
            print()
        finally:
            running.shutdown()
