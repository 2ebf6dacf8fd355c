"""Imports point one way: from what is printed down to what a file says. A new module finds its place here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from harness.tests.toys import python

HARNESS = Path(__file__).resolve().parents[1]

# from the bottom; modules of one layer may import each other as long as there is no circle
LAYERS = (
    ("errors", "physics", "mutation.edits", "measured.sampling", "model.patience", "runner.seal", "runner.tampering"),
    ("mutation.mutate", "mutation.mutate_kernel", "mutation.mutate_plain", "measured.nvml", "measured.simgpu"),
    ("mutation.survivors",),
    ("spec", "device", "models", "interpreted.rounding"),
    ("bound", "course", "model.constants"),
    (
        "model.banks",
        "compiled.control",
        "compiled.cubin",
        "compiled.decider",
        "compiled.flow",
        "compiled.kernelfacts",
        "compiled.layout",
        "model.made",
        "model.memory",
        "compiled.ptxlines",
        "compiled.sass",
        "compiled.sassarith",
        "compiled.sassmeaning",
        "compiled.sassops",
        "compiled.sassvalue",
        "model.schedule",
        "model.sites",
        "model.tensorcore",
        "model.terms",
        "model.traffic",
        "compiled.trips",
        "compiled.ttgir",
        "compiled.walk",
        "model.warpsim",
    ),
    ("runner.wire",),
    ("runner.cage", "runner.client"),
    (
        "diagnosis.explain",
        "interpreted.descriptors",
        "interpreted.launches",
        "interpreted.rewrite",
        "runner.inputs",
        "diagnosis.compare",
        "runner.loader",
        "diagnosis.constructs",
        "zoo.variants",
    ),
    ("runner.host_child", "runner.host_gpu"),
    (
        "diagnosis.scene",
        "diagnosis.values",
        "diagnosis.loops",
        "diagnosis.moved",
        "diagnosis.softmax",
        "diagnosis.diagnose",
    ),
    ("interpreted.sanitizer", "runner.standin"),
    ("runner.ledger",),
    ("runner.hostwatch",),
    (
        "compiled.blocks",
        "compiled.torchmoves",
    ),
    (
        "interpreted.elementary",
        "interpreted.casts",
        "interpreted.matrix",
        "interpreted.reduction",
        "interpreted.libdevice",
        "interpreted.numerics",
    ),
    ("interpreted.interpreter", "compiled.aot", "measured.timing", "model.skim", "model.witness"),
    ("measured.cuda_device", "measured.gpu_probes", "measured.limit", "model.trace"),
    ("runner.warm", "runner.child", "measured.gpu_child"),
    ("measured.gpu_bench", "model.rehearsal"),
    ("model.findings", "model.estimate", "zoo.picture", "zoo.scores", "zoo.data", "zoo.kept"),
    ("runner.judge",),
    ("runner.keeper", "measured.gpu_keeper", "runner.host_keeper"),
    ("runner.forkserver", "runner.host_server"),
    ("gate", "verdict", "strategies", "model.times", "model.speed"),
    ("desk",),
    ("gauge", "run"),
    ("record", "store", "branches.clone", "branches.git"),
    ("measured.experiment", "streaks"),
    ("measured.chart",),
    ("steps", "loop.saves", "report"),
    ("session",),
    ("plugin",),
)
# commands: each may use everything above, and each other
CHORES = {
    "__init__", "measured.bench", "measured.calibration", "measured.evidence", "loop.compare_solutions", "course_check", "doctor", "branches.filtered", "loop.grade", "loop.hint",
    "branches.merge", "zoo.modelcheck", "mutation.mutant_cache", "mutation.mutant_report", "mutation.mutant_suite", "mutation.mutants", "new", "loop.page", "loop.page_frame",
    "branches.practice", "loop.rerun", "branches.reset", "triton_versions", "branches.update", "loop.watch",
}  # fmt: skip
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def modules() -> dict[str, Path]:
    """Our modules by their name below ``harness``; the page builder keeps an order of its own."""
    found = {}
    for path in sorted(HARNESS.rglob("*.py")):
        parts = path.relative_to(HARNESS).with_suffix("").parts
        if parts[0] not in ("tests", "site", "template") and (len(parts) == 1 or parts[-1] != "__init__"):
            found[".".join(parts)] = path
    return found


PACKAGES = {name.split(".")[0] for name in modules() if "." in name}


def imports(path: Path, *, at_run_time: bool = True) -> set[str]:
    """Return the top names (and for ours the whole name) that a file imports; not what only type checkers see."""
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
            whole = node.module == "harness" or node.module.removeprefix("harness.") in PACKAGES
            found |= {f"{node.module}.{a.name}" for a in node.names} if whole else {node.module}
        nodes.extend(ast.iter_child_nodes(node))
    return {name if name.startswith("harness.") else name.split(".")[0] for name in found}


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


@pytest.mark.parametrize(
    "start", ["plugin", "strategies", "loop.grade", "course_check", "loop.watch", "doctor", "runner.client"]
)
def test_what_pytest_and_the_chores_import_holds_neither_torch_nor_triton(start):
    heavy = {name: imports(modules()[name], at_run_time=False) & {"torch", "triton"} for name in reach(start)}

    assert not {name: found for name, found in heavy.items() if found}


def test_they_stay_unloaded_in_a_process_that_imports_the_plugin(tmp_path):
    code = "import sys, harness.plugin, harness.strategies, harness.loop.grade; print(sorted({'torch', 'triton'} & set(sys.modules)))"
    result = python("-c", code, cwd=tmp_path)

    assert result.stdout == "[]\n", result.stderr


def test_the_harness_reaches_katas_by_path_only():
    for name, path in modules().items():
        assert not {"exercises", "solutions"} & imports(path), name


def test_only_the_interpreter_s_side_names_triton_s_interpreter():
    private = {name for name, path in modules().items() if "runtime.interpreter" in path.read_text(encoding="utf-8")}

    assert {name for name in private if not name.startswith("interpreted.")} <= {"doctor", "model.skim"}


def test_an_upward_import_would_be_seen(tmp_path):
    """The reader of imports finds them wherever they stand, but for those of type checkers."""
    (tmp_path / "m.py").write_text(
        "from typing import TYPE_CHECKING\nimport os.path\nfrom harness import spec, desk\nfrom harness.course import ROOT\n"
        "if TYPE_CHECKING:\n    from harness.plugin import STATE\n\ndef f():\n    import torch\n    from harness.runner.judge import fact\n",
        encoding="utf-8",
    )

    assert ours(tmp_path / "m.py") == {"spec", "desk", "course", "runner.judge"}
    assert ours(tmp_path / "m.py", at_run_time=False) == {"spec", "desk", "course"}
    assert imports(tmp_path / "m.py") >= {"os", "torch", "typing"}
