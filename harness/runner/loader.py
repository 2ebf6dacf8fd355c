"""The learner's file becomes a module, and what it raises becomes words about the learner's own line."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
import types
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.diagnosis.explain import hint, said
from harness.errors import did_you_mean


@dataclass(frozen=True)
class Raised:
    """An exception, seen from the learner's file.

    Attributes:
        kind: class name.
        text: one or a few lines: what, where, what to do next.
        line: the last line of the learner's file that was running, or 0.
        todo: the learner's own NotImplementedError.
        ours: raised inside the harness or Triton, not in the learner's code: it may be our fault.
    """

    kind: str
    text: str
    line: int
    todo: bool
    ours: bool

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


# what the interpreter refuses because no copy engine can do it: the compiler does not look
_HARDWARE = r"(base|stride) must be 16-byte aligned"
# raised by Triton or by us about what the learner wrote, wherever the innermost frame is
_THEIRS = ("KernelError", "StaticAssert", "CompilationError", "ValueError", "UnsupportedLanguageConstruct")


class NoEntry(Exception):
    """The learner's file does not define the function that the kata asks for."""


def load_source(path: Path, name: str) -> types.ModuleType:
    """Run ``path`` as a module called ``name`` and return it. Raises whatever the file raises."""
    source = path.read_text(encoding="utf-8")
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def find_entry(module: types.ModuleType, entry: str, names: Sequence[str]) -> Any:
    """Return the function ``entry`` of the module, as something to be called with positional arguments.

    Parameters that it takes by keyword only are passed by name: ``names`` are those of the arguments, in order.
    Raises NoEntry with the nearest name.
    """
    found = getattr(module, entry, None)
    if not callable(found):
        known = [n for n, v in vars(module).items() if isinstance(v, types.FunctionType)]
        raise NoEntry(
            f"{Path(module.__file__ or '').name} defines no function {entry!r}; the kata calls {entry}(…)."
            f"{did_you_mean(entry, known)}"
        )
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):  # a builtin, or an object that hides it
        return found
    named = [n for n in names if n in parameters and parameters[n].kind is inspect.Parameter.KEYWORD_ONLY]
    if not named:
        return found

    def call(*args: Any) -> Any:
        given = dict(zip(names, args, strict=True))
        return found(*(v for n, v in given.items() if n not in named), **{n: given[n] for n in named})

    return call


def raised(error: BaseException, file: Path) -> Raised:
    """Describe ``error`` for the person who wrote ``file``."""
    if isinstance(error, NoEntry):
        return Raised("NoEntry", str(error), 0, False, False)
    if isinstance(error, SyntaxError) and error.filename == str(file):
        text = f"line {error.lineno}: {error.msg}" + (f"\n    {error.text.strip()[:160]}" if error.text else "")
        return Raised(type(error).__name__, text, error.lineno or 0, False, False)
    cause, compiled = error, _compiled_line(error, file)
    while type(cause).__name__ in ("InterpreterError", "CompilationError") and cause.__cause__ is not None:
        cause = cause.__cause__
        compiled = _compiled_line(cause, file) or compiled
    frames = traceback.extract_tb(cause.__traceback__) + traceback.extract_tb(error.__traceback__)
    mine = [f for f in traceback.extract_tb(cause.__traceback__) if f.filename == str(file)] or [
        f for f in frames if f.filename == str(file)
    ]
    line = compiled or (mine[-1].lineno or 0 if mine else 0)
    last = traceback.extract_tb(cause.__traceback__)
    inside = bool(last) and last[-1].filename == str(file)
    code = linecache.getline(str(file), line).strip() if line else ""
    message = text = _words(cause)
    if message == "AssertionError" and last and not inside:  # a bare assert of Triton's: what it asserts says more
        message = text = f"{message}: {(last[-1].line or '').strip()}"
    if line and not message.startswith("line "):
        text = f"line {line}: {text}\n    {code}"
    advice = hint(cause, code)
    return Raised(
        kind=type(cause).__name__,
        text=text + (f"\n{advice}" if advice else ""),
        line=line,
        todo=isinstance(cause, NotImplementedError) and inside,
        ours=not (inside or type(cause).__name__ in _THEIRS or re.search(_HARDWARE, message)),
    )


def _words(error: BaseException) -> str:
    """Return what an exception says, without what only Triton's own developers can use."""
    kind, text = type(error).__name__, said(error)
    if kind == "KernelError":
        return text
    if kind == "PTXASError":
        reasons = re.findall(r"; error\s*: (.+)", text)
        return f"{kind}: {'; '.join(dict.fromkeys(reasons))}" if reasons else f"{kind}: {text}"
    if hasattr(error, "node"):  # the rest of the text is the function's source, which the learner has
        text = str(getattr(error, "error_message", None) or "")
        if quoted := re.fullmatch(r"(\w+)\((['\"])(.*)\2,?\)", text, re.DOTALL):  # an exception, kept as its repr
            kind, text = quoted[1], quoted[3].replace("\\'", "'").replace("\\n", "\n")
    return f"{kind}: {text}" if text else kind


def _compiled_line(error: BaseException, file: Path) -> int:
    """Return the line of ``file`` that Triton's compiler complains about; 0 when it does not say, or is elsewhere."""
    source, at = getattr(error, "src", None), getattr(getattr(error, "node", None), "lineno", 0)
    if not isinstance(source, str) or not at:
        return 0
    wanted = [text.strip() for text in source.strip("\n").splitlines()]
    lines = [text.strip() for text in linecache.getlines(str(file))]
    first = next((i for i in range(len(lines)) if lines[i : i + len(wanted)] == wanted), None)
    return 0 if first is None else first + at
