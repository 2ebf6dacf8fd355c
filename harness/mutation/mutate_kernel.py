"""Mutation operators that a kernel invites: masks, tails, strides, axes, program numbers, precision. No torch here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from harness.mutation.edits import Code, Edit, Function
from harness.mutation.mutate_plain import argument, block_compares, called, integer, names, value_of

WIDER = 16  # a widened mask admits so many lanes more; a skipped tail is what lies behind the last so many
_REDUCTIONS = ("sum", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "softmax", "sort", "flip", "expand_dims")


# -- masks -------------------------------------------------------------------------------------------------------------


def drop_mask(code: Code) -> Iterator[list[Edit]]:
    """A load or store without its mask; one half of a mask; the first branch of a tl.where without its condition."""
    for call in code.nodes(ast.Call, kernel=True):
        name = called(call)
        places = {"load": (1, 2), "store": (2, 9)}.get(name, (9, 9))
        dropped = [argument(call, "mask", places[0]), argument(call, "other", places[1])]
        if dropped[0] is not None and name:
            yield code.drop(*(a for a in dropped if a is not None))
        if (checked := argument(call, "boundary_check", 9)) is not None:
            yield code.drop(checked)
        if name == "where" and len(call.args) == 3:
            yield [code.replace(call, code.text(call.args[1]))]
    for both in code.nodes(ast.BinOp, kernel=True):
        if isinstance(both.op, ast.BitAnd) and _is_mask(both):
            yield [code.replace(both, code.text(both.left))]
            yield [code.replace(both, code.text(both.right))]


def _is_mask(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Compare) or isinstance(n, ast.Name) and "mask" in n.id for n in ast.walk(node))


def widen_mask(code: Code) -> Iterator[list[Edit]]:
    """A mask that lets some lanes more pass: what a size rounded up, or the tile's size in its place, would do."""
    for compare in block_compares(code):
        sides = [compare.left, *compare.comparators]
        for op, left, right in zip(compare.ops, sides, sides[1:], strict=False):
            if isinstance(op, ast.Lt | ast.LtE):
                yield [code.replace(right, f"{code.grouped(right)} + {WIDER}")]
            elif isinstance(op, ast.Gt | ast.GtE):
                yield [code.replace(left, f"{code.grouped(left)} + {WIDER}")]


def skip_tail(code: Code) -> Iterator[list[Edit]]:
    """The ragged rest is left out: a grid or a loop rounded down, a mask that ends at a full 16, half a block."""
    for call in code.nodes(ast.Call):
        name = called(call)
        if name == "cdiv" and len(call.args) == 2:
            yield [code.replace(call, f"{code.grouped(call.args[0])} // {code.grouped(call.args[1])}")]
        elif name in ("range", "static_range") and len(call.args) == 3:
            stop, step = call.args[1], call.args[2]
            yield [code.replace(stop, f"{code.grouped(stop)} - {code.grouped(step)} + 1")]
        elif name == "next_power_of_2":
            yield [code.replace(call, f"{code.text(call)} // 2")]
    for division in code.nodes(ast.BinOp):
        rounded = re.fullmatch(r"(.+) \+ (.+) - 1", ast.unparse(division.left))
        if isinstance(division.op, ast.FloorDiv) and rounded and rounded[2] == ast.unparse(division.right):
            yield [code.replace(division, f"({rounded[1]}) // {code.grouped(division.right)}")]
    for compare in block_compares(code):
        if len(compare.ops) == 1 and isinstance(compare.ops[0], ast.Lt):
            bound = compare.comparators[0]
            yield [code.replace(bound, f"{code.grouped(bound)} // {WIDER} * {WIDER}")]


# -- addresses ---------------------------------------------------------------------------------------------------------


def swap_strides(code: Code) -> Iterator[list[Edit]]:
    """One stride where its neighbour belongs, in the kernel or on the way into it."""
    for function in code.functions:
        strides = [p for p in function.parameters if "stride" in p]
        for name in strides if function.is_kernel else ():
            group = [s for s in strides if s[:-1] == name[:-1]]
            group = group if len(group) > 1 else strides
            other = group[(group.index(name) + 1) % len(group)]
            uses = [n for n in code.nodes(ast.Name) if code.function(n) is function]
            for use in (n for n in uses if n.id == name and other != name):
                yield [code.replace(use, other)]
                partner = _beside(code, use, other)
                if partner is not None and name < other:
                    yield code.swap(use, partner)
    for group in code.nodes(ast.Call, ast.Tuple, ast.List):
        items = group.args if isinstance(group, ast.Call) else group.elts
        if isinstance(group, ast.Call) and isinstance(group.func, ast.Attribute) and group.func.attr == "stride":
            continue
        for a, b in zip(items, items[1:], strict=False):
            if "stride" in code.text(a) and "stride" in code.text(b):
                yield code.swap(a, b)
        for star in items:
            if isinstance(star, ast.Starred) and "stride" in code.text(star):
                yield [code.after(star, "[::-1]")]


def _beside(code: Code, use: ast.AST, name: str) -> ast.AST | None:
    """Return a use of ``name`` in the statement that ``use`` stands in."""
    statement = next(n for n in code.above(use) if isinstance(n, ast.stmt))
    return next((n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name), None)


def wrong_axis(code: Code) -> Iterator[list[Edit]]:
    """A reduction, a broadcast, a size or a transposition along another dimension."""
    for call in code.nodes(ast.Call):
        name, axis = called(call), argument(call, "axis", 1) or argument(call, "dim", 1)
        if name in _REDUCTIONS and isinstance(call.func, ast.Attribute):
            yield from _other_axis(code, axis)
        elif name in ("size", "stride", "unsqueeze", "squeeze") and call.args:
            yield from _other_axis(code, call.args[0])
        elif name == "trans" and len(call.args) == 1:
            yield [code.replace(call, code.text(call.args[0]))]
    for part in code.nodes(ast.Subscript):
        if isinstance(part.value, ast.Attribute) and part.value.attr == "shape":
            yield from _other_axis(code, part.slice)
        elif isinstance(part.slice, ast.Tuple) and any(_is_none(e) for e in part.slice.elts):
            inner = [code.text(e) for e in part.slice.elts]
            for at in range(len(inner) - 1):
                turned = [*inner[:at], inner[at + 1], inner[at], *inner[at + 2 :]]
                if turned != inner:
                    yield [(*code.span(part.slice), ", ".join(turned))]
    for attribute in code.nodes(ast.Attribute):
        if attribute.attr in ("T", "mT"):
            yield [code.replace(attribute, code.text(attribute.value))]
    for assign in code.nodes(ast.Assign):
        target = assign.targets[0]
        if isinstance(target, ast.Tuple) and code.text(assign.value).endswith((".shape", ".size()")):
            for a, b in zip(target.elts, target.elts[1:], strict=False):
                yield code.swap(a, b)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _other_axis(code: Code, node: ast.AST | None) -> Iterator[list[Edit]]:
    node = value_of(node)
    if node is not None and (axis := integer(node)) is not None:
        yield [(*code.span(node), str({0: 1, -1: -2, -2: -1}.get(axis, axis - 1)))]


def wrong_program_id(code: Code) -> Iterator[list[Edit]]:
    """A program that takes itself for another: another axis of the grid, one too far, row and column exchanged."""
    for call in code.nodes(ast.Call, kernel=True):
        if called(call) in ("program_id", "num_programs"):
            axis = value_of(argument(call, "axis", 0))
            if axis is not None and (k := integer(axis)) is not None:
                yield [code.replace(axis, str((k + 1) % 3))]
            if called(call) == "program_id":
                yield [code.replace(call, f"{code.text(call)} + 1")]
    for function in (f for f in code.functions if f.is_kernel):
        pids = _program_numbers(code, function)
        for use in code.nodes(ast.Name):
            if use.id in pids and isinstance(use.ctx, ast.Load) and code.function(use) is function and len(pids) > 1:
                yield [code.replace(use, pids[(pids.index(use.id) + 1) % len(pids)])]
        for part in code.nodes(ast.BinOp):
            if code.function(part) is function and set(names(part.left)) & set(pids):
                for a, b in (("//", "%"), ("%", "//")):
                    yield code.retoken(part, part.left, part.right, a, b)
    for launch in code.nodes(ast.Subscript, kernel=False):
        if isinstance(launch.slice, ast.Tuple) and isinstance(code.parent[launch], ast.Call):
            for a, b in zip(launch.slice.elts, launch.slice.elts[1:], strict=False):
                yield code.swap(a, b)


def _program_numbers(code: Code, function: Function) -> list[str]:
    """Return the names that hold a program's number or a part of it, in order of their assignment."""
    found = [p for p in function.parameters if re.match("(pid|program_id)", p)]
    for assign in code.nodes(ast.Assign):
        if code.function(assign) is not function:
            continue
        text, targets = code.text(assign.value), names(assign.targets[0])
        direct = re.fullmatch(r"\w+\.program_id\([^()]*\)(\.to\([^()]*\))?", text)
        found += [t for t in targets if t not in found and (direct or t.startswith("pid"))]
    return found


# -- numbers -----------------------------------------------------------------------------------------------------------


def drop_max(code: Code) -> Iterator[list[Edit]]:
    """exp(x) where exp(x - max) belongs: what overflows for large inputs."""
    for part in code.nodes(ast.BinOp):
        inside = any(isinstance(n, ast.Call) and called(n) in ("exp", "exp2") for n in code.above(part))
        reduced = any(isinstance(n, ast.Call) and called(n) in ("max", "maximum") for n in ast.walk(part.right))
        if isinstance(part.op, ast.Sub) and (inside or reduced):
            yield [code.replace(part, code.text(part.left))]


def lower_dtype(code: Code) -> Iterator[list[Edit]]:
    """A value that passes through half precision: where it is loaded, cast, stored or multiplied."""
    for call in code.nodes(ast.Call, kernel=True):
        name = called(call)
        if name == "load" and not isinstance(code.parent[call], ast.Attribute):
            yield from ([code.after(call, f".to({dtype})")] for dtype in ("tl.float16", "tl.bfloat16"))
        elif name == "to" and len(call.args) == 1 and "int" not in code.text(call.args[0]):
            yield from ([code.replace(call.args[0], dtype)] for dtype in ("tl.float16", "tl.bfloat16"))
        elif name == "store" and len(call.args) > 1 and called(call.args[1]) != "to":
            value = code.grouped(call.args[1])
            yield from ([code.replace(call.args[1], f"{value}.to({dtype})")] for dtype in ("tl.float16", "tl.bfloat16"))
        for keyword in call.keywords:
            if keyword.arg == "input_precision" and code.text(keyword.value).strip("'\"") != "tf32":
                yield [code.replace(keyword.value, '"tf32"')]
            elif keyword.arg == "allow_tf32" and code.text(keyword.value) == "False":
                yield [code.replace(keyword.value, "True")]
    for dtype in code.nodes(ast.Attribute, kernel=False):
        if code.text(dtype) == "torch.float32":
            yield [code.replace(dtype, "torch.float16")]
        elif code.text(dtype) == "torch.float64":
            yield [code.replace(dtype, "torch.float32")]


def accumulate_fp16(code: Code) -> Iterator[list[Edit]]:
    """A sum that is kept in half precision: the accumulator, a running value of a loop, or a reduction's terms."""
    for call in code.nodes(ast.Call, kernel=True):
        name = called(call)
        if name in ("zeros", "full", "zeros_like"):
            for dtype in (n for n in ast.walk(call) if isinstance(n, ast.Attribute) and n.attr == "float32"):
                yield [code.replace(dtype, "tl.float16")]
        elif name == "sum" and call.args:
            yield [
                code.replace(call.args[0], f"{code.grouped(call.args[0])}.to(tl.float16)"),
                code.after(call, ".to(tl.float32)"),
            ]
    for step in code.nodes(ast.AugAssign, ast.Assign, kernel=True):
        target = step.target if isinstance(step, ast.AugAssign) else step.targets[0]
        looped = any(isinstance(n, ast.For | ast.While) for n in code.above(step))
        if not looped or not isinstance(target, ast.Name) or re.search("ptr|off|idx|mask|desc", target.id):
            continue
        text = code.grouped(step.value)
        if isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add | ast.Mult):
            sign = "+" if isinstance(step.op, ast.Add) else "*"
            yield [(*code.span(step), f"{target.id} = ({target.id} {sign} {text}).to(tl.float16).to(tl.float32)")]
        elif isinstance(step, ast.Assign) and target.id in names(step.value):
            yield [code.replace(step.value, f"{text}.to(tl.float16).to(tl.float32)")]
