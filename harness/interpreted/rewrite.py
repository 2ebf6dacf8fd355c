"""A jit function's Python, rewritten so that running it means what compiling it means.

Triton's compiler does not run a kernel as Python: names hold tensors, ``a and b`` on blocks is element by element, the
counter of a loop is a tensor. Python would silently do something else, so the source is changed before it is run.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

PREFIX = "__kata_"


class _Semantics(ast.NodeTransformer):
    """Assignments make tensors; ``and``, ``or``, ``not`` and chained comparisons work on blocks; loop counters too."""

    def __init__(self, own_code: bool) -> None:
        self.own_code = own_code  # Triton's own library code needs the assignments and the comparisons only

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if len(node.targets) > 1:
            raise SyntaxError("a = b = c: Triton does not compile several targets in one assignment; write two lines")
        node.value = _call("tensor", node.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        operands = [node.left, *node.comparators]
        pairs = [
            ast.Compare(left=left, ops=[op], comparators=[right])
            for left, op, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return _call("and", *map(_later, pairs))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if not self.own_code:
            return node
        return _call("and" if isinstance(node.op, ast.And) else "or", *map(_later, node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("not", node.operand) if isinstance(node.op, ast.Not) and self.own_code else node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        called = node.iter.func if isinstance(node.iter, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if self.own_code and name == "range" and isinstance(node.target, ast.Name):
            counter = ast.Name(id=node.target.id, ctx=ast.Store())
            value = _call("tensor", ast.Name(id=node.target.id, ctx=ast.Load()))
            node.body.insert(0, ast.Assign(targets=[counter], value=value))
        return node


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Name(id=PREFIX + name, ctx=ast.Load()), args=list(args), keywords=[])


def _later(value: ast.expr) -> ast.Lambda:
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=empty, body=value)


def rewritten(fn: Callable[..., Any], helpers: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Return ``fn`` with Triton's meaning.

    Args:
        fn: the plain Python function under a ``@triton.jit``.
        helpers: ``tensor``, ``and``, ``or``, ``not``: what the rewritten code calls.

    A function whose source cannot be read (made by ``exec``) is returned as it is.
    """
    try:
        lines, first = inspect.getsourcelines(fn)
    except (OSError, TypeError):
        return fn
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = next((n for n in tree.body if isinstance(n, ast.FunctionDef)), None)
    if definition is None:
        return fn
    definition.decorator_list = []
    _forget_annotations(definition.args)
    definition.returns = None
    definition = _Semantics(not fn.__module__.startswith("triton.")).visit(definition)
    free = fn.__code__.co_freevars
    module = ast.Module(body=[_inside(definition, free) if free else definition], type_ignores=[])
    ast.fix_missing_locations(module)
    ast.increment_lineno(module, first - 1)
    for name, helper in helpers.items():
        fn.__globals__.setdefault(PREFIX + name, helper)
    scope: dict[str, Any] = {}
    exec(compile(module, fn.__code__.co_filename, "exec", dont_inherit=True), fn.__globals__, scope)
    if free:
        cells = [_cell(c) for c in fn.__closure__ or ()]
        made = scope[PREFIX + "scope"](*cells)
    else:
        made = scope[fn.__name__]
    made.__defaults__, made.__kwdefaults__ = fn.__defaults__, fn.__kwdefaults__
    return made


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet: the name fails when it is used, as it would in plain Python
        return None


def _inside(definition: ast.FunctionDef, free: tuple[str, ...]) -> ast.FunctionDef:
    """Wrap the definition in a function whose parameters are its closure."""
    args = ast.arguments(posonlyargs=[], args=[ast.arg(n) for n in free], kwonlyargs=[], kw_defaults=[], defaults=[])
    back = ast.Return(ast.Name(id=definition.name, ctx=ast.Load()))
    return ast.FunctionDef(
        name=PREFIX + "scope", args=args, body=[definition, back], decorator_list=[], lineno=1, type_params=[]
    )


def _forget_annotations(args: ast.arguments) -> None:
    """Annotations and defaults were evaluated when the function was made; evaluating them twice could differ."""
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        arg.annotation = None
    args.defaults = [ast.Constant(None) for _ in args.defaults]
    args.kw_defaults = [None if d is None else ast.Constant(None) for d in args.kw_defaults]
