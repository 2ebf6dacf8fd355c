"""Constructs: what a kernel file does, read from its source and said in a learner's words. No torch here."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# what these calls of triton.language are for; the others are named without a reason
_PURPOSE = {
    "associative_scan": "a running combination along an axis",
    "assume": "a promise to the compiler",
    "atomic_add": "several programs add to one element",
    "dot": "a product of tiles, on the tensor cores where there are some",
    "exp2": "exp to the base 2, which the hardware has",
    "inline_asm_elementwise": "instructions of the GPU, written out",
    "interleave": "two blocks become one whose elements alternate: one store for neighbouring addresses",
    "join": "two blocks become one with a last axis of two",
    "make_block_ptr": "a pointer to a tile that knows its shape and strides",
    "make_tensor_descriptor": "a descriptor of the tensor, for the hardware that copies tiles",
    "max_contiguous": "a promise to the compiler about neighbouring addresses",
    "multiple_of": "a promise to the compiler about alignment",
    "reduce": "a reduction with a function of its own",
    "static_range": "a loop that is unrolled when it is compiled",
    "where": "a choice per lane",
}
# in nearly every kernel, or judged from other sides below
_PLAIN = {"load", "store", "program_id", "num_programs", "arange", "constexpr", "cdiv", "range", "cast"}
_DTYPES = {
    *("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16"),
    *("float32", "float64", "float8e4nv", "float8e5", "pi32_t", "dtype", "tensor"),
}
_LANGUAGE = re.compile(r"(tl|triton\.language|language|libdevice)(\.\w+)+")
_HINTS = ("eviction_policy", "cache_modifier")
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


@dataclass(frozen=True)
class Difference:
    """What one file does and the other does not, and what both do in different ways; one line each."""

    only_reference: tuple[str, ...]
    only_yours: tuple[str, ...]
    changed: tuple[tuple[str, str, str], ...]  # what, yours, the reference's

    def __bool__(self) -> bool:
        return bool(self.only_reference or self.only_yours or self.changed)


def difference(yours: str, reference: str) -> Difference:
    """Compare two sources by their constructs.

    Raises:
        SyntaxError: one of them is no Python.
    """
    mine, theirs = constructs(yours), constructs(reference)
    return Difference(
        only_reference=tuple(_said(k, v) for k, v in theirs.items() if k not in mine),
        only_yours=tuple(_said(k, v) for k, v in mine.items() if k not in theirs),
        changed=tuple((k, mine[k], v) for k, v in theirs.items() if k in mine and mine[k] != v),
    )


def _said(what: str, how: str) -> str:
    return f"{what}: {how}" if how else what


def constructs(source: str) -> dict[str, str]:
    """Return what ``source`` does -> how (a number, a value, or "" when there is nothing to add), in reading order.

    Raises:
        SyntaxError: ``source`` is no Python.
    """
    tree = ast.parse(source)
    kernels = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and _is_jit(f)]
    # decorators are run by the launcher's side
    inside = {id(node) for f in kernels for part in (f.args, *f.body) for node in ast.walk(part)}
    host = [node for node in ast.walk(tree) if id(node) not in inside]
    out: dict[str, str] = {}
    out |= _launches(host, {f.name for f in kernels})
    out |= _blocks(host, kernels)
    out |= _decorations(kernels)
    out |= _memory(kernels)
    out |= _loops(kernels)
    out |= _casts(kernels)
    out |= _library(kernels)
    out |= _tensors(host)
    return out


# -- the launcher ------------------------------------------------------------------------------------------------------


def _launches(host: list[ast.AST], kernels: set[str]) -> dict[str, str]:
    """Launches as they are written; a launch in a loop counts once and is said to be in a loop."""
    looped = {id(n) for loop in host if isinstance(loop, ast.For | ast.While) for n in ast.walk(loop)}
    calls = [n for n in host if isinstance(n, ast.Call) and _launched(n) in kernels]
    out: dict[str, str] = {}
    if calls:
        out["launches in the file"] = str(len(calls))
    if any(id(c) in looped for c in calls):
        out["a launch in a loop of the launcher"] = ""
    for call in calls:
        for option in call.keywords:
            if option.arg in _OPTIONS:
                key = f"{option.arg} at the launch"
                out[key] = _merged(out, key, ast.unparse(_resolved(option.value, host)))
    return out


def _resolved(value: ast.expr, host: list[ast.AST]) -> ast.expr:
    """Return what the name ``value`` was assigned, if that happens in one place; else ``value``."""
    if isinstance(value, ast.Name):
        found = [v for node in host if isinstance(node, ast.Assign) for n, v in _named_values(node) if n == value.id]
        if len(found) == 1:
            return found[0]
    return value


def _launched(call: ast.Call) -> str:
    """Return the kernel of ``kernel[grid](...)`` or ``kernel.run(...)``, else an empty string."""
    target = call.func
    if isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr in ("run", "warmup")):
        return target.value.id if isinstance(target.value, ast.Name) else ""
    return ""


def _blocks(host: list[ast.AST], kernels: list[ast.FunctionDef]) -> dict[str, str]:
    """Sizes of blocks, wherever they are chosen: assigned, given at the launch, or in a Config."""
    out: dict[str, str] = {}
    for node in host:
        for name, value in _named_values(node):
            if name.startswith(("BLOCK", "GROUP", "TILE", "PAGE")) and ast.unparse(value) != name:
                out[name] = _merged(out, name, ast.unparse(value))
    for kernel in kernels:
        names = [a.arg for a in kernel.args.args]
        for name, value in zip(reversed(names), reversed(kernel.args.defaults), strict=False):
            if name.startswith(("BLOCK", "GROUP", "TILE")):
                out.setdefault(name, ast.unparse(value))
    return out


def _named_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for t, v in zip(target.elts, node.value.elts, strict=False):
                    if isinstance(t, ast.Name):
                        yield t.id, v
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value
    elif isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value


def _merged(out: Mapping[str, str], key: str, value: str) -> str:
    """Several values of one name are all said, each once."""
    known = out.get(key, "").split(" and ") if out.get(key) else []
    return " and ".join(dict.fromkeys([*known, value]))


def _tensors(host: list[ast.AST]) -> dict[str, str]:
    out: dict[str, str] = {}
    makers = ("empty", "empty_like", "zeros", "zeros_like", "ones", "full", "new_empty", "new_zeros")
    names = [n.func.attr for n in host if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    if made := sum(1 for n in names if n in makers):
        out["tensors made by the launcher"] = str(made)
    if "contiguous" in names:
        out[".contiguous() in the launcher, a copy where the strides are not the plain ones"] = ""
    return out


# -- the kernels -------------------------------------------------------------------------------------------------------


def _is_jit(function: ast.FunctionDef) -> bool:
    return any(_last(d) == "jit" for d in function.decorator_list)


def _decorations(kernels: list[ast.FunctionDef]) -> dict[str, str]:
    words = {
        "autotune": "@triton.autotune, which tries several launch options",
        "heuristics": "@triton.heuristics, which computes launch options from the arguments",
    }
    seen = [_last(d) for f in kernels for d in f.decorator_list]
    return {words[name]: "" for name in words if name in seen}


def _memory(kernels: list[ast.FunctionDef]) -> dict[str, str]:
    """Loads and stores, their masks, and what they tell the caches."""
    out: dict[str, str] = {}
    for word in ("load", "store"):
        calls = [c for c in _tl_calls(kernels) if c[0] == word]
        if not calls:
            continue
        out[f"tl.{word} in the file"] = str(len(calls))
        masked = [c for _, c in calls if _given(c, "mask", 1 if word == "load" else 2)]
        if masked:
            out[f"a mask on tl.{word}"] = f"{len(masked)} of {len(calls)}"
        if word == "load" and (filled := [c for c in masked if _given(c, "other", 2)]):
            out["other= on masked loads, so that masked lanes hold a known value"] = f"{len(filled)} of {len(masked)}"
        for name in _HINTS:
            key = f"{name} on tl.{word}, a wish about what stays in the cache"
            for _, call in calls:
                value = _given(call, name)
                if value is not None and ast.unparse(value) != "''":
                    out[key] = _merged(out, key, ast.unparse(value))
    return out


def _given(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """Return the argument of this name (or in this place) unless it is None."""
    values = [k.value for k in call.keywords if k.arg == name]
    if position is not None:
        values += call.args[position : position + 1]
    return next((v for v in values if not (isinstance(v, ast.Constant) and v.value is None)), None)


def _loops(kernels: list[ast.FunctionDef]) -> dict[str, str]:
    loops = [n for f in kernels for n in ast.walk(f) if isinstance(n, ast.For | ast.While)]
    return {"loops inside the kernels": str(len(loops))} if loops else {}


def _casts(kernels: list[ast.FunctionDef]) -> dict[str, str]:
    """int64 and float32 are the casts that matter: large offsets, and arithmetic that does not round too early."""
    nodes = [n for f in kernels for n in ast.walk(f)]
    cast = {_last(a) for n in nodes if isinstance(n, ast.Call) and _last(n.func) in ("to", "cast") for a in n.args}
    cast |= {_last(k.value) for n in nodes if isinstance(n, ast.Call) for k in n.keywords if k.arg == "dtype"}
    words = {
        "int64": "a cast to int64, so that large offsets do not wrap around",
        "float32": "float32 arithmetic on narrower inputs",
        "float64": "float64 arithmetic, which a GPU does slowly",
    }
    return {words[name]: "" for name in words if name in cast}


def _library(kernels: list[ast.FunctionDef]) -> dict[str, str]:
    """Every other function of triton.language that is called."""
    counts = Counter(name for name, _ in _tl_calls(kernels) if name not in _PLAIN and name not in _DTYPES)
    return {f"tl.{name}" + (f", {_PURPOSE[name]}" if name in _PURPOSE else ""): "" for name in counts}


def _tl_calls(kernels: list[ast.FunctionDef]) -> list[tuple[str, ast.Call]]:
    calls = [n for f in kernels for n in ast.walk(f) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    found = [c for c in calls if _LANGUAGE.fullmatch(ast.unparse(c.func))]
    return [(_last(c.func), c) for c in sorted(found, key=lambda c: (c.lineno, c.col_offset))]


def _last(node: ast.AST) -> str:
    """Return the last name of ``a.b.c`` or ``a.b.c(...)``."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
