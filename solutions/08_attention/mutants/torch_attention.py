"""No kernel: torch's own attention, which on a GPU is a kernel of somebody else.

VERDICT: cheat
KILLED BY: test_declared_cases
"""

import torch


def attention(q, k, v, *, causal, sm_scale, seq_lens):
    (B, Hq, Tq, _), Tk = q.shape, k.shape[2]
    n = torch.full((B,), Tk, device=q.device) if seq_lens is None else seq_lens
    i, j = torch.arange(Tq, device=q.device)[:, None], torch.arange(Tk, device=q.device)
    seen = j < n[:, None, None]
    if causal:
        seen = seen & (j <= i + n[:, None, None] - Tq)
    k, v = k.repeat_interleave(Hq // k.shape[1], 1), v.repeat_interleave(Hq // k.shape[1], 1)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None], scale=sm_scale)
    return out.nan_to_num(nan=0.0)
