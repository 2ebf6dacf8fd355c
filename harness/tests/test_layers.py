"""Imports point one way: from what is printed down to what a file says. A new module finds its place here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from harness.tests.toys import python

HARNESS = Path(__file__).resolve().parents[1]

# from the bottom; modules of one layer may import each other as long as there is no circle
LAYERS = (
    ("errors", "physics", "edits", "sampling", "tampering"),
    ("mutate", "mutate_kernel", "mutate_plain", "nvml", "simgpu"),
    ("survivors",),
    ("spec", "device", "models", "rounding"),
    ("bound", "course", "constants"),
    (
        "banks",
        "control",
        "cubin",
        "decider",
        "flow",
        "kernelfacts",
        "layout",
        "made",
        "memory",
        "ptxlines",
        "sass",
        "sassarith",
        "sassmeaning",
        "sassops",
        "sassvalue",
        "schedule",
        "sites",
        "terms",
        "traffic",
        "trips",
        "ttgir",
        "walk",
        "warpsim",
    ),
    ("wire",),
    ("cage", "client"),
    ("explain", "launches", "rewrite", "inputs", "compare", "loader", "constructs", "zoo"),
    ("host_child", "host_gpu"),
    ("scene", "hints_values", "hints_moved", "hints_softmax", "diagnose"),
    ("sanitizer", "hostwatch", "standin"),
    ("elementary", "casts", "matrix", "reduction", "libdevice", "numerics"),
    ("interpreter", "aot", "timing", "skim", "witness"),
    ("cuda_device", "gpu_probes", "trace"),
    ("warm", "child", "gpu_child"),
    ("gpu_bench", "rehearsal"),
    ("findings", "model", "picture", "scores", "zoodata"),
    ("judge",),
    ("keeper", "gpu_keeper", "host_keeper"),
    ("forkserver", "host_server"),
    ("gate", "verdict", "strategies", "times", "speed"),
    ("desk",),
    ("record", "store", "clone", "git"),
    ("experiment", "streaks"),
    ("chart",),
    ("steps", "saves", "report"),
    ("session",),
    ("plugin",),
)
# commands: each may use everything above, and each other
CHORES = {
    "__init__", "bench", "calibration", "compare_solutions", "course_check", "doctor", "filtered", "grade", "hint",
    "merge", "modelcheck", "mutant_cache", "mutant_report", "mutant_suite", "mutants", "new", "page", "page_frame",
    "practice", "rerun", "reset", "triton_versions", "update", "watch",
}  # fmt: skip
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def modules() -> dict[str, Path]:
    return {path.stem: path for path in sorted(HARNESS.glob("*.py"))}


def imports(path: Path, *, at_run_time: bool = True) -> set[str]:
    """Return the top names (and for ours ``harness.name``) that a file imports; not what only type checkers see."""
    found = set()
    nodes = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if not at_run_time and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            ours = node.module == "harness"
            found |= {f"harness.{a.name}" for a in node.names} if ours else {node.module}
        nodes.extend(ast.iter_child_nodes(node))
    return {".".join(name.split(".")[:2]) if name.startswith("harness.") else name.split(".")[0] for name in found}


def ours(path: Path, **how) -> set[str]:
    return {name.removeprefix("harness.") for name in imports(path, **how) if name.startswith("harness.")} - {"tests"}


def test_every_module_has_its_place():
    placed = [name for layer in LAYERS for name in layer]

    assert len(placed) == len(set(placed))
    assert not CHORES & set(placed)
    assert set(modules()) == set(placed) | CHORES


@pytest.mark.parametrize("name", modules())
def test_imports_point_down(name):
    if name in CHORES:
        return
    rank = RANK[name]
    up = {other for other in ours(modules()[name]) if RANK.get(other, len(LAYERS)) > rank}

    assert not up, f"{name} imports {', '.join(sorted(up))}, which stands above it"


def test_there_is_no_circle_at_import():
    edges = {name: ours(path, at_run_time=False) & set(modules()) for name, path in modules().items()}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path, name])
        if name not in done:
            for other in sorted(edges[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in edges:
        visit(name, ())


def reach(start: str) -> set[str]:
    """Return the modules that importing ``start`` imports, directly or through others."""
    seen, left = set(), {start}
    while left:
        name = left.pop()
        seen.add(name)
        left |= (ours(modules()[name], at_run_time=False) & set(modules())) - seen
    return seen


@pytest.mark.parametrize("start", ["plugin", "strategies", "grade", "course_check", "watch", "doctor", "client"])
def test_what_pytest_and_the_chores_import_holds_neither_torch_nor_triton(start):
    heavy = {name: imports(modules()[name], at_run_time=False) & {"torch", "triton"} for name in reach(start)}

    assert not {name: found for name, found in heavy.items() if found}


def test_they_stay_unloaded_in_a_process_that_imports_the_plugin(tmp_path):
    code = "import sys, harness.plugin, harness.strategies, harness.grade; print(sorted({'torch', 'triton'} & set(sys.modules)))"
    result = python("-c", code, cwd=tmp_path)

    assert result.stdout == "[]\n", result.stderr


def test_the_harness_reaches_katas_by_path_only():
    for path in HARNESS.glob("*.py"):
        assert not {"exercises", "solutions"} & imports(path), path.name


def test_only_the_interpreter_s_side_names_triton_s_interpreter():
    private = {path.stem for path in HARNESS.glob("*.py") if "runtime.interpreter" in path.read_text(encoding="utf-8")}

    assert private <= {"interpreter", "casts", "numerics", "matrix", "reduction", "libdevice", "doctor", "skim"}


def test_an_upward_import_would_be_seen(tmp_path):
    """The reader of imports finds them wherever they stand, but for those of type checkers."""
    (tmp_path / "m.py").write_text(
        "from typing import TYPE_CHECKING\nimport os.path\nfrom harness import spec, desk\nfrom harness.course import ROOT\n"
        "if TYPE_CHECKING:\n    from harness.plugin import STATE\n\ndef f():\n    import torch\n    from harness.judge import fact\n",
        encoding="utf-8",
    )

    assert ours(tmp_path / "m.py") == {"spec", "desk", "course", "judge"}
    assert ours(tmp_path / "m.py", at_run_time=False) == {"spec", "desk", "course"}
    assert imports(tmp_path / "m.py") >= {"os", "torch", "typing"}
