"""Session: what one pytest process knows about the katas it grades; the plugin's hooks call it. No torch here."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.course import ROOT, Course, Kata, load_course
from harness.desk import CPU_LIMITS, GPU_LIMITS, HOST_LIMITS, Choices, Desk
from harness.device import find_device
from harness.errors import HarnessFault, KataError, SubmissionError
from harness.gauge import speed_facts
from harness.report import paragraph
from harness.run import KataFailure, Run, as_test_facts, replay_command
from harness.runner.client import SERVER, Client, Server
from harness.spec import Case
from harness.verdict import TestFacts, Verdict, fold

PROPERTY = "kata"
DONE = "kata done: "  # how a line begins that tells ``grade`` of a kata's verdict
EXAMPLES = 8  # of each hypothesis test, drawn anew each run
_GPUS = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")

collecting: Session | None = None  # the session that folds: pytest_runtest_logreport has no config


class Session:
    """The katas of one pytest process."""

    def __init__(self, course: Course, choices: Choices, config: pytest.Config) -> None:
        self.course, self.choices = course, choices
        self.worker: dict[str, Any] | None = getattr(config, "workerinput", {}).get("kata")
        self.server: Server | None = None
        self.borrowed = os.environ.get(SERVER, "")  # the folder of a server that `watch` or `compare` holds warm
        self.clients: dict[tuple[str, str], Client] = {}
        self.desks: dict[str, Desk] = {}
        self.runners: dict[str, Run] = {}
        self.suites: dict[str, list[str]] = {}
        self.facts: dict[str, dict[str, TestFacts]] = {}
        self.verdicts: list[Verdict] = []
        self.faults: list[str] = []
        self.file_for_verdicts: str | None = config.getoption("--verdicts")
        self.where = config.invocation_params.dir
        self.narrowed = _narrowed(config)
        self.progress = config.getoption("--kata-progress")
        self.reporter = config.pluginmanager
        self.records = Path(config.getoption("--records") or course.root / "records")
        self.recording = not (_unrecorded(config) or self.narrowed or self.worker)
        self.remarks: list[str] = []

    @classmethod
    def from_config(cls, config: pytest.Config) -> Session:
        """Read the options. Raises KataError with one sentence."""
        global collecting
        given = getattr(config, "workerinput", {}).get("kata", {})
        submission = config.getoption("--submission")
        path = None
        if submission:
            path = (config.invocation_params.dir / submission).resolve()
            if not path.is_file():
                raise SubmissionError(f"--submission {submission}: there is no such file; give a Python file to grade.")
            if config.getoption("--solutions"):
                raise SubmissionError("--submission and --solutions exclude each other; give one of them.")
        seed = config.getoption("--kata-seed")
        if seed is None:
            seed = given.get("seed", secrets.randbelow(2**31))
        choices = Choices(
            seed=seed,
            device=device_of(config.getoption("--device")),
            gpu=find_device(config.getoption("--gpu")),
            speed=not config.getoption("--no-speed"),
            submission=path,
            solutions=config.getoption("--solutions"),
        )
        out = cls(load_course(_root_of(config)), choices, config)
        if out.worker is None:
            collecting = out
        return out

    # -- processes -----------------------------------------------------------------------------------------------

    def for_worker(self) -> dict[str, Any]:
        """Return what an xdist worker needs to know."""
        return {"seed": self.choices.seed, "folder": str(self.server.folder) if self.server else self.borrowed}

    def start(self, config: pytest.Config) -> None:
        """Start the fork server unless every file in question is an untouched stub, or a worker does the work."""
        paths = [(self.where / a.split("::")[0]).resolve() for a in config.args]
        katas = [
            k
            for k in self.course.katas
            if any(p == k.folder or p in k.folder.parents or k.folder in p.parents for p in paths)
        ]
        if katas:
            _load_profile()
        if self.worker is not None or config.getoption("collectonly", False):
            return
        if any(not self._todo(k) for k in katas):
            self._start_server()

    def _start_server(self) -> None:
        if self.server is None and not self.borrowed:
            self.server = Server(cuda=self.choices.device == "cuda")

    def connect(self, slug: str, kind: str) -> Client:
        """Return a kata's connection to one kind of server, made on first use.

        Each kata has its own: one that ended early may have left answers on the way that are nobody's now.
        """
        if (slug, kind) not in self.clients:
            for other in [key for key in self.clients if key[0] != slug]:
                self.clients.pop(other).close()
            if self.worker and self.worker["folder"]:
                folder = Path(self.worker["folder"])
            else:
                self._start_server()
                folder = self.server.folder if self.server else Path(self.borrowed)
            self.clients[slug, kind] = Client(folder, kind)
        return self.clients[slug, kind]

    def close(self) -> None:
        """Hang up, and stop the server if this process started it."""
        global collecting
        for client in self.clients.values():
            client.close()
        if self.server is not None:
            self.server.close()
            self.server = None
        if collecting is self:
            collecting = None

    # -- collection ----------------------------------------------------------------------------------------------

    def kata_of(self, item: pytest.Item) -> Kata | None:
        """Return the kata that a test belongs to, or None for any other test."""
        kata = self.course.of_path(item.path)
        return kata if kata is not None and item.path.name == "test_kernel.py" else None

    def declared(self, path: Path) -> list[Case]:
        """Return the small cases of the kata that ``path`` belongs to. Raises UsageError for a broken toml."""
        kata = self.course.of_path(path)
        if kata is None:
            raise pytest.UsageError(f"{path}: the fixture `declared` belongs to tests in exercises/NN_name/.")
        try:
            return list(kata.spec.with_role("small"))
        except KataError:
            return []  # the test itself says what is wrong with the toml; other katas go on

    def collected(self, items: list[pytest.Item]) -> list[pytest.Item]:
        """Seed hypothesis, note every test of each suite, and return the tests that need not run.

        Of an untouched stub one test is enough to say ``todo``.
        """
        spare: list[pytest.Item] = []
        for item in items:
            kata = self.kata_of(item)
            if kata is None:
                continue
            suite = self.suites.setdefault(kata.slug, [])
            suite.append(item.name)
            if len(suite) > 1 and self._todo(kata):
                spare.append(item)
                continue
            inner = getattr(item.obj, "hypothesis", None)
            if inner is not None:
                from hypothesis import seed

                seed(self.choices.seed)(item.obj)
        return spare

    def collected_elsewhere(self, ids: list[str]) -> None:
        """Note the tests of each suite from a worker's node ids."""
        suites: dict[str, list[str]] = {}
        for node in ids:
            path, _, name = node.partition("::")
            kata = self.course.of_path(self.course.root / path)
            if kata is not None:
                suites.setdefault(kata.slug, []).append(name)
        self.suites.update(suites)

    # -- tests ---------------------------------------------------------------------------------------------------

    def file_of(self, kata: Kata) -> Path:
        """Return the file to grade for this kata."""
        if self.choices.submission is not None:
            return self.choices.submission
        return kata.solution if self.choices.solutions else kata.stub

    def _todo(self, kata: Kata) -> bool:
        file = self.file_of(kata)
        return not file.is_file() or self.course.is_untouched(kata, file)

    def desk(self, item: pytest.Item) -> Desk:
        """Return the desk of the test's kata."""
        kata = self.kata_of(item)
        if kata is None:
            raise HarnessFault(
                f"{item.nodeid} uses a fixture of the katas but is not in exercises/NN_name/test_kernel.py."
            )
        if kata.slug not in self.desks:
            self.desks[kata.slug] = Desk(
                kata, self.file_of(kata), self.choices, functools.partial(self.connect, kata.slug)
            )
        return self.desks[kata.slug]

    def runner(self, item: pytest.Item) -> Run:
        """Return ``run`` for one test; a file that is still the stub fails right here."""
        desk = self.desk(item)
        runner = Run(desk, item.name, replay_command(desk.kata, item.name, self.choices))
        self.runners[item.nodeid] = runner
        if not desk.file.is_file():
            reason = f"{desk.file.name} is missing in {desk.file.parent.parent.name}/{desk.file.parent.name}/."
            if self.choices.solutions:
                reason += (
                    " On the practice branch the references stand behind the branch `reference`: "
                    f"`nox -s compare -- {desk.kata.slug}` shows this one."
                )
            runner.fail("", _facts("error", reason), None)
        if self.course.is_untouched(desk.kata, desk.file):
            runner.fail(
                "", _facts("todo", "the stub is untouched: read README.md beside it, then fill in the TODOs."), None
            )
        return runner

    def compiles(self, item: pytest.Item):
        """Return ``compiles`` for one test."""
        return self._late(item, Desk.compile_facts)

    def speed(self, item: pytest.Item):
        """Return ``speed`` for one test."""
        return self._late(item, speed_facts)

    def _late(self, item: pytest.Item, facts_of: Callable[[Desk], dict[str, Any]]):
        runner = self.runner(item)

        def judge() -> None:
            if runner.desk.ended:
                runner.fail("", _facts("timeout", runner.desk.ended), None)
            facts = facts_of(runner.desk)
            runner.facts.append(facts)
            if facts["word"] != "pass":
                runner.fail("", facts, None)

        return judge

    def reported(self, item: pytest.Item, call: pytest.CallInfo, report: pytest.TestReport) -> pytest.TestReport:
        """Attach facts to a report, and replace the traceback of a learner's failure by its text."""
        kata = self.kata_of(item)
        if kata is None or report.when == "teardown" or (report.when == "setup" and report.passed):
            return report
        error = call.excinfo.value if call.excinfo is not None else None
        runner = self.runners.get(item.nodeid)
        failure = None
        if isinstance(error, KataFailure):
            failure = error.facts
            report.longrepr = str(error)
            if report.when == "setup":  # the stub is untouched: a failure of the test, not an error of the suite
                report.when = "call"
        elif error is not None:
            text = str(error) if isinstance(error, KataError) else f"{type(error).__name__}: {error}"
            report.longrepr = f"the harness failed, not your code: {text}\nRun `nox -s doctor`."
            report.user_properties.append((PROPERTY, json.dumps({"slug": kata.slug, "fault": text})))
            return report
        facts = as_test_facts(item.name, report.outcome, runner.facts if runner else [], failure)
        report.user_properties.append((PROPERTY, json.dumps({"slug": kata.slug} | facts.to_json())))
        return report

    # -- the end -------------------------------------------------------------------------------------------------

    def collect(self, report: pytest.TestReport) -> None:
        """Keep the facts of one report."""
        known = [v for n, v in report.user_properties if n == PROPERTY]
        kata = self.course.of_path(self.course.root / report.nodeid.split("::")[0])
        if not known and report.failed and kata is not None:  # a worker died, or a hook of ours raised
            self.faults.append(f"{report.nodeid} ended without a verdict: {str(report.longrepr)[-500:]}")
        for name, value in report.user_properties:
            if name == PROPERTY:
                data = json.loads(value)
                slug = data.pop("slug")
                if "fault" in data:
                    self.faults.append(data["fault"])
                    continue
                facts = TestFacts.from_json(data)
                self.facts.setdefault(slug, {})[facts.name] = facts
                if self.progress and len(self.facts[slug]) == len(self.suites.get(slug, [])):
                    word = self._verdict(slug).word
                    self.reporter.get_plugin("terminalreporter").write_line(f"\n{DONE}{slug} {word}")

    def finish(self, session: pytest.Session, status: int) -> int:
        """Fold, write ``--verdicts``, and return pytest's exit status."""
        if self.worker is not None:
            return status
        self.verdicts = [self._verdict(slug) for slug in sorted(self.facts)]
        if self.file_for_verdicts:
            self._write_verdicts()
        if self.recording:
            self._record()
        if self.faults:
            return 3
        return status

    def _limits(self, slug: str) -> str:
        """Return what this device cannot check about a kata."""
        if self.choices.device == "cuda":
            return GPU_LIMITS
        kata = next((k for k in self.course.katas if k.slug == slug), None)
        try:
            return HOST_LIMITS if kata is not None and kata.spec.side == "host" else CPU_LIMITS
        except KataError:  # a broken toml: its tests say so
            return CPU_LIMITS

    def _verdict(self, slug: str) -> Verdict:
        facts = self.facts[slug]
        return fold(
            slug,
            list(facts.values()),
            seed=self.choices.seed,
            missing=[n for n in self.suites.get(slug, []) if n not in facts],
            narrowed=self.narrowed,
            device_limits=self._limits(slug),
        )

    def _record(self) -> None:
        """Append one line for each kata of the learner's that was judged whole; a failure to write is only said."""
        from harness.record import Attempt, file_digest, versions
        from harness.store import Store
        from harness.streaks import help_used

        done = [v for v in self.verdicts if v.whole and v.word != "todo"]
        if not done:
            return
        store = Store(self.records)
        events, problems = store.history()
        self.remarks += problems
        for verdict in done:
            kata = self.course.kata(verdict.slug)
            try:
                store.append(
                    Attempt(
                        id=kata.id,
                        slug=kata.slug,
                        verdict=verdict.word,
                        reason=verdict.reason,
                        speed=verdict.speed,
                        help=help_used(events, kata.id),
                        source=file_digest(kata.stub),
                        seed=verdict.seed,
                        device=self._device_name(),
                        versions=versions(self.course.root),
                    )
                )
            except (KataError, OSError) as error:
                self.remarks.append(str(error))

    def _device_name(self) -> str:
        return "cuda" if self.choices.device == "cuda" else f"cpu, for {self.choices.gpu.name}"

    def _write_verdicts(self) -> None:
        data = {"schema": 1, "device": self._device_name(), "katas": {v.slug: v.to_json() for v in self.verdicts}}
        path = self.where / str(self.file_for_verdicts)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    def summary(self) -> list[str]:
        """Return the lines that close the run."""
        lines = [line for v in self.verdicts for line in paragraph(v)] + list(dict.fromkeys(self.remarks))
        if self.faults:
            lines += [f"the harness itself failed (exit 3): {self.faults[0]}"]
        return lines


def _narrowed(config: pytest.Config) -> bool:
    """Return whether the command line asked for a part of a suite."""
    options = ("keyword", "markexpr", "lf", "deselect", "stepwise")
    return any(config.getoption(o, None) for o in options) or any("::" in a for a in config.args)


def _unrecorded(config: pytest.Config) -> bool:
    """Return whether the command line asked for something that is no attempt: another file, a replay, a part."""
    options = ("--solutions", "--submission", "--kata-seed", "--no-speed", "--no-record", "maxfail", "collectonly")
    return any(config.getoption(o, None) not in (None, False, 0, "") for o in options)


def _facts(word: str, reason: str) -> dict[str, Any]:
    return {"word": word, "reason": reason, "findings": [], "not_checked": []}


def device_of(choice: str) -> str:
    """Return ``cpu`` or ``cuda`` for what ``--device`` said; ``auto`` looks for a GPU's device file."""
    if choice != "auto":
        return choice
    return "cuda" if any(os.path.exists(p) for p in _GPUS) else "cpu"


def _root_of(config: pytest.Config) -> Path | None:
    """A toy course brings its own exercises/; anything else is graded in the checkout of this harness."""
    return config.rootpath if (config.rootpath / "exercises").is_dir() else None


def _load_profile() -> None:
    """Suites run with these settings; they must stand before the test modules are imported."""
    from hypothesis import HealthCheck, settings
    from hypothesis.configuration import set_hypothesis_home_dir

    settings.register_profile(
        "kata",
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("kata")
    set_hypothesis_home_dir(ROOT / ".hypothesis")  # else it makes that folder wherever pytest was called
