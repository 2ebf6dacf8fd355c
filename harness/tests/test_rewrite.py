"""A rewritten function means in Python what the compiler makes of it; plain Python keeps its own meaning."""

from __future__ import annotations

import inspect
import linecache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.interpreted.rewrite import rewritten


class Block:
    """Stands for a tensor: remembers that it was made by an assignment."""

    def __init__(self, value):
        self.value = value


def plainly(values, stop):
    """``and`` and ``or`` as Python has them, of values that are functions."""
    for value in values[:-1]:
        result = value()
        if bool(result) is stop:
            return result
    return values[-1]()


PLAIN = {
    "tensor": lambda value: value,
    "and": lambda *values: plainly(values, False),
    "or": lambda *values: plainly(values, True),
    "not": lambda value: not value,
}
made = 0


def function(source: str, scope=None):
    """Return the function that ``source`` defines, whose source can be read."""
    global made
    made += 1
    name = f"<made {made}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope = {"__name__": "made"} if scope is None else scope
    exec(compile(source, name, "exec", dont_inherit=True), scope)
    return [v for v in scope.values() if inspect.isfunction(v)][-1]


def test_every_assignment_makes_a_tensor():
    fn = function("def f():\n    y = 3\n    return y\n")

    assert isinstance(fn(), int)
    assert isinstance(rewritten(fn, PLAIN | {"tensor": Block})(), Block)


def test_a_loop_counter_is_a_tensor():
    source = "def f():\n    seen = ()\n    for i in range(2):\n        seen += (i,)\n    return seen\n"
    counters = rewritten(function(source), PLAIN | {"tensor": lambda v: Block(v) if isinstance(v, int) else v})()

    assert [type(c) for c in counters] == [Block, Block]


@pytest.mark.parametrize("loop", ["for i in tl.range(2)", "for i in tl.static_range(2)", "for i in (0, 1)"])
def test_only_counters_of_a_range_are_tensors(loop):
    class tl:
        range = staticmethod(range)
        static_range = staticmethod(range)

    source = f"def f():\n    seen = ()\n    {loop}:\n        seen += (i,)\n    return seen\n"
    counters = rewritten(
        function(source, {"__name__": "made", "tl": tl}),
        PLAIN | {"tensor": lambda v: Block(v) if isinstance(v, int) else v},
    )()

    assert [type(c) for c in counters] == ([Block, Block] if ".range" in loop else [int, int])


def test_and_or_not_and_chains_go_to_the_helpers():
    said = []
    helpers = PLAIN | {
        "and": lambda *v: said.append(("and", [x() for x in v])), "or": lambda *v: said.append(("or", [x() for x in v])),
        "not": lambda v: said.append(("not", v)),
    }  # fmt: skip
    rewritten(function("def f(a, b):\n    a and b\n    a or b\n    not a\n    0 <= a < b\n    a < b\n"), helpers)(1, 2)

    assert said == [("and", [1, 2]), ("or", [1, 2]), ("not", 1), ("and", [True, True])]


def test_triton_s_own_functions_keep_their_and_or_not():
    fn = function("def f(a, b):\n    return a and b, a or b, not a\n", {"__name__": "triton.language.standard"})

    assert rewritten(fn, PLAIN | {"and": None, "or": None, "not": None})(1, 2) == (2, 1, False)


def test_the_lines_stay_the_learner_s():
    fn = rewritten(function("\n\n# above\ndef f(x):\n    y = x\n    return y.nothing\n"), PLAIN)

    with pytest.raises(AttributeError) as error:
        fn(1)
    assert error.traceback[-1].lineno + 1 == 6


def test_several_targets_are_refused_as_by_the_compiler():
    with pytest.raises(SyntaxError, match="write two lines"):
        rewritten(function("def f():\n    a = b = 1\n"), PLAIN)


def test_defaults_keyword_only_parameters_and_annotations_are_evaluated_once():
    calls = []
    scope = {"__name__": "made", "note": lambda v: calls.append(v) or v}
    fn = rewritten(
        function("def f(a, b: note(1) = note(2), *, c: note(3) = note(4)) -> note(5):\n    return a, b, c\n", scope),
        PLAIN,
    )

    assert sorted(calls) == [1, 2, 3, 4, 5]
    assert fn(0) == (0, 2, 4)
    assert fn(0, b=7, c=8) == (0, 7, 8)


def test_a_closure_sees_what_it_closed_over():
    source = "def outer(factor):\n    def f(x):\n        return x * factor\n    return f\n"

    assert rewritten(function(source)(3), PLAIN)(2) == 6


def test_a_decorator_is_not_run_again():
    runs = []
    scope = {"__name__": "made", "once": lambda fn: runs.append(fn) or fn}
    fn = function("@once\ndef f(x):\n    return x\n", scope)

    assert rewritten(fn, PLAIN)(5) == 5
    assert len(runs) == 1


def test_a_function_without_source_is_left_alone():
    scope = {}
    exec("def f(x):\n    return x\n", scope)

    assert rewritten(scope["f"], PLAIN) is scope["f"]


# hypothesis: the meaning of plain Python is kept

numbers = st.sampled_from(["a", "b", "c", "0", "1", "-3"])
tests = st.builds(
    lambda a, op, b: f"{a} {op} {b}", numbers, st.sampled_from(["<", "<=", "==", "!=", ">", "is not"]), numbers
)
chains = st.builds(
    lambda a, op, b, op2, c: f"{a} {op} {b} {op2} {c}",
    numbers,
    st.sampled_from("<>"),
    numbers,
    st.sampled_from(["<=", "!="]),
    numbers,
)
expressions = st.recursive(
    numbers | tests | chains,
    lambda e: st.builds("({} and {})".format, e, e) | st.builds("({} or {} or {})".format, e, e, e) | st.builds("(not {})".format, e)
    | st.builds("({} + {})".format, e, e) | st.builds("({} if {} else {})".format, e, e, e),
    max_leaves=6,
)  # fmt: skip
simple = st.builds("{} = {}".format, st.sampled_from("abc"), expressions) | st.builds(
    "{} += {}".format, st.sampled_from("abc"), expressions
)
statements = simple | st.builds("b, c = {}, {}".format, expressions, expressions)
bodies = st.recursive(
    st.lists(statements, min_size=1, max_size=3),
    lambda inner: st.builds(lambda head, body: [head, *("    " + line for line in body)],
                            st.builds("if {}:".format, expressions) | st.just("for a in range(3):") | st.just("for c in (1, 2):"), inner),
    max_leaves=4,
)  # fmt: skip


@given(st.lists(bodies, min_size=1, max_size=3), st.integers(-4, 4), st.integers(-4, 4), st.integers(-4, 4))
def test_plain_python_keeps_its_meaning(parts, a, b, c):
    lines = ["    " + line for part in parts for line in part]
    source = "\n".join(["def f(a, b, c):", *lines, "    return a, b, c", ""])
    source = source.replace("is not", "!=")  # identity of small numbers is no meaning
    fn = function(source)

    assert rewritten(fn, PLAIN)(a, b, c) == fn(a, b, c)
