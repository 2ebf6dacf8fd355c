"""What the learner's file raises becomes words about the learner's own line."""

from __future__ import annotations

import ast
import linecache
import sys

import pytest

from harness.diagnosis.explain import hint, said
from harness.runner.loader import NoEntry, find_entry, load_source, raised


@pytest.fixture
def load(tmp_path):
    """Return a function: source -> its module, from a file ``kernel.py``."""

    def load(source: str):
        (tmp_path / "kernel.py").write_text(source, encoding="utf-8")
        return load_source(tmp_path / "kernel.py", "kata_test")

    yield load
    sys.modules.pop("kata_test", None)


def caught(act, tmp_path):
    try:
        act()
    except BaseException as error:
        return raised(error, tmp_path / "kernel.py")
    raise AssertionError("it did not raise")


def test_a_file_becomes_a_module(load, tmp_path):
    module = load("from __future__ import annotations\nX = 3\ndef f(a: nonsense): return a\n")

    assert (module.X, module.__file__, module.__name__) == (3, str(tmp_path / "kernel.py"), "kata_test")
    assert sys.modules["kata_test"] is module
    assert find_entry(module, "f", [])(5) == 5


def test_its_source_can_be_read_even_when_the_file_is_gone(load, tmp_path):
    load("X = 1\nY = 2\n")
    (tmp_path / "kernel.py").unlink()

    assert linecache.getline(str(tmp_path / "kernel.py"), 2) == "Y = 2\n"


def test_nothing_of_the_harness_leaks_into_the_file(load):
    with pytest.raises(NameError):
        load("linecache\n")


@pytest.mark.parametrize(("source", "message"), [
    ("def sotfmax(x): pass\n", "kernel.py defines no function 'softmax'; the kata calls softmax(…). Did you mean \"sotfmax\"?"),
    ("softmax = 3\n", "kernel.py defines no function 'softmax'; the kata calls softmax(…)."),
])  # fmt: skip
def test_a_missing_entry_names_the_nearest(load, source, message):
    with pytest.raises(NoEntry) as error:
        find_entry(load(source), "softmax", [])

    assert str(error.value) == message
    assert raised(error.value, None).text == message


def test_any_callable_is_an_entry(load):
    assert find_entry(load("class F:\n    def __call__(self): return 4\nf = F()\n"), "f", [])() == 4


@pytest.mark.parametrize(("source", "text", "line"), [
    ("x = 1\ny = (\n", "line 2: '(' was never closed\n    y = (", 2),
    ("x = 1\nimport nothing_of_the_kind\n", "line 2: ModuleNotFoundError: No module named 'nothing_of_the_kind'\n    import nothing_of_the_kind", 2),
    ("def f():\n    return 1 / 0\n\nf()\n", "line 2: ZeroDivisionError: division by zero\n    return 1 / 0", 2),
    ("assert False\n", "line 1: AssertionError\n    assert False", 1),
    ("import json\njson.loads('{')\n", "line 2: JSONDecodeError: Expecting property name", 2),
])  # fmt: skip
def test_an_error_is_told_on_the_learner_s_innermost_line(load, tmp_path, source, text, line):
    found = caught(lambda: load(source), tmp_path)

    assert found.text.startswith(text)
    assert found.line == line


def test_a_syntax_error_in_another_file_is_told_where_it_was_imported(load, tmp_path, monkeypatch):
    (tmp_path / "broken_helper.py").write_text("def f(:\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = caught(lambda: load("x = 1\nimport broken_helper\n"), tmp_path)

    assert found.text.startswith("line 2: SyntaxError: ")
    assert found.text.endswith("\n    import broken_helper")


@pytest.mark.parametrize(
    ("source", "ours"),
    [
        ("raise KeyError(3)\n", False),
        ("import json\njson.loads(3)\n", True),
        ("int('x')\n", False),
        ("import unittest\nunittest.TestCase().fail('stride must be 16-byte aligned')\n", False),
    ],
)
def test_what_was_raised_outside_of_the_file_may_be_our_fault(load, tmp_path, source, ours):
    assert caught(lambda: load(source), tmp_path).ours is ours


@pytest.mark.parametrize(("source", "todo"), [
    ("raise NotImplementedError('TODO 1/2')\n", True),
    ("import numbers\nnumbers.Complex.__add__(1, 2)\n", False),
    ("import abc, io\nio.RawIOBase().seek(1)\n", False),
])  # fmt: skip
def test_only_the_learner_s_own_not_implemented_is_todo(load, tmp_path, source, todo):
    assert caught(lambda: load(source), tmp_path).todo is todo


def test_it_is_plain_data(load, tmp_path):
    found = caught(lambda: load("raise ValueError('x')\n"), tmp_path)

    assert found.to_json() == {
        "kind": "ValueError", "text": "line 1: ValueError: x\n    raise ValueError('x')", "line": 1, "todo": False, "ours": False,
    }  # fmt: skip


# Triton's compiler words its errors for somebody else


class CompilationError(Exception):
    """As in Triton: the source of the function, the place in it, a message; str() repeats the source."""

    def __init__(self, src, node, error_message=None):
        self.src, self.node, self.error_message = src, node, error_message

    def __str__(self):
        return f"at {self.node.lineno}:{self.node.col_offset}:\n{self.src}\n{self.error_message or ''}"


FILE = "import x\n\n\n@jit\ndef helper(a):\n    return a.b\n\n\nclass K:\n    @jit\n    def kernel(p):\n        q = p\n        return helper(q)\n"


def compile_error(src, line, message=None, cause=None):
    error = CompilationError(src, ast.Pass(lineno=line, col_offset=4), message)
    error.__cause__ = cause
    return error


HELPER = "def helper(a):\n    return a.b"
METHOD = "def kernel(p):\n    q = p\n    return helper(q)\n"


@pytest.mark.parametrize(("error", "text"), [
    (compile_error(HELPER, 2, "NameError('b is not defined')"), "line 6: NameError: b is not defined\n    return a.b"),
    (compile_error(METHOD, 2, 'TypeError("it\'s odd")'), "line 12: TypeError: it's odd\n    q = p"),
    (compile_error(METHOD, 3, cause=compile_error(HELPER, 2, "AttributeError('no b')")), "line 6: AttributeError: no b\n    return a.b"),
    (compile_error(HELPER, 2, "some words (with brackets)"), "line 6: CompilationError: some words (with brackets)\n    return a.b"),
    (compile_error(HELPER, 2), "line 6: CompilationError\n    return a.b"),
    (compile_error("def elsewhere():\n    pass", 2, "NameError('x')"), "NameError: x"),
    (compile_error(None, 2, "NameError('x')"), "NameError: x"),
])  # fmt: skip
def test_the_compiler_s_place_is_found_in_the_file(tmp_path, error, text):
    (tmp_path / "kernel.py").write_text(FILE, encoding="utf-8")
    linecache.checkcache()

    assert raised(error, tmp_path / "kernel.py").text == text


def test_ptxas_is_cut_to_its_reasons(tmp_path):
    class PTXASError(Exception):
        pass

    error = PTXASError(
        "PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\nptxas /somewhere/x.ptx, line 9; error   : Modifier '.cg' no\n"
        "ptxas /somewhere/x.ptx, line 10; error   : Modifier '.cg' no\nptxas fatal   : aborted\nRepro command: /somewhere/ptxas x"
    )

    assert raised(error, tmp_path / "kernel.py").text == "PTXASError: Modifier '.cg' no"


def test_an_exception_that_cannot_be_shown_is_said(tmp_path):
    class Odd(Exception):
        def __str__(self):
            raise self

    assert said(Odd()) == "(an exception whose message cannot be shown)"
    assert raised(Odd(), tmp_path / "kernel.py").text == "Odd: (an exception whose message cannot be shown)"


# hints


@pytest.mark.parametrize(("error", "code", "advice"), [
    (AssertionError(), "assert x.is_cuda", "Without a GPU the tensors are on the CPU"),
    (AssertionError("cpu"), "assert x.device.type == 'cuda'", "Without a GPU"),
    (AssertionError("x"), "assert x.shape == y.shape", ""),
    (ValueError("expected a CUDA tensor"), "", "Without a GPU"),
    (RuntimeError("all inputs must be on the GPU"), "", "Without a GPU"),
    (RuntimeError("can't convert cuda:0 device type tensor to numpy"), "", "allocate with device=x.device"),
    (NotImplementedError("Block pointers have been removed"), "", "Block pointers are gone from Triton"),
    (AttributeError("module 'triton.language' has no attribute 'make_block_ptr'"), "", "Block pointers are gone from Triton"),
    (ValueError("arange's range must be a power of 2"), "", "pass triton.next_power_of_2(n)"),
    (ValueError("arange's arguments must be of type tl.constexpr"), "", "declare the parameter as `NAME: tl.constexpr`"),
    (TypeError("Shape element 0 must have type `constexpr[int]`, got x"), "", "declare the parameter as `NAME: tl.constexpr`"),
    (NameError("Cannot access global variable X from within @jit'ed function."), "", "NAME = tl.constexpr(value)"),
    (AttributeError("'int' object has no attribute 'to'"), "", "An argument that is 1 becomes a constant"),
    (AttributeError("'constexpr' object has no attribute 'to'"), "", "An argument that is 1 becomes a constant"),
    (KeyError("Keyword argument num_warp was specified but unrecognised"), "", "num_warps, num_stages and num_ctas"),
    (TypeError("'function' object is not subscriptable"), "", "needs @triton.jit above the kernel"),
    (RuntimeError("Kernel requires a runtime memory allocation, but no allocator was set."), "", "triton.set_allocator(f)"),
    (AssertionError("stride must be 16-byte aligned"), "", "rows that begin on multiples of 16 bytes"),
    (ValueError("something that nobody foresaw"), "", ""),
])  # fmt: skip
def test_a_known_error_says_what_to_do(error, code, advice):
    found = hint(error, code)

    assert (advice in found) if advice else found == ""


def test_a_name_that_tl_lacks_gets_the_nearest():
    class tl:
        maximum = minimum = None

    error = AttributeError("module 'triton.language' has no attribute 'maximun'", name="maximun", obj=tl)

    assert hint(error) == "Did you mean tl.maximum?"
    assert hint(AttributeError("module 'triton.language' has no attribute 'qqq'", name="qqq", obj=tl)) == ""
    assert "libdevice.tanh(x)" in hint(
        AttributeError("module 'triton.language' has no attribute 'tanh'", name="tanh", obj=tl)
    )


def test_what_an_entry_takes_by_keyword_only_is_given_by_name(load):
    module = load("def f(x, *, scale, causal=False):\n    return x, scale, causal\n")

    assert find_entry(module, "f", ["x", "causal", "scale"])(1, 2, 3) == (1, 3, 2)
    with pytest.raises(TypeError, match="scale"):
        find_entry(module, "f", ["x"])(1)
