"""mutate: each operator makes its mistakes, and nothing else of the file changes."""

from __future__ import annotations

import ast

import pytest

from harness.mutation.mutate import OPERATORS, mutants
from harness.tests.toys import HEAD, SOLUTION


def kernel(body, entry="", params="x_ptr, y_ptr, M, N, stride_xm, stride_xn, BLOCK: tl.constexpr"):
    """Return a file with one kernel of these lines, and host code."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{HEAD}\n@triton.jit\ndef k({params}):\n{lines}\n\n{entry}"


def host(body):
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return kernel("pass", f"def f(x, y):\n{lines}\n")


def afters(operator, source, **how):
    """Return the changed lines that one operator makes, in order."""
    return [m.after for m in mutants(source, **how) if m.operator == operator]


LOAD = "x = tl.load(x_ptr + offs, mask=mask, other=0.0)"
INT64 = "row = tl.program_id(0).to(tl.int64)"


@pytest.mark.parametrize(("operator", "source", "changed"), [
    ("drop-mask", kernel(LOAD), ["x = tl.load(x_ptr + offs)"]),
    ("drop-mask", kernel("x = tl.load(x_ptr, mask, 0.0)"), ["x = tl.load(x_ptr)"]),
    ("drop-mask", kernel("tl.store(y_ptr, x, mask)"), ["tl.store(y_ptr, x)"]),
    ("drop-mask", kernel("m = (a < M) & (b < N)"), ["m = a < M", "m = b < N"]),
    ("drop-mask", kernel("lo = byte & 0xF"), []),
    ("drop-mask", kernel("s = tl.where(a < b, s, 0.0)"), ["s = s"]),
    ("widen-mask", kernel("m = a < M"), ["m = a < M + 16"]),
    ("widen-mask", kernel("m = a >= b"), ["m = a + 16 >= b"]),
    ("widen-mask", kernel("if M < N:\n    pass"), []),
    ("swap-strides", kernel("p = x_ptr + i * stride_xm + j * stride_xn"),
     ["p = x_ptr + i * stride_xn + j * stride_xn", "p = x_ptr + i * stride_xn + j * stride_xm",
      "p = x_ptr + i * stride_xm + j * stride_xm"]),
    ("swap-strides", host("k[(1,)](x, x.stride(0), x.stride(1))"), ["k[(1,)](x, x.stride(1), x.stride(0))"]),
    ("swap-strides", host("k[(1,)](x, *x.stride())"), ["k[(1,)](x, *x.stride()[::-1])"]),
    ("off-by-one-bound", kernel("m = a < M"), ["m = a < M - 1"]),
    ("off-by-one-bound", kernel("for i in range(0, N, BLOCK):\n    pass"),
     ["for i in range(0, N - 1, BLOCK):", "for i in range(0, N + 1, BLOCK):", "for i in range(0 + 1, N, BLOCK):"]),
    ("off-by-one-bound", host("g = triton.cdiv(n, 64)"), ["g = triton.cdiv(n, 64) - 1"]),
    ("comparison", kernel("m = (a < M) & (b >= N)"), ["m = (a <= M) & (b >= N)", "m = (a < M) & (b > N)"]),
    ("comparison", kernel("if y_ptr is not None:\n    pass"), ["if y_ptr is None:"]),
    ("comparison", kernel("m = a << 2 < M"), ["m = a << 2 <= M"]),
    ("drop-max", kernel("p = tl.exp(x - tl.max(x, axis=0))"), ["p = tl.exp(x)"]),
    ("drop-max", kernel("p = tl.exp2(x * c - m[:, None])"), ["p = tl.exp2(x * c)"]),
    ("drop-max", kernel("p = x - y"), []),
    ("lower-dtype", kernel("x = tl.load(x_ptr).to(tl.float32)"), ["x = tl.load(x_ptr).to(tl.float16)", "x = tl.load(x_ptr).to(tl.bfloat16)"]),
    ("lower-dtype", kernel("x = tl.load(x_ptr)"), ["x = tl.load(x_ptr).to(tl.float16)", "x = tl.load(x_ptr).to(tl.bfloat16)"]),
    ("lower-dtype", kernel("tl.store(y_ptr, a + b)"), ["tl.store(y_ptr, (a + b).to(tl.float16))", "tl.store(y_ptr, (a + b).to(tl.bfloat16))"]),
    ("lower-dtype", kernel(INT64), []),
    ("lower-dtype", kernel('acc = tl.dot(a, b, input_precision="ieee")'), ['acc = tl.dot(a, b, input_precision="tf32")']),
    ("accumulate-fp16", kernel("acc = tl.zeros((BLOCK,), tl.float32)"), ["acc = tl.zeros((BLOCK,), tl.float16)"]),
    ("accumulate-fp16", kernel("s = tl.sum(a * b, axis=0)"), ["s = tl.sum((a * b).to(tl.float16), axis=0).to(tl.float32)"]),
    ("accumulate-fp16", kernel("for i in range(N):\n    acc += a * b\n    p_ptrs += BLOCK"),
     ["acc = (acc + (a * b)).to(tl.float16).to(tl.float32)"]),
    ("accumulate-fp16", kernel("for i in range(N):\n    acc = tl.dot(a, b, acc)"),
     ["acc = tl.dot(a, b, acc).to(tl.float16).to(tl.float32)"]),
    ("skip-tail", host("g = triton.cdiv(n, 64)"), ["g = n // 64"]),
    ("skip-tail", host("g = (n + 64 - 1) // 64"), ["g = (n) // 64"]),
    ("skip-tail", host("B = triton.next_power_of_2(n)"), ["B = triton.next_power_of_2(n) // 2"]),
    ("skip-tail", kernel("for i in range(0, N, BLOCK):\n    pass"), ["for i in range(0, N - BLOCK + 1, BLOCK):"]),
    ("skip-tail", kernel("m = a < M"), ["m = a < M // 16 * 16"]),
    ("wrong-axis", kernel("s = tl.sum(x, axis=1)"), ["s = tl.sum(x, axis=0)"]),
    ("wrong-axis", kernel("s = tl.max(x, 0)"), ["s = tl.max(x, 1)"]),
    ("wrong-axis", host("b = max(n, 1)"), []),
    ("wrong-axis", kernel("p = i[:, None]"), ["p = i[None, :]"]),
    ("wrong-axis", kernel("x = tl.trans(x)"), ["x = x"]),
    ("wrong-axis", host("n = x.shape[-1]"), ["n = x.shape[-2]"]),
    ("wrong-axis", host("M, N = x.shape"), ["N, M = x.shape"]),
    ("wrong-axis", host("s = x.stride(0)"), ["s = x.stride(1)"]),
    ("wrong-program-id", kernel("pid = tl.program_id(axis=0)"), ["pid = tl.program_id(axis=1)", "pid = tl.program_id(axis=0) + 1"]),
    ("wrong-program-id", kernel("pid_m = tl.program_id(0)\npid_n = tl.program_id(1)\ni = pid_m + pid_n")[:],
     ["pid_m = tl.program_id(1)", "pid_m = tl.program_id(0) + 1", "pid_n = tl.program_id(2)", "pid_n = tl.program_id(1) + 1",
      "i = pid_n + pid_n", "i = pid_m + pid_m"]),
    ("wrong-program-id", kernel("pid = tl.program_id(0)\npid_m = pid // N")[:],
     ["pid = tl.program_id(1)", "pid = tl.program_id(0) + 1", "pid_m = pid_m // N", "pid_m = pid % N"]),
    ("wrong-program-id", host("k[(a, b)](x)"), ["k[(b, a)](x)"]),
    ("other-value", kernel(LOAD), ["x = tl.load(x_ptr + offs, mask=mask, other=1)"]),
    ("other-value", kernel('x = tl.load(p, mask=m, other=float("-inf"))'), ["x = tl.load(p, mask=m, other=0)", "x = tl.load(p, mask=m)"]),
    ("constant", kernel("a = b + 7"), ["a = b + 8", "a = b + 6"]),
    ("constant", host("y = x.reshape(-1, n)"), ["y = x.reshape(0, n)", "y = x.reshape(-2, n)"]),
    ("constant", kernel("a = b * 0.5"), ["a = b * 1.5"]),
    ("constant", kernel("a = tl.full((BLOCK,), -3.4e38, tl.float32)"), ["a = tl.full((BLOCK,), -0.0, tl.float32)"]),
    ("constant", kernel('a = float("-inf")'), ["a = 0.0"]),
    ("constant", host("num_warps = 4\nk[(1,)](x, num_warps=8)\ny = x.shape[0]"), ["k[(2,)](x, num_warps=8)", "k[(0,)](x, num_warps=8)"]),
    ("swap-operands", kernel("a = b - c * 2"), ["a = (c * 2) - b"]),
    ("swap-operands", kernel("a = tl.interleave(hi, lo)"), ["a = tl.interleave(lo, hi)"]),
    ("arithmetic", kernel("a = b * c // d"), ["a = b * c * d", "a = (b + c) // d"]),
    ("arithmetic", kernel("a += b"), ["a -= b"]),
    ("arithmetic", kernel("a = -b"), ["a = b"]),
    ("min-max", kernel("m = tl.maximum(m, x)"), ["m = tl.minimum(m, x)"]),
    ("negate-branch", kernel("if EVEN:\n    pass"), ["if not EVEN:"]),
    ("negate-branch", kernel("if M == N:\n    pass"), []),
    ("drop-statement", kernel("tl.store(y_ptr, x)"), ["pass"]),
    ("drop-statement", kernel("a = 1\nb = 2\na = b"), ["pass"]),
    ("drop-contiguous", host("x = x.contiguous()"), ["x = x"]),
])  # fmt: skip
def test_operator(operator, source, changed):
    assert sorted(afters(operator, source)) == sorted(changed)


def test_a_cast_to_int64_goes_only_where_a_case_is_huge():
    assert afters("drop-int64", kernel(INT64)) == []
    assert afters("drop-int64", kernel(INT64), huge=True) == ["row = tl.program_id(0)"]


def test_checks_docstrings_annotations_and_assertions_are_left_alone():
    source = kernel(
        '"""k: for i < n."""\ntl.static_assert(M > 1)',
        'def f(x: "a < b", n: int = 3) -> int:\n    """n < 3."""\n    if x.dim() != 2 or n > 5:\n        raise ValueError(n - 1)\n',
    )

    assert mutants(source) == []


def test_the_other_way_out_of_a_check_is_not_left_alone():
    source = host("if x:\n    raise ValueError\nelif x < y:\n    y = x - 1")

    assert afters("comparison", source) == ["elif x <= y:"]


LONG = kernel("""x = tl.load(  # a, b
    x_ptr
    + offs,
    mask=(offs
          < N),  # the rest
    other=0.0,
)
y = tl.load(x_ptr + tl.max(
    offs, axis=0))""", "def f(n):\n    return k[(triton.cdiv(n,\n                           64),)](n)\n")  # fmt: skip


def test_lines_stay_where_they_are():
    found = mutants(LONG)

    assert {m.operator for m in found} >= {"drop-mask", "widen-mask", "off-by-one-bound", "skip-tail", "wrong-axis"}
    assert {m.source.count("\n") for m in found} == {LONG.count("\n")}
    for m in found:
        same = [a == b for a, b in zip(LONG.splitlines(), m.source.splitlines(), strict=True)]
        assert not same[m.line - 1] and all(same[: m.line - 1]) and sum(same) >= len(same) - 5, m.source


def test_characters_of_several_bytes_do_not_shift_the_edits():
    assert afters("comparison", kernel('s = "…é" if a < b else "ü"')) == ['s = "…é" if a <= b else "ü"']


def test_mutants_are_new_valid_and_named_by_what_they_change():
    found = mutants(SOLUTION)

    assert len({m.source for m in found} | {SOLUTION}) == len(found) + 1
    for m in found:
        ast.parse(m.source)
    moved = mutants("# a line more\n" + SOLUTION)
    assert [m.digest for m in moved] == [m.digest for m in found]
    assert [m.line for m in moved] == [m.line + 1 for m in found]
    assert len({m.digest for m in found}) == len(found)


def test_a_line_that_stands_twice_is_told_apart():
    found = [m for m in mutants(kernel("a = b < c\na = b < c")) if m.operator == "comparison"]

    assert [(m.before, m.nth) for m in found] == [("a = b < c", 1), ("a = b < c", 2)]
    assert found[0].digest != found[1].digest


def test_every_operator_says_what_it_does():
    assert all(operator.__doc__ for operator in OPERATORS.values())
