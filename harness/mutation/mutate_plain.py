"""Mutation operators that any program invites, and how they look at calls and comparisons. No torch here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from harness.mutation.edits import Code, Edit

_NO_NUMBERS = ("axis", "dim", "other")  # another operator changes these
_INDEXED = ("program_id", "num_programs", "stride", "size", "expand_dims", "unsqueeze", "arange", "range", "sum", "max")


def called(call: ast.AST) -> str:
    """Return the last name of what a call calls: ``load`` for ``tl.load(...)``; empty for anything else."""
    function = call.func if isinstance(call, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def argument(call: ast.Call, name: str, place: int) -> ast.AST | None:
    """Return one argument of a call (by keyword: with its name), or None."""
    named = next((k for k in call.keywords if k.arg == name), None)
    if named is not None:
        return named
    fits = len(call.args) > place and not any(isinstance(a, ast.Starred) for a in call.args[: place + 1])
    return call.args[place] if fits else None


def value_of(argument: ast.AST | None) -> ast.AST | None:
    """Return an argument's value, whether it was given by keyword or by place."""
    return argument.value if isinstance(argument, ast.keyword) else argument


def names(node: ast.AST) -> list[str]:
    """Return the names inside a node, in order."""
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def integer(node: ast.AST) -> int | None:
    """Return the value of an integer that stands in the text, or None."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if negative else node  # type: ignore[attr-defined]
    if isinstance(inner, ast.Constant) and type(inner.value) is int:
        return -inner.value if negative else inner.value
    return None


def block_compares(code: Code) -> Iterator[ast.Compare]:
    """Yield the comparisons of a kernel that make blocks of True and False, not the ones that choose a way."""
    yield from (n for n in code.nodes(ast.Compare, kernel=True) if not code.is_test(n))


_BOUNDS = {ast.Lt: "- 1", ast.LtE: "+ 1", ast.Gt: "+ 1", ast.GtE: "- 1"}


def off_by_one_bound(code: Code) -> Iterator[list[Edit]]:
    """A bound that is one too small or too large: of a comparison, a loop, a grid.

    Comparisons move in one direction, the other one is what ``comparison`` does to their sign.
    """
    for compare in code.nodes(ast.Compare):
        for op, right in zip(compare.ops, compare.comparators, strict=True):
            if type(op) in _BOUNDS:
                yield [code.replace(right, f"{code.grouped(right)} {_BOUNDS[type(op)]}")]
    for call in code.nodes(ast.Call):
        if called(call) in ("range", "static_range") and call.args:
            stop = call.args[0] if len(call.args) == 1 else call.args[1]
            yield from ([code.replace(stop, f"{code.grouped(stop)} {step}")] for step in ("- 1", "+ 1"))
            if len(call.args) > 1:
                yield [code.replace(call.args[0], f"{code.grouped(call.args[0])} + 1")]
        elif called(call) == "cdiv":  # one program more has nothing to do: no mistake
            yield [code.replace(call, f"{code.text(call)} - 1")]


_SIGNS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip


def comparison(code: Code) -> Iterator[list[Edit]]:
    """``<`` for ``<=``, ``==`` for ``!=``, ``is`` for ``is not``, and back."""
    for compare in code.nodes(ast.Compare):
        sides = [compare.left, *compare.comparators]
        for op, left, right in zip(compare.ops, sides, sides[1:], strict=False):
            if type(op) in _SIGNS:
                old, new = _SIGNS[type(op)]
                yield code.retoken(compare, left, right, old, new)


def other_value(code: Code) -> Iterator[list[Edit]]:
    """Masked lanes that hold something else, or nothing at all.

    A dropped ``other=0`` is left out: GPUs give 0 there, so a suite rightly lets it pass, with a finding.
    """
    for call in code.nodes(ast.Call, kernel=True):
        other = argument(call, "other", 2) if called(call) == "load" else None
        if other is None:
            continue
        value = value_of(other)
        zero = re.fullmatch(r"0(\.0*)?", code.text(value))
        yield [code.replace(value, "1" if zero else "0")]
        if not zero:
            yield code.drop(other)


def constant(code: Code) -> Iterator[list[Edit]]:
    """A number that is one off; a number too large to notice, or an infinity, becomes 0."""
    for node in code.nodes(ast.Constant):
        parent = code.parent[node]
        whole = parent if isinstance(parent, ast.UnaryOp) else node
        if isinstance(node.value, bool) or _is_elsewhere(code, whole):
            continue
        if (number := integer(whole)) is not None:
            yield from (
                [code.replace(whole, str(number + step))] for step in (1, -1) if number < 0 or number + step >= 0
            )
        elif isinstance(node.value, float):
            yield [code.replace(node, repr(node.value + 1) if node.value + 1 != node.value else "0.0")]
        elif isinstance(node.value, str) and "inf" in node.value and called(parent) == "float":
            yield [code.replace(parent, "0.0")]


def _is_elsewhere(code: Code, node: ast.AST) -> bool:
    """Return whether another operator changes this number, or it is the number of a dimension."""
    parent = code.parent[node]
    if isinstance(parent, ast.Subscript | ast.Slice | ast.List):
        return True
    if isinstance(parent, ast.keyword):
        return parent.arg in _NO_NUMBERS
    builtin = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and called(parent) != "range"
    return called(parent) in _INDEXED and not builtin


_ORDERED = {ast.Sub: "-", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.LShift: "<<", ast.RShift: ">>"}
_ORDERED_CALLS = {"interleave": (0, 1), "join": (0, 1), "dot": (0, 1), "where": (1, 2), "cdiv": (0, 1), "cat": (0, 1)}


def swap_operands(code: Code) -> Iterator[list[Edit]]:
    """b - a for a - b, and so for whatever depends on the order."""
    for part in code.nodes(ast.BinOp):
        if type(part.op) in _ORDERED:
            sign = _ORDERED[type(part.op)]
            yield [code.replace(part, f"{code.grouped(part.right)} {sign} {code.grouped(part.left)}")]
    for call in code.nodes(ast.Call):
        places = _ORDERED_CALLS.get(called(call))
        if places and len(call.args) > places[1]:
            yield code.swap(*(call.args[p] for p in places))


_ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}  # fmt: skip


def arithmetic(code: Code) -> Iterator[list[Edit]]:
    """Another sign between two operands."""
    for part in code.nodes(ast.BinOp, ast.AugAssign):
        if type(part.op) not in _ARITHMETIC:
            continue
        old, new = _ARITHMETIC[type(part.op)]
        if isinstance(part, ast.BinOp):
            yield code.retoken(part, part.left, part.right, old, new)
        else:
            at = code.source.index(old + "=", code.span(part.target)[1])
            yield [(at, at + len(old), new)]
    for part in code.nodes(ast.UnaryOp):
        if isinstance(part.op, ast.USub) and not isinstance(part.operand, ast.Constant):
            yield [code.replace(part, code.text(part.operand))]


_OPPOSITES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "argmax": "argmin"}


def min_max(code: Code) -> Iterator[list[Edit]]:
    """The smallest for the largest."""
    for call in code.nodes(ast.Call):
        if called(call) in _OPPOSITES:
            end = code.span(call.func)[1]
            yield [(end - len(called(call)), end, _OPPOSITES[called(call)])]


def negate_branch(code: Code) -> Iterator[list[Edit]]:
    """The other way is taken. Where ``comparison`` has done it already, not again."""
    for branch in code.nodes(ast.If, ast.IfExp):
        test = branch.test
        simple = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot)
        if not simple:
            yield [code.replace(test, f"not {code.grouped(test)}")]


def drop_statement(code: Code) -> Iterator[list[Edit]]:
    """A step that is not done: a store, an update of a loop's value, an assignment that replaces an earlier one."""
    for step in code.nodes(ast.Expr, ast.AugAssign, ast.Assign):
        if isinstance(step, ast.Assign):
            target = step.targets[0]
            before = [
                n for n in code.nodes(ast.Name)
                if isinstance(target, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Store)
                and n.lineno < step.lineno and code.function(n) is code.function(step)
            ]  # fmt: skip
            known = isinstance(target, ast.Name) and target.id in code.function(step).parameters
            if not before and not known:
                continue
        start, end = code.span(step)
        yield [(start, end, "pass" + code.source[start:end].count("\n") * "\n")]


def drop_contiguous(code: Code) -> Iterator[list[Edit]]:
    """A view that is taken for what lies in one piece."""
    for call in code.nodes(ast.Call, kernel=False):
        if called(call) == "contiguous" and isinstance(call.func, ast.Attribute):
            yield [code.replace(call, code.text(call.func.value))]


def drop_int64(code: Code) -> Iterator[list[Edit]]:
    """An offset that overflows behind 2**31."""
    for call in code.nodes(ast.Call, kernel=True):
        if called(call) == "to" and len(call.args) == 1 and code.text(call.args[0]).endswith("int64"):
            yield [code.replace(call, code.text(call.func.value))]
