"""Toy courses: whole checkouts with one or two tiny katas, written into a test's own folder.

The kata ``double(x)`` returns 2 * x. A toy course has no harness of its own: pytest runs there with the plugin of this
checkout, exactly as it would run here.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.course import ROOT, Course, Kata, load_course, source_digest
from harness.desk import Choices, Desk
from harness.device import find_device
from harness.runner.client import SERVER, Client, Server

TOML = """
title = "Double: a toy"
entry = "double"
time_limit = 20
cases = [
  { id = "M3-N50", dims = { M = 3, N = 50 }, dtype = "float32" },
  { id = "M5-N70-transposed", dims = { M = 5, N = 70 }, dtype = "float16", layout = { x = "transposed" } },
  { id = "traffic", dims = { M = 33, N = 512 }, dtype = "float32", role = "traffic" },
  { id = "bench", dims = { M = 4096, N = 4096 }, dtype = "float32", role = "bench", model = "Llama 3.1 8B" },
]
[args]
x = "T[M, N]"
[returns]
out = "T[M, N]"
[dtypes]
float32 = 75
float16 = 75
bfloat16 = 80
int32 = 75
[tolerance]
ulp = 0.5
why = "one rounding"
[gate]
gpu = 0.85
cpu = 0.7
why = "bytes alone"
"""

MANY_CASES = TOML.replace(
    '  { id = "bench", dims = { M = 4096, N = 4096 }, dtype = "float32", role = "bench", model = "Llama 3.1 8B" },\n',
    """  { id = "M6-N64", dims = { M = 6, N = 64 }, dtype = "float32" },
  { id = "half", dims = { M = 3, N = 70 }, dtype = "float16" },
  { id = "bfloat16", dims = { M = 3, N = 70 }, dtype = "bfloat16" },
  { id = "integers", dims = { M = 3, N = 70 }, dtype = "int32" },
  { id = "sliced", dims = { M = 3, N = 50 }, dtype = "float32", layout = { x = "sliced" } },
  { id = "strided", dims = { M = 3, N = 50 }, dtype = "float32", layout = { x = "strided" } },
  { id = "expanded", dims = { M = 3, N = 50 }, dtype = "float32", layout = { x = "expanded" } },
  { id = "offset", dims = { M = 3, N = 50 }, dtype = "float32", layout = { x = "offset" } },
  { id = "empty", dims = { M = 0, N = 50 }, dtype = "float32" },
""",
)

REFERENCE = """
import math
import torch
from harness.spec import Cost


def reference(x):
    return 2 * (x.double() if x.is_floating_point() else x)


def cost(dims, dtype):
    size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
    return Cost(*2 * [math.prod(dims.values()) * size], math.prod(dims.values()))
"""

SUITE = """
from hypothesis import given
from harness.strategies import cases, dim


def test_declared_cases(run, declared):
    run(declared)


@given(case=cases(dims={"M": dim(1, 4), "N": dim(1, 90)}, dtypes=("float32", "float16")))
def test_any_size(run, case):
    run(case)


def test_compiles_for_the_gpu(compiles):
    compiles()


def test_speed(speed):
    speed()
"""

LEAN = "def test_declared_cases(run, declared):\n    run(declared)\n"  # a suite that compiles nothing

HEAD = """
import torch
import triton
import triton.language as tl
"""

KERNEL = """
@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    {body}
"""

ENTRY = """
def double(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""

BODY = """
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    tl.store(out_ptr + offs, x * 2, mask=mask)
"""

STUB = HEAD + KERNEL.format(body="# TODO(1/1): write it") + ENTRY


def kernel(body: str = BODY, entry: str = ENTRY) -> str:
    """Return a submission for ``double``.

    Args:
        body: the end of a kernel that has ``x_ptr``, ``out_ptr``, ``n``, ``BLOCK``, ``offs`` and ``mask``.
        entry: the rest of the file.
    """
    lines = [line for line in body.splitlines() if line.strip()]
    depth = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return HEAD + KERNEL.format(body="\n    ".join(line[depth:] for line in lines)) + entry


SOLUTION = kernel()

GRID = "(triton.cdiv(n, 64),)"
USUAL = f"double_kernel[{GRID}](x, out, n, BLOCK=64)"
LOAD = "x = tl.load(x_ptr + offs, mask=mask, other=0)\n"
STORE = "tl.store(out_ptr + offs, {}, mask=mask)\n"


def computes(value: str, before: str = "", above: str = "") -> str:
    """Return a submission whose kernel stores ``value`` after the lines ``before``; ``above`` stands over the kernel."""
    source = kernel(LOAD + before + "\n" + STORE.format(value))
    return source.replace("@triton.jit", above + "\n@triton.jit", 1)


def launched(line: str, body: str = BODY, params: str = "x_ptr, out_ptr, n, BLOCK: tl.constexpr") -> str:
    """Return a submission whose entry launches by ``line``, with x, out and n at hand."""
    entry = f"""
def double(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    {line}
    return out
"""
    return kernel(body, entry).replace("x_ptr, out_ptr, n, BLOCK: tl.constexpr", params, 1)


def write_course(root: Path, katas: Mapping[str, Mapping[str, str]] | None = None) -> Course:
    """Write a checkout with these katas (default: one, ``01_double``, its stub untouched) and return it.

    Args:
        root: a folder that does not exist yet, or is empty.
        katas: slug -> file name -> text, for the files that differ from the defaults.
    """
    root.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", root)
    stubs = {}
    for slug, files in (katas or {"01_double": {}}).items():
        folder, solutions = root / "exercises" / slug, root / "solutions" / slug
        folder.mkdir(parents=True)
        solutions.mkdir(parents=True)
        plain = {
            "exercise.toml": TOML, "reference.py": REFERENCE, "test_kernel.py": SUITE, "kernel.py": STUB,
            "README.md": f"# {slug}\n",
        }  # fmt: skip
        for name, text in (plain | dict(files)).items():
            (folder / name).write_text(text, encoding="utf-8")
        (solutions / "kernel.py").write_text(SOLUTION, encoding="utf-8")
        stubs[slug[3:]] = source_digest(STUB)
    (root / "harness").mkdir()
    (root / "harness" / "stubs.json").write_text(json.dumps(stubs), encoding="utf-8")
    return load_course(root)


def write_kata(root: Path, **files: str) -> Kata:
    """Write a course with the one kata ``01_double`` and return the kata; ``files`` name texts without their ending."""
    endings = {"exercise": ".toml"}
    return write_course(
        root, {"01_double": {name + endings.get(name, ".py"): text for name, text in files.items()}}
    ).katas[0]


class Compiler:
    """A connection to the compiler that asks for nothing until somebody waits for an answer: compiling is slow."""

    def __init__(self, server: Server) -> None:
        self.server, self.client = server, None
        self.asked: list[dict[str, Any]] = []

    def send(self, request: dict[str, Any]) -> None:
        """Keep a request for later."""
        self.asked.append(request)

    def receive(self) -> dict[str, Any]:
        """Send what was asked for, and wait for the first answer."""
        self.client = self.client or Client(self.server.folder, "compile")
        while self.asked:
            self.client.send(self.asked.pop(0))
        return self.client.receive()

    def close(self) -> None:
        """Hang up."""
        if self.client is not None:
            self.client.close()


class Judging:
    """Judges submissions for one kata on a running server, case by case, as a suite would."""

    seed = 3  # of all values; a multiple of keeper.ORDERS, so that every case is called in two orders

    def __init__(self, server: Server, interpret: Client, folder: Path, kata: Kata) -> None:
        self.server, self.interpret, self.folder, self.kata = server, interpret, folder, kata

    def __call__(
        self, source: str | bytes | Path, *ids: str, kata: Kata | None = None, compiled: bool = False, gpu: str = "H200"
    ) -> dict[str, Any]:
        """Return the facts of the first case that is not ``pass``, else of the last one.

        Args:
            source: of a submission, or a file.
            ids: of declared cases; by default the first one.
            kata: by default the toy kata.
            compiled: what passes in the interpreter is compiled ahead of time, too.
        """
        kata = kata or self.kata
        file = source if isinstance(source, Path) else self.folder / "submission.py"
        if not isinstance(source, Path):
            file.write_bytes(source.encode() if isinstance(source, str) else source)
        lines = {"interpret": self.interpret, "compile": Compiler(self.server)}
        desk = Desk(kata, file, Choices(seed=self.seed, device="cpu", gpu=find_device(gpu)), lines.__getitem__)
        try:
            return self._first(desk, ids or (kata.spec.cases[0].id,), compiled)
        finally:
            lines["compile"].close()

    def _first(self, desk: Desk, ids: tuple[str, ...], compiled: bool) -> dict[str, Any]:
        for name in ids:
            case = next(c for c in desk.kata.spec.cases if c.id == name).with_seed(self.seed)
            facts = desk.judge(case)
            if facts["word"] != "pass":
                return facts
            if not compiled:
                continue
            late = desk.connect_compile(case)
            if late["word"] != "pass" or late.get("stumbled"):
                return late if late["word"] != "pass" else late | {"word": "stumbled", "reason": late["stumbled"]}
            if reason := desk._differs(case.key(), late):
                return facts | {"word": "cheat", "reason": reason}
        return facts


def environment(server: Server | None = None) -> dict[str, str]:
    """Return the environment of a child that uses this checkout's harness, and ``server`` instead of one of its own."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COLUMNS", SERVER))}
    return env | {"PYTHONPATH": path} | ({SERVER: str(server.folder)} if server else {})


def python(
    *args: str, cwd: Path, server: Server | None = None, bound: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``python args`` with this checkout's harness, as a person would in a terminal.

    Args:
        server: a running fork server; without one, what is run starts its own.
        bound: take away root's power to write where the modes of files forbid it.
    """
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environment(server), capture_output=True, text=True, check=False,
        preexec_fn=_obey_modes if bound else None,
    )  # fmt: skip


def grade(where: Path, *args: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run pytest in ``where`` with ``args``; ``how`` is for ``python``."""
    return python("-m", "pytest", *args, cwd=where, **how)


def _obey_modes() -> None:
    """Drop CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER: what ``exec`` starts then obeys modes, root or not."""
    for capability in (1, 2, 3):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
