"""The child process of a host-side kata: the learner's file is plain Python, and what it drives stands elsewhere.

It was forked from a process that knows neither the case nor its seed. All that it has is a connection: a question goes
out as one line of JSON, the answer comes back as one. No torch here, unless the learner imports it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.course import ROOT
from harness.runner import wire
from harness.runner.loader import find_entry, load_source, raised
from harness.runner.tampering import forbid_tampering

_DIRECT = ("gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._getframe", "sys._current_frames")


def run_calls(request: dict[str, Any], connection: int) -> bytes:
    """Call the entry ``request["calls"]`` times and return the report: what it returned or raised.

    Args:
        request: ``folder`` of the kata, ``file`` to grade, its ``entry``, the ``names`` of its arguments, ``id``,
            the number of ``calls``.
        connection: file descriptor of a stream socket to the process that answers questions.
    """
    file = Path(request["file"])
    reference = load_reference(Path(request["folder"]))
    attempts = forbid_tampering(ROOT, file)
    looked = watch_for_looks(file)
    os.chdir(file.parent)
    for name in [n for n in sys.modules if n.split(".")[0] == "harness"]:
        del sys.modules[name]  # whoever imports them again is seen
    seen: dict[str, Any] = {"results": []}
    try:
        entry = find_entry(load_source(file, f"kata_{request['id']}"), request["entry"], request["names"])
        for call in range(request["calls"]):
            arguments = reference.arguments(asking(connection, call))
            seen["results"].append(plain(entry(*arguments)))
    except BaseException as error:
        seen["raised"] = raised(error, file).to_json()
    return wire.pack(seen | {"tampering": attempts, "looked": looked}, [])


def load_reference(folder: Path) -> ModuleType:
    """Return the kata's ``reference.py`` as a module of its own, under no name that could be imported."""
    spec = importlib.util.spec_from_file_location("reference", folder / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asking(connection: int, call: int) -> Callable[[dict[str, Any]], Any]:
    """Return the function that asks a question in the name of one call of the entry, and returns the answer.

    Raises (from that function): ConnectionError when nobody answers any more.
    """
    stream = os.fdopen(connection, "rb", closefd=False)

    def ask(message: dict[str, Any]) -> Any:
        wire.write_all(connection, json.dumps({"call": call, "ask": message}).encode() + b"\n")
        line = stream.readline()
        if not line:
            raise ConnectionError("nobody answers any more")
        return json.loads(line)

    return ask


def plain(value: Any, depth: int = 0) -> Any:
    """Return ``value`` as JSON has it: numbers, text, lists; of anything else what kind of thing it is."""
    if isinstance(value, list | tuple) and depth < 4:
        return [plain(v, depth + 1) for v in value[:1000]]
    if value is None or isinstance(value, bool):
        return {"kind": str(value)}
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        return value[:1000]
    return {"kind": f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")}


def watch_for_looks(file: Path) -> list[str]:
    """List, for the life of this process, where ``file`` looks for answers: other processes, frames, our modules."""
    looked: list[str] = []
    name, own, busy = str(file), str(file.parent) + "/", False

    def check(event: str, args: tuple[Any, ...]) -> None:
        nonlocal busy
        if busy or event not in (*_DIRECT, "open", "import"):
            return
        busy = True
        try:
            frame = sys._getframe(1)
            if event in _DIRECT:
                found = event if frame.f_code.co_filename == name else ""
            else:
                found = _ours(event, args, own) if _below(frame, name) else ""
            if found:
                looked.append(found)
        finally:
            busy = False

    sys.addaudithook(check)
    return looked


def _ours(event: str, args: tuple[Any, ...], own: str) -> str:
    """Return what of ours, or of another process, an ``open`` or ``import`` is after; empty for anything else."""
    target = os.fsdecode(args[0]) if isinstance(args[0], str | bytes) else ""
    if event == "import":
        return f"import {target}" if target.split(".")[0] in ("harness", "reference") else ""
    full = os.path.realpath(target)
    course = full.startswith((f"{ROOT}/harness/", f"{ROOT}/exercises/")) and not full.startswith(own)
    return target if target.startswith("/proc/") or course or os.path.basename(full) == "reference.py" else ""


def _below(frame: Any, name: str) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == name:
            return True
        frame = frame.f_back
    return False
