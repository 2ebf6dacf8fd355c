"""Doctor: is everything here that grading needs? One line for each check, exit 1 when something needed is broken.

Whatever can crash or take long (torch, Triton, the interpreter's private seams) is asked in a child process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.triton_versions import ROOT, TESTED

# modules that grading imports beside torch and Triton, and how to install what brings each
MODULES = {
    "numpy": "numpy", "pytest": "pytest", "xdist": "pytest-xdist", "hypothesis": "hypothesis",
    "nox": "nox", "rich": "rich", "ml_dtypes": "ml_dtypes", "watchfiles": "watchfiles",
}  # fmt: skip
INSTALL = "pip install -c constraints.txt -e ."

_TORCH = """
import json, torch
gpu = torch.cuda.is_available()
name = torch.cuda.get_device_name(0) if gpu else ""
print(json.dumps({"version": torch.__version__, "gpu": name, "cuda": torch.version.cuda or ""}))
"""
_TRITON = "import json, triton; print(json.dumps({'version': triton.__version__}))"
_SEAMS = """
import json; from harness.interpreted.interpreter import missing_seams
print(json.dumps({"missing": list(missing_seams())}))
"""


@dataclass(frozen=True)
class Finding:
    """What one check saw. ``state`` is ok, note (works, or is not needed; worth knowing) or broken."""

    state: str
    check: str
    text: str

    def __str__(self) -> str:
        return f"{self.state:<7} {self.check:<12} {self.text}"


def ask(code: str, **environ: str) -> dict[str, Any]:
    """Run ``code`` in a child with this Python; return the JSON that it printed last.

    Returns:
        The child's dict, or ``{"error": ...}`` with the last line of what went wrong.
    """
    # -P: a learner's folder may hold a file named torch.py; the checkout itself comes by PYTHONPATH
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    env = {**os.environ, "PYTHONPATH": path, **environ}
    try:
        run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, env=env, timeout=120)
    except subprocess.TimeoutExpired:
        return {"error": "no answer within two minutes"}
    if run.returncode == 0 and run.stdout.strip():
        return json.loads(run.stdout.strip().splitlines()[-1])
    lines = run.stderr.strip().splitlines()
    return {"error": lines[-1] if lines else f"the process ended with {run.returncode}"}


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """3.11 to 3.14 are supported."""
    text = ".".join(map(str, version))
    if version < (3, 11):
        return Finding("broken", "Python", f"{text} is too old: 3.11 or newer is needed.")
    if version >= (3, 15):
        return Finding("note", "Python", f"{text} is newer than the ones this project was made for (3.11 to 3.14).")
    return Finding("ok", "Python", text)


def check_system(system: str, machine: str, release: str) -> Finding:
    """Linux on x86-64 is tested; Triton has wheels for Linux alone.

    Args:
        system: as ``platform.system()`` says it.
        machine: as ``platform.machine()`` says it.
        release: as ``platform.release()`` says it; WSL has ``microsoft`` in it.
    """
    where = f"{system} {machine}"
    if system == "Darwin":
        text = "Triton has no wheel for macOS. Use a Linux machine: a container, a virtual machine, Colab or a server."
        return Finding("broken", "system", f"{where}: {text}")
    if system != "Linux":
        return Finding("broken", "system", f"{where}: Triton has no wheel for it. On Windows, work inside WSL.")
    if "microsoft" in release.lower():
        return Finding("note", "system", f"{where} in WSL: expected to work, not tested.")
    if machine not in ("x86_64", "AMD64"):
        return Finding("note", "system", f"{where}: expected to work, not tested.")
    return Finding("ok", "system", where)


def check_modules(found: Callable[[str], object] = importlib.util.find_spec) -> Finding:
    """Everything that pyproject.toml asks for beside torch and Triton."""
    missing = [package for module, package in MODULES.items() if found(module) is None]
    if missing:
        return Finding("broken", "packages", f"missing: {', '.join(missing)}. Run: {INSTALL}")
    return Finding("ok", "packages", ", ".join(MODULES.values()))


def check_torch(torch: dict[str, Any]) -> Finding:
    """``torch`` is what the child answered."""
    if "error" in torch:
        return Finding("broken", "torch", f"cannot be imported ({torch['error']}). Run: {INSTALL}")
    return Finding("ok", "torch", torch["version"])


def check_gpu(torch: dict[str, Any], compiler: str | None = None) -> Finding:
    """A GPU is never needed; with one, Triton builds its launcher with a C compiler."""
    if not torch.get("gpu"):
        why = "torch is a CPU build" if not torch.get("cuda") else "torch sees none"
        text = f"none ({why}): kernels are interpreted and compiled for a named GPU, not run on one."
        return Finding("note", "GPU", text)
    if compiler is None:
        text = "but no C compiler, which Triton needs to launch on it: install gcc or clang, or set CC."
        return Finding("broken", "GPU", f"{torch['gpu']}, {text}")
    return Finding("ok", "GPU", torch["gpu"])


def check_triton(triton: dict[str, Any]) -> Finding:
    """``triton`` is what the child answered."""
    if "error" in triton:
        return Finding("broken", "Triton", f"cannot be imported ({triton['error']}). Run: {INSTALL}")
    version = triton["version"]
    if version not in TESTED:
        return Finding("note", "Triton", f"{version} is not one of the tested ones: {', '.join(TESTED)}.")
    return Finding("ok", "Triton", f"{version}, tested")


def check_seams(seams: dict[str, Any], version: str) -> Finding:
    """The private names of Triton that the interpreter builds on are where they were."""
    if not seams.get("error") and not seams["missing"]:
        return Finding("ok", "interpreter", "every private name of Triton that it needs is there")
    error = seams.get("error", "")
    if error and not error.startswith(("ImportError", "ModuleNotFoundError", "AttributeError")):
        return Finding("broken", "interpreter", f"cannot be loaded with Triton {version} ({error}).")
    what = error or f"it has no {', '.join(seams['missing'])}"
    text = f"Triton {version} cannot be used, its private names moved ({what}). Install one of {', '.join(TESTED)}."
    return Finding("broken", "interpreter", text)


def check_records(folder: Path) -> Finding:
    """Attempts are kept in ``records/``; grading works without."""
    place = folder if folder.is_dir() else folder.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            return Finding("ok", "records", f"{folder.name}/ can be written")
    except OSError as error:
        text = f"{folder.name}/ cannot be written ({error.strerror}): grading works, attempts are not kept."
        return Finding("note", "records", text)


def check_fork() -> Finding:
    """Learner code runs in forked children."""
    if not hasattr(os, "fork"):
        return Finding("broken", "fork", "this system has no fork, and each case runs in a forked child.")
    try:
        child = os.fork()
    except OSError as error:
        return Finding("broken", "fork", f"a process cannot be forked ({error.strerror}): is a limit on processes set?")
    if child == 0:
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        return Finding("broken", "fork", f"a forked child ended with {status} instead of 0.")
    return Finding("ok", "fork", "each case can run in a child of its own")


def examine() -> Iterator[Finding]:
    """Yield the findings in the order in which one would mend them."""
    yield check_python()
    yield check_system(platform.system(), platform.machine(), platform.release())
    yield check_modules()
    torch = ask(_TORCH)
    yield check_torch(torch)
    triton = ask(_TRITON)
    yield check_triton(triton)
    if "error" not in torch and "error" not in triton:
        yield check_seams(ask(_SEAMS, TRITON_INTERPRET="1"), triton["version"])
    if "error" not in torch:
        yield check_gpu(torch, os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang"))
    yield check_fork()
    yield check_records(ROOT / "records")


def main() -> int:
    """Print the findings; return 1 when one of them is broken."""
    broken = 0
    for finding in examine():
        print(finding, flush=True)
        broken += finding.state == "broken"
    print(f"\n{broken} broken: mend the first one and run the doctor again." if broken else "\nReady.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
