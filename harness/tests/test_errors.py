"""What does not import, compile or launch is an error on the learner's own line, with what to do about it."""

from __future__ import annotations

import pytest

from harness import errors
from harness.tests.toys import BODY, ENTRY, GRID, HEAD, KERNEL, LOAD, SOLUTION, STORE, computes, kernel, launched

LAUNCH = "(triton.cdiv(x.numel(), 64),)"


def entry_begins(line: str) -> str:
    return SOLUTION.replace("x = x.contiguous()", line)


IN_THE_FILE = {
    "syntax": (SOLUTION.replace("mask = offs < n", "mask = offs <"), ["line 9: invalid syntax\n    mask = offs <"]),
    "indentation": ("def f():\n  x\n y\n", ["line 3: unindent does not match any outer indentation level"]),
    "a null byte": ("x = 1\0\n", ["source code string cannot contain null bytes"]),
    "not UTF-8": (b"# caf\xe9\n" + SOLUTION.encode(), ["UnicodeDecodeError", "position 5"]),
    "import": (
        "import torch\nimport tritn\n",
        ["line 2: ModuleNotFoundError: No module named 'tritn'\n    import tritn"],
    ),
    "no entry": (
        SOLUTION.replace("def double(", "def doubel("),
        ["defines no function 'double'; the kata calls double(…). Did you mean \"doubel\"?"],
    ),
    "nothing at all": ("", ["submission.py defines no function 'double'"]),
    "an entry that is no function": ("double = 3\n", ["defines no function 'double'"]),
    "it leaves while it is imported": ("import sys\nsys.exit(0)\n", ["line 2: SystemExit: 0"]),
}

IN_THE_LAUNCHER = {
    "is_cuda": (
        entry_begins("assert x.is_cuda"),
        ["line 14: AssertionError\n    assert x.is_cuda\nWithout a GPU the tensors are on the CPU", "Remove it"],
    ),
    "the device's type": (entry_begins("assert x.device.type == 'cuda'"), ["Without a GPU the tensors are on the CPU"]),
    "an exception of one's own": (
        entry_begins("if not x.is_cuda:\n        raise ValueError('x must be a CUDA tensor')"),
        ["line 15: ValueError: x must be a CUDA tensor", "Without a GPU the tensors are on the CPU"],
    ),
    "an argument is missing": (SOLUTION.replace("x.numel(), BLOCK", "BLOCK"), ["TypeError: double_kernel: missing a required argument: 'n'"]),
    "an argument too many": (SOLUTION.replace("BLOCK=64", "64, 3"), ["TypeError: double_kernel: too many positional arguments"]),
    "no jit": (SOLUTION.replace("@triton.jit\n", ""), ["kernel[grid](…) needs @triton.jit above the kernel."]),
    "another signature": (SOLUTION.replace("def double(x)", "def double(x, y)"), ["missing 1 required positional argument: 'y'"]),
    "a grid that is too large": (launched("double_kernel[(1, 70000)](x, out, n, 64)"), ["grid = (1, 70000): axis 1 is 70,000; CUDA allows 0 to 65,535 there"]),
    "a grid of four": (launched("double_kernel[(1, 1, 1, 1)](x, out, n, 64)"), ["has 4 entries; a grid has one to three"]),
    "a negative grid": (launched("double_kernel[(-1,)](x, out, n, 64)"), ["axis 0 is -1"]),
    "a fractional grid": (launched("double_kernel[(n / 64,)](x, out, n, 64)"), ["grid = (2.34375,): the number of programs is a whole number; use // or triton.cdiv"]),
    "a grid that is a number": (launched("double_kernel[triton.cdiv(n, 64)](x, out, n, 64)"), ["grid = 3 is no tuple or list; write kernel[(3,)](…)"]),
    "a number of numpy's": (
        launched(f"import numpy as np\n    double_kernel[{GRID}](x, out, np.int64(n), BLOCK=64)"), ["Pass plain Python numbers to a kernel: int(n)"],
    ),
    "it returns nothing": (SOLUTION.replace("return out", "return"), ["the entry returned None; expected a plain torch.Tensor."]),
    "it returns a tuple": (SOLUTION.replace("return out", "return (out,)"), ["the entry returned a tuple; expected a plain torch.Tensor."]),
    "it raises": (entry_begins("raise RuntimeError('mine')"), ["line 14: RuntimeError: mine\n    raise RuntimeError('mine')"]),
    "it leaves": (entry_begins("import sys; sys.exit(3)"), ["line 14: SystemExit: 3"]),
    "an endless recursion": (entry_begins("def f(): return f()\n    f()"), ["line 14: RecursionError: maximum recursion depth exceeded"]),
    "an exception that cannot be shown": (
        "class Odd(BaseException):\n    def __str__(self): raise self\n\n\ndef double(x):\n    raise Odd()\n",
        ["line 6: Odd: (an exception whose message cannot be shown)"],
    ),
    # the harness says AttributeError: 'torch.dtype' object has no attribute 'is_ptr', on a line of the kernel
    "a kernel that is called without a grid": (launched("double_kernel(x, out, n, 64)"), ["kernel[grid](…)"]),
    # the harness says undecided: it takes its own refusal for a thing that a GPU can do
    "a launch while the file is imported": (
        kernel(BODY, "\ndouble_kernel[(1,)](torch.ones(4), torch.ones(4), 4, BLOCK=64)\n" + ENTRY),
        ["line 13:", "a kernel was launched while the file was being imported; launch it inside the entry"],
    ),
}  # fmt: skip

IN_THE_KERNEL = {
    "no power of two": (kernel("o = tl.arange(0, 48)\n" + BODY.replace("\n    ", "\n")), ["line 10: ValueError: arange's range must be a power of 2", "pass triton.next_power_of_2(n) and mask the rest"]),
    "a size that is known too late": (kernel("o = tl.arange(0, n)\n" + BODY.replace("\n    ", "\n")), ["declare the parameter as `NAME: tl.constexpr`"]),
    "a block too large": (SOLUTION.replace("BLOCK=64", "BLOCK=2097152"), ["line 8: ValueError: numel (2097152) exceeds triton maximum tensor numel"]),
    "an unknown name": (computes("y * 2"), ["NameError: name 'y' is not defined\n    tl.store(out_ptr + offs, y * 2, mask=mask)"]),
    "an unknown function of tl": (computes("tl.maximun(x, x)"), ["has no attribute 'maximun'", "Did you mean tl.maximum?"]),
    "a function of CUDA's library": (computes("tl.tanh(x)"), ["from triton.language.extra import libdevice; libdevice.tanh(x)"]),
    "if on a block": (computes("x * 2", "if x > 0:\n    x = x * 2"), ["line 12: `if`, `while`, `and` or `bool()` needs one value, but this is a block of shape [64]", "choose per element with tl.where"]),
    "while on a block": (computes("x * 2", "while x > 0:\n    x = x - 1"), ["needs one value, but this is a block"]),
    "shapes that do not fit": (computes("x + tl.arange(0, 32)"), ["incompatible dimensions at index 0: 64 and 32", "check which sides say [:, None]"]),
    "a value for an address": (computes("x * 2", "tl.store(x, out_ptr + offs)"), ["line 12: ", "take the address first"]),
    "a block from one address": (computes("tl.load(x_ptr, mask=mask)"), ["line 12: ", "A block of values has a block of addresses"]),
    "several targets": (computes("a + b", "a = b = x"), ["Write one assignment a line."]),
    "bytes at an odd address": (
        kernel("p = (x_ptr.to(tl.pointer_type(tl.int8), bitcast=True) + 2).to(tl.pointer_type(tl.float32), bitcast=True)\n"
               + LOAD.replace("x_ptr", "p").replace("mask=mask", "mask=offs < 9") + STORE.format("x")),
        ["line 11: program (0, 0, 0) reads 4 bytes at byte 2 of x_ptr (x): not a multiple of 4; a GPU refuses."],
    ),
    "a recursive helper": (
        computes("again(x)", above="@triton.jit\ndef again(x):\n    return again(x)\n"),
        ["a @triton.jit function calls itself; Triton does not compile recursion"],
    ),
}  # fmt: skip

BY_THE_COMPILER = {
    "a subscript": (computes("x_ptr[offs] * 2"), ["line 12: ", "A kernel has no x[i]: tl.load(x_ptr + i) reads"]),
    "an argument of tl's is missing": (computes("x * tl.arange(64)"), ["line 12: TypeError: arange() missing 1 required positional argument: 'end'\n    tl.store("]),
    "a range for a block": (computes("x * range(64)"), ["line 12: ", "a block of numbers is tl.arange(0, BLOCK)"]),
    "a print without a text": (computes("x * 2", "print(x)"), ["line 12: ", 'print("offs", offs)']),
    "an address for a value": (computes("x_ptr + offs"), ["line 12: ", "An address stands where values belong"]),
    "an accumulator of another shape": (
        kernel("o = tl.arange(0, 16)\na = tl.load(x_ptr + o[:, None] * 8 + o[None, :]).to(tl.float16)\nacc = tl.dot(a, a, tl.zeros((16, 32), tl.float32))\n"
               + LOAD + STORE.format("x * 2 + tl.sum(tl.sum(acc, 0), 0) * 0")),
        ["acc has as many rows as a"],
    ),
    "an option that no launch has": (SOLUTION.replace("BLOCK=64", "BLOCK=64, num_warp=4"), ["num_warp", "num_warps, num_stages and num_ctas"]),
    "a Python helper": (computes("helper(x)", above="def helper(x):\n    return x * 2\n"), ["a GPU cannot call back into Python"]),
    "a global that is no constexpr": (computes("x * TWO", above="TWO = 2"), ["line 12: NameError: Cannot access global variable TWO", "\n    tl.store(out_ptr + offs, x * TWO, mask=mask)\n", "NAME = tl.constexpr(value)"]),
    "an accumulator that changes its type": (computes("x * 2 + acc * 0", "acc = 0\nfor i in range(n):\n    acc += 0.5"), ["start it as tl.zeros((…), tl.float32)"]),
    "try in a kernel": (computes("y", "try:\n    y = x * 2\nexcept Exception:\n    y = x"), ["line 12: UnsupportedLanguageConstruct: unsupported AST node type: Try\n    try:"]),
    "a list that grows": (computes("parts[0] * 2", "parts = []\nparts.append(x)"), ["line 13:", "append"]),
    "a tile too small for tensor cores": (
        kernel("o = tl.arange(0, 8)\na = tl.load(x_ptr + o[:, None] * 8 + o[None, :]).to(tl.float16)\n"
               + LOAD + STORE.format("x * 2 + tl.sum(tl.sum(tl.dot(a, a), 0), 0) * 0")),
        ["make the block sizes of tl.dot 16 or more"],
    ),
    ".to on an argument that is 1": (
        launched(f"double_kernel[{GRID}](x, out, n, 1, BLOCK=64)", f"offs = offs * stride.to(tl.int64)\n{LOAD}{STORE.format('x * 2')}",
                 "x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr"),
        ["An argument that is 1 becomes a constant, which has no .to()"],
    ),
}  # fmt: skip

# 65,536 counters of 4 bytes are more than the shared memory of any GPU
GREEDY = computes("tl.where(tl.sum(counts, 0) == BLOCK, x * 2, 0)", "counts = tl.histogram(tl.arange(0, BLOCK), 65536)")
GREEDY = GREEDY.replace("BLOCK=64", "BLOCK=64, num_warps=32")  # compiles faster: a thread has fewer of them


DESCRIBED = (
    HEAD
    + """
@triton.jit
def double_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    out = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m, k = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([m, k], x.load([m, k]) * 2)


def double(x):
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    M, N = x.shape
    double_kernel[(triton.cdiv(M, 4), triton.cdiv(N, 32))](x, out, M, N, 4, 32)
    return out
"""
)


def rows(*tables):
    return [pytest.param(*row, id=name.replace(" ", "-")) for table in tables for name, row in table.items()]


def the_rest_of(says: list[str], text: str) -> list[str]:
    """Return what the text lacks."""
    return [part for part in says if part not in text]


@pytest.mark.parametrize(("source", "says"), rows(IN_THE_FILE, IN_THE_LAUNCHER, IN_THE_KERNEL))
def test_an_error_names_the_line_and_what_to_do(judge, source, says):
    facts = judge(source)

    assert facts["word"] == "error", facts["reason"]
    assert not the_rest_of(says, facts["reason"]), facts["reason"]


@pytest.mark.parametrize(("source", "says"), rows(BY_THE_COMPILER))
def test_what_only_the_compiler_refuses_is_an_error_too(judge, source, says):
    facts = judge(source, compiled=True)

    assert facts["word"] == "error", facts["reason"]
    assert facts["reason"].startswith("does not compile for NVIDIA H200: line ")
    assert not the_rest_of(says, facts["reason"]), facts["reason"]


def test_too_much_shared_memory_is_an_error(judge):
    facts = judge(GREEDY, compiled=True)

    assert facts["word"] == "error", facts["reason"]
    assert "out of resource: shared memory" in facts["reason"]
    assert "Use smaller blocks or fewer stages (num_stages)." in facts["reason"]


def test_a_descriptor_without_memory_is_an_error(judge):
    facts = judge(DESCRIBED, "M6-N64", compiled=True)

    assert facts["word"] == "error", facts["reason"]
    assert "Kernel requires a runtime memory allocation" in facts["reason"]
    assert "before the launch, triton.set_allocator(f)" in facts["reason"]


def test_rows_that_no_copy_engine_can_fetch_are_an_error(judge):
    facts = judge(DESCRIBED, "M3-N50", compiled=True)

    assert facts["word"] == "error", facts["reason"]
    assert not facts["ours"]
    assert "a GPU wants a multiple of 16 (use plain pointers for such a tensor, or a padded copy)" in facts["reason"]


def test_an_assertion_of_the_compiler_names_the_learners_line(judge):
    body = """
        one = BLOCK // BLOCK
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=0) * factors[one], mask=mask)
    """
    source = kernel(body).replace("x_ptr, out_ptr, n, BLOCK", "x_ptr, out_ptr, factors, n, BLOCK", 1)
    source = source.replace("(x, out, x.numel(), BLOCK=64)", "(x, out, (1.0, 2.0), x.numel(), BLOCK=64)")
    facts = judge(source, compiled=True)

    assert facts["word"] == "error", facts["reason"]
    assert "line 11: AssertionError: assert " in facts["reason"]
    assert "An index into a tuple is known when the kernel is compiled" in facts["reason"]


@pytest.mark.parametrize("source", [
    pytest.param(kernel("p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))\n" + LOAD + STORE.format("x * 2")), id="make"),
    pytest.param(kernel("p = tl.advance(x_ptr, (1,))\n" + LOAD + STORE.format("x * 2")), id="advance"),
])  # fmt: skip
def test_block_pointers_say_what_replaced_them(judge, source, triton_version):
    if triton_version < (3, 9):
        pytest.skip("block pointers are still there before Triton 3.9")
    facts = judge(source, compiled=True)

    assert facts["word"] == "error"
    assert "Use plain pointers with a mask, or tl.make_tensor_descriptor." in facts["reason"]


@pytest.mark.parametrize("source", [
    pytest.param(HEAD + "def double(x):\n    raise NotImplementedError('double: TODO 1/2')\n", id="launcher"),
    pytest.param(kernel("raise NotImplementedError('double: TODO 1/2')"), id="kernel"),
])  # fmt: skip
def test_a_stub_that_raises_is_todo(judge, source):
    facts = judge(source)

    assert facts["word"] == "todo"
    assert "NotImplementedError: double: TODO 1/2" in facts["reason"]


def test_an_error_that_the_code_catches_is_no_verdict(judge):
    """A kernel that does not compile may be tried first: what counts is the one that runs."""
    tried = KERNEL.format(body="tl.store(out_ptr + offs, x_ptr.no_such_thing)").replace("double", "tried")
    source = launched(
        f"try:\n        tried_kernel[{GRID}](x, out, n, 64)\n    except Exception:\n        double_kernel[{GRID}](x, out, n, 64)"
    ).replace(HEAD, HEAD + tried)
    facts = judge(source)

    assert facts["word"] == "pass", facts["reason"]


# the classes themselves


def test_every_error_of_ours_is_one_that_a_person_can_mend():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and c.__module__ == errors.__name__]

    assert all(issubclass(c, errors.KataError) for c in classes)
    assert all(c.__name__ in errors.__doc__ for c in classes)


@pytest.mark.parametrize(("name", "text"), [
    ("05_nf", ' Did you mean "05_nf4"?'),
    ("sotfmax", ' Did you mean "softmax"?'),
    ("zzz", ""),
    ("", ""),
])  # fmt: skip
def test_did_you_mean(name, text):
    assert errors.did_you_mean(name, ["05_nf4", "softmax"]) == text
