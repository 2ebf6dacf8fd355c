"""Course: the folders of a checkout, and what stands in them. No torch here."""

from __future__ import annotations

import hashlib
import io
import json
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.errors import CourseError, did_you_mean
from harness.spec import Spec, load_spec

ROOT = Path(__file__).resolve().parent.parent
KATA_FILES = ("README.md", "exercise.toml", "reference.py", "kernel.py", "test_kernel.py")


@dataclass(frozen=True)
class Kata:
    """One kata: its folder in ``exercises/`` and, where this checkout has it, its folder in ``solutions/``."""

    folder: Path
    solutions: Path

    @property
    def slug(self) -> str:
        """``05_nf4``: the lesson's number and the stable id."""
        return self.folder.name

    @property
    def id(self) -> str:
        """``nf4``: the stable name that records use."""
        return self.slug[3:]

    @cached_property
    def spec(self) -> Spec:
        """The checked ``exercise.toml``. Raises SpecError."""
        return load_spec(self.folder)

    @property
    def stub(self) -> Path:
        """The file that a learner edits."""
        return self.folder / "kernel.py"

    @property
    def solution(self) -> Path:
        """The reference kernel; it need not exist (practice branches have none)."""
        return self.solutions / "kernel.py"

    def mutants(self) -> list[Path]:
        """Return the kernels that the suite must refuse, sorted."""
        return sorted((self.solutions / "mutants").glob("*.py"))


@dataclass(frozen=True)
class Course:
    """All katas of a checkout."""

    root: Path
    katas: tuple[Kata, ...]

    def kata(self, name: str) -> Kata:
        """Return the kata with this slug, id or number. Raises CourseError with the nearest name."""
        name = name.rstrip("/").removeprefix("exercises/")
        for kata in self.katas:
            if name in (kata.slug, kata.id, kata.slug[:2]):
                return kata
        known = [k.slug for k in self.katas]
        if not name:
            raise CourseError(f"Which kata? Name one or its number: {', '.join(known) or 'there are none'}.")
        raise CourseError(
            f"There is no kata {name!r}; there are {', '.join(known) or 'none'}.{did_you_mean(name, known)}"
        )

    def of_path(self, path: Path) -> Kata | None:
        """Return the kata in whose exercise folder ``path`` lies, or None."""
        for kata in self.katas:
            if path == kata.folder or kata.folder in path.parents:
                return kata
        return None

    @cached_property
    def stub_digests(self) -> dict[str, str]:
        """Digest of each pristine stub by kata id, from ``harness/stubs.json`` (written by ``nox -s course``)."""
        path = self.root / "harness" / "stubs.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def is_untouched(self, kata: Kata, file: Path) -> bool:
        """Return whether ``file`` still is the stub, comments and blank lines aside."""
        try:
            return self.stub_digests.get(kata.id) == source_digest(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return False


def load_course(root: Path | None = None) -> Course:
    """Find the katas below ``root`` (default: the checkout that this harness stands in). Raises CourseError."""
    root = (root or ROOT).resolve()
    exercises = root / "exercises"
    if not exercises.is_dir():
        raise CourseError(f"{root} has no folder exercises/; run from a checkout of Kernel Kata.")
    folders = sorted(p for p in exercises.iterdir() if p.is_dir() and p.name[:2].isdigit())
    return Course(root, tuple(Kata(f, root / "solutions" / f.name) for f in folders))


def source_digest(source: str) -> str:
    """Return a digest of Python source that comments, blank lines and trailing spaces do not change.

    A file that does not tokenize (a syntax error) gets the digest of its text: it is certainly not the stub.
    """
    try:
        skip = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING)
        words = [
            (t.type, t.string) for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type not in skip
        ]
        text = json.dumps(words)
    except (tokenize.TokenError, IndentationError, SyntaxError):
        text = source
    return hashlib.sha256(text.encode()).hexdigest()
