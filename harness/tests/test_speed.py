"""The modelled verdict: what stands in its way is one sentence and `undecided`; what it says is a share with its band."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.compiled.kernelfacts import SPECIALISED
from harness.device import find_device
from harness.model import patience
from harness.model.estimate import Estimate, LaunchTime, NoModel, launch_time
from harness.model.speed import time_of, undecided, verdict

H200 = find_device("H200")
TERMS = {"DRAM": 8e-5, "L2": 4e-5, "SM": 2e-5, "programs": 1e-6, "atomics": 0.0}
PARTS = {"issue": 1e-5, "latency": 2e-5}


def estimate(seconds=1e-4, calibrated=True, **launch):
    found = [(6e-5, "line 9: scattered"), (1e-5, "line 12: narrow"), (5e-5, "line 9: narrow"), (2e-5, "a"), (3e-5, "b")]
    return Estimate([LaunchTime("k", seconds, TERMS, PARTS, **{"findings": found} | launch)], calibrated)


def compiled(**changes):
    return {"word": "pass", "reason": "", "model": {"runs": [[]], "facts": {}}} | changes


@pytest.mark.parametrize(("answer", "trace", "why"), [
    (compiled(word="error", reason="does not compile\nmore"), {}, "does not compile"),
    (compiled(stumbled="line 3: empty result"), {}, "the launcher stopped at the bench shape (line 3: empty result)"),
    (compiled(model=None), {}, "the launcher stopped at the bench shape (no facts)"),
    (compiled(model={"runs": [[]], "facts": {"x": {"failed": "no disassembler"}}}), {}, "(no disassembler)"),
    (compiled(model={"failed": "called again for the model, it stopped: ValueError: x"}), {}, "it stopped: ValueError: x"),
    (compiled(model={"runs": [[{}]], "facts": {"x": {}}}), {}, "the speed model failed (KeyError"),
    (compiled(), {"failed": "an operation is unknown"}, "cannot be traced (an operation is unknown)"),
    (compiled(), {"runs": [[{}]]}, "0 launches were compiled, 1 traced"),
    (compiled(), {"runs": [[]]}, "the entry launched no kernel at the bench shape"),
    (compiled(), {"runs": 7}, "the speed model failed (TypeError"),
])  # fmt: skip
def test_what_stands_in_the_way_is_one_sentence(answer, trace, why):
    with pytest.raises(NoModel) as raised:
        time_of(answer, lambda layouts: trace, H200)

    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_warp_specialised_kernel_is_not_guessed_at():
    facts = SimpleNamespace(notes=(SPECIALISED,))

    with pytest.raises(NoModel, match="^k uses warp specialisation: how its partitions overlap is not modelled$"):
        launch_time(facts, {"kernel": "k", "cut": False}, H200)


def test_a_model_that_takes_too_long_gives_up(monkeypatch):
    def endless(*_):
        while True:
            patience.check()

    monkeypatch.setattr(patience, "SECONDS", 0.01)
    monkeypatch.setattr("harness.model.estimate.launch_time", endless)
    monkeypatch.setattr("harness.model.estimate._facts", lambda *_: None)
    answer = compiled(model={"runs": [[{"facts": "x"}]], "facts": {}})

    with pytest.raises(NoModel, match="^the model of k takes longer than 0 s$"):
        monkeypatch.setattr("harness.model.speed.layouts_of", lambda *_: [])
        time_of(answer, lambda layouts: {"runs": [[{"kernel": "k"}]]}, H200)


def test_configurations_that_there_was_no_time_for_are_said(monkeypatch):
    one = LaunchTime("k", 1e-4, TERMS, PARTS)
    monkeypatch.setattr("harness.model.estimate.launch_time", lambda *_: one)
    monkeypatch.setattr("harness.model.estimate._facts", lambda *_: None)
    monkeypatch.setattr("harness.model.speed.layouts_of", lambda *_: [])
    answer = compiled(model={"runs": [[{}]] * 5, "facts": {}, "left": 2})
    found = time_of(answer, lambda layouts: {"runs": [[{"kernel": "k"}]] * 3}, H200)

    assert found.notes == ["4 further configurations of the autotuner were not modelled"]


def test_without_a_time_of_the_reference_it_is_undecided_and_says_what_to_run():
    found = verdict(estimate(), None, 0.7, H200, "no modelled time is kept")

    assert found["word"] == "undecided"
    assert found["reason"] == (
        "right, but its speed is not decided: no modelled time is kept; `nox -s course -- --write-times`, where the "
        "solutions are, writes it."
    )
    assert found["findings"]


def test_the_costliest_findings_are_told_each_line_once():
    assert verdict(estimate(), 1e-4, 0.7, H200)["findings"] == ["line 9: scattered", "b", "a"]


def test_the_share_stands_with_its_bars_and_what_binds():
    speed = verdict(estimate(), 0.9e-4, 0.7, H200)["speed"]

    assert (speed["share"], speed["binds"], speed["kind"]) == (0.9, "DRAM", "modelled")
    assert list(speed["bars"]) == ["DRAM", "L2", "latency", "issue", "programs"]


def test_a_scaled_device_has_a_wider_band():
    near, far = (verdict(estimate(calibrated=c), 1e-4, 0.7, H200)["speed"]["band"] for c in (True, False))

    assert far[0] < near[0] < 1 < near[1] < far[1]


def test_the_configuration_of_an_autotuned_kernel_is_said():
    found = verdict(estimate(config="BLOCK: 64", findings=[]), 1e-4, 0.7, H200)["findings"]

    assert found == ["k: the autotuner's best configuration is BLOCK: 64"]


def test_an_undecided_speed_is_no_pass():
    assert undecided("why.")["word"] == "undecided"
