"""Speed: the modelled speed of a submission at a bench shape, against the reference's. No torch here.

Whatever stands in the way of a model (code that cannot be read, a loop whose end depends on data, no time of the
reference) leaves the verdict ``undecided`` with one sentence: it never fails a right kernel, nor passes a slow one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness import gate
from harness.device import Device
from harness.model import findings
from harness.model.estimate import Estimate, NoModel, estimate
from harness.model.rehearsal import layouts_of

Facts = dict[str, Any]


def time_of(compiled: Mapping[str, Any], trace: Callable[[list[Any]], Facts], device: Device) -> Estimate:
    """Return the modelled time of a call that was compiled with ``model``.

    Args:
        compiled: the answer of the compile server.
        trace: sends the layouts to the interpret server, and returns its answer.

    Raises:
        NoModel: with the sentence why not.
    """
    if compiled["word"] != "pass":
        raise NoModel(compiled["reason"].split("\n")[0])
    if compiled.get("stumbled") or not compiled.get("model"):
        raise NoModel(f"the launcher stopped at the bench shape ({compiled.get('stumbled', 'no facts')})")
    model = compiled["model"]
    if "failed" in model:
        raise NoModel(model["failed"])
    for data in model["facts"].values():
        if "failed" in data:
            raise NoModel(f"the compiled code cannot be read ({data['failed']})")
    with _faults_are_ours():
        layouts = layouts_of(model, device)
    seen = trace(layouts)
    if "failed" in seen:
        raise NoModel(f"the bench shape cannot be traced ({seen['failed']})")
    with _faults_are_ours():
        return estimate(model, seen["runs"], device)


@contextlib.contextmanager
def _faults_are_ours() -> Iterator[None]:
    """A fault of the model's is no fault of the kernel's: raise NoModel in its place."""
    try:
        yield
    except NoModel:
        raise
    except Exception as error:
        raise NoModel(f"the speed model failed ({type(error).__name__}: {error})".split("\n")[0]) from error


def verdict(ours: Estimate, reference: float | None, wanted: float, device: Device, missing: str = "") -> Facts:
    """Return ``word``, ``reason``, ``speed``, ``findings`` and ``not_checked`` of a modelled bench shape.

    Args:
        reference: seconds of the kata's reference, None when nobody knows them; ``missing`` says why not.
        wanted: the share of the reference's speed that is asked for.
    """
    told = findings.sentences([f for launch in ours.launches for f in launch.findings])
    if reference is None:
        return undecided(f"{missing}; `nox -s course -- --write-times`, where the solutions are, writes it.") | {
            "findings": told
        }
    out = gate.modelled(ours.seconds, reference, wanted, ours.band, ours.binds, device)
    out["speed"]["bars"] = {k: v for k, v in sorted(ours.bars().items(), key=lambda kv: -kv[1]) if v}
    configs = {x.kernel: x.config for x in ours.launches if x.config}
    notes = [f"{kernel}: the autotuner's best configuration is {config}" for kernel, config in configs.items()]
    return out | {"findings": [*told, *notes], "not_checked": list(ours.notes)}


def undecided(why: str) -> Facts:
    """Return the facts of a speed that nobody can say."""
    reason = f"right, but its speed is not decided: {why}"
    return {"word": "undecided", "reason": reason, "findings": [], "not_checked": []}
