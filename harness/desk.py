"""Desk: one kata being graded here. Sends its cases to the fork server, keeps what came back. No torch here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.course import Kata
from harness.device import Device
from harness.errors import HarnessFault
from harness.runner.client import Client
from harness.spec import Case, Gate

MODEL_SECONDS = 6.0  # for compiling further configurations of autotuned kernels, which the speed model compares
AHEAD = 3  # cases that passed, from which on the bench shapes are compiled while further cases run
MAX_COMPILED = 8  # cases that are compiled ahead of time beyond the bench shapes; the rest is said to be unchecked
_ENDS_THE_KATA = ("timeout",)  # each further case would cost its time limit again

CPU_LIMITS = (
    "a CPU cannot check measured speed, races inside one program, or what the compiler makes of the arithmetic "
    "(--device cuda does)"
)
HOST_LIMITS = "a simulated GPU cannot show what a real one does (--device cuda measures real kernels)"
GPU_LIMITS = (
    "this run cannot check stray reads that stay inside mapped memory (the CPU sanitizer looked for them in the small "
    "cases)"
)


@dataclass(frozen=True)
class Choices:
    """What the command line chose for all katas."""

    seed: int
    device: str
    gpu: Device
    speed: bool = True
    submission: Path | None = None
    solutions: bool = False


@dataclass
class Desk:
    """One kata, one file to grade, one pytest process."""

    kata: Kata
    file: Path
    choices: Choices
    connect: Callable[[str], Client]
    keys: dict[str, str] = field(default_factory=dict)  # launch key -> case that showed it
    compiling: dict[str, Case] = field(default_factory=dict)
    compiled: dict[str, dict[str, Any]] = field(default_factory=dict)
    interpreted: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    ended: str = ""
    wrong_tests: int = 0
    told: int = 0
    first_with: dict[str, str] = field(default_factory=dict)  # reason -> the test that told it

    def request(self, case: Case, **more: Any) -> dict[str, Any]:
        """Return the request for one case."""
        return {
            "kata": str(self.kata.folder), "file": str(self.file), "case": case.to_json(), "gpu": self.choices.gpu.id,
        } | more  # fmt: skip

    def judge(self, case: Case) -> dict[str, Any]:
        """Run one case and return its facts."""
        facts = self.connect("interpret").ask(self.request(case))
        if facts["word"] == "error" and facts.get("ours"):
            facts = self._whose_fault(case, facts)
        if facts["word"] == "pass" and self.kata.spec.side == "gpu":
            self._compile_later(case, facts.get("launches", []))
            if self.choices.device == "cuda":
                facts = self._on_gpu(case, facts)
        if facts["word"] in _ENDS_THE_KATA:
            self.ended = f"{facts['word']}: not run, because case {case.id} had used up the kata's time."
        return facts

    def _on_gpu(self, case: Case, cpu: dict[str, Any]) -> dict[str, Any]:
        facts = self.connect("cuda").ask(self.request(case))
        facts["findings"] = list(dict.fromkeys(cpu["findings"] + facts["findings"]))
        facts["not_checked"] = facts["not_checked"]
        return facts

    def _whose_fault(self, case: Case, facts: dict[str, Any]) -> dict[str, Any]:
        """The interpreter stumbled outside of the learner's lines. If a GPU would compile it, the fault may be ours."""
        compiled = self.connect_compile(case)
        if compiled["word"] == "error":
            return facts | {"reason": compiled["reason"]}
        if compiled.get("stumbled") or not compiled.get("compiled"):
            return facts
        return facts | {
            "word": "undecided",
            "reason": f"this interpreter cannot run what a GPU can: {facts['reason']}\nIt compiles for "
            f"{self.choices.gpu.name}; --device cuda decides.",
        }

    # -- ahead-of-time compilation -------------------------------------------------------------------------------

    def _compile_later(self, case: Case, launches: list[dict[str, Any]]) -> None:
        new = [x["key"] for x in launches if x["key"] not in self.keys]
        self.keys.update(dict.fromkeys(new, case.id))
        self.interpreted[case.key()] = launches
        if new and sum(c.role != "bench" for c in self.compiling.values()) < MAX_COMPILED:
            self._send_compile(case)
        if len(self.interpreted) == AHEAD:
            for shape in self.bench_cases():
                self._send_compile(shape)

    def _send_compile(self, case: Case) -> None:
        if case.key() not in self.compiling:
            self.compiling[case.key()] = case
            model = {"model": MODEL_SECONDS} if case.role == "bench" and self._is_modelled(case) else {}
            self.connect("compile").send(self.request(case, **model))

    def _is_modelled(self, case: Case) -> bool:
        """A gated bench shape is modelled, where no GPU measures it."""
        on_cpu = self.choices.speed and self.choices.device != "cuda"
        return on_cpu and case.id in [c.id for c, _ in self.gated()]

    def gated(self) -> list[tuple[Case, Gate]]:
        """Return the bench shapes that have a gate and that the GPU in question has hardware for, the first first."""
        cases, (first, *also) = self.bench_cases(), self.kata.spec.gates
        found = [(cases[0], first)] if cases else []
        return found + [(case, gate) for gate in also for case in cases[1:] if case.id == gate.case]

    def connect_compile(self, case: Case) -> dict[str, Any]:
        """Compile one case's launches now and return the facts."""
        self._send_compile(case)
        self.collect()
        return self.compiled[case.key()]

    def collect(self) -> None:
        """Wait for every compilation that was asked for."""
        for key in [k for k in self.compiling if k not in self.compiled]:
            try:
                self.compiled[key] = self.connect("compile").receive()
            except HarnessFault:
                del self.compiling[key]  # it is answered: nobody may wait for it again
                raise

    def bench_cases(self) -> list[Case]:
        """Return the bench shapes: real layers, launched and compiled but not run on a CPU.

        Those whose dtype the GPU in question has no hardware for are left out.
        """
        spec, sm = self.kata.spec, self.choices.gpu.sm
        fit = [c for c in spec.with_role("bench") if spec.dtypes.get(c.dtype, 0) <= sm]
        return [c.with_seed(self.choices.seed) for c in fit]

    def compile_facts(self) -> dict[str, Any]:
        """Return the facts of everything compiled: what the cases launched, and the bench shapes."""
        if not self.compiling:  # only this test was selected: compile the declared cases
            for case in self.kata.spec.with_role("small")[:MAX_COMPILED]:
                self._send_compile(case.with_seed(self.choices.seed))
        for case in self.bench_cases():
            self._send_compile(case)
        self.collect()
        for key, case in sorted(self.compiling.items(), key=lambda entry: entry[1].role == "bench"):  # small ones first
            facts = self.compiled[key]
            if facts["word"] not in ("pass", "undecided"):
                return facts | {"case": case.id, "late": True}
            if facts.get("stumbled") and case.role == "bench":
                return facts | {
                    "word": "todo" if facts["todo"] else "error",
                    "reason": facts["stumbled"],
                    "case": case.id,
                }
            if reason := self._differs(key, facts):
                return facts | {"word": "cheat", "reason": reason, "case": case.id}
        unsure = next((f for f in self.compiled.values() if f["word"] == "undecided"), None)
        if unsure:
            return unsure
        done = {k for f in self.compiled.values() for k in f["compiled"]}
        left = len(set(self.keys) - done)
        note = [f"{left} of {left + len(done)} specialisations were run but not compiled"] if left else []
        caught = [
            f"caught by your code, and no verdict: {f['caught']}" for f in self.compiled.values() if f.get("caught")
        ]
        return {"word": "pass", "reason": "", "findings": list(dict.fromkeys(caught)), "not_checked": note}

    def _differs(self, key: str, facts: dict[str, Any]) -> str:
        """Both sides must launch the same kernels; otherwise the code looks at who is asking."""
        ours, theirs = self.interpreted.get(key), facts["launches"]
        if ours is None or facts.get("stumbled"):
            return ""
        a, b = ([(x["kernel"], tuple(x["grid"])) for x in side] for side in (ours, theirs))
        # an autotuner that skips what does not fit this GPU launches another configuration, with another grid
        same = [
            x == y or x[0] == y[0] and p.get("tuned") != q.get("tuned")
            for x, y, p, q in zip(a, b, ours, theirs, strict=False)
        ]
        if len(a) == len(b) and all(same):
            return ""
        return (
            f"interpreted it launches {_shown(a)}; compiled for the GPU it launches {_shown(b)}. Both must be the same."
        )


def _shown(launches: list[tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name}{list(grid)}" for name, grid in launches[:3]) or "nothing"
