"""Host-side katas: the learner's Python runs in a child that knows nothing, and every word can be reached."""

import json
import textwrap
from pathlib import Path

import pytest

from harness.course import ROOT
from harness.runner.host_child import plain
from harness.spec import Case, parse_spec

KATA = ROOT / "exercises" / "09_benchmark"
HONEST = (ROOT / "solutions" / "09_benchmark" / "kernel.py").read_text(encoding="utf-8")
QUICK = "def measure(launch, device):\n    return 1e-3, (0.96e-3, 1.04e-3)\n"


@pytest.fixture
def ask(interpret, tmp_path):
    """Return a function: source, options of the case -> facts."""

    def ask(source, seconds=20.0, role="small", seed=5, **options):
        file = tmp_path / "kernel.py"
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        case = Case("case", {}, "float64", options={"devices": 1} | options, role=role, seed=seed)
        request = {"kata": str(KATA), "file": str(file), "case": case.to_json(), "gpu": "H200", "seconds": seconds}
        return interpret.ask(request)

    return ask


@pytest.mark.parametrize("traps", ["", "warm+clock", "queue+tick+outliers"])
def test_an_honest_measurement_passes(ask, traps):
    facts = ask(HONEST, traps=traps)

    assert facts["word"] == "pass", facts["reason"]
    assert 0.2 < facts["speed"]["used_s"] < facts["speed"]["allowed_s"]


@pytest.mark.parametrize(
    ("source", "word", "reason"),
    [
        ("def measure(launch, device):\n    raise NotImplementedError('TODO 1')\n", "todo", "TODO 1"),
        ("def measure(launch, device):\n    return device.elapse(1, 2)\n", "error", "line 2: AttributeError"),
        ("def measure(launch, device):\n    device.elapsed(device.event(), device.event())\n", "error", "synchronize()"),
        ("def measure(launch):\n    return 1\n", "error", "measure() takes 1 positional argument but 2 were given"),
        ("def mesure(launch, device):\n    return 1\n", "error", 'Did you mean "mesure"?'),
        ("def measure(launch, device)\n", "error", "line 1"),
        ("def measure(launch, device):\n    return None\n", "wrong", "returned None; expected (median, (low, high))"),
        ("def measure(launch, device):\n    return 1.0\n", "wrong", "measure returned 1; expected"),
        ("def measure(launch, device):\n    return 2.0, (3.0, 4.0)\n", "wrong", "expected 0 < low <= median <= high"),
        ("def measure(launch, device):\n    return 1.0, (float('nan'), 4.0)\n", "wrong", "expected 0 < low"),
        (QUICK.replace("1e-3", "1.0").replace("0.96e-3, 1.04e-3", "0.98, 1.02"), "wrong", "does not hold the"),
        ("import os\ndef measure(launch, device):\n    os._exit(3)\n", "error", "ended its process (exit status 3)"),
    ],
)  # fmt: skip
def test_words_and_reasons(ask, source, word, reason):
    facts = ask(source)

    assert (facts["word"], reason in facts["reason"]) == (word, True), facts["reason"]
    assert not facts.get("ours")  # else the desk would have it compiled


def test_a_measurement_that_does_not_end_says_where_it_was(ask):
    facts = ask("def measure(launch, device):\n    while True:\n        device.clock()\n", seconds=1.0)

    assert facts["word"] == "timeout"
    assert "It was at line" in facts["reason"]


def test_the_machine_s_time_counts_in_the_traffic_case_only(ask):
    source = HONEST.replace("WARM_SECONDS = 0.25", "WARM_SECONDS = 4.0")

    assert ask(source)["word"] == "pass"
    facts = ask(source, role="traffic")
    assert facts["word"] == "slow"
    assert "3 s are allowed" in facts["reason"]


def test_a_likely_cause_is_named(ask):
    source = HONEST.replace("        device.flush()  # evicts the inputs", "        pass  # evicts the inputs")

    assert "inputs still in the L2" in ask(source, traps="warm")["reason"]


LOOKS = {
    "memory": "import gc\ndef measure(launch, device):\n    gc.get_objects()\n    return 1e-3, (1e-3, 1e-3)\n",
    "frames": "import sys\ndef measure(launch, device):\n    sys._getframe(1)\n    return 1e-3, (1e-3, 1e-3)\n",
    "processes": "def measure(launch, device):\n    open('/proc/self/cmdline')\n    return 1e-3, (1e-3, 1e-3)\n",
    "harness": "def measure(launch, device):\n    import harness.measured.simgpu\n    return 1e-3, (1e-3, 1e-3)\n",
    "at import": "from harness.measured import simgpu\ndef measure(launch, device):\n    return 1e-3, (1e-3, 1e-3)\n",
    "reference": f"def measure(launch, device):\n    open({str(KATA / 'reference.py')!r})\n    return 1e-3, (1e-3, 1e-3)\n",
}


@pytest.mark.parametrize("source", LOOKS.values(), ids=LOOKS)
def test_looking_where_nothing_is_measured_is_seen(ask, source):
    facts = ask(source)

    assert facts["word"] == "cheat", facts["reason"]
    assert "looked for the answer where it is not measured" in facts["reason"]


@pytest.mark.parametrize("module", ["statistics", "dataclasses, collections", "random, typing", "numpy"])
def test_what_libraries_do_by_themselves_is_no_look(ask, module):
    facts = ask(f"import {module}\n" + HONEST)

    assert facts["word"] == "pass", facts["reason"]


def test_the_child_s_memory_holds_no_seed(ask, tmp_path):
    """Reads all of its own memory for the digits of the seed, from which anybody could work out the truth."""
    found = tmp_path / "found.json"
    facts = ask(
        f"""
        import json, re
        KNOWN, SEED = b"kernel sat[a]", b"9[1]8273645"  # written so that neither finds itself
        def measure(launch, device):
            here = "kernel " + "sata" * (device.clock() > 0)
            hits = [0, 0]
            with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
                for line in maps:
                    low, high = (int(x, 16) for x in line.split()[0].split("-"))
                    if " rw" in line and "[v" not in line:
                        memory.seek(low)
                        text = memory.read(high - low)
                        hits = [n + len(re.findall(p, text)) for n, p in zip(hits, (KNOWN, SEED))]
            open({str(found)!r}, "w").write(json.dumps([hits[0] > 0, hits[1], here]))
            return 1e-3, (1e-3, 1e-3)
    """,
        seed=918273645,
    )

    known, seed, _ = json.loads(found.read_text())
    assert known and seed == 0
    assert facts["word"] == "cheat"


def test_a_child_that_invents_messages_gets_a_word(ask):
    source = "def measure(launch, device):\n    device._ask({'do': 'xyz'})\n    return 1e-3, (1e-3, 1e-3)\n"

    facts = ask(source)

    assert facts["word"] == "error"
    assert "a message of its own" in facts["reason"]
    assert ask(HONEST)["word"] == "pass"  # and the next one is served


def test_the_course_is_guarded(ask):
    source = f"def measure(launch, device):\n    open({str(KATA / 'exercise.toml')!r}, 'a')\n"

    assert ask(source)["word"] == "cheat"


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ((1, (2.5, True)), [1.0, [2.5, {"kind": "True"}]]),
        (None, {"kind": "None"}),
        ("x" * 2000, "x" * 1000),
        ({}, {"kind": "a dict"}),
        (Path("."), {"kind": f"a {Path('.').__class__.__module__}.{type(Path('.')).__name__}"}),
    ],
)
def test_results_travel_as_plain_values(value, seen):
    assert plain(value) == seen


def test_a_host_side_kata_needs_no_dims_and_no_dtypes():
    data = {
        "title": "t", "entry": "f", "side": "host", "cases": [{"id": "a"}], "args": {"x": "Thing"},
        "returns": {"y": "tuple"}, "tolerance": {"ulp": 0, "why": "w"}, "gate": {"cpu": 1, "gpu": 1, "why": "w"},
    }  # fmt: skip
    spec = parse_spec(data, "21_thing", "exercise.toml")

    assert spec.side == "host"
    assert (spec.cases[0].dims, spec.cases[0].dtype) == ({}, "float64")
