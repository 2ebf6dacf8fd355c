"""Desk: one kata being graded here. Sends its cases to the fork server, keeps what came back. No torch here."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.bound import sentence
from harness.course import Kata
from harness.device import Device
from harness.errors import HarnessFault
from harness.gate import coarse, measured
from harness.model import times
from harness.runner.client import Client
from harness.spec import Case

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
        if new and len(self.compiling) < MAX_COMPILED:
            self._send_compile(case)

    def _send_compile(self, case: Case) -> None:
        if case.key() not in self.compiling:
            self.compiling[case.key()] = case
            model = {"model": _model().MODEL_SECONDS} if case.role == "bench" and self._is_modelled(case) else {}
            self.connect("compile").send(self.request(case, **model))

    def _is_modelled(self, case: Case) -> bool:
        """The first bench shape is modelled, where no GPU measures it."""
        on_cpu = self.choices.speed and self.choices.device != "cuda"
        return on_cpu and case.id == next((c.id for c in self.bench_cases()), "")

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
        for key, case in self.compiling.items():
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
        if a == b:
            return ""
        return (
            f"interpreted it launches {_shown(a)}; compiled for the GPU it launches {_shown(b)}. Both must be the same."
        )

    # -- speed ---------------------------------------------------------------------------------------------------

    def speed_facts(self) -> dict[str, Any]:
        """Return the facts about speed: on a CPU what the counts alone can say."""
        if not self.choices.speed:
            return _speed("undecided", "--no-speed was given; run without it to decide.", {})
        if self.kata.spec.side == "host":
            return self._host_speed()
        if self.choices.device == "cuda":
            return self._measured()
        spec, gpu = self.kata.spec, self.choices.gpu
        traffic = spec.with_role("traffic")
        if not traffic:
            return _speed("pass", "", {})
        case = traffic[0].with_seed(self.choices.seed)
        facts = self.judge(case)
        if facts["word"] != "pass":
            return facts | {"case": case.id}
        bench: list[dict[str, Any]] = []
        reasons: list[str] = []
        for shape in self.bench_cases() or [None]:
            if shape is not None:
                bench = self.connect_compile(shape).get("launches", [])
            reasons += coarse(facts["counters"], facts["cost"], facts["launches"], bench, gpu, spec.max_launches)
        counts = _counts(facts, bench)
        out = _speed("slow" if reasons else "pass", "\n".join(dict.fromkeys(reasons)), counts, facts["findings"])
        if not self.bench_cases():
            return out if reasons else out | self._no_hardware()
        modelled = self._modelled(self.bench_cases()[0])
        # what is slow by its counts alone stays so: the model says how slow
        return (out if reasons else modelled) | {
            "findings": list(dict.fromkeys(out["findings"] + modelled["findings"])),
            "speed": out["speed"] | modelled.get("speed", {}),
        }

    def _no_hardware(self) -> dict[str, Any]:
        """What to say when the GPU in question has no hardware for any bench shape: its speed is not known there."""
        dtypes = list(dict.fromkeys(c.dtype for c in self.kata.spec.with_role("bench")))
        if not dtypes:
            return {}
        told = _model().undecided(
            f"{self.choices.gpu.name} has no hardware for {' or '.join(dtypes)}, the bench shape's dtype; --gpu H200 "
            "asks about another GPU."
        )
        return {"word": told["word"], "reason": told["reason"]}

    def _modelled(self, case: Case) -> dict[str, Any]:
        """Model one bench shape and hold it against the reference's modelled time."""
        gpu, kata, speed = self.choices.gpu, self.kata, _model()
        try:
            ours = self._time(self.connect_compile(case), case, self.file)
            version = self._triton(case)
            kept = times.kept(kata.folder.parent.parent, kata, case, gpu, version)
            reference = kept.seconds
            if reference is None and kata.solution.is_file():
                request = self.request(case, file=str(kata.solution), model=speed.MODEL_SECONDS)
                reference = self._time(self.connect("compile").ask(request), case, kata.solution).seconds
        except (speed.NoModel, times.BrokenTimes) as error:
            return speed.undecided(f"{str(error).rstrip('.')}.")
        out = speed.verdict(ours, reference, kata.spec.gate_cpu, gpu, kept.why)
        return self._with_bound(out, self.compiled[case.key()]["cost"], ours.seconds)

    def _time(self, compiled: dict[str, Any], case: Case, file: Path) -> Any:
        def trace(layouts: list[Any]) -> dict[str, Any]:
            return self.connect("interpret").ask(self.request(case, file=str(file), layouts=layouts))

        return _model().time_of(compiled, trace, self.choices.gpu)

    def _triton(self, case: Case) -> str:
        model = self.compiled[case.key()]["model"]
        return next(iter(model["facts"].values()))["triton"]

    def modelled_time(self, case: Case) -> Any:
        """Return the modelled time of this file at one bench shape. Raises NoModel."""
        request = self.request(case, model=_model().MODEL_SECONDS)
        return self._time(self.connect("compile").ask(request), case, self.file)

    def _host_speed(self) -> dict[str, Any]:
        """A host-side kata gates on what its own judge counts; on a GPU its bench cases drive the real thing."""
        traffic = [c.with_seed(self.choices.seed) for c in self.kata.spec.with_role("traffic")]
        runs = [(case, self.judge(case)) for case in traffic]
        if self.choices.device == "cuda":
            runs += [(case, self.connect("cuda").ask(self.request(case))) for case in self.bench_cases()]
        bad = next((facts | {"case": case.id} for case, facts in runs if facts["word"] != "pass"), None)
        return bad or (runs[-1][1] if runs else _speed("pass", "", {}))

    def _measured(self) -> dict[str, Any]:
        """Time the first bench shape on this GPU."""
        cases = self.bench_cases()
        if not cases:
            return _speed("pass", "", {})
        facts = self.connect("cuda").ask(self.request(cases[0], timed=True))
        if facts["word"] != "pass":
            return facts | {"case": cases[0].id}
        spec = self.kata.spec
        out = facts | measured(facts["timing"], spec.gate_gpu, facts["cost"], facts["gpu"])
        return self._with_bound(out, facts["cost"], statistics.median(facts["timing"]["ours_s"]))

    def _with_bound(self, facts: dict[str, Any], cost: dict[str, int], seconds: float) -> dict[str, Any]:
        """Add the sentence on what this speed means for a model, where the kata asks for one."""
        asked = self.kata.spec.bound
        if not asked or not facts.get("speed"):
            return facts
        moved = cost["bytes_read"] + cost["bytes_written"]
        return facts | {"speed": facts["speed"] | {"bound": sentence(asked, moved, seconds, self.choices.gpu)}}


def _model() -> Any:
    """The speed model, imported (a tenth of a second) while the fork server loads torch, not before it starts."""
    from harness.model import speed

    return speed


def _counts(facts: dict[str, Any], bench: list[dict[str, Any]]) -> dict[str, Any]:
    counters, cost = facts["counters"], facts["cost"]
    least = cost["bytes_read"] + cost["bytes_written"]
    return {
        "bytes": counters["bytes_read"] + counters["bytes_written"],
        "least_bytes": least,
        "sectors": counters["sectors"],
        "least_sectors": -(-least // 32),
        "launches": len(facts["launches"]),
        "programs": sum(x["grid"][0] * x["grid"][1] * x["grid"][2] for x in facts["launches"]),
        "bench_programs": sum(x["grid"][0] * x["grid"][1] * x["grid"][2] for x in bench),
    }


def _speed(word: str, reason: str, counts: dict[str, Any], findings: list[str] | None = None) -> dict[str, Any]:
    speed = {"kind": "counted", "share": None, "gate": None, "band": None, "binds": None, "counts": counts}
    return {"word": word, "reason": reason, "findings": findings or [], "not_checked": [], "speed": speed}


def _shown(launches: list[tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{name}{list(grid)}" for name, grid in launches[:3]) or "nothing"
