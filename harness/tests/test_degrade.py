"""What the speed model needs may be missing: then the speed is not known, and what was compiled stays compiled."""

from __future__ import annotations

import json

import pytest

from harness.tests.toys import python


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    done = python("-m", "harness.tests.degrade_child", cwd=tmp_path_factory.mktemp("degrade"))
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_usually_the_facts_are_there(seen):
    usual = seen["usual"]

    assert (usual["raised"], usual["compiled"], usual["unsupported"]) == (None, 1, False)
    assert all("failed" not in facts for facts in usual["model"]["facts"].values())


def test_an_entry_that_stops_when_called_again_has_no_model_and_no_error(seen):
    again = seen["second call"]

    assert (again["raised"], again["failed"], again["compiled"]) == (None, None, 1)
    assert again["model"] == {"failed": "called again for the model, it stopped: AssertionError: twice"}


def test_a_gpu_that_nobody_compiles_for_is_told_from_a_kernel_that_does_not_compile(seen):
    assert seen["no compiler"]["unsupported"] is True
    assert seen["no compiler"]["compiled"] == 0


def test_without_a_disassembler_the_kernel_is_compiled_and_its_facts_say_why_not(seen):
    without = seen["no disassembler"]

    assert (without["raised"], without["failed"], without["compiled"]) == (None, None, 1)
    (facts,) = without["model"]["facts"].values()
    assert "nvdisasm was not found" in facts["failed"]
