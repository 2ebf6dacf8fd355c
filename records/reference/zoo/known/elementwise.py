"""Elementwise kernels: adding vectors, SwiGLU, a stencil, rotary embedding, gathering rows of an embedding."""

import torch
import triton
import triton.language as tl

from harness.zoo.variants import Call, Family, Tensor

N = 2**26


# -- add: out = x + y, bfloat16 ----------------------------------------------------------------------------------------


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    """One block a program."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        mask = offs < n
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)
    else:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs) + tl.load(y_ptr + offs))


@triton.jit
def add_loop_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Few programs, each strides over the vector."""
    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    for start in range(pid * BLOCK, n, programs * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < n
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)


@triton.jit
def add_strided_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Neighbouring lanes lie one grid apart."""
    offs = tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)


@triton.jit
def add_pair_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The even elements first, then the odd ones."""
    even = tl.program_id(0) * BLOCK + 2 * tl.arange(0, BLOCK // 2)
    tl.store(out_ptr + even, tl.load(x_ptr + even) + tl.load(y_ptr + even))
    tl.store(out_ptr + even + 1, tl.load(x_ptr + even + 1) + tl.load(y_ptr + even + 1))


def _add():
    args = ("x", "y", "out", N)
    blocks = [(64, 1), (64, 4), (128, 4), (256, 4), (1024, 4), (2048, 4), (4096, 8), (8192, 8)]
    variants = {
        f"b{b}_w{w}": [Call(add_kernel, (triton.cdiv(N, b),), args, {"BLOCK": b, "MASKED": True}, w)] for b, w in blocks
    }
    variants["b1024_nomask"] = [Call(add_kernel, (N // 1024,), args, {"BLOCK": 1024, "MASKED": False})]
    variants["persist_528"] = [Call(add_loop_kernel, (528,), args, {"BLOCK": 4096})]
    variants["few_132"] = [Call(add_loop_kernel, (132,), args, {"BLOCK": 1024})]
    variants["few_16"] = [Call(add_loop_kernel, (16,), args, {"BLOCK": 4096})]
    variants["strided"] = [Call(add_strided_kernel, (N // 1024,), args, {"BLOCK": 1024})]
    variants["pair"] = [Call(add_pair_kernel, (N // 2048,), args, {"BLOCK": 2048})]
    vector = Tensor((N,), "bfloat16")
    tensors = {"x": vector, "y": vector, "out": Tensor((N,), "bfloat16", "empty")}
    return Family(tensors, variants, "out", lambda t: t["x"].float() + t["y"].float())


# -- swiglu: out = silu(a) * b, bfloat16 -------------------------------------------------------------------------------


@triton.jit
def swiglu_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One block a program."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs).to(tl.float32)
    tl.store(out_ptr + offs, (a / (1.0 + tl.exp(-a)) * tl.load(b_ptr + offs).to(tl.float32)).to(tl.bfloat16))


@triton.jit
def silu_kernel(a_ptr, tmp_ptr, n, BLOCK: tl.constexpr):
    """The first half of the unfused pair."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs).to(tl.float32)
    tl.store(tmp_ptr + offs, (a / (1.0 + tl.exp(-a))).to(tl.bfloat16))


@triton.jit
def multiply_kernel(tmp_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The second half."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(tmp_ptr + offs) * tl.load(b_ptr + offs))


@triton.jit
def swiglu_tile_kernel(a_ptr, b_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Tall, narrow tiles of a row-major matrix."""
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    offs = rows * N + (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    a = tl.load(a_ptr + offs).to(tl.float32)
    tl.store(out_ptr + offs, (a / (1.0 + tl.exp(-a)) * tl.load(b_ptr + offs).to(tl.float32)).to(tl.bfloat16))


@triton.jit
def swiglu_loop_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Few programs, each strides over the vector."""
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + offs).to(tl.float32)
        tl.store(out_ptr + offs, (a / (1.0 + tl.exp(-a)) * tl.load(b_ptr + offs).to(tl.float32)).to(tl.bfloat16))


def _swiglu():
    rows, columns = 16384, 4096
    n = rows * columns
    args, tile_args = ("a", "b", "out", n), ("a", "b", "out", rows, columns)

    def tile(m, k):
        return [Call(swiglu_tile_kernel, (rows // m, columns // k), tile_args, {"BLOCK_M": m, "BLOCK_N": k})]

    variants = {
        f"b{b}{tag}": [Call(swiglu_kernel, (n // b,), args, {"BLOCK": b})]
        for b, tag in ((1024, ""), (128, ""), (4096, "_w4"))
    }
    variants["unfused"] = [
        Call(silu_kernel, (n // 1024,), ("a", "tmp", n), {"BLOCK": 1024}),
        Call(multiply_kernel, (n // 1024,), ("tmp", "b", "out", n), {"BLOCK": 1024}),
    ]
    variants["col256x8"], variants["col1024x2"] = tile(256, 8), tile(1024, 2)
    variants["loop264"] = [Call(swiglu_loop_kernel, (264,), args, {"BLOCK": 2048})]
    variants["loop1056"] = [Call(swiglu_loop_kernel, (1056,), args, {"BLOCK": 2048})]
    vector, empty = Tensor((n,), "bfloat16"), Tensor((n,), "bfloat16", "empty")
    tensors = {"a": vector, "b": vector, "out": empty, "tmp": empty}
    return Family(
        tensors, variants, "out", lambda t: torch.nn.functional.silu(t["a"].float()) * t["b"].float()
    )  # fmt: skip


# -- stencil: out[i] = sum_k w[k] * x[i + k], k < 7, float32 -----------------------------------------------------------


@triton.jit
def stencil_kernel(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """One block a program; the seven loads overlap."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(7):
        acc += tl.load(x_ptr + offs + k) * tl.load(w_ptr + k)
    tl.store(out_ptr + offs, acc)


@triton.jit
def stencil_tile_kernel(x_ptr, w_ptr, out_ptr, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The same block as a column-major tile."""
    column = tl.arange(0, BLOCK_N)[None, :] * BLOCK_M
    offs = tl.program_id(0) * (BLOCK_M * BLOCK_N) + column + tl.arange(0, BLOCK_M)[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in tl.static_range(7):
        acc += tl.load(x_ptr + offs + k) * tl.load(w_ptr + k)
    tl.store(out_ptr + offs, acc)


@triton.jit
def stencil_loop_kernel(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Few programs, each strides over the vector."""
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        acc = tl.zeros((BLOCK,), tl.float32)
        for k in tl.static_range(7):
            acc += tl.load(x_ptr + offs + k) * tl.load(w_ptr + k)
        tl.store(out_ptr + offs, acc)


def _stencil():
    args = ("x", "w", "out", N)
    blocks = {"b1024": (1024, 4), "b128_w1": (128, 1), "b4096_w8": (4096, 8), "b64_w2": (64, 2)}
    variants = {name: [Call(stencil_kernel, (N // b,), args, {"BLOCK": b}, w)] for name, (b, w) in blocks.items()}
    variants["perm32"] = [Call(stencil_tile_kernel, (N // 1024,), args, {"BLOCK_M": 32, "BLOCK_N": 32})]
    variants["loop132"] = [Call(stencil_loop_kernel, (132,), args, {"BLOCK": 1024})]
    variants["loop1056"] = [Call(stencil_loop_kernel, (1056,), args, {"BLOCK": 2048})]
    tensors = {
        "x": Tensor((N + 16,), "float32"), "w": Tensor((7,), "float32"), "out": Tensor((N,), "float32", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", lambda t: sum(t["x"][k : k + N] * t["w"][k] for k in range(7)))


# -- rope: rotary embedding of [S, H, D] bfloat16, halves paired -------------------------------------------------------


@triton.jit
def rope_kernel(q_ptr, cos_ptr, sin_ptr, out_ptr, H, D: tl.constexpr, HEADS: tl.constexpr):
    """One position and HEADS heads a program."""
    s = tl.program_id(0)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)[:, None]
    c = tl.arange(0, D // 2)[None, :]
    offs = s * H * D + h * D + c
    x1 = tl.load(q_ptr + offs).to(tl.float32)
    x2 = tl.load(q_ptr + offs + D // 2).to(tl.float32)
    cos = tl.load(cos_ptr + s * (D // 2) + c)
    sin = tl.load(sin_ptr + s * (D // 2) + c)
    tl.store(out_ptr + offs, (x1 * cos - x2 * sin).to(tl.bfloat16))
    tl.store(out_ptr + offs + D // 2, (x2 * cos + x1 * sin).to(tl.bfloat16))


@triton.jit
def rope_flat_kernel(q_ptr, cos_ptr, sin_ptr, out_ptr, n, H, D: tl.constexpr, BLOCK: tl.constexpr):
    """One lane an element: every input is loaded twice."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = offs % D
    s = offs // (H * D)
    c = d % (D // 2)
    x = tl.load(q_ptr + offs).to(tl.float32)
    y = tl.load(q_ptr + tl.where(d < D // 2, offs + D // 2, offs - D // 2)).to(tl.float32)
    cos = tl.load(cos_ptr + s * (D // 2) + c)
    sin = tl.load(sin_ptr + s * (D // 2) + c)
    tl.store(out_ptr + offs, tl.where(d < D // 2, x * cos - y * sin, x * cos + y * sin).to(tl.bfloat16))


def _rotated(t):
    x, cos, sin = t["q"].float(), t["cos"][:, None], t["sin"][:, None]
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def _rope():
    S, H, D = 16384, 32, 128
    n = S * H * D
    args, flat_args = ("q", "cos", "sin", "out", H), ("q", "cos", "sin", "out", n, H)
    shapes = {"h32_w4": (32, 4), "h8_w4": (8, 4), "h1_w1": (1, 1), "h1_w4": (1, 4), "h4_w8": (4, 8)}
    variants = {
        name: [Call(rope_kernel, (S, H // heads), args, {"D": D, "HEADS": heads}, w)]
        for name, (heads, w) in shapes.items()
    }
    for block in (1024, 128):
        variants[f"flat{block}"] = [Call(rope_flat_kernel, (n // block,), flat_args, {"D": D, "BLOCK": block})]
    table = Tensor((S, D // 2), "float32")
    tensors = {
        "q": Tensor((S, H, D), "bfloat16"), "cos": table, "sin": table, "out": Tensor((S, H, D), "bfloat16", "empty"),
    }  # fmt: skip
    return Family(tensors, variants, "out", _rotated)


# -- embed: rows of a table by index, bfloat16 -------------------------------------------------------------------------


@triton.jit
def embed_kernel(index_ptr, table_ptr, out_ptr, D, BLOCK: tl.constexpr):
    """One row a program."""
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    tl.store(out_ptr + r * D + c, tl.load(table_ptr + tl.load(index_ptr + r) * D + c))


@triton.jit
def embed_rows_kernel(index_ptr, table_ptr, out_ptr, D, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows a program."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    row = tl.load(index_ptr + r)
    tl.store(out_ptr + r[:, None] * D + c[None, :], tl.load(table_ptr + row[:, None] * D + c[None, :]))


@triton.jit
def embed_columns_kernel(index_ptr, table_ptr, out_ptr, D, ROWS: tl.constexpr):
    """One lane a row, walking along it."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    row = tl.load(index_ptr + r)
    for c in range(0, D):
        tl.store(out_ptr + r * D + c, tl.load(table_ptr + row * D + c))


@triton.jit
def embed_flat_kernel(index_ptr, table_ptr, out_ptr, D, BLOCK: tl.constexpr):
    """One lane an element of the result."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(table_ptr + tl.load(index_ptr + offs // D) * D + offs % D))


def _embed():
    rows, words, D = 131072, 65536, 512
    args = ("index", "table", "out", D)
    variants = {
        "row_w4": [Call(embed_kernel, (rows,), args, {"BLOCK": D}, 4)],
        "row_w1": [Call(embed_kernel, (rows,), args, {"BLOCK": D}, 1)],
        "rows8": [Call(embed_rows_kernel, (rows // 8,), args, {"ROWS": 8, "BLOCK": D}, 4)],
        "rows32_w8": [Call(embed_rows_kernel, (rows // 32,), args, {"ROWS": 32, "BLOCK": D}, 8)],
        "col128": [Call(embed_columns_kernel, (rows // 128,), args, {"ROWS": 128}, 4)],
        "flat1024": [Call(embed_flat_kernel, (rows * D // 1024,), args, {"BLOCK": 1024}, 4)],
    }
    tensors = {
        "index": Tensor((rows,), "int32", "below", below=words),
        "table": Tensor((words, D), "bfloat16"),
        "out": Tensor((rows, D), "bfloat16", "empty"),
    }
    return Family(tensors, variants, "out", lambda t: t["table"][t["index"].long()].float())


FAMILIES = {"add": _add(), "swiglu": _swiglu(), "stencil": _stencil(), "rope": _rope(), "embed": _embed()}
