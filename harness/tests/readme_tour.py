"""The tour in README.md is what the commands print: this runs them in a copy of the checkout.

``python -m harness.tests.readme_tour`` writes the blocks between ``<!-- tour:NAME -->`` and ``<!-- /tour -->`` anew;
test_readme_tour compares them, seeds and times aside.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.course import ROOT

_KATA = "01_blocks"
# name -> what stands in kernel.py, and what is typed
STEPS = {
    "todo": (None, "pytest exercises/01_blocks -q"),
    "out-of-bounds": (f"solutions/{_KATA}/mutants/no_mask.py", "pytest exercises/01_blocks -q -x"),
    "pass": (f"solutions/{_KATA}/kernel.py", "pytest exercises/01_blocks -q"),
    "grade": (f"solutions/{_KATA}/kernel.py", "nox -s grade"),
}
_BLOCK = re.compile(r"<!-- tour:(?P<name>[a-z-]+) -->\n(?P<text>.*?)<!-- /tour -->", re.DOTALL)


def shown() -> dict[str, str]:
    """Return the blocks as README.md has them."""
    return {m["name"]: m["text"] for m in _BLOCK.finditer((ROOT / "README.md").read_text(encoding="utf-8"))}


def printed() -> Iterator[tuple[str, str]]:
    """Run the commands and yield each block as it would be written."""
    with tempfile.TemporaryDirectory(prefix="kata-tour-") as folder:
        copy = Path(folder) / "kernel-kata"
        names = subprocess.run(
            ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
        for name, (source, command) in STEPS.items():
            if source is not None:
                shutil.copyfile(copy / source, copy / f"exercises/{_KATA}/kernel.py")
            yield name, f"```console\n$ {command}\n{_output(command, copy)}\n```\n"


def _output(command: str, folder: Path) -> str:
    # on a CI machine pytest cuts no line, at home it does
    ci = ("CI", "BUILD_NUMBER")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COLUMNS", "NOX")) and k not in ci}
    env |= {"PYTHONPATH": str(folder), "COLUMNS": "110", "NO_COLOR": "1"}
    words = command.split()
    module = {"pytest": ["-m", "pytest", "-p", "no:cacheprovider"], "nox": ["-m", "harness.loop.grade"]}[words[0]]
    rest = words[1:] if words[0] == "pytest" else []
    done = subprocess.run(
        [sys.executable, *module, *rest], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def settled(block: str) -> str:
    """Return a block without what differs from run to run: seeds, times (modelled ones too), the length of rules and gaps, dates."""
    block = re.sub(r"(--kata-seed|seed) \d+", r"\1 N", block)
    block = re.sub(r"in \d+\.\d+s( \([\d:]+\))?", "in Ns", block)
    block = re.sub(r"\d{4}-\d\d-\d\d", "DATE", block)
    block = re.sub(r"(?:^ +[A-Za-z0-9 ]+ #+ +[\d,.]+ us\n)+", " BARS\n", block, flags=re.MULTILINE)
    block = re.sub(r"\b[\d,.]+ us\b", "N us", block)  # another Triton compiles to other times
    block = re.sub(r" +", " ", block)  # a longer name makes the columns of a table wider
    return re.sub(r"([=_-])\1{3,}", r"\1\1\1", block)


def without_new_katas(block: str, shown: str) -> str:
    """Return a printed table without the rows of katas that the README's does not have: adding one changes no file."""
    known = set(re.findall(r"^\d\d_\w+", shown, re.MULTILINE))
    rows = block.splitlines(keepends=True)
    return "".join(r for r in rows if not (m := re.match(r"\d\d_\w+", r)) or m[0] in known)


def main() -> int:
    """Write the blocks of README.md anew."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    for name, block in printed():
        text = re.sub(
            rf"<!-- tour:{name} -->\n.*?<!-- /tour -->",
            lambda _, n=name, b=block: f"<!-- tour:{n} -->\n{b}<!-- /tour -->",
            text,
            flags=re.DOTALL,
        )
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
