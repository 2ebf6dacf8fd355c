"""``nox -s mutants``: small mistakes are made in every solution, and its suite must see each one. No torch here.

A mutant is dead when a test of the kata's suite refuses it; what lives must be explained in ``equivalent.toml`` beside
the solution, or needs a better test. Results are kept outside the checkout, by what they depend on, so that a second
run costs seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.course import ROOT, Course, Kata, load_course
from harness.errors import HarnessFault, KataError
from harness.mutation.mutant_cache import Cache
from harness.mutation.mutant_report import problems_of, rows, shown
from harness.mutation.mutate import OPERATORS, Mutant, mutants
from harness.mutation.survivors import Explanation, load_explanations, stale
from harness.runner.client import SERVER, Server

WORKERS = 2
ALIVE = ("pass", "undecided")
SEED = 0  # the draw of each suite's cases; `--seed` tries another


@dataclass(frozen=True)
class Result:
    """What a suite said about one mutant.

    Attributes:
        word: the verdict of the first test that refused it, or ``pass``.
        test: the name of that test.
        reason: the first line of what it said; for ``pass`` the first finding, if there was one.
        explanation: what ``equivalent.toml`` says about it, or None.
    """

    mutant: Mutant
    word: str
    test: str
    reason: str
    explanation: Explanation | None = None

    @property
    def fate(self) -> str:
        """``killed``, ``survived``, or the kind of its explanation."""
        if self.word not in ALIVE:
            return "killed"
        return self.explanation.kind if self.explanation else "survived"

    def to_json(self) -> dict[str, Any]:
        """Return plain values, without the source."""
        m = self.mutant
        return {
            "operator": m.operator, "line": m.line, "before": m.before, "after": m.after, "nth": m.nth,
            "digest": m.digest, "word": self.word, "test": self.test, "reason": self.reason, "fate": self.fate,
            "why": self.explanation.why if self.explanation else "",
        }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Make and run the mutants of the katas in ``argv`` (default: all). Returns 0 when none lives unexplained."""
    args = _parser().parse_args(argv)
    try:
        course = load_course()
        katas = [course.kata(k) for k in args.katas] or [k for k in course.katas if k.solution.is_file()]
        for kata in katas:
            if not kata.solution.is_file():
                raise KataError(f"solutions/{kata.slug}/kernel.py is missing: there is nothing to make mutants of.")
        if args.list:
            for kata in katas:
                print("\n".join(f"{kata.slug} {_line(m)}" for m in _chosen(kata, args.operator)))
            return 0
        results, problems = run(course, katas, args.operator, args.seed)
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    except SyntaxError as error:
        print(f"a solution is no valid Python: {error}.", file=sys.stderr)
        return 1
    for line in shown(results):
        print(line)
    problems += problems_of(results)
    for problem in problems:
        print(f"FAILED {problem}")
    if args.json:
        data = {"seed": args.seed, "katas": {s: [r.to_json() for r in rs] for s, rs in results.items()},
                "operators": rows(results), "problems": problems}  # fmt: skip
        Path(args.json).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    made = sum(map(len, results.values()))
    print(f"{len(katas)} katas, {made} mutants, {len(problems)} problems")
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nox -s mutants --", description="Small mistakes that every suite must see.")
    parser.add_argument("katas", nargs="*", help="slugs, ids or numbers (default: all)")
    parser.add_argument("--operator", action="append", choices=OPERATORS, help="only this one (may be repeated)")
    parser.add_argument("--list", action="store_true", help="show the mutants and run none")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"draw other cases (default: {SEED})")
    parser.add_argument("--json", metavar="FILE", help="also write everything as JSON")
    return parser


def _line(mutant: Mutant) -> str:
    return f"{mutant.operator} {mutant.digest} line {mutant.line}\n    - {mutant.before}\n    + {mutant.after}"


def _chosen(kata: Kata, operators: Sequence[str] | None) -> list[Mutant]:
    return [m for m in _all_of(kata) if not operators or m.operator in operators]


def _all_of(kata: Kata) -> list[Mutant]:
    huge = any("huge" in c.layout.values() for c in kata.spec.cases)
    return mutants(kata.solution.read_text(encoding="utf-8"), huge)


def run(
    course: Course, katas: Sequence[Kata], operators: Sequence[str] | None = None, seed: int = SEED
) -> tuple[dict[str, list[Result]], list[str]]:
    """Run the mutants of ``katas``; return what came out for each, and what is wrong with the explanations.

    Raises:
        KataError: a solution does not pass its own suite, a file cannot be read, or the harness failed.
    """
    results: dict[str, list[Result]] = {}
    problems: list[str] = []
    with contextlib.ExitStack() as stack:
        server = os.environ.get(SERVER, "")  # the folder of a fork server that is there already
        for kata in katas:
            explanations, chosen = load_explanations(kata.solutions), _chosen(kata, operators)
            cache = Cache(course, kata, seed)
            left = [m for m in chosen if cache.get(m.source) is None]
            if left:
                print(f"{kata.slug}: {len(chosen)} mutants, {len(left)} to run", file=sys.stderr, flush=True)
                if not server:
                    server = str(stack.enter_context(contextlib.closing(Server())).folder)
                _run_new(course, kata, left, seed, server, cache)
            results[kata.slug] = [_result(m, cache.get(m.source) or {}, explanations) for m in chosen]
            dead = [r.mutant for r in results[kata.slug] if r.fate == "killed" and r.word != "slow"]
            problems += [f"{kata.slug}: equivalent.toml {p}" for p in stale(explanations, _all_of(kata), dead)]
    return results, problems


def _result(mutant: Mutant, seen: dict[str, str], explanations: Sequence[Explanation]) -> Result:
    why = next((e for e in explanations if e.covers(mutant)), None)
    return Result(mutant, seen["word"], seen["test"], seen["reason"], why)


def _run_new(course: Course, kata: Kata, left: list[Mutant], seed: int, server: str, cache: Cache) -> None:
    """Run the solution, and if it passes the mutants, through the kata's suite; keep what came out.

    What is done is kept even when the run is interrupted.
    """
    solution = kata.solution.read_text(encoding="utf-8")
    sources = [*([] if cache.get(solution) else [solution]), *(m.source for m in left)]
    with tempfile.TemporaryDirectory(prefix="kata-") as folder:
        files = {}
        for number, source in enumerate(sources):
            file = files[source] = Path(folder) / f"{number:04}" / "kernel.py"
            file.parent.mkdir()
            file.write_text(source, encoding="utf-8")
        try:
            printed = _pytest(course, kata, list(files.values()), seed, server, Path(folder) / "work.json")
        finally:
            seen = {source: _read(file.with_suffix(".json")) for source, file in files.items()}
            for source, result in seen.items():
                if result and result["word"] != "fault" and (source != solution or result["word"] in ALIVE):
                    cache.put(source, result)
    for source, result in seen.items():
        if result is None:
            raise HarnessFault(f"{kata.slug}: {_name(source, left)} got no verdict; pytest said:\n{printed}")
        if result["word"] == "fault":
            raise HarnessFault(f"{kata.slug}: the harness failed on {_name(source, left)}: {result['reason']}")
        if source == solution and result["word"] not in ALIVE:
            raise KataError(
                f"{kata.slug}: the solution itself is {result['word']} ({result['test']}): {result['reason']} "
                "Mutants prove nothing before it passes."
            )


def _read(file: Path) -> dict[str, str] | None:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def _name(source: str, left: Sequence[Mutant]) -> str:
    return next((_line(m) for m in left if m.source == source), "the solution")


def _pytest(course: Course, kata: Kata, files: list[Path], seed: int, server: str, work: Path) -> str:
    """Run one pytest over all files; return the end of what it printed."""
    workers = min(WORKERS, os.cpu_count() or 1)
    work.write_text(json.dumps({"files": [str(f) for f in files], "workers": workers}), encoding="utf-8")
    env = dict(os.environ) | {SERVER: server}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [env.get("PYTHONPATH")])])
    command = [
        sys.executable, "-m", "pytest", "-q", "--no-header", "--capture=no", "-p", "no:cacheprovider",
        "-p", "harness.mutation.mutant_suite", "--mutants", str(work), "--no-record", "--device", "cpu",
        "--kata-seed", str(seed), "--submission", str(kata.solution), str(kata.folder),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=course.root, env=env, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr)[-1500:]


if __name__ == "__main__":
    sys.exit(main())
