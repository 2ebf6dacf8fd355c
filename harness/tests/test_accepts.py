"""Everything that is legal in Triton is accepted: interpreted, found right, and compiled for the named GPU."""

from __future__ import annotations

import pytest

from harness.tests.toys import BODY, ENTRY, GRID, HEAD, KERNEL, LOAD, SOLUTION, STORE, USUAL, computes, kernel, launched


def per_part(head: str) -> str:
    """Return a submission that covers a block in parts of 16, which ``head`` (a loop over i) counts."""
    return kernel(f"""
{head}
    o = tl.program_id(0) * BLOCK + i * 16 + tl.arange(0, 16)
    tl.store(out_ptr + o, tl.load(x_ptr + o, mask=o < n, other=0) * 2, mask=o < n)
""")


TUNED = SOLUTION.replace("(triton.cdiv(x.numel(), 64),)", "lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)")
TUNED = TUNED.replace(", BLOCK=64", "")

LAUNCHES = {
    "autotune": TUNED.replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=w) for b, w in ((64, 2), (128, 4))], key=['n'])\n"
        "@triton.jit",
    ),
    "autotune, with what does not fit this GPU": TUNED.replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': b, 'SIDE': s}, num_warps=w) for b, s, w in ((64, 16, 4), (128, 256, 16))], key=['n'])\n@triton.jit",
    ).replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, SIDE: tl.constexpr").replace(
        "    x = tl.load(",  # a dot's operands lie in shared memory: 256 KiB of it with SIDE = 256
        "    a = (tl.arange(0, SIDE)[:, None] + tl.arange(0, SIDE)[None, :] * x_ptr.dtype.element_ty.primitive_bitwidth).to(tl.float16)\n"
        "    zero = tl.sum(tl.dot(a, a * 0))\n"
        "    mask = mask & (zero == 0)\n    x = tl.load(", 1,
    ),
    "autotune, pruned and reset": TUNED.replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': b}) for b in (64, 128)], key=['n'], reset_to_zero=['out_ptr'],\n"
        "    prune_configs_by={'early_config_prune': lambda configs, args, **kwargs: configs[1:]})\n@triton.jit",
    ),
    "heuristics": SOLUTION.replace(
        "@triton.jit", "@triton.heuristics({'EVEN': lambda args: args['n'] % args['BLOCK'] == 0})\n@triton.jit"
    ).replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, EVEN: tl.constexpr"),
    "several kernels": launched("copy_kernel[(4,)](x, out, n, BLOCK=64); double_kernel[(2,)](x, out, n, BLOCK=128)", """
        y = tl.load(out_ptr + offs, mask=mask, other=0)
        tl.store(out_ptr + offs, y + tl.load(x_ptr + offs, mask=mask, other=0), mask=mask)
    """).replace(HEAD, HEAD + KERNEL.format(body=LOAD + "    " + STORE.format("x")).replace("double", "copy")),
    "grid as a list": launched("double_kernel[[triton.cdiv(n, 64)]](x, out, n, BLOCK=64)"),
    "grid as a function": launched("double_kernel[lambda meta: (triton.cdiv(n, meta['BLOCK']), 1)](x, out, n, BLOCK=64)"),
    "grid of three": launched("double_kernel[(2, 2, triton.cdiv(n, 256))](x, out, n, 64)", """
        offs = (tl.program_id(0) + 2 * tl.program_id(1) + 4 * tl.program_id(2)) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0) * 2, mask=offs < n)
    """),
    "more programs than needed": launched("double_kernel[(9,)](x, out, n, 64)", f"""
        if tl.program_id(0) * BLOCK >= n:
            return
        {LOAD.strip()}
        {STORE.format("x * 2").strip()}
    """),
    "None as argument": launched(f"double_kernel[{GRID}](x, None, out, n, BLOCK=64)", f"""
        {LOAD.strip()}
        if bias_ptr is not None:
            x += tl.load(bias_ptr + offs)
        {STORE.format("x * 2").strip()}
    """, "x_ptr, bias_ptr, out_ptr, n, BLOCK: tl.constexpr"),
    "a dtype and a word as constexprs": launched(f"double_kernel[{GRID}](x, out, n, tl.float32, 'twice', 64)", f"""
        {LOAD.strip()}
        acc = tl.zeros([BLOCK], DTYPE)
        if MODE == "twice":
            acc += x.to(DTYPE) * 2
        {STORE.format("acc").strip()}
    """, "x_ptr, out_ptr, n, DTYPE: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr"),
    "a jit function as constexpr": launched(
        f"double_kernel[{GRID}](x, out, n, twice, 64)", LOAD + STORE.format("f(x)"),
        "x_ptr, out_ptr, n, f: tl.constexpr, BLOCK: tl.constexpr",
    ).replace("@triton.jit", "@triton.jit\ndef twice(x):\n    return x + x\n\n\n@triton.jit", 1),
    "a stride of one and a float": launched(f"double_kernel[{GRID}](x, out, n, 1, 2.0, BLOCK=64)", """
        offs = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)) * stride
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0) * factor, mask=offs < n)
    """, "x_ptr, out_ptr, n, stride, factor, BLOCK: tl.constexpr"),
    "a bool as argument": launched(
        f"double_kernel[{GRID}](x, out, n, True, BLOCK=64)", f"if flag:\n    {LOAD}    {STORE.format('x * 2')}",
        "x_ptr, out_ptr, n, flag, BLOCK: tl.constexpr",
    ),
    "everything by keyword": launched(
        "double_kernel[lambda m: (triton.cdiv(n, m['BLOCK']),)](n=n, BLOCK=64, x_ptr=x, out_ptr=out)"
    ),
    "a default": launched(
        f"double_kernel[{GRID}](x, out, n)", params="x_ptr, out_ptr, n, BLOCK: tl.constexpr = 64"
    ),
    "options": launched(f"double_kernel[{GRID}](x, out, n, 64, num_warps=8, num_stages=2, num_ctas=1, maxnreg=64)"),
    "options of jit": SOLUTION.replace("@triton.jit", "@triton.jit(do_not_specialize=['n'], debug=True)"),
    "jit without a decorator": SOLUTION.replace("@triton.jit\n", "").replace(
        "def double(x)", "double_kernel = triton.jit(double_kernel)\n\n\ndef double(x)"
    ),
    "run instead of brackets": launched(f"double_kernel.run(x, out, n, grid={GRID}, warmup=False, BLOCK=64)"),
    "warmup, then the kernel that it returns": launched("""compiled = double_kernel.warmup(x, out, n, BLOCK=64, grid=(1,))
    compiled._init_handles()
    assert compiled.n_regs > 0 and compiled.metadata.num_warps > 0
    compiled[(triton.cdiv(n, 64), 1, 1)](x, out, n, 64)"""),
    "a table of pointers": launched(
        f"double_kernel[{GRID}](torch.tensor([x.data_ptr()], dtype=torch.int64, device=x.device), out, n, 64)",
        "p = tl.load(x_ptr).to(tl.pointer_type(out_ptr.dtype.element_ty))\n" + LOAD.replace("x_ptr", "p")
        + STORE.format("x * 2"),
    ),
    "a part of a bigger buffer": launched(
        f"out = torch.empty(n + 64, dtype=x.dtype, device=x.device)\n    double_kernel[{GRID}](x, out, n, 64)\n"
        "    out = out[:n].view(x.shape)"
    ),
    "a transposed result": launched(f"x = x.t().contiguous(); out = torch.empty_like(x)\n    {USUAL}\n    out = out.t()"),
    "in place on a copy": launched(f"out = x.clone()\n    {USUAL}", LOAD.replace("x_ptr", "out_ptr") + STORE.format("x * 2")),
    "copied out of a work buffer": launched(
        f"work = torch.empty(n + 2, dtype=x.dtype)\n    double_kernel[{GRID}](x, work, n, 64)\n"
        "    out.copy_(work[:n].view(x.shape))"
    ),
}  # fmt: skip

FILES = {
    "an operator of torch.library": SOLUTION.replace("def double(x):", """@torch.library.custom_op("kata_toy::double", mutates_args=())
def launch(x: torch.Tensor) -> torch.Tensor:""").replace("return out", "return out\n\n\ndef double(x):\n    return launch(x)"),
    "other names for the imports": SOLUTION.replace("import triton.language as tl", "import triton.language as T")
    .replace("import triton\n", "import triton as tr\nfrom triton import jit, cdiv\nfrom triton.language import load\n")
    .replace("@triton.jit", "@jit").replace("triton.cdiv", "cdiv").replace("tl.load", "load").replace("tl.", "T."),
    "annotations in quotes": SOLUTION.replace("BLOCK: tl.constexpr", 'BLOCK: "tl.constexpr"'),
    "annotations from the future": "from __future__ import annotations\n" + SOLUTION,
    "a kernel inside a function": HEAD + """
def make(factor):
    FACTOR = tl.constexpr(factor)

    @triton.jit
    def scaled(x):
        return x * FACTOR

    @triton.jit
    def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n, other=0)
        tl.store(out_ptr + offs, scaled(x), mask=offs < n)

    return double_kernel


double_kernel = make(2)
""" + ENTRY,
    "a tuple as argument": HEAD + """
@triton.jit
def double_kernel(ptrs, sizes, BLOCK: tl.constexpr):
    x_ptr, out_ptr = ptrs
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < sizes[0], other=0)
    tl.store(out_ptr + offs, x * 2, mask=offs < sizes[0])


def double(x):
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    double_kernel[(triton.cdiv(x.numel(), 64),)]((x, out), (x.numel(), 7), BLOCK=64)
    return out
""",
    "a helper that returns a tuple": computes("y + (z - 2)", "y, z = both(x, y=1)", """
@triton.jit
def twice(x, FACTOR: tl.constexpr = 2):
    return x * FACTOR

@triton.jit
def both(x, y):
    return twice(x), y + 1
"""),
    "a global constexpr": computes("x * TWO", above="TWO = tl.constexpr(2)"),
    "code for a GPU": HEAD + """
DEVICE = triton.runtime.driver.active.get_active_torch_device()
PROPERTIES = triton.runtime.driver.active.utils.get_device_properties(torch.cuda.current_device())
SMS = torch.cuda.get_device_properties(0).multi_processor_count
assert PROPERTIES["multiprocessor_count"] == SMS == 132
assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
assert triton.runtime.driver.active.get_current_target().arch == 90
""" + KERNEL.format(body=BODY.strip()) + """
def double(x):
    with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
        x = x.to("cuda").cuda().contiguous()
        out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
        like = torch.empty(x.shape, dtype=x.dtype, device=torch.device("cuda", 0))
        double_kernel[(min(SMS, triton.cdiv(x.numel(), 64)),)](x, out, x.numel(), BLOCK=64)
        torch.cuda.synchronize()
    return out
""",
    "descriptors made by the kernel": HEAD + """
@triton.jit
def double_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    out = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m, k = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([m, k], x.load([m, k]) * 2)


def double(x):
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    M, N = x.shape
    double_kernel[(triton.cdiv(M, 4), triton.cdiv(N, 32))](x, out, M, N, 4, 32)
    return out
""",
    "descriptors made by the launcher": HEAD + """
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def double_kernel(x, out, BM: tl.constexpr, BN: tl.constexpr):
    m, k = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([m, k], x.load([m, k]) * 2)


def double(x):
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    M, N = x.shape
    x_desc, out_desc = (TensorDescriptor(t, t.shape, t.stride(), [4, 32]) for t in (x, out))
    double_kernel[(triton.cdiv(M, 4), triton.cdiv(N, 32))](x_desc, out_desc, 4, 32)
    return out
""",
    "two dimensions and strides": HEAD + """
@triton.jit
def double_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, BM: tl.constexpr, BN: tl.constexpr):
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (m[:, None] < M) & (k[None, :] < N)
    x = tl.load(x_ptr + m[:, None] * stride_xm + k[None, :] * stride_xn, mask=mask, other=0.0)
    y = tl.trans(tl.trans(x)) + tl.reshape(tl.reshape(x, (BM * BN,)), (BM, BN)) * 0
    y = tl.permute(tl.permute(y, (1, 0)), (1, 0)) + tl.expand_dims(tl.sum(y, axis=1), 1) * 0
    y += tl.broadcast_to(tl.max(x, axis=0)[None, :], (BM, BN)) * 0
    tl.store(out_ptr + m[:, None] * N + k[None, :], y + x, mask=mask)


def double(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    M, N = x.shape
    double_kernel[triton.cdiv(M, 2), triton.cdiv(N, 32)](x, out, M, N, *x.stride(), BM=2, BN=32)
    return out
""",
    "a dot": HEAD + """
@triton.jit
def double_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    m = tl.arange(0, 16)[:, None]
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (m < M) & (k < N)
    x = tl.load(x_ptr + m * N + k, mask=mask, other=0.0)
    i = tl.arange(0, BLOCK)
    twice = tl.where(i[:, None] == i[None, :], 2.0, 0.0).to(x.dtype)
    acc = tl.dot(x, twice, tl.zeros((16, BLOCK), tl.float32), input_precision="ieee")
    tl.store(out_ptr + m * N + k, acc.to(out_ptr.dtype.element_ty), mask=mask)


def double(x):
    x, out = x.contiguous(), torch.empty(x.shape, dtype=x.dtype, device=x.device)
    M, N = x.shape
    double_kernel[(triton.cdiv(N, 16),)](x, out, M, N, 16)
    return out
""",
}  # fmt: skip

BODIES = {
    "while": per_part("i = 0\nwhile i < BLOCK // 16:").replace("mask=o < n)\n", "mask=o < n)\n        i += 1\n", 1),
    "static_range": per_part("for i in tl.static_range(4):"),
    "tl.range": per_part("for i in tl.range(0, BLOCK // 16, num_stages=2):"),
    "cdiv inside a kernel": per_part("for i in range(tl.cdiv(BLOCK, 16)):"),
    "a loop counter is a tensor": per_part("for i in range(0, BLOCK // 16):").replace("+ i * 16", "+ i.to(tl.int64) * 16"),
    "a loop to a run-time bound": kernel("""
        if tl.program_id(0) == 0:
            for start in range(0, n, BLOCK):
                o = start.to(tl.int64) + tl.arange(0, BLOCK)
                tl.store(out_ptr + o, tl.load(x_ptr + o, mask=o < n, other=0) * 2, mask=o < n)
    """),
    "and, or, not on blocks": computes("tl.where(m or n < 0, x * 2, 0)", "m = not (offs >= n) and offs >= 0"),
    "and in an if": computes("x", "if n > 3 and tl.program_id(0) >= 0:\n    x = x * 2"),
    "a conditional expression": computes("x * factor", "factor = 2 if n > 3 else 1"),
    "else": computes("y", "if n > 3:\n    y = x * 2\nelse:\n    y = x * 3"),
    "pointers that move": kernel(
        "x_ptr += offs\nout_ptr += offs\ntl.store(out_ptr, tl.load(x_ptr, mask=mask, other=0) * 2, mask=mask)"
    ),
    "tuples": computes("y", "pair = (x, x)\ny = x * 0\nfor i in tl.static_range(len(pair)):\n    y += pair[i]"),
    "min and max": computes("x * 2 + (least + most) * 0", "least = min(n, 7)\nmost = max(n, 1)"),
    "a local constexpr": computes("x * TWO", "TWO: tl.constexpr = 2"),
    "an accumulator in a loop": computes("x * 2 + acc * 0", "acc = 0.0\nfor i in range(2):\n    acc += i * 1.0"),
    "programs in reverse": kernel("""
        o = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + o, tl.load(x_ptr + o, mask=o < n, other=0) * 2, mask=o < n)
    """),
    "bits through another pointer type": kernel("""
        bits = tl.load(x_ptr.to(tl.pointer_type(tl.int32), bitcast=True) + offs, mask=mask, other=0)
        twice = (bits.to(tl.float32, bitcast=True) * 2).to(tl.int32, bitcast=True)
        tl.store(out_ptr.to(tl.pointer_type(tl.int32), bitcast=True) + offs, twice, mask=mask)
    """),
    "split, join, interleave": computes(
        "tl.reshape(tl.join(a, b), (BLOCK,)) + tl.interleave(a, b)", "a, b = tl.split(tl.reshape(x, (BLOCK // 2, 2)))"
    ),
    "sort, flip, gather, histogram": computes(
        "x * 2 + (y + tl.sum(tl.sort(x), 0)) * 0",
        "y = tl.flip(tl.gather(x, tl.arange(0, BLOCK), 0), 0) * tl.histogram(tl.arange(0, BLOCK), BLOCK)",
    ),
    "scans and reductions of one's own": computes(
        "x * 2 + (s + r + u + v) * 0",
        "s = tl.associative_scan(x, 0, most) + tl.cumsum(x, 0)\nr = tl.reduce(x, 0, most)\nu, v = tl.reduce((x, x), 0, add)",
        "@triton.jit\ndef most(a, b):\n    return tl.maximum(a, b)\n\n"
        "@triton.jit\ndef add(a, b, c, d):\n    return a + c, b + d\n",
    ),
    "random numbers": computes("tl.where(r < 2.0, x * 2, 0)", "r = tl.rand(42, offs) + tl.randint(1, offs) * 0.0"),
    "mathematics": computes(
        "x * 2 * tl.math.exp(y * 0)",
        "a = tl.abs(x) + 1.0\n"
        "y = tl.exp2(tl.log2(a)) + tl.sqrt_rn(a) + tl.fma(x, x, x) + tl.erf(x) + tl.sigmoid(x) + tl.rsqrt(a)\n"
        "y += tl.floor(x) + tl.ceil(x) + tl.sin(x) + tl.cos(x) + tl.div_rn(x, a) + tl.clamp(x, -1.0, 1.0)",
    ),
    "libdevice": computes("x * 2 + libdevice.tanh(x) * 0", above="from triton.language.extra import libdevice"),
    "hints, checks and prints": kernel("""
        tl.static_assert(BLOCK % 16 == 0, "sixteen")
        tl.static_print("BLOCK", BLOCK)
        tl.device_assert(n > 0, "n")
        tl.assume(n > 0)
        offs = tl.max_contiguous(tl.multiple_of(offs, 64), 64)
        tl.debug_barrier()
        tl.device_print("n", n)
        assert n > 0
        x = tl.load(x_ptr + offs, mask=mask, other=0, eviction_policy="evict_first")
        tl.store(out_ptr + offs, x * 2, mask=mask, cache_modifier=".cs")
    """),
    "atomic sums": kernel(LOAD + """
tl.atomic_add(out_ptr + offs, x, mask=mask)
tl.atomic_add(out_ptr + offs, x, mask=mask, sem="relaxed")
""", ENTRY.replace("empty_like", "zeros_like")),
}  # fmt: skip

# what Triton learned on the way, and from which version on
LATER = {
    "a chain of comparisons": (computes("tl.where(0 <= offs < n, x * 2, 0)"), (3, 9), "a chain of comparisons needs Triton 3.9"),
    "a parameter by keyword only": (SOLUTION.replace("n, BLOCK: tl", "n, *, BLOCK: tl"), (3, 9), "BLOCK is not defined"),
    "an assignment inside an expression": (computes("x * 2", "if (y := n) > 3:\n    x += y * 0"), (3, 8), "NamedExpr"),
}  # fmt: skip

ELSEWHERE = {
    "descriptors made by the kernel": "M6-N64",
    "descriptors made by the launcher": "M6-N64",
    "a dot": "half",
    "two dimensions and strides": "M5-N70-transposed",
}


def row(name: str, source: str):
    return pytest.param(source, ELSEWHERE.get(name, "M3-N50"), id=name.replace(" ", "-").replace(",", ""))


@pytest.mark.parametrize(("source", "case"), [row(*item) for item in LAUNCHES.items()])
def test_a_launch_is_accepted(judge, source, case):
    facts = judge(source, case, compiled=True)

    assert facts["word"] == "pass", facts["reason"]


@pytest.mark.parametrize(("source", "case"), [row(*item) for item in FILES.items()])
def test_a_file_is_accepted(judge, source, case):
    facts = judge(source, case, compiled=True)

    assert facts["word"] == "pass", facts["reason"]


@pytest.mark.parametrize(("source", "case"), [row(*item) for item in BODIES.items()])
def test_a_kernel_is_accepted(judge, source, case):
    facts = judge(source, case, compiled=True)

    assert facts["word"] == "pass", facts["reason"]


@pytest.mark.parametrize(("source", "since", "says"), LATER.values(), ids=[n.replace(" ", "-") for n in LATER])
def test_what_came_later_is_judged_as_this_triton_compiles_it(judge, triton_version, source, since, says):
    facts = judge(source, compiled=True)

    assert facts["word"] == ("pass" if triton_version >= since else "error"), facts["reason"]
    assert triton_version >= since or says in facts["reason"]
