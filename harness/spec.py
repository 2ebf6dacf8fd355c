"""Spec: what an ``exercise.toml`` says, checked; Case: one call of the entry, as words and numbers. No torch here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.errors import SpecError, did_you_mean

DTYPES = (
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip
LAYOUTS = ("contiguous", "transposed", "sliced", "strided", "expanded", "offset", "huge")
FILLS = ("normal", "uniform", "large", "tiny", "integers")
ROLES = ("small", "traffic", "bench")
SIDES = ("gpu", "host")  # what the learner writes: kernels, or plain Python that drives something

_SLUG = re.compile(r"\d\d_[a-z][a-z0-9_]*")
_TENSOR = re.compile(r"(?P<dtype>[A-Za-z][A-Za-z0-9_]*)\[(?P<shape>[^\[\]]*)\]")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_HOST_CASE: dict[str, Any] = {"dims": {}, "dtype": "float64"}


class Cost(NamedTuple):
    """The least that a kernel must do for one call: bytes read and written once, and floating point operations."""

    bytes_read: int
    bytes_written: int
    flops: int

    @property
    def bytes_moved(self) -> int:
        """Bytes read plus bytes written."""
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True)
class Tensor:
    """One line of ``[args]`` or ``[returns]``: ``x = "T[M, N]"``. ``T`` is the dtype of the case."""

    name: str
    dtype: str
    shape: tuple[str | int, ...]

    def sizes(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape in numbers. Raises KeyError for a dim that ``dims`` lacks."""
        return tuple(d if isinstance(d, int) else dims[d] for d in self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Case:
    """One call of the entry, in words and numbers: everything that is needed to build its inputs again."""

    id: str
    dims: Mapping[str, int]
    dtype: str
    layout: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    fill: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    options: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    role: str = "small"
    model: str = ""
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in plain.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        """Return the case that ``to_json`` described."""
        return cls(**data)

    def key(self) -> str:
        """Return a short digest of all that defines the inputs, the seed included."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]

    def with_seed(self, seed: int) -> Case:
        """Return the same case with values drawn from ``seed``."""
        return dataclasses.replace(self, seed=seed)


@dataclass(frozen=True)
class Gate:
    """What is asked of one bench shape.

    Attributes:
        case: its id; empty for a kata without one.
        cpu: the share of the reference's modelled speed; ``gpu``: the share of the measured limit.
        within: the first bench shape may take so many times as long as this one; 0: nothing is asked. ``why``: then.
    """

    case: str
    cpu: float
    gpu: float
    within: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Spec:
    """What an ``exercise.toml`` says, checked."""

    slug: str
    title: str
    entry: str
    args: tuple[Tensor, ...]
    returns: Tensor
    dtypes: Mapping[str, int]
    cases: tuple[Case, ...]
    ulp: float
    gates: tuple[Gate, ...]
    time_limit: float = 20.0
    max_launches: int = 0
    bound: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    torch_copies: bool = True
    contiguous: bool = False
    needs: tuple[str, ...] = ()
    minutes: int = 0
    sources: tuple[str, ...] = ()
    side: str = "gpu"

    @property
    def id(self) -> str:
        """The stable name that records use: the slug without its number."""
        return self.slug[3:]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in call order."""
        return tuple(a.name for a in self.args)

    def with_role(self, role: str) -> tuple[Case, ...]:
        """Return the declared cases of one role, in order."""
        return tuple(c for c in self.cases if c.role == role)


def load_spec(folder: Path) -> Spec:
    """Read ``folder/exercise.toml``.

    Raises:
        SpecError: the file is missing, is not TOML, or says something that cannot be; the message names file and key.
    """
    path = folder / "exercise.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"{path} is missing; every kata has one (`nox -s new -- {folder.name}` writes it).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is not valid TOML: {error}.") from None
    return parse_spec(data, folder.name, str(path))


def parse_spec(data: Mapping[str, Any], slug: str, where: str) -> Spec:
    """Check the tables of an ``exercise.toml`` and return them as a Spec. Raises SpecError."""
    if not _SLUG.fullmatch(slug):
        raise SpecError(f"{where}: the folder is called {slug!r}; expected NN_name, such as 05_nf4.")
    top = _Table(data, where)
    tolerance, gate = top.table("tolerance"), top.table("gate")
    args = tuple(_tensor(name, text, where) for name, text in top.table("args").items())
    returns = tuple(_tensor(name, text, where) for name, text in top.table("returns").items())
    if len(returns) != 1:
        raise SpecError(f"{where}: [returns] has {len(returns)} lines; expected exactly one tensor.")
    side = _one_of(top.get("side", str, default="gpu"), SIDES, f"{where}: side")
    cases, dtypes = top.get("cases", list), top.get("dtypes", dict, default={} if side == "host" else None)
    if side == "host":  # its arguments are no tensors: a case is what its options say
        cases, dtypes = [_HOST_CASE | c if isinstance(c, dict) else c for c in cases], {"float64": 10}
    dtypes = {str(k): v for k, v in dtypes.items()}
    for name, capability in dtypes.items():
        _one_of(name, DTYPES, f"{where}: [dtypes]")
        if not isinstance(capability, int) or not 10 <= capability <= 200:
            raise SpecError(f"{where}: [dtypes] {name} = {capability!r}; expected capability x 10, such as 80.")
    spec = Spec(
        slug=slug,
        title=top.get("title", str),
        entry=top.get("entry", str),
        args=args,
        returns=returns[0],
        dtypes=dtypes,
        cases=tuple(_case(c, i, args, dtypes, where) for i, c in enumerate(cases)),
        ulp=_Table(tolerance, f"{where}: [tolerance]").number("ulp", 0, 1e6),
        gates=_gates(gate, cases, where),
        time_limit=top.number("time_limit", 0.1, 3600, default=20.0),
        max_launches=int(top.number("max_launches", 0, 1e6, default=0)),
        bound=_bound(top.get("bound", dict, default={}), where),
        torch_copies=top.get("torch_copies", bool, default=True),
        contiguous=top.get("contiguous", bool, default=False),
        needs=tuple(top.get("needs", list, default=[])),
        minutes=int(top.number("minutes", 0, 10000, default=0)),
        sources=tuple(top.get("sources", list, default=[])),
        side=side,
    )
    for table, name in ((tolerance, "tolerance"), (gate, "gate")):
        _Table(table, f"{where}: [{name}]").get("why", str)
    _check_whole(spec, top, where)
    return spec


def _gates(gate: Mapping[str, Any], cases: list[Any], where: str) -> tuple[Gate, ...]:
    """The first bench shape's gate, then those of ``[[gate.also]]``."""
    shapes = [str(c.get("id")) for c in cases if isinstance(c, Mapping) and c.get("role") == "bench"]
    top = _Table(gate, f"{where}: [gate]")
    first = Gate(shapes[0] if shapes else "", top.number("cpu", 0, 1), top.number("gpu", 0, 1.2))
    found = [first]
    for i, one in enumerate(top.get("also", list, default=[])):
        table = _Table(one, f"{where}: [[gate.also]] number {i + 1}")
        for key in set(table.data) - {"case", "cpu", "gpu", "within", "why"}:
            raise SpecError(f"{table.where}: unknown key {key!r}; expected case, cpu, gpu, within or why.")
        case = table.get("case", str)
        if case not in shapes[1:]:
            known = ", ".join(shapes[1:]) or "none"
            raise SpecError(f"{table.where}: case = {case!r}; expected a later bench case, of which: {known}.")
        gpu = table.number("gpu", 0, 1.2, default=first.gpu)
        within, why = table.number("within", 0, 100, default=0.0), table.get("why", str, default="")
        found.append(Gate(case, table.number("cpu", 0, 1, default=first.cpu), gpu, within, why))
    return tuple(found)


BOUNDS = ("tokens", "batch")  # what a speed means for a model: the rate of decoding; the sequences that fit


def _bound(value: dict[str, Any], where: str) -> Mapping[str, str]:
    if not value:
        return _NOTHING
    if set(value) != {"says", "model"} or value["says"] not in BOUNDS or not isinstance(value["model"], str):
        raise SpecError(
            f'{where}: bound = {value!r}; expected {{ says = "tokens" or "batch", model = "llama-3.1-8b" }}.'
        )
    return MappingProxyType(value)


_KNOWN = (
    "title", "entry", "side", "needs", "minutes", "time_limit", "max_launches", "torch_copies", "contiguous", "bound",
    "sources", "args", "returns", "dtypes", "tolerance", "gate", "cases",
)  # fmt: skip


def _check_whole(spec: Spec, top: _Table, where: str) -> None:
    for key in top.data:
        if key not in _KNOWN:
            raise SpecError(f"{where}: unknown key {key!r}.{did_you_mean(key, _KNOWN)}")
    if not spec.entry.isidentifier():
        raise SpecError(f"{where}: entry = {spec.entry!r} is not a Python name.")
    if not spec.cases:
        raise SpecError(f"{where}: there are no [[cases]]; a kata without cases proves nothing.")
    ids = [c.id for c in spec.cases]
    for twice in {i for i in ids if ids.count(i) > 1}:
        raise SpecError(f"{where}: two cases are called {twice!r}; ids are unique.")
    if len(spec.with_role("traffic")) > 1:
        raise SpecError(f"{where}: {len(spec.with_role('traffic'))} cases have role = 'traffic'; expected at most one.")


class _Table:
    """Typed reads from one TOML table; every complaint names the place."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise SpecError(f"{where}: expected a table, got {data!r}.")
        self.data, self.where = data, where

    def get(self, key: str, kind: type, default: Any = None) -> Any:
        value = self.data.get(key, default)
        if value is None:
            raise SpecError(f"{self.where}: {key!r} is missing.")
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            raise SpecError(f"{self.where}: {key} = {value!r}; expected {kind.__name__}.")
        return value

    def table(self, key: str) -> Mapping[str, Any]:
        return self.get(key, dict)

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        value = self.data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise SpecError(f"{self.where}: {key} = {value!r}; expected a number from {low:g} to {high:g}.")
        return value


def _one_of(value: Any, known: tuple[str, ...], where: str) -> str:
    if value not in known:
        raise SpecError(
            f"{where}: {value!r} is unknown; expected one of {', '.join(known)}.{did_you_mean(str(value), known)}"
        )
    return value


def _tensor(name: str, text: Any, where: str) -> Tensor:
    match = _TENSOR.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        if isinstance(text, str) and text.isidentifier():
            return Tensor(name, text, ())  # not a tensor: "QuantState", "dtype"; make_inputs knows what it is
        raise SpecError(f'{where}: {name} = {text!r}; expected a tensor such as "T[M, N]".')
    if match["dtype"] != "T":
        _one_of(match["dtype"], DTYPES, f"{where}: {name}")
    dims = [d.strip() for d in match["shape"].split(",")] if match["shape"].strip() else []
    for dim in dims:
        if not dim.isdigit() and not dim.isidentifier() and dim != "...":
            raise SpecError(f"{where}: {name} = {text!r}; {dim!r} is neither a dim name nor a number.")
    return Tensor(name, match["dtype"], tuple(int(d) if d.isdigit() else d for d in dims))


_CASE_KEYS = tuple(f.name for f in dataclasses.fields(Case))


def _case(data: Any, index: int, args: tuple[Tensor, ...], dtypes: Mapping[str, int], where: str) -> Case:
    table = _Table(data, f"{where}: case {index + 1}")
    name = table.get("id", str)
    table.where = f"{where}: case {name!r}"
    for key in table.data:
        if key not in _CASE_KEYS:
            raise SpecError(f"{table.where}: unknown key {key!r}.{did_you_mean(key, _CASE_KEYS)}")
    dims = table.table("dims")
    for dim, size in dims.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise SpecError(f"{table.where}: {dim} = {size!r}; expected a whole number, 0 or more.")
    needed = {d for a in args for d in a.shape if isinstance(d, str) and d != "..."}
    if missing := needed - set(dims):
        raise SpecError(f"{table.where}: dims lack {', '.join(sorted(missing))}, which [args] name.")
    for arg, layout in table.get("layout", dict, default={}).items():
        _one_of(layout, LAYOUTS, f"{table.where}: layout of {arg}")
    return Case(
        id=name,
        dims=dict(dims),
        dtype=_one_of(table.get("dtype", str), tuple(dtypes), f"{table.where}: dtype"),
        layout=dict(table.get("layout", dict, default={})),
        fill=dict(table.get("fill", dict, default={})),
        options=dict(table.get("options", dict, default={})),
        role=_one_of(table.get("role", str, default="small"), ROLES, f"{table.where}: role"),
        model=table.get("model", str, default=""),
    )
