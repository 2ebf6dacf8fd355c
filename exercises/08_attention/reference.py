"""08_attention, the truth: softmax(sm_scale * q @ k.T) @ v in float64, with the whole score matrix."""

import math

import torch

from harness.spec import Cost

U = 2.0**-24  # half an ulp of float32, relative: the largest error of one rounding
HALF_ULP = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}  # the largest error of one rounding to 16 bits
GARBAGE = 1e4  # what a KV cache holds behind its last valid key: anything, but finite

FILLS = {
    "sharp": lambda x, generator: x.mul_(24),  # scores so far apart that few keys share the weight
    "one_sign": lambda x, generator: x.abs_(),
    "far_below": lambda x, generator: x.abs_().mul_(-48),  # with q of one sign: scores whose exp is 0 in float32
    "beyond_half": lambda x, generator: x.mul_(2.0**20),  # float16 would make infinities of them
}


def make_inputs(case, build):
    """Return q, k, v, causal, sm_scale, seq_lens.

    Options: causal (False); lens: "none" (seq_lens is None), "full" (all Tk), "ragged" (drawn from 1 to Tk), "empty"
    (ragged, but 0 in the first sequence, where there are several); scale, by default 1 / sqrt(D); memory: "BTHD" for
    heads that lie inside each token, as a projection leaves them.
    """
    d, options = case.dims, case.options
    shapes = {"q": ("Hq", "Tq"), "k": ("Hkv", "Tk"), "v": ("Hkv", "Tk")}
    tensors = {}
    for name, (heads, length) in shapes.items():
        layout, fill = case.layout.get(name, "contiguous"), case.fill.get(name, "normal")
        if options.get("memory") == "BTHD":
            tensors[name] = build((d["B"], d[length], d[heads], d["D"]), case.dtype, layout, fill).transpose(1, 2)
        else:
            tensors[name] = build((d["B"], d[heads], d[length], d["D"]), case.dtype, layout, fill)
    lens = options.get("lens", "none")
    seq_lens = None if lens == "none" else torch.full((d["B"],), d["Tk"], dtype=torch.int32)
    if lens in ("ragged", "empty"):
        seq_lens = torch.randint(1, d["Tk"] + 1, (d["B"],), generator=build.generator, dtype=torch.int32)
        if lens == "empty" and d["B"] > 1:
            seq_lens[0] = 0
    if seq_lens is not None and not build.lazy:
        behind = (torch.arange(d["Tk"]) >= seq_lens[:, None])[:, None, :, None]
        for name in ("k", "v"):
            if tensors[name].stride(0) or d["B"] == 1:
                tensors[name].masked_fill_(behind, GARBAGE)
    return *tensors.values(), bool(options.get("causal", False)), options.get("scale", d["D"] ** -0.5), seq_lens


def _weights(q, k, causal, sm_scale, seq_lens):
    """Return the softmax's weights, the scores and which of them count, [B, Hq, Tq, Tk]; all 0 where none counts."""
    (B, Hq, Tq, _), Tk = q.shape, k.shape[2]
    scores = sm_scale * (q.double() @ _per_query_head(k, Hq).transpose(-1, -2))
    n = torch.full((B,), Tk, device=q.device) if seq_lens is None else seq_lens.long()
    n, i, j = n[:, None, None], torch.arange(Tq, device=q.device)[:, None], torch.arange(Tk, device=q.device)
    seen = (j < n) & ((j <= i + n - Tq) if causal else (i >= 0))
    weights = torch.softmax(scores.masked_fill(~seen[:, None], -math.inf), -1).nan_to_num(nan=0.0)
    return weights, scores, seen[:, None]


def _per_query_head(x, Hq):
    return x.double().repeat_interleave(Hq // x.shape[1], 1)


def reference(q, k, v, causal, sm_scale, seq_lens):
    """Return the output in float64, [B, Hq, Tq, D]; zeros for a query that sees no key."""
    return _weights(q, k, causal, sm_scale, seq_lens)[0] @ _per_query_head(v, q.shape[1])


def error_bound(expected, q, k, v, causal, sm_scale, seq_lens):
    """Return how far an honest kernel may lie from the truth before its output is rounded.

    Honest means: scores, exponentials and sums in float32, weights rounded once to the dtype of v, which tensor cores
    ask for. To first order, with U half an ulp of float32 and u that of v's dtype:
    - u: rounding errors of independent weights add up like a random walk, of the weights times v, or times v - out in
      a kernel that also divides by the sum of the rounded weights: 2.5 u, which is six standard deviations (no case
      has keys so alike that all weights are equal, for those round alike). A float16
      below 2**-14 has an absolute error instead, up to 2**-25 (the largest weight is 1 when they are rounded);
    - U: a score is a sum of D products (see 06_matmul), scaled and shifted by the maximum; exp2 is off by 2 ulp; the
      sums over the keys add 4 U sqrt(Tk), tensor cores up to 2 U for each 16 keys.
    """
    weights, scores, seen = _weights(q, k, causal, sm_scale, seq_lens)
    v = _per_query_head(v, q.shape[1])
    D, Tk = q.shape[-1], k.shape[2]
    squares = weights**2
    walk, inner = squares @ v**2, expected * (expected * squares.sum(-1, keepdim=True) - 2 * (squares @ v))
    rounded = HALF_ULP[q.dtype] * (walk + inner.clamp(min=0)).sqrt()
    if q.dtype == torch.float16:
        rounded += 2.0**-25 * (seen.double() @ v**2).sqrt()
    sizes = abs(sm_scale) * (q.double().abs() @ _per_query_head(k, q.shape[1]).abs().transpose(-1, -2))
    top = scores.masked_fill(~seen, -math.inf).amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    score = (4 * math.sqrt(D) + D / 8 + 4) * sizes + 3 * (top - scores).abs().clamp(max=200) + scores.abs() + top.abs()
    exp, sums = U * weights * (score + 8), U * (4 * math.sqrt(Tk) + Tk / 8 + 16)
    summed = exp @ v.abs() + sums * (weights @ v.abs()) + expected.abs() * (exp.sum(-1, keepdim=True) + sums)
    return 2.5 * rounded + summed + 2.0**-125


def cost(dims, dtype, causal=False, **_):
    """Return the least traffic, each key and value read once for all its query heads, and 4 * D operations a score."""
    B, Hq, Hkv, Tq, Tk, D = (dims[x] for x in ("B", "Hq", "Hkv", "Tq", "Tk", "D"))
    scores = sum(max(0, min(Tk, i + 1 + Tk - Tq)) for i in range(Tq)) if causal else Tq * Tk
    q = 2 * B * Hq * Tq * D
    return Cost(bytes_read=q + 4 * B * Hkv * Tk * D, bytes_written=q, flops=4 * D * B * Hq * scores)


def baselines(q, k, v, causal, sm_scale, seq_lens):
    """Return what else is timed beside it: each of torch's own kernels, where the call is one that they know.

    They have no lengths per sequence, and begin a causal mask at the first key: full caches and square masks alone.
    """
    full = seq_lens is None or bool((seq_lens == k.shape[2]).all())
    if not full or (causal and q.shape[2] not in (1, k.shape[2])):
        return {}
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def one(backend):
        def call():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=causal and q.shape[2] > 1, scale=sm_scale, enable_gqa=True
                )

        return call

    backends = {"cuDNN": "CUDNN_ATTENTION", "FlashAttention": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}
    return {f"torch ({name})": one(getattr(SDPBackend, backend)) for name, backend in backends.items()}


def part(out, q, k, v, causal, sm_scale, seq_lens):
    """Return one key head of one sequence, and the query heads that share it: the reference of all needs 100 GB."""
    b, h, ratio = int(torch.randint(q.shape[0], ())), int(torch.randint(k.shape[1], ())), q.shape[1] // k.shape[1]
    heads, lens = slice(h * ratio, (h + 1) * ratio), None if seq_lens is None else seq_lens[b : b + 1]
    args = (q[b : b + 1, heads], k[b : b + 1, h : h + 1], v[b : b + 1, h : h + 1], causal, sm_scale, lens)
    return out[b : b + 1, heads], args
