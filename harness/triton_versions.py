"""Triton versions: the ones that are tested, and a run of our own tests under each (``nox -s triton-versions``).

Another Triton is installed on its own (``--target``, no dependencies) into a cache outside the checkout and put first
on ``PYTHONPATH``: the environment that this is started from stays as it is, and there is no second copy of torch.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTED = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Row:
    """What came out for one version: a word for each step, and why where a word alone does not say it."""

    version: str
    installed: str
    doctor: str = "-"
    tests: str = "-"
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether every step went well."""
        return (self.installed, self.doctor, self.tests) == ("yes", "ok", "pass")


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that keeps installed Tritons between runs: below the user's cache, never in a checkout."""
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kernel-kata" / f"triton-{sys.implementation.cache_tag}-{platform.machine()}"


def install(version: str, cache: Path) -> tuple[Path, str]:
    """Install one Triton into ``cache`` unless it is there.

    Returns:
        Its folder, and why it could not be installed (an empty string when it could).
    """
    folder = cache / version
    if (folder / f"triton-{version}.dist-info").is_dir():
        return folder, ""
    cache.mkdir(parents=True, exist_ok=True)
    # installed beside its place and renamed: an interrupted run leaves no half of a Triton under the version's name
    with tempfile.TemporaryDirectory(dir=cache) as half:
        target = Path(half) / version
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
        run = subprocess.run([*command, f"triton=={version}"], capture_output=True, text=True)
        if run.returncode:
            lines = [line for line in run.stderr.splitlines() if line.startswith("ERROR")] or run.stderr.splitlines()
            return folder, (lines[-1] if lines else f"pip ended with {run.returncode}").removeprefix("ERROR: ")
        target.rename(folder)
    return folder, ""


def judge(version: str, cache: Path, tests: Sequence[str]) -> Row:
    """Run the doctor and the tests with one Triton first on the path; their output goes to the terminal."""
    folder, why = install(version, cache)
    if why:
        return Row(version, "no", why=why)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "PYTHONPATH": path}
    words = []
    for command in (["-m", "harness.doctor"], ["-m", "pytest", *tests]):
        words.append(subprocess.run([sys.executable, *command], cwd=ROOT, env=environ).returncode == 0)
    return Row(version, "yes", "ok" if words[0] else "broken", "pass" if words[1] else "fail")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as plain text, one a line."""
    lines = [f"{'triton':<10}{'installed':<11}{'doctor':<9}{'tests':<7}".rstrip()]
    for row in rows:
        lines.append(f"{row.version:<10}{row.installed:<11}{row.doctor:<9}{row.tests:<7}{row.why}".rstrip())
    return "\n".join(lines)


def main(args: Sequence[str]) -> int:
    """Judge every tested version and print one table; ``args`` go to pytest. Returns 1 unless all of them are well."""
    tests = list(args) or ["harness/tests", "-q", "-n", "2", "-p", "no:cacheprovider"]
    rows = []
    for version in TESTED:
        print(f"\n== Triton {version}", flush=True)
        rows.append(judge(version, cache_folder(), tests))
    print(f"\n{table(rows)}")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
