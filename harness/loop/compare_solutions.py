"""``nox -s compare -- 05_nf4``: your kernel and the reference side by side, once you have passed. No torch here.

The gate is one of courtesy: it opens when the last round ended in a pass, or with ``--peek``, which is recorded.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.branches.git import Git
from harness.course import Course, Kata, load_course
from harness.diagnosis.constructs import difference
from harness.errors import CourseError, HarnessFault, KataError, StoreError
from harness.loop.rerun import Command, Grader
from harness.record import Attempt, file_digest, now
from harness.steps import steps
from harness.store import Store
from harness.streaks import Standing, standings
from harness.verdict import Verdict

BRANCH = "reference"  # where `nox -s practice` keeps what it takes out of the tree


def main(argv: Sequence[str] | None = None, root: Path | None = None, command: Command | None = None) -> int:
    """Compare the kata that ``argv`` names. Returns 0, or 1 when the gate is closed or something is wrong."""
    parser = argparse.ArgumentParser(
        prog="nox -s compare --", description="Yours and the reference side by side, after a pass.",
        epilog="Further options go to pytest: --gpu A100.",
    )  # fmt: skip
    parser.add_argument("kata", nargs="?", default="", help="slug, id or number, such as 05_nf4")
    parser.add_argument("--peek", action="store_true", help="before a pass: recorded, and it ends the streak")
    parser.add_argument("--records", metavar="DIR", type=Path, help="where records are kept (default: records/)")
    args, options = parser.parse_known_args(argv)
    try:
        course = load_course(root)
        kata = course.kata(args.kata)
        store = Store(args.records or course.root / "records")
        history, problems = store.history()
        for problem in problems:
            print(problem, file=sys.stderr)
        standing = standings(history, [kata.id], now())[kata.id]
        if not is_open(standing) and not args.peek:
            print(closed(kata, standing))
            return 1
        yours = _text(kata.stub, f"exercises/{kata.slug}/kernel.py")
        with reference_of(course, kata) as reference:
            if not is_open(standing):
                _record_peek(store, kata, standing)
            show(course, kata, yours, reference, options, command)
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return 0


# -- the gate ----------------------------------------------------------------------------------------------------------


def is_open(standing: Standing) -> bool:
    """Return whether the kata is passed: its last round ended so, and no reset has begun another."""
    return standing.passes > 0 and not standing.in_round


def closed(kata: Kata, standing: Standing) -> str:
    """Return what to read when the gate is closed: why, and how to proceed."""
    if standing.passes:
        why = "this round, which began with your reset, has none yet"
    elif standing.attempts:
        runs = f"{standing.attempts} attempt{'s' if standing.attempts > 1 else ''}"
        why = f"there is none yet ({runs}; the last verdict: {standing.verdict})"
    else:
        why = "there is none yet"
    return steps(
        f"{kata.slug}: compare opens after a pass, and {why}. How to proceed:",
        (f"pytest exercises/{kata.slug}", "grade it: the first failure says what is wrong, and where"),
        (f"nox -s hint -- {kata.slug}", f"one more hint; {standing.hints_used or 'none'} seen in this round"),
        (f"nox -s compare -- {kata.slug} --peek", "open it now: that is recorded, and your streak ends"),
    )


def _record_peek(store: Store, kata: Kata, standing: Standing) -> None:
    help_used = {"hints": standing.hints_used, "peek": True}
    try:
        store.append(Attempt(kind="peek", id=kata.id, slug=kata.slug, help=help_used, source=file_digest(kata.stub)))
        print(
            f"{kata.slug}: a peek, recorded. This round can still end in a pass; a new streak begins with the next.\n"
        )
    except StoreError as error:
        print(error, file=sys.stderr)


# -- the two files -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def reference_of(course: Course, kata: Kata) -> Iterator[Path]:
    """Give the path of the reference kernel: in the tree, or else from the branch, in a folder outside of the checkout.

    Raises:
        CourseError: it is in neither.
    """
    if kata.solution.is_file():
        yield kata.solution
        return
    text = _from_branch(course, kata)
    with tempfile.TemporaryDirectory(prefix="kata-", ignore_cleanup_errors=True) as folder:
        if Path(folder).resolve().is_relative_to(course.root):
            raise CourseError(
                f"TMPDIR={tempfile.gettempdir()} lies in the checkout, where no solution may be; choose another folder."
            )
        path = Path(folder) / f"{kata.slug}.py"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        yield path


def _from_branch(course: Course, kata: Kata) -> str:
    """Return the reference from the branch, also where the kata has another number there."""
    try:
        git = Git(course.root)
        names = git.run("ls-tree", "--name-only", BRANCH, "solutions/").split()
        slug = next((name for n in names if (name := n.rpartition("/")[2])[3:] == kata.id), kata.slug)
        return git.run("show", f"{BRANCH}:solutions/{slug}/kernel.py")
    except KataError as error:
        raise CourseError(
            f"The reference of {kata.slug} is neither in solutions/ nor on the branch {BRANCH!r}, which "
            f"`nox -s practice` makes. {error}"
        ) from None


def _text(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CourseError(f"{name} cannot be read: {error.strerror}; `nox -s reset` brings a blank one.") from None
    except UnicodeDecodeError as error:
        raise CourseError(f"{name} is not UTF-8 at byte {error.start}; save it as UTF-8.") from None


# -- what is shown -----------------------------------------------------------------------------------------------------


def show(
    course: Course, kata: Kata, yours: str, reference: Path, options: Sequence[str], command: Command | None = None
) -> None:
    """Print the diff, what either does that the other does not, and both verdicts. Raises HarnessFault."""
    theirs = reference.read_text(encoding="utf-8")
    _print_diff(kata, yours, theirs)
    print("\n".join(constructs_text(yours, theirs)))
    verdicts = grade_both(course, kata, reference, options, command)
    print("\n" + side_by_side(*verdicts))


def _print_diff(kata: Kata, yours: str, theirs: str) -> None:
    from rich.console import Console
    from rich.syntax import Syntax

    names = f"yours: exercises/{kata.slug}/kernel.py", "the reference"
    diff = list(difflib.unified_diff(yours.splitlines(), theirs.splitlines(), *names, lineterm=""))
    if not diff:
        print("Yours and the reference are the same, line by line.\n")
        return
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(Syntax("\n".join(diff), "diff", theme="ansi_dark", background_color="default", word_wrap=True))
        print()
    else:
        print("\n".join([*diff, ""]))


def constructs_text(yours: str, theirs: str) -> list[str]:
    """Return the lines about what either does that the other does not."""
    try:
        found = difference(yours, theirs)
    except SyntaxError as error:
        return [f"Yours cannot be read as Python (line {error.lineno}: {error.msg}), so only its text is compared."]
    if not found:
        return ["Both are built from the same constructs; the difference is in the details above, if there is one."]
    lines: list[str] = []
    parts = {
        "The reference does, and yours does not:": found.only_reference,
        "Yours does, and the reference does not:": found.only_yours,
        "Both do, in different ways (yours -> the reference):": [f"{w}: {a} -> {b}" for w, a, b in found.changed],
    }
    for head, items in parts.items():
        if items:
            lines += [*([""] if lines else []), head, *(f"  - {item}" for item in items)]
    return lines


def grade_both(
    course: Course, kata: Kata, reference: Path, options: Sequence[str], command: Command | None = None
) -> tuple[Verdict, Verdict]:
    """Grade both files now, on the same inputs, side by side; nothing is recorded. Raises HarnessFault."""
    seed = ["--no-record", "--kata-seed", str(secrets.randbelow(2**31)), *options]
    with Grader(course, seed, any("cuda" in o for o in options), command) as grader:
        print("\nGrading both …", flush=True)
        runs = [grader.start(kata, "", more) for more in ([], ["--submission", str(reference)])]
        try:
            while not all(run.ended() for run in runs):
                time.sleep(0.02)
        finally:  # Ctrl-C
            for run in runs:
                if not run.ended():
                    grader.stop(run)
        results = [grader.result(run) for run in runs]
    for name, (verdict, lines) in zip(("yours", "the reference"), results, strict=True):
        if verdict is None:
            last = "\n".join(lines)
            raise HarnessFault(
                f"No verdict on {name}; `nox -s doctor` looks for the cause. What was said last:\n{last}"
            )
    return results[0][0], results[1][0]


def side_by_side(yours: Verdict, theirs: Verdict) -> str:
    """Return the table of both verdicts and what was counted, and why yours is not a pass."""
    columns = [_facts(yours), _facts(theirs)]
    rows = [(name, *(c.get(name, "") for c in columns)) for name in dict.fromkeys([*columns[0], *columns[1]])]
    rows.insert(0, ("", "yours", "the reference"))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    if yours.word != "pass" and yours.reason.strip():
        lines += ["", f"yours is {yours.word}: {yours.reason.strip().splitlines()[0]}"]
    return "\n".join(lines)


def _facts(verdict: Verdict) -> Mapping[str, str]:
    """Return the rows of one column, in order."""
    speed: Mapping[str, Any] = verdict.speed or {}
    counts = speed.get("counts") or {}
    out = {
        "verdict": verdict.word,
        "tests passed": f"{sum(o == 'passed' for o in verdict.tests.values())} of {len(verdict.tests)}",
    }
    if speed.get("share") is not None:
        out[f"share of the limit ({speed.get('kind')})"] = f"{speed['share']:.0%}"
    if speed.get("binds"):
        out["what binds"] = str(speed["binds"])
    for name in ("bytes", "sectors"):
        if counts.get(f"least_{name}"):
            out[f"{name}, of the least"] = f"{counts[name] / counts[f'least_{name}']:.2f}x"
    titles = {"launches": "launches", "programs": "programs", "bench_programs": "programs, bench shape"}
    return out | {title: f"{counts[name]:,}" for name, title in titles.items() if counts.get(name)}


if __name__ == "__main__":
    sys.exit(main())
