"""Week: a learner's clone of a toy course that brings the real harness, the commands they type there, and their clock.

Commands run as processes of their own, as in a terminal. They take the time from ``harness.record.now`` alone; a
``sitecustomize`` on their path puts the learner's clock in its place, so the product needs no hook for this.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from html import unescape
from pathlib import Path

from harness.course import source_digest
from harness.runner.client import Server
from harness.tests import toys
from harness.tests.clones import MARK, Repo, assert_no_solutions

ZONE = "LOC+8"  # POSIX for eight hours behind UTC: the learner's evening is the next day in UTC
LOCAL = timezone(timedelta(hours=-8))

CLOCK = '''
"""Let harness.record.now return what KATA_TEST_NOW says."""
import importlib.machinery
import os
import sys
from datetime import UTC, datetime


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "harness.record":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            assert callable(module.now)
            module.now = lambda: datetime.fromisoformat(os.environ["KATA_TEST_NOW"]).astimezone(UTC)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder)
'''

README = """# {slug}

<details><summary>1. What does one program own?</summary>
Elements `pid * BLOCK` and up.
</details>

<details><summary>2. And the last one?</summary>
Not all of its elements exist.
</details>
"""

OTHER_STUB = toys.STUB.replace("64", "128")  # what upstream makes of a stub: other blocks
# right, and not the reference's text
MINE = toys.kernel(toys.BODY.replace("x * 2", "x + x"))
WRONG = toys.computes("x * 3")
UNMASKED = toys.kernel(toys.BODY.replace(", mask=mask, other=0", ""))


@dataclass(frozen=True)
class Want:
    """What a learner should read about one kata.

    Attributes:
        runs: the verdict of each graded run so far, as the picture's label has them: ``2 wrong, 1 pass``.
        due: the learner's own time, ``03-06 19:10``; empty before the first pass.
        events: hints, peeks and resets so far, as the label has them.
    """

    verdict: str = "todo"
    runs: str = ""
    passes: int = 0
    streak: int = 0
    hints: int = 0
    peeked: bool = False
    due: str = ""
    events: str = ""

    @property
    def attempts(self) -> int:
        """The graded runs."""
        return sum(map(int, re.findall(r"\d+", self.runs)))

    def but(self, **changes: object) -> Want:
        """Return this with some changes."""
        return replace(self, **changes)

    def row(self, now: datetime, begun: bool) -> dict[str, str]:
        """Return the cells of the table that hold a number or a date."""
        tests = {"todo": "", "pass": "2/2", "wrong": "0/2", "out-of-bounds": "0/2"}[self.verdict]
        row = {"verdict": self.verdict, "tests": tests}
        if not begun:
            return row
        when = self._due()
        cell = "" if when is None else "now" if now >= when else f"{when:%Y-%m-%d}"
        help_ = ", ".join([*([_count(self.hints, "hint")] if self.hints else []), *(["peek"] if self.peeked else [])])
        return row | {"streak": str(self.streak) if self.passes else "", "due": cell, "help": help_}

    def on_the_page(self, now: datetime) -> dict[str, str]:
        """Return the same as the page words it, and the label of the picture."""
        when = self._due()
        days = -((now - when) // timedelta(days=1)) if when else 0
        due = "–" if when is None else "now" if now >= when else f"in {_count(days, 'day')}"
        help_ = [*([_count(self.hints, "hint")] if self.hints else []), *(["peeked"] if self.peeked else [])]
        passes = _count(self.passes, "pass", "es") if self.passes else ""
        label = _count(self.attempts, "attempt") + (f" ({self.runs})" if self.runs else "")
        none = not (self.attempts or self.events)
        return {
            "verdict": self.verdict,
            "streak": f"{self.streak or '–'} {passes}".strip(),
            "help": ", ".join(help_) or "–",
            "due again": due,
            "history": "none" if none else ", ".join(filter(None, [label, self.events])),
        }

    def _due(self) -> datetime | None:
        return datetime.fromisoformat(f"2026-{self.due}").replace(tzinfo=LOCAL) if self.due else None


def _count(number: int, what: str, more: str = "s") -> str:
    return f"{number} {what}{more if number != 1 else ''}"


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    def words(self) -> str:
        """Return standard output without the git commands."""
        return "".join(line for line in self.out.splitlines(keepends=True) if not line.startswith("$ "))


class Week:
    """The course's repository ``up``, the learner's clone ``me``, and the learner's clock."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        self.up, self.me = Repo(folder / "up"), Repo(folder / "me")
        self.now = datetime(2026, 3, 2, 12, tzinfo=LOCAL)
        self.practising = False
        (folder / "clock").mkdir()
        (folder / "clock" / "sitecustomize.py").write_text(CLOCK, encoding="utf-8")
        self._publish()
        url = f"file://{self.up.root}"
        subprocess.run(["git", "clone", "--quiet", "--template=", url, str(self.me.root)], check=True)
        self.me.git("config", "user.name", "Lea")
        self.me.git("config", "user.email", "lea@example.org")

    # -- upstream ------------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Write the course: two katas, and the harness of this checkout without its tests."""
        root = self.up.root
        toys.write_course(root, {slug: _files(slug) for slug in ("01_double", "02_triple")})
        stubs = self.up.read("harness/stubs.json")
        shutil.rmtree(root / "harness")
        shutil.copytree(toys.ROOT / "harness", root / "harness", ignore=shutil.ignore_patterns("__pycache__", "tests"))
        for name in (".gitignore", ".gitattributes", "records/README.md"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(toys.ROOT / name, root / name)
        self.up.write("harness/stubs.json", stubs)
        for slug in ("01_double", "02_triple"):
            self._solution(slug)
        self.up.git("init", "--quiet", "--template=")
        self.up.commit("The course")

    def _solution(self, slug: str) -> None:
        self.up.write(f"solutions/{slug}/kernel.py", toys.SOLUTION + f"\n# {MARK} of {slug}\n")
        self.up.write(f"solutions/{slug}/mutants/no_mask.py", UNMASKED + f"\n# {MARK}, but for the mask, of {slug}\n")

    def adds(self, slug: str) -> None:
        """Upstream writes a kata; it is not committed yet."""
        for name, text in {**_files(slug), "exercise.toml": toys.TOML, "reference.py": toys.REFERENCE}.items():
            self.up.write(f"exercises/{slug}/{name}", text)
        self._solution(slug)
        self.stub(slug, toys.STUB)

    def stub(self, slug: str, text: str) -> None:
        """Upstream writes a stub and its digest; it is not committed yet."""
        self.up.write(f"exercises/{slug}/kernel.py", text)
        digests = json.loads(self.up.read("harness/stubs.json")) | {slug[3:]: source_digest(text)}
        self.up.write("harness/stubs.json", json.dumps(digests))

    # -- the learner ---------------------------------------------------------------------------------------------

    def at(self, when: str) -> None:
        """Set the learner's clock, ``03-02 19:10``."""
        self.now = datetime.fromisoformat(f"2026-{when}").replace(tzinfo=LOCAL)

    def writes(self, slug: str, text: str) -> None:
        """Save a kernel."""
        self.me.write(f"exercises/{slug}/kernel.py", text)

    def start(self, module: str, *args: str) -> subprocess.Popen[str]:
        """Start a command."""
        env = toys.environment(self.server)
        path = [str(self.folder / "clock"), *env["PYTHONPATH"].split(":")[1:]]  # not this checkout's harness
        env |= {"PYTHONPATH": ":".join(path), "KATA_TEST_NOW": self.now.isoformat(), "TZ": ZONE}
        return subprocess.Popen(
            [sys.executable, "-m", module, *args], cwd=self.me.root, env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, module: str, *args: str) -> Said:
        """Run a command; whatever it does, nothing of the learner's is lost and no solution comes into the tree."""
        before = self.belongings()
        process = self.start(module, *args)
        out, err = process.communicate()
        self.nothing_is_lost(before)
        return Said(process.returncode, out, err)

    def grades(self, slug: str, when: str, verdict: str, text: str | None = None) -> Said:
        """Save ``text`` and type ``pytest exercises/SLUG``, which must end in ``verdict``."""
        self.at(when)
        if text is not None:
            self.writes(slug, text)
        said = self.run("pytest", f"exercises/{slug}", "-q")
        assert said.status == (verdict != "pass"), said
        assert f"\n{slug}: {verdict} " in said.out, said
        return said

    def chore(self, name: str, *args: str, when: str = "", status: int = 0, err: str = "") -> Said:
        """Type ``nox -s NAME -- ARGS``."""
        if when:
            self.at(when)
        module = {"compare": "loop.compare_solutions", "hint": "loop.hint"}.get(name, f"branches.{name}")
        said = self.run(f"harness.{module}", *args)
        assert (said.status, said.err) == (status, err), said
        return said

    # -- what must hold ------------------------------------------------------------------------------------------

    def belongings(self) -> dict[str, bytes]:
        """Return what is the learner's: what stands in records/, and the kernels that are no stub."""
        root = self.me.root
        files = [p for name in ("attempts", "kept") for p in (root / "records" / name).glob("*")]
        mine = [p for p in root.glob("exercises/*/kernel.py") if p.read_text() not in (toys.STUB, OTHER_STUB)]
        return {str(p.relative_to(root)): p.read_bytes() for p in [*files, *mine, *root.glob("exercises/*/notes.md")]}

    def nothing_is_lost(self, before: dict[str, bytes]) -> None:
        """Fail unless attempts only grew, kept files are as they were, and every kernel is still somewhere."""
        after = self.belongings()
        texts = {data for path, data in after.items() if "attempts" not in path}
        for path, data in before.items():
            if path.startswith("records/attempts/"):
                assert after[path].startswith(data), path
            elif path.startswith("records/kept/"):
                assert after[path] == data, path
            else:
                assert data in texts, path
        if self.practising:
            self.solutions_are_out_of_sight()

    def solutions_are_out_of_sight(self) -> None:
        """Fail when a solution's file or content is in the tree, the index, the search or the history of practice."""
        assert self.me.git("branch", "--show-current") == "practice"
        assert_no_solutions(self.me)
        blobs = {entry.split()[2] for entry in self.me.git("ls-tree", "-r", "reference", "solutions/").splitlines()}
        assert len(blobs) >= 4
        assert not blobs & {line.split()[1] for line in self.me.git("ls-files", "--stage").splitlines()}
        assert not blobs & {line.split()[0] for line in self.me.git("rev-list", "--objects", "HEAD").splitlines()}

    def shows(self, days: int, next: str, *args: str, err: Sequence[str] = (), **katas: Want) -> None:
        """Type ``nox -s grade``: every number of the table, the page and the verdicts is as given.

        Args:
            days: days in a row with a pass.
            next: the lines below the table, after that about the days.
            args: options (default: ``--no-record``, in one process).
            err: what stands on standard error beside the progress.
            katas: ``k01_double=Want(…)``, in the order of the table.
        """
        wanted = {slug[1:]: want for slug, want in katas.items()}
        page, verdicts = self.folder / "page.html", self.folder / "verdicts.json"
        args = args or ("--no-record", "-n", "0")
        said = self.run("harness.loop.grade", "--html", str(page), "--verdicts", str(verdicts), *args)
        assert said.status == 0, said
        progress = [line for line in said.err.splitlines() if line.startswith("graded ")]
        told = [line for line in said.err.splitlines() if line not in progress]
        same("the progress", {x for x in progress if not x.endswith(" todo")}, {
            f"graded {slug} {want.verdict}" for slug, want in wanted.items() if want.verdict != "todo"
        })  # fmt: skip
        same("standard error", told, [f"The page is in {page}.", *err])
        head, _, foot = said.out.partition("\n\n")
        begun, rows = any(want.attempts or want.events for want in wanted.values()), _rows(head)
        same("the katas", list(rows), list(wanted))
        for slug, want in wanted.items():
            row = want.row(self.now, begun)
            same(slug, {name: rows[slug].get(name) for name in row}, row)
        same("below the table", foot, (f"{_count(days, 'day')} in a row with a pass.\n" if days else "") + f"{next}\n")
        found = json.loads(verdicts.read_text(encoding="utf-8"))["katas"]
        same("verdicts", {s: kata["verdict"] for s, kata in found.items()}, {s: w.verdict for s, w in wanted.items()})
        self._page_shows(page.read_text(encoding="utf-8"), days, next, wanted)

    def _page_shows(self, text: str, days: int, next: str, wanted: dict[str, Want]) -> None:
        rows = {
            m[1]: _cells(row)
            for row in re.findall(r"<tbody>(.*?)</tbody>", text, re.DOTALL)
            if (m := re.search(r'<th scope="row">(\w+)', row))
        }
        same("the page", rows, {slug: want.on_the_page(self.now) for slug, want in wanted.items()})
        due = [slug for slug, want in wanted.items() if want.on_the_page(self.now)["due again"] == "now"]
        best = max(want.streak for want in wanted.values())
        same("tiles", [re.sub(r"<[^>]+>", "", tile) for tile in re.findall(r"<li>(<b>.*?)</li>", text)], [
            f"{sum(w.verdict == 'pass' for w in wanted.values())} of {len(wanted)} katas pass now",
            f"{_count(days, 'day')} in a row with a pass",
            f"{_count(best, 'round')} in a row, the longest streak of a kata",
            f"{len(due)} due again from blank" + (f": {', '.join(due)}" if due else ""),
        ])  # fmt: skip
        same("the page's time", re.search(r">([^<>]*)</time>", text)[1], f"{self.now:%Y-%m-%d %H:%M}")
        same("what is next", unescape(text.partition('<p class="next">')[2].partition("</p>")[0]), next)


def same(what: str, got: object, wanted: object) -> None:
    """Fail, with both of them, unless they are equal."""
    assert got == wanted, f"{what}:\n got      {got!r}\n expected {wanted!r}"


def _files(slug: str) -> dict[str, str]:
    return {"README.md": README.format(slug=slug), "test_kernel.py": toys.LEAN}


def _rows(table: str) -> dict[str, dict[str, str]]:
    """Return the cells of a table by slug and column; a column begins where its title does."""
    head, *rows = table.splitlines()
    starts = [(m[0], m.start()) for m in re.finditer(r"\w+", head)]
    ends = [start for _, start in starts[1:]] + [None]
    return {row.split()[0]: {name: row[a:b].strip() for (name, a), b in zip(starts, ends, strict=True)} for row in rows}


def _cells(row: str) -> dict[str, str]:
    """Return the cells of a row of the page; of the verdict its word, of the picture its label."""
    found = dict(re.findall(r'<td data-name="([^"]+)">(.*?)</td>', row, re.DOTALL))
    label = re.search(r'aria-label="\w+: ([^"]*)"', found["history"])
    words = {name: " ".join(re.sub(r"<[^>]+>", " ", cell).split()) for name, cell in found.items()}
    return words | {"verdict": words["verdict"].split()[0], "history": label[1] if label else "none"}
