"""What runs in the process that owns the GPU, played on the CPU: the experiment, and kata 09 on real kernels."""

import json
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e .")

from harness.course import ROOT, load_course  # noqa: E402 - as above
from harness.device import find_device  # noqa: E402 - as above
from harness.measured import gpu_bench, gpu_child, timing  # noqa: E402 - needs torch
from harness.measured.sampling import State  # noqa: E402 - as above
from harness.runner import host_gpu  # noqa: E402 - needs torch
from harness.runner.host_child import load_reference  # noqa: E402 - as above
from harness.runner.inputs import laid_out  # noqa: E402 - as above
from harness.spec import Cost  # noqa: E402 - as above

KATA = load_course().kata("benchmark")
REFERENCE = load_reference(KATA.folder)


class Event:
    """Events one millisecond apart."""

    count = 0

    def __init__(self, enable_timing):
        pass

    def record(self):
        Event.count += 1
        self.at = float(Event.count)


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    driver = SimpleNamespace(uuid="GPU-1", state=lambda: State(1980), facts=lambda: {"driver": "580"})
    for name, value in {
        "DEVICE": "cpu", "FLUSH_BYTES": 64, "WARM_SECONDS": 0.0, "_Event": Event, "driver": lambda: driver,
        "_elapsed": lambda start, end: end.at - start.at, "_synchronize": lambda: None,
    }.items():  # fmt: skip
        monkeypatch.setattr(timing, name, value)
    monkeypatch.setattr(timing.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(gpu_child, "wire_up", lambda: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a played GPU")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    properties = {"name": "a played GPU", "major": 9, "minor": 0, "multi_processor_count": 1, "L2_cache_size": 1}
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda i: SimpleNamespace(**properties, total_memory=1))


def job(tmp_path, source, flops=0, problem="", **reference):
    """Return a job for ``double(x)`` in plain torch."""
    file = tmp_path / "kernel.py"
    file.write_text(source, encoding="utf-8")
    course = load_course().kata("softmax")
    case = next(c for c in course.spec.cases if c.id == "M5-N1000-ragged")
    spec = SimpleNamespace(id="double", entry="double", args=course.spec.args, names=("x",), ulp=1.0)
    return SimpleNamespace(
        spec=spec, file=file, case=case, device=find_device("H200"),
        reference=SimpleNamespace(
            make_inputs=lambda case, build: (build((5, 1000), case.dtype),), FILLS={}, **reference
        ),
        cost=lambda: Cost(10_000, 10_000, flops)._asdict(),
    )  # fmt: skip


GOOD = "def double(x):\n    return x * 2\n"


@pytest.mark.parametrize(
    ("flops", "kind", "names"), [(0, "copy", {"ours", "limit"}), (10**9, "matmul", {"ours", "limit", "copy"})]
)
def test_the_limit_is_a_copy_or_where_arithmetic_binds_a_product(gpu, monkeypatch, tmp_path, flops, kind, names):
    monkeypatch.setattr(gpu_child, "sampled_problem", lambda *_: "")
    monkeypatch.setattr(timing, "matmul_of", lambda flop, dtype: (lambda: None, flop / 1e9))
    seen = gpu_bench.experiment(job(tmp_path, GOOD, flops))

    timing_ = json.loads(json.dumps(seen))["timing"]
    assert seen["problem"] == "" and timing_["limit"]["kind"] == kind
    assert set(timing_["seconds"]) == names
    assert timing_["environment"]["gpu"] == "a played GPU" and timing_["environment"]["driver"] == "580"
    assert bool(timing_["rules"]["burst"]) == (kind == "matmul")
    assert gpu_child._recording


def test_baselines_of_the_kata_run_beside_it(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_child, "sampled_problem", lambda *_: "")
    seen = gpu_bench.experiment(job(tmp_path, GOOD, baselines=lambda x: {"torch": lambda: x + x}))

    assert set(seen["timing"]["seconds"]) == {"ours", "limit", "torch"}


def test_a_baseline_that_this_machine_cannot_run_is_left_out(gpu, monkeypatch, tmp_path):
    def missing():
        raise ImportError("no such library")

    monkeypatch.setattr(gpu_child, "sampled_problem", lambda *_: "")
    named = {"torch": lambda: None, "a library": missing}
    seen = gpu_bench.experiment(job(tmp_path, GOOD, baselines=lambda x: named))

    assert set(seen["timing"]["seconds"]) == {"ours", "limit", "torch"}


def test_another_file_s_kernel_runs_beside_it(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_child, "sampled_problem", lambda *_: "")
    (tmp_path / "old.py").write_text("def double(*, x):\n    return x + x\n", encoding="utf-8")
    (tmp_path / "bad.py").write_text("def double(x):\n    return x * y\n", encoding="utf-8")

    seen = gpu_bench.experiment(job(tmp_path, GOOD), {"old": str(tmp_path / "old.py")})
    raised = gpu_bench.experiment(job(tmp_path, GOOD), {"bad": str(tmp_path / "bad.py")})["raised"]

    assert set(seen["timing"]["seconds"]) == {"ours", "limit", "old"}
    assert raised["text"].startswith("line 2: NameError")


@pytest.mark.parametrize(("flops", "kind"), [(0, "copy"), (10**9, "matmul")])
def test_a_grade_times_the_call_and_looks_at_what_it_returned(gpu, monkeypatch, tmp_path, flops, kind):
    monkeypatch.setattr(timing, "matmul_of", lambda flop, dtype: (lambda: None, 1.0))
    truth = {"reference": lambda x: x.double() * 2}
    good = gpu_child.time_calls(job(tmp_path, GOOD, flops, **truth))
    (aside := tmp_path / "wrong").mkdir()
    wrong = gpu_child.time_calls(job(aside, "def double(x):\n    return x * 3\n", flops, **truth))
    (file := tmp_path / "other").mkdir()
    none = gpu_child.time_calls(job(file, "def double(x):\n    return None\n", flops, **truth))

    assert good["problem"] == "" and good["timing"]["limit"]["kind"] == kind
    assert set(good["timing"]) > {"ours_s", "limit_s", "share", "low", "high", "stopped", "discarded", "trusted"}
    assert "sampled elements of a timed call are wrong" in wrong["problem"]
    assert none["problem"] == "a timed call returned something else than the small cases did"


def test_a_reference_too_large_for_the_gpu_is_computed_for_a_part(gpu, tmp_path):
    seen = []

    def reference(x):
        seen.append(tuple(x.shape))
        return x.double() * 2

    truth = {"reference": reference, "part": lambda out, x: (out[:2], (x[:2],))}

    assert gpu_child.time_calls(job(tmp_path, GOOD, **truth))["problem"] == ""
    assert set(seen) == {(2, 1000)}


def test_what_the_learner_s_code_raises_is_told_and_wrong_values_are_too(gpu, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_child, "sampled_problem", lambda *_: "3 elements are wrong")

    assert gpu_bench.experiment(job(tmp_path, GOOD))["problem"] == "3 elements are wrong"
    raised = gpu_bench.experiment(job(tmp_path, "def double(x):\n    return x * y\n"))["raised"]
    assert raised["text"].startswith("line 2: NameError")
    assert gpu_child._recording


def test_kata_09_drives_real_kernels(gpu, tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text("def measure(*, launch, device):\n    launch()\n    return 2.0, (1.9, device)\n", encoding="utf-8")
    launched = []
    kernels = [(lambda: launched.append(1), 2.1, lambda: 2.0)] * 3
    spec = SimpleNamespace(id="benchmark", entry="measure", names=("launch", "device"))
    reference = SimpleNamespace(gpu_kernels=lambda case: kernels)
    seen = host_gpu.run_calls(SimpleNamespace(spec=spec, file=file, case=None, reference=reference))

    assert seen["results"] == [[2.0, [1.9, 2.1]]] * 3 and seen["truths"] == [2.0] * 3
    assert len(launched) == 3 and seen["looked"] == []


def results(factor=1.0, width=0.02, truths=(53e-6, 403e-6, 2003e-6, 20e-6)):
    return [[t * factor, [t * factor * (1 - width / 2), t * factor * (1 + width / 2)]] for t in truths], list(truths)


@pytest.mark.parametrize(
    ("made", "word", "text"),
    [
        (results(), "pass", ""),
        (results(1.02), "pass", ""),
        (results(1.1), "wrong", "should hold that, within 3 %"),
        (results(0.5), "wrong", "should hold that, within 3 %"),
        (results(width=0.2), "wrong", "at most 6% wide"),
        (results(truths=(90e-6, 403e-6, 2003e-6, 20e-6)), "undecided", "is anything else running on it?"),
        (([None, *results()[0][1:]], results()[1]), "wrong", "expected (median, (low, high))"),
    ],
)
def test_estimates_on_a_gpu_are_held_against_what_we_measure(made, word, text):
    facts = REFERENCE.judge_measured(*made, "NVIDIA H200")

    assert facts["word"] == word
    assert text in facts.get("reason", "")


def test_the_simulated_and_the_real_device_offer_the_same():
    def public(path, name):
        source = (ROOT / "harness" / path).read_text(encoding="utf-8")
        body = source[source.index(f"class {name}") :].split("\n\n\n")[0]
        return {
            line.split("(")[0].split()[-1]
            for line in body.splitlines()
            if line.startswith("    def ") and "_" != line[8]
        }

    assert public("measured/simgpu.py", "Device") == public("measured/cuda_device.py", "CudaDevice")


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "strided", "expanded", "offset"])
def test_what_is_timed_lies_in_memory_as_the_case_says(gpu, layout):
    """`.to(device)` closes the gaps of a slice, and the time would be that of another kata."""
    x = laid_out((6, 10), torch.bfloat16, layout, lazy=False)
    (x[:1] if layout == "expanded" else x)[:, 0] = 1.0
    moved = gpu_child.moved(x)
    assert (moved.stride(), moved.data_ptr() % 16) == (x.stride(), x.data_ptr() % 16)
    assert torch.equal(moved.isnan(), x.isnan()) and torch.equal(moved[:, 0], x[:, 0])
