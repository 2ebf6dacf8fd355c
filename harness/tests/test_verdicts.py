"""Every way to be wrong gets its word, and a message that names the argument, the line, or the next step."""

from __future__ import annotations

import pytest

from harness.course import ROOT
from harness.tests.toys import BODY, ENTRY, GRID, HEAD, KERNEL, LOAD, SOLUTION, STORE, USUAL, computes, kernel, launched

NO_COPY = ENTRY.replace("x = x.contiguous()", "pass").replace("empty_like(x)", "empty(x.shape, dtype=x.dtype)")
TRIPLE = BODY.replace("x * 2", "x * 3")


def ends(line: str, body: str = BODY) -> str:
    """Return a submission that launches as usual and then runs ``line``."""
    return launched(f"{USUAL}\n    {line}", body)


OUT_OF_BOUNDS = {
    "load without a mask": (
        kernel("tl.store(out_ptr + offs, tl.load(x_ptr + offs) * 2, mask=mask)"),
        "line 10: program (2, 0, 0) reads element 150 of x_ptr (x), but it has 150 elements, shape [3, 50], strides "
        "[50, 1]; the last one is 149 (42 of 64 lanes are outside).",
    ),
    "store without a mask": (kernel(LOAD + "tl.store(out_ptr + offs, x * 2)"), "program (2, 0, 0) writes element 150 of out_ptr"),
    "atomic without a mask": (
        kernel(LOAD + "tl.atomic_add(out_ptr + offs, x * 2)", ENTRY.replace("empty_like", "zeros_like")),
        "program (2, 0, 0) updates element 150 of out_ptr",
    ),
    "mask off by one": (
        kernel("tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs <= n, other=0) * 2, mask=mask)"),
        "(1 of 23 lanes are outside)",
    ),
    "before the start": (
        kernel("tl.store(out_ptr + offs, tl.load(x_ptr + offs - 1, mask=mask, other=0) * 2, mask=mask)"),
        "reads element -1 of x_ptr (x), but it has 150 elements, shape [3, 50], strides [50, 1]; that is before its start",
    ),
    "between the rows of a view": (kernel(BODY, NO_COPY), "that address lies between the elements of the view", "sliced"),
    "a view that is one row many times": (kernel(BODY, NO_COPY), "shape [3, 50], strides [0, 1]; the last one is 49", "expanded"),
    "between every second element": (kernel(BODY, NO_COPY), "reads element 1 of x_ptr (x)", "strided"),
    "an empty tensor": (
        launched("double_kernel[(1,)](x, out, 1, 64)"), "element 0 of x_ptr (x), which is an empty tensor [0, 50]", "empty"
    ),
    "a pointer that is null": (
        launched(f"double_kernel[{GRID}](torch.zeros(1, dtype=torch.int64), out, n, 64)",
                 "p = tl.load(x_ptr).to(tl.pointer_type(tl.float32))\ntl.store(out_ptr + offs, tl.load(p + offs), mask=mask)"),
        "address 0x0, which belongs to no tensor that was passed",
    ),
    "an error that is swallowed": (
        launched(f"try:\n        {USUAL}\n    except BaseException:\n        pass",
                 "tl.store(out_ptr + offs, tl.load(x_ptr + offs) * 2, mask=mask)"),
        "line 10: program (2, 0, 0) reads element 150",
    ),
}  # fmt: skip

UNWRITTEN = {
    "the grid rounds down": (
        SOLUTION.replace("triton.cdiv(x.numel(), 64)", "x.numel() // 64"),
        "22 of 150 elements of the result were never written: [2, 28], [2, 29], [2, 30], …. The last launch was "
        "double_kernel with grid (2, 1, 1).",
    ),
    "no store": (kernel(LOAD), "not one of the 150 elements of the result was written: no tl.store reached it."),
    "every other element": (kernel(LOAD + STORE.format("x * 2").replace("mask=mask", "mask=mask & (offs % 2 == 0)")), "75 of 150"),
    "zeros stand there instead": (
        kernel(LOAD + STORE.format("x * 2").replace("mask=mask", "mask=offs < n - 1"), ENTRY.replace("empty_like", "zeros_like")),
        "1 of 150 elements of the result were never written: [2, 49].",
    ),
    "a copy of what was not written": (
        launched(f"work = torch.empty(n, dtype=x.dtype)\n    double_kernel[{GRID}](x, work, n, 64)\n    out.copy_(work.view(x.shape))",
                 LOAD + STORE.format("x * 2").replace("mask=mask", "mask=mask & (offs > 3)")),
        "4 of 150 elements of the result were never written: [0, 0], [0, 1], [0, 2], …",
    ),
    "a caught error, and no stand-in": (
        launched(f"try:\n        {USUAL}\n    except Exception:\n        pass", STORE.format("0.0") + "x_ptr.foo()"),
        "Your code caught an error of its own kernel and went on: AttributeError",
    ),
    "uninitialised memory": (kernel(BODY, "\ndef double(x):\n    return torch.empty_like(x)\n"), "not one of the 150 elements"),
}  # fmt: skip

MUTATED = {
    "doubles x in place first": (
        launched(f"double_kernel[{GRID}](x, x, n, 64)\n    {USUAL}", LOAD + STORE.format("x * 2")),
        "x was changed by the call; inputs belong to the caller.",
    ),
    "torch changes x": (ends("x.neg_()"), "x was changed by the call"),
    "one element of x": (ends("x[0, 0] = 3.0"), "x was changed by the call"),
}

SEEN = "\nSEEN = {}\n" + ENTRY.replace("return out", "SEEN[x.data_ptr()] = out\n    return out")

CHEATS = {
    "torch computes": (kernel(BODY, "\ndef double(x):\n    return x * 2\n"), "torch computed this: mul on 150 elements"),
    "torch computes after a launch": (ends("out = x + x"), "torch computed this: add on 150 elements"),
    "torch computes into the result": (ends("torch.mul(x, 2, out=out)"), "torch computed this: mul"),
    "torch stands in for a broken kernel": (
        launched(f"try:\n        {USUAL}\n    except Exception:\n        out = x * 2", LOAD + "x.foo()"),
        "Your kernel itself failed: AttributeError: 'tensor' object has no attribute 'foo'.",
    ),
    "the input comes back": (ends("out = x"), "the result is the memory of the input x, not a new tensor."),
    "zeros": (kernel(BODY, "\ndef double(x):\n    return torch.zeros_like(x)\n"), "no kernel of yours was launched in this call."),
    "numpy without a kernel": (
        kernel(BODY, "\ndef double(x):\n    return torch.from_numpy(x.numpy() * 2)\n"), "no kernel of yours was launched"
    ),
    "numpy beside a kernel": (
        launched(f"double_kernel[{GRID}](x, torch.empty_like(x), n, 64); out = torch.from_numpy(x.numpy() * 2)"),
        "the result is the same when your kernels are not run.",
    ),
    "the first answer again, by address": (
        kernel(BODY, SEEN.replace("contiguous()", "contiguous()\n    if x.data_ptr() in SEEN:\n        return SEEN[x.data_ptr()]")),
        "the second call launched no kernel and returned the first result; its inputs had changed since.",
    ),
    "a copy of the first answer": (
        kernel(BODY, SEEN.replace("contiguous()", "contiguous()\n    if x.data_ptr() in SEEN:\n        return SEEN[x.data_ptr()].clone()")),
        "no kernel of yours was launched in this call.",
    ),
    "a subclass that computes later": (
        kernel(BODY, "\nclass Lazy(torch.Tensor):\n    pass\n" + ENTRY.replace("return out", "return out.as_subclass(Lazy)")),
        "Lazy; expected a plain torch.Tensor.",
    ),
    "torch inside a kernel": (kernel("_ = torch.ones(4) * 2\n" + LOAD + STORE.format("x * 2")), "torch ran inside the kernel"),
    "programs share a Python cache": (
        kernel(LOAD + "CACHE.setdefault('x', x * 2)\n" + STORE.format("CACHE['x']"), "\nCACHE = {}\n" + ENTRY),
        "a value that another program computed is used in program",
    ),
    "the course is changed": (
        ends(f"import os\n    try:\n        os.remove({str(ROOT / 'exercises' / 'no-such-file')!r})\n    except OSError:\n        pass"),
        "your code tried to change exercises/no-such-file, which belongs to the course.",
    ),
    "another thread's torch": (
        launched(f"double_kernel[{GRID}](x, torch.empty_like(x), n, 64)\n    import threading\n    r = []\n"
                 "    t = threading.Thread(target=lambda: r.append(x * 2)); t.start(); t.join()\n    out = r[0]"),
        "the result is the same when your kernels are not run.",
    ),
    # the harness says pass: what is written into the result behind torch's back, after the last launch, is not seen
    "numpy over the kernel's result": (ends("out.numpy()[...] = x.numpy() * 2", TRIPLE), ""),
    # the same
    "another thread over the kernel's result": (
        ends("import threading\n    t = threading.Thread(target=lambda: out.copy_(x * 2)); t.start(); t.join()", TRIPLE), ""
    ),
    # the same
    "torch out of sight": (
        ends("from torch.utils._python_dispatch import _disable_current_modes\n    with _disable_current_modes():\n"
             "        out.copy_(x * 2)", TRIPLE), "",
    ),
}  # fmt: skip

RACY = {
    "two programs, two values": (
        kernel("""
            for i in range(2):
                o = (tl.program_id(0) + i) * BLOCK + tl.arange(0, BLOCK)
                tl.store(out_ptr + o, tl.load(x_ptr + o, mask=o < n, other=0) * (2 + i), mask=o < n)
        """),
        "line 12: programs 0 and 1 both store to element 64 of out_ptr, with different values",
    ),
    "one store, one address, many values": (
        kernel(LOAD + STORE.format("x * 2") + "tl.store(out_ptr + offs * 0, x, mask=mask)"),
        "writes different values to the same element of out_ptr; which one stays is undefined",
    ),
    # the harness says wrong: no order of its two is the natural one, so both differ from the answer, and from each other
    "the order of the programs": (
        launched(f"double_kernel[{GRID}](x, out, torch.zeros(1, dtype=torch.int32), n, 64)", f"""
            {LOAD.strip()}
            old = tl.atomic_add(flag_ptr, 1)
            {STORE.format("x * 2 + tl.where(old == tl.program_id(0), 0.0, 1.0)").strip()}
        """, "x_ptr, out_ptr, flag_ptr, n, BLOCK: tl.constexpr"),
        "in one order",
    ),
}  # fmt: skip

WRONG = {
    "a factor": (SOLUTION.replace("x * 2", "x * 3"), "Every element is 1.5 times"),
    "one element": (
        kernel("tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n - 1, other=0) * 2, mask=mask)"),
        "1 of 150 elements of double's result is wrong (0.7 %) in case M3-N50.",
    ),
    "the first program's block everywhere": (
        kernel("x = tl.load(x_ptr + tl.arange(0, BLOCK))\n" + STORE.format("x * 2")), "written by program 1"
    ),
    "half precision inside": (SOLUTION.replace("x * 2", "(x.to(tl.float16) * 2).to(tl.float32)"), "units in the last place"),
    "strides ignored": (kernel(BODY, NO_COPY), "of 350 elements", "M5-N70-transposed"),
    "the shape": (ends("out = out.view(-1)"), "the result has shape [150]; expected [3, 50]."),
    "the dtype": (SOLUTION.replace("empty_like(x)", "empty(x.shape, dtype=torch.float16)"), "the result is float16; expected float32."),
    "one buffer for all results": (
        kernel(BODY, "\nOUT = {}\n" + ENTRY.replace("torch.empty_like(x)", "OUT.setdefault(x.shape, torch.empty_like(x))")),
        "a second call returned the memory of the first result, so the first result is gone.",
    ),
    "the first call's input, kept": (
        kernel(BODY, "\nKEPT = []\n" + ENTRY.replace("x = x.contiguous()", "KEPT.append(x.clone()); x = KEPT[0]")),
        "in the second call, with new values at the same addresses: All 150 elements",
    ),
}  # fmt: skip

TABLES = {
    "out-of-bounds": OUT_OF_BOUNDS, "unwritten": UNWRITTEN, "mutated-input": MUTATED, "cheat": CHEATS, "racy": RACY,
    "wrong": WRONG,
}  # fmt: skip


def rows():
    for word, table in TABLES.items():
        for name, (source, says, *case) in table.items():
            yield pytest.param(word, source, says, (case or ["M3-N50"])[0], id=f"{word}-{name}".replace(" ", "-"))


@pytest.mark.parametrize(("word", "source", "says", "case"), [*rows()])
def test_it_gets_its_word(judge, word, source, says, case):
    facts = judge(source, case)

    assert facts["word"] == word, facts["reason"]
    assert says in facts["reason"]


def test_another_kernel_for_the_compiler_is_a_cheat(judge):
    """Code that looks at who is asking shows the interpreter a kernel that a GPU would never run."""
    other = KERNEL.format(body="tl.store(out_ptr, 0.0)").replace("double", "other")
    pick = "import os\nINTERPRETED = os.environ.get('TRITON_INTERPRET') == '1'\n"
    source = launched(f"(double_kernel if INTERPRETED else other_kernel)[{GRID}](x, out, n, BLOCK=64)")
    facts = judge(source.replace(HEAD, HEAD + pick + other), compiled=True)

    assert facts["word"] == "cheat"
    assert facts["reason"] == (
        "interpreted it launches double_kernel[3, 1, 1]; compiled for the GPU it launches other_kernel[3, 1, 1]. "
        "Both must be the same."
    )


def test_a_masked_load_without_other_passes_with_a_note(judge):
    facts = judge(
        kernel("x = tl.load(x_ptr + offs, mask=mask)\ny = tl.sum(x, axis=0) * 0\n" + STORE.format("x * 2 + y"))
    )

    assert facts["word"] == "pass"
    (note,) = facts["findings"]
    assert note.startswith("line 10: a masked load without `other=`: Triton leaves such lanes undefined.")


def test_a_masked_load_whose_other_lanes_do_not_matter_needs_no_note(judge):
    facts = judge(kernel("x = tl.load(x_ptr + offs, mask=mask)\n" + STORE.format("x * 2")))

    assert (facts["word"], facts["findings"]) == ("pass", [])


def test_storing_the_same_values_twice_passes_with_a_note(judge):
    facts = judge(
        kernel("""
        for i in range(2):
            o = (tl.program_id(0) + i) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + o, tl.load(x_ptr + o, mask=o < n, other=0) * 2, mask=o < n)
    """)
    )

    assert facts["word"] == "pass"
    assert facts["findings"] == ["line 12: several programs store the same values to out_ptr: work done twice"]


ASM = (
    "y = tl.inline_asm_elementwise('mul.f32 $0, $1, 0f40000000;', '=r,r', [x], dtype=tl.float32, is_pure=True, pack=1)"
)


def test_inline_asm_passes_and_is_said_to_be_unchecked(judge):
    facts = judge(computes("y", ASM), compiled=True)

    assert facts["word"] == "pass"
    assert facts["not_checked"] == ["line 12: inline PTX cannot run here; what it computes was not checked"]


def test_what_does_not_come_from_inline_asm_is_checked_all_the_same(judge):
    facts = judge(computes("tl.where(offs < 64, y, x * 3)", ASM))

    assert facts["word"] == "wrong"


@pytest.mark.parametrize(("case", "source"), [
    ("bfloat16", computes("w", "y = x + x\nz = y * 1.0\nw = tl.where(z > 0, z, z)")),
    ("half", computes("y", "y = x * 1.5 + x * 0.5")),
    ("integers", computes("y + z * 0", "y = (x << 1) ^ 0\nz = (x // 3) * 3 + x % 3 - x")),
    ("empty", SOLUTION),
    ("offset", SOLUTION),
    ("expanded", SOLUTION),
])  # fmt: skip
def test_every_dtype_and_layout_can_be_right(judge, case, source):
    facts = judge(source, case)

    assert facts["word"] == "pass", facts["reason"]


# the katas of the course


COPIES = kernel(LOAD + STORE.format("x"), f"""
def transpose(x):
    n = x.numel()
    {{before}}
    out = torch.empty_like(x)
    {USUAL}
    return {{result}}
""")  # fmt: skip


@pytest.mark.parametrize(("before", "result", "word", "says"), [
    ("x = x.t().contiguous()", "out", "cheat", "torch moved this: clone on 900 elements, outside of your kernel."),
    ("x = torch.empty_strided((300, 3), (3, 1), dtype=x.dtype).copy_(x.t())", "out", "cheat", "torch moved this: copy_ on 900"),
    ("x = torch.stack([*x.unbind(1)])", "out", "cheat", "torch moved this: stack on 900 elements"),
    ("x = torch.cat([*x.split(1, 1)])", "out.view(300, 3)", "cheat", "torch moved this: cat on 900 elements"),
    ("", "out.t()", "wrong", "the result has shape [300, 3] and strides [1, 300]; expected a contiguous tensor: this kata is about "
     "where the elements lie."),
])  # fmt: skip
def test_where_moving_is_the_work_torch_moves_nothing(judge, checkout, before, result, word, says):
    kata = checkout.kata("04_coalescing")
    facts = judge(COPIES.replace("{before}", before).replace("{result}", result), "M3-N300-wide", kata=kata)

    assert facts["word"] == word, facts["reason"]
    assert says in facts["reason"]


@pytest.mark.parametrize("slug", ["01_blocks", "05_nf4", "07_softmax"])
def test_what_no_kernel_computed_never_passes(judge, checkout, slug):
    kata = checkout.kata(slug)
    case = kata.spec.cases[0].id
    first = "x" if slug != "05_nf4" else "packed"
    entry = f"def {kata.spec.entry}({first}, *rest):\n    return "
    shape = f"{first}.shape, dtype={first}.dtype" if slug != "05_nf4" else "rest[0].shape, dtype=rest[1]"
    words = {
        what: judge("import torch\n" + entry + code + "\n", case, kata=kata)["word"]
        for what, code in {
            "zeros": f"torch.zeros({shape})", "input": first, "memory": f"torch.empty({shape})",
            "torch": {"01_blocks": "x + rest[0]", "07_softmax": "torch.softmax(x, -1)"}.get(
                slug, "(rest[0].code[packed.long() >> 4].view(-1).repeat_interleave(2) * rest[0].absmax[0]).to(rest[1]).view(1, 64)"
            ),
        }.items()
    }  # fmt: skip

    input_is = "cheat" if slug != "05_nf4" else "wrong"  # packed is uint8: not even the dtype is right
    assert words == {"zeros": "cheat", "input": input_is, "memory": "unwritten", "torch": "cheat"}


@pytest.mark.parametrize("slug", ["01_blocks", "05_nf4", "07_softmax"])
def test_the_solution_passes(judge, checkout, slug):
    kata = checkout.kata(slug)
    if not kata.solution.is_file():
        pytest.skip("the practice branch has no solutions")
    few = [c.id for c in kata.spec.with_role("small")[:4]]
    facts = judge(kata.solution, *few, kata=kata)

    assert facts["word"] == "pass", facts["reason"]


LUT = """
import torch
import triton
import triton.language as tl

@triton.jit
def nf4_kernel(packed_ptr, code_ptr, absmax_ptr, out_ptr, n, n_bytes, BLOCKSIZE: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    byte = tl.load(packed_ptr + offs // 2, mask=offs < n, other=0).to(tl.int32)
    nibble = tl.where(offs % 2 == 0, byte >> 4, byte & 15)
    value = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(16):
        value = tl.where(nibble == i, tl.load(code_ptr + i), value)
    value *= tl.load(absmax_ptr + offs // BLOCKSIZE, mask=offs < n, other=0)
    tl.store(out_ptr + offs, value.to(out_ptr.dtype.element_ty), mask=offs < n)


def dequantize_nf4(packed, quant_state, dtype):
    out = torch.empty(quant_state.shape, dtype=dtype, device=packed.device)
    n = out.numel()
    nf4_kernel[(triton.cdiv(n, 256),)](
        packed, quant_state.code, quant_state.absmax, out, n, packed.numel(), quant_state.blocksize, 256
    )
    return out
"""


@pytest.mark.parametrize(("change", "word", "says"), [
    (("", ""), "pass", ""),
    (("byte >> 4, byte & 15", "byte & 15, byte >> 4"), "wrong", "nibble"),
    (("mask=offs < n, other=0).to(tl.int32)", "mask=offs < n + 2, other=0).to(tl.int32)"), "out-of-bounds", "packed_ptr (packed)"),
    (("offs // BLOCKSIZE, mask=offs < n", "offs // BLOCKSIZE + 1, mask=offs < n"), "out-of-bounds", "absmax_ptr (quant_state.absmax)"),
    (("(triton.cdiv(n, 256),)", "(n // 256,)"), "unwritten", "not one of the 91 elements"),
    (("out = torch.empty", "quant_state.absmax[0] = 0; out = torch.empty"), "mutated-input", "quant_state.absmax was changed"),
])  # fmt: skip
def test_nf4_with_another_way_to_look_up(judge, checkout, change, word, says):
    facts = judge(LUT.replace(*change), "M7-N13-odd", kata=checkout.kata("05_nf4"))

    assert facts["word"] == word, facts["reason"]
    assert says in facts["reason"]


SOFTMAX = """
import torch
import triton
import triton.language as tl

@triton.jit
def softmax_kernel(x_ptr, out_ptr, N, stride_xm, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + cols, mask=cols < N, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * N + cols, (p / tl.sum(p, axis=0)).to(out_ptr.dtype.element_ty), mask=cols < N)


def softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    N = x.shape[-1]
    softmax_kernel[(x.numel() // N,)](x, out, N, x.stride(-2), BLOCK=triton.next_power_of_2(N))
    return out
"""


@pytest.mark.parametrize(("change", "word", "says"), [
    (("", ""), "pass", ""),
    (("tl.exp(x - tl.max(x, axis=0))", "tl.exp(x + 88.0)"), "wrong", ""),
    (('other=-float("inf")', "other=0.0"), "wrong", ""),
    (("BLOCK=triton.next_power_of_2(N)", "BLOCK=64"), "unwritten", "of 5,000 elements"),
    (("mask=cols < N)\n\n", "mask=cols <= N)\n\n"), "out-of-bounds", "out_ptr"),
])  # fmt: skip
def test_softmax_in_the_plainest_way(judge, checkout, change, word, says):
    facts = judge(SOFTMAX.replace(*change), "M5-N1000-ragged", kata=checkout.kata("07_softmax"))

    assert facts["word"] == word, facts["reason"]
    assert says in facts["reason"]
