"""Edits: Python source as a tree whose nodes know their text, and small changes to that text. No torch here.

A change replaces the characters of one node and leaves everything else as it stands, so comments, layout and line
numbers survive; ``ast.unparse`` would lose all three.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HINTS = re.compile(r"num_(warps|stages|ctas)|maxnreg|warps|stages")  # to the compiler: they change no result
Edit = tuple[int, int, str]  # from, to (offsets into the source, in characters), what stands there instead
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Tuple)
_BINDS = (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Starred)  # an operator inside one of these needs parentheses


@dataclass(frozen=True)
class Function:
    """One function of the file: what Triton compiles (``is_kernel``), or what runs on the host."""

    node: ast.FunctionDef
    is_kernel: bool

    @property
    def parameters(self) -> list[str]:
        """Return the names of its parameters, in order."""
        args = self.node.args
        return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


class Code:
    """A Python file that can be changed node by node. Raises SyntaxError for one that does not parse."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = ast.parse(source)
        self.lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))
        self.parent = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.functions = [
            Function(n, any("jit" in ast.unparse(d) for d in n.decorator_list))
            for n in ast.walk(self.tree)
            if isinstance(n, ast.FunctionDef)
        ]
        self._home = {n: f for f in self.functions for n in _own(f.node)}

    # -- nodes -----------------------------------------------------------------------------------------------------

    def nodes(self, *kinds: type, kernel: bool | None = None) -> Iterator[ast.AST]:
        """Yield the nodes of these kinds in the bodies of functions, in the order of the text.

        Left out is what a suite cannot or need not see: docstrings, annotations, decorators, assertions, the checks of
        arguments (an ``if`` that only raises), and the numbers of warps and stages, which change the speed alone.

        Args:
            kernel: only what Triton compiles (True), only what runs on the host (False), or both (None).
        """
        found = [
            n
            for n, f in self._home.items()
            if isinstance(n, kinds or ast.AST) and (kernel is None or f.is_kernel is kernel)
        ]
        yield from sorted(found, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))

    def function(self, node: ast.AST) -> Function:
        """Return the function in whose body a node stands."""
        return self._home[node]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, from the inside."""
        while node in self.parent:
            node = self.parent[node]
            yield node

    def is_test(self, node: ast.AST) -> bool:
        """Return whether a node decides which way the program goes: the test of an ``if`` or a ``while``."""
        inner = node
        for outer in self.above(node):
            if isinstance(outer, ast.If | ast.While | ast.IfExp) and outer.test is inner:
                return True
            inner = outer
        return False

    # -- text ------------------------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where a node starts and ends, in characters."""
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _at(self, line: int, column: int) -> int:
        """``column`` counts bytes of UTF-8, as ast does."""
        return self._starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def text(self, node: ast.AST) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.source[start:end]

    def grouped(self, node: ast.AST) -> str:
        """Return the text of a node, in parentheses unless it needs none anywhere."""
        text = self.text(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Return the edit that puts an expression in a node's place; it keeps the number of lines."""
        start, end = self.span(node)
        bare = re.fullmatch(r"[\w.]+|[\w.]+\([^()]*\)", text)
        inside = self.source[:start].rstrip().endswith("(") and self.source[end:].lstrip().startswith(")")
        if not bare and not inside and isinstance(self.parent.get(node), _BINDS):
            text = f"({text})"
        missing = self.source[start:end].count("\n") - text.count("\n")
        if missing > 0:  # a line end is harmless inside brackets only
            text = f"{text[:-1]}{missing * chr(10)}{text[-1]}" if text.endswith(")") else f"({text}{missing * chr(10)})"
        return start, end, text

    def after(self, node: ast.AST, text: str) -> Edit:
        """Return the edit that adds text behind a node."""
        _, end = self.span(node)
        return end, end, text

    def swap(self, a: ast.AST, b: ast.AST) -> list[Edit]:
        """Return the edits that exchange two expressions."""
        return [(*self.span(a), self.text(b)), (*self.span(b), self.text(a))]

    def retoken(self, node: ast.AST, left: ast.AST, right: ast.AST, old: str, new: str) -> list[Edit]:
        """Return the edits that exchange the operator between two operands of ``node``; empty if it is not found.

        The whole gets parentheses where it is part of a larger expression, since another operator binds otherwise.
        """
        start, end = self.span(left)[1], self.span(right)[0]
        at = re.search(rf"(?<![<>*/=!&|]){re.escape(old)}(?![<>*/=&|])", self.source[start:end])
        if at is None:
            return []
        edits: list[Edit] = [(start + at.start(), start + at.end(), new)]
        whole = self.span(node)
        inside = self.source[: whole[0]].rstrip().endswith("(") and self.source[whole[1] :].lstrip().startswith(")")
        if isinstance(self.parent.get(node), _BINDS) and not inside and not isinstance(node, ast.Compare):
            edits = [(whole[0], whole[0], "("), *edits, (whole[1], whole[1], ")")]
        return edits

    def drop(self, *arguments: ast.AST) -> list[Edit]:
        """Return the edits that take arguments out of a call; they keep the number of lines."""
        groups: list[tuple[int, int]] = []
        for start, end in sorted(map(self.span, arguments)):
            if groups and re.fullmatch(r"\s*,\s*", self.source[groups[-1][1] : start]):
                start = groups.pop()[0]
            groups.append((start, end))
        return [self._without(start, end) for start, end in groups]

    def _without(self, start: int, end: int) -> Edit:
        if comma := re.match(r"\s*,[ \t]*", self.source[end:]):
            end += comma.end()
        elif comma := re.search(r",\s*\Z", self.source[:start]):
            start = comma.start()
        return start, end, self.source[start:end].count("\n") * "\n"

    def apply(self, edits: Sequence[Edit]) -> str | None:
        """Return the changed source; None when the edits overlap, change nothing or leave what does not parse."""
        out, at = [], 0
        for start, end, text in sorted(edits):
            if start < at:
                return None
            out += [self.source[at:start], text]
            at = end
        changed = "".join([*out, self.source[at:]])
        try:
            same = ast.dump(ast.parse(changed)) == ast.dump(self.tree)
        except (SyntaxError, ValueError):
            return None
        return None if same else changed


def _own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield what stands in a function's body, less what ``Code.nodes`` leaves out and the functions inside."""
    left: list[ast.AST] = list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Raise | ast.Assert) or _is_said(node) or _hints(node):
            continue
        if isinstance(node, ast.If) and all(isinstance(s, ast.Raise) for s in node.body):
            left += node.orelse
            continue
        yield node
        left += node.body + node.orelse + [node.test] if isinstance(node, ast.If) else []
        if isinstance(node, ast.AnnAssign):
            left += [node.target, *([node.value] if node.value else [])]
        elif not isinstance(node, ast.If):
            left += ast.iter_child_nodes(node)


def _is_said(node: ast.AST) -> bool:
    """Return whether a statement only says something: a docstring, a static or device assertion, a print."""
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    called = node.value.func if isinstance(node.value, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return "assert" in name or "print" in name or name in ("assume", "debug_barrier", "multiple_of", "max_contiguous")


def _hints(node: ast.AST) -> bool:
    """Return whether a statement or an argument only sets a hint for the compiler."""
    if isinstance(node, ast.keyword):
        return bool(HINTS.fullmatch(node.arg or ""))
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return isinstance(target, ast.Name) and bool(HINTS.fullmatch(target.id))
