"""The interpreter needs private names of Triton; a machine runs every program once, in an order of its own."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.interpreted import interpreter
from harness.interpreted.interpreter import SEAMS, ConstInt, Machine, missing_seams
from harness.tests.toys import BODY, ENTRY, LOAD, STORE, computes, kernel, launched, python

grids = st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(1, 3))


@given(grids, st.none() | st.integers())
def test_every_program_runs_once(grid, order):
    programs = list(Machine(None, order).programs(grid))
    expected = {
        x + grid[0] * (y + grid[1] * z): (x, y, z)
        for x in range(grid[0])
        for y in range(grid[1])
        for z in range(grid[2])
    }

    assert dict(programs) == expected
    assert len(programs) == len(expected)


@given(st.integers())
def test_the_order_is_drawn_from_its_seed(order):
    first, again, other = ([n for n, _ in Machine(None, o).programs((50, 1, 1))] for o in (order, order, order + 1))

    assert first == again
    assert first != other
    assert [n for n, _ in Machine(None).programs((50, 1, 1))] == list(range(50))


def test_a_sample_is_neighbours_from_the_middle_and_says_its_share():
    machine = Machine(None, sample=10)
    programs = [n for n, _ in machine.programs((10, 10, 1))]

    assert programs == list(range(45, 55))
    assert machine.share == 0.1
    assert len(list(machine.programs((9, 1, 1)))) == 9
    assert machine.share == 0.1  # of the launch that was cut most


def test_a_constexpr_int_answers_as_in_compiled_code():
    assert (ConstInt(64).value, ConstInt(64) // 2) == (64, 32)


def test_a_kernel_that_nobody_waits_for_is_refused():
    with pytest.raises(interpreter.KernelError, match="launch it inside the entry"):
        interpreter.current()


# the canary: names that the next Triton may move


@pytest.fixture
def fake_triton(monkeypatch):
    """Return a stand-in for triton.runtime.interpreter that has every name; triton itself stays out of this process."""
    fake = ModuleType("triton.runtime.interpreter")
    for owner, name in SEAMS:
        holder = getattr(fake, owner) if owner else fake
        setattr(holder, name, type(name, (), {}))
    modules = {
        "triton": ModuleType("triton"),
        "triton.runtime": ModuleType("triton.runtime"),
        "triton.runtime.interpreter": fake,
    }
    modules["triton"].runtime, modules["triton.runtime"].interpreter = modules["triton.runtime"], fake
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return fake


def test_nothing_is_missing_where_every_name_is_there(fake_triton):
    assert missing_seams() == []


def test_a_name_that_moved_is_told_by_its_name(fake_triton):
    del fake_triton._implicit_cvt, fake_triton.InterpreterBuilder.create_dot

    assert missing_seams() == ["_implicit_cvt", "InterpreterBuilder.create_dot"]


def test_a_class_that_moved_takes_its_names_along(fake_triton):
    names = [name for owner, name in SEAMS if owner == "InterpretedFunction"]
    del fake_triton.InterpretedFunction

    assert missing_seams() == ["InterpretedFunction", *(f"InterpretedFunction.{name}" for name in names)]


SCRIPT = """
import importlib
from harness.interpreted import interpreter
print(interpreter.missing_seams())
for module, path in aot.SEAMS:
    thing = importlib.import_module(module)
    for name in path.split("."):
        thing = getattr(thing, name)
"""


def test_this_triton_has_every_name(tmp_path):
    result = python("-W", "ignore", "-c", SCRIPT, cwd=tmp_path)

    assert result.stdout == "[]\n", result.stderr


# what the patches are for, through the server


@pytest.mark.parametrize(("value", "before"), [
    pytest.param("x * 2", "i = 0\nwhile i < 3:\n    i += 1\ntl.static_assert(BLOCK == 64)", id="while"),
    pytest.param("y", "y = x + tl.full((BLOCK,), 1, tl.float32) * x", id="full"),
    pytest.param("x * two", "two = 2", id="an int that is assigned"),
    pytest.param("y.to(out_ptr.dtype.element_ty)", "y = x.to(tl.float64) * 2", id="float64"),
    pytest.param("tl.where(n > 3, x * 2, x)", "", id="a scalar condition"),
    pytest.param("x * 2 + tl.sum(tl.where(mask, 0, 0), 0)", "", id="a sum of whole numbers"),
    pytest.param("x * 2 + 0 * tl.atomic_max(flag_ptr, 1)", "", id="an atomic maximum"),
])  # fmt: skip
def test_a_construct_computes_what_a_gpu_does(judge, value, before):
    params = "x_ptr, out_ptr, flag_ptr, n, BLOCK: tl.constexpr"
    body = LOAD + before + "\n" + STORE.format(value)
    facts = judge(
        launched("double_kernel[(triton.cdiv(n, 64),)](x, out, torch.zeros(1, dtype=torch.int32), n, 64)", body, params)
    )

    assert facts["word"] == "pass", facts["reason"]


# the harness says ValueError: Unsupported data type, where a GPU exchanges floats as well
def test_an_atomic_exchange_of_floats(judge):
    facts = judge(kernel(LOAD + "tl.atomic_xchg(out_ptr + offs, x * 2, mask=mask)"))

    assert facts["word"] == "pass", facts["reason"]


def test_atomics_on_bfloat16(judge):
    facts = judge(
        kernel(LOAD + "tl.atomic_add(out_ptr + offs, x * 2, mask=mask)", ENTRY.replace("empty_like", "zeros_like")),
        "bfloat16",
    )

    assert facts["word"] == "pass", facts["reason"]


# the harness lets it pass: the interpreter's own options say that nobody debugs
def test_device_assert_stops_a_kernel_that_asks_for_it(judge):
    source = kernel(LOAD + "tl.device_assert(n < 0, 'n is negative')\n" + STORE.format("x * 2"))
    facts = judge(source.replace("@triton.jit", "@triton.jit(debug=True)"))

    assert facts["word"] == "error"
    assert "tl.device_assert failed: n is negative" in facts["reason"]


def test_an_unmasked_block_may_end_exactly_at_the_end(judge):
    assert judge(kernel("tl.store(out_ptr + offs, tl.load(x_ptr + offs) * 2)"), "M6-N64")["word"] == "pass"


def test_a_pre_hook_runs_before_the_launch(judge):
    tuned = "@triton.autotune([triton.Config({'BLOCK': 64}, pre_hook=lambda args: args['out_ptr'].zero_())], key=[])\n@triton.jit"
    source = launched("double_kernel[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, out, n)",
                      LOAD + "tl.atomic_add(out_ptr + offs, x * 2, mask=mask)").replace("@triton.jit", tuned)  # fmt: skip
    facts = judge(source)

    assert facts["word"] == "pass", facts["reason"]


# ahead of time


def test_another_case_runs_another_configuration(judge):
    tuned = "@triton.autotune([triton.Config({'BLOCK': b}) for b in (16, 32, 64)], key=['n'])\n@triton.jit"
    source = launched("double_kernel[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, out, n)").replace(
        "@triton.jit", tuned
    )
    blocks = set()
    for seed in (3, 4, 5):
        judge.seed = seed
        blocks.add(judge(source)["launches"][0]["constants"]["BLOCK"])

    assert blocks == {"16", "32", "64"}


# the harness says error: it looks for CompileTimeAssertionFailure in the wrong module
def test_a_configuration_that_does_not_fit_is_skipped_as_on_a_gpu(judge):
    tuned = "@triton.autotune([triton.Config({'BLOCK': b}) for b in (64, 16)], key=['n'])\n@triton.jit"
    body = "tl.static_assert(BLOCK < 64)\n" + BODY.replace("\n    ", "\n")
    source = launched("double_kernel[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](x, out, n)", body).replace(
        "@triton.jit", tuned
    )
    judge.seed = 4  # even: the first configuration
    facts = judge(source, compiled=True)

    assert facts["word"] == "pass", facts["reason"]
    assert facts["launches"][-1]["constants"]["BLOCK"] == "16"


def test_what_is_compiled_is_recorded(judge, kata, server):
    from harness.runner.client import Client

    file = judge.folder / "submission.py"
    file.write_text(kernel(BODY), encoding="utf-8")
    client = Client(server.folder, "compile")
    case = kata.spec.cases[0]
    facts = client.ask({"kata": str(kata.folder), "file": str(file), "case": case.to_json(), "gpu": "T4"})
    client.close()

    assert facts["word"] == "pass", facts["reason"]
    (launch,) = facts["launches"]
    assert (launch["kernel"], launch["grid"], launch["constants"]) == ("double_kernel", [3, 1, 1], {"BLOCK": "64"})
    assert {k: facts["compiled"][launch["key"]][k] for k in ("kernel", "shared", "num_warps")} == {
        "kernel": "double_kernel", "shared": 0, "num_warps": 4,
    }  # fmt: skip


def test_a_block_too_large_to_compile_is_recorded_only(judge):
    facts = judge(launched("double_kernel[(1,)](x, out, n, 65536)"), compiled=True)

    assert facts["word"] == "pass", facts["reason"]


def test_computes_is_what_it_says(judge):
    """The helper of these tests: a wrong value is found."""
    assert judge(computes("x * 3"))["word"] == "wrong"
