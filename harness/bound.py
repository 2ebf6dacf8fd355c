"""Bound: what a speed means for a language model, in one sentence. No torch here.

An ``exercise.toml`` asks for it: ``bound = { says = "tokens", model = "llama-3.1-8b" }``.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness import physics
from harness.device import Device
from harness.models import Model, find_model

_TOKENS = 8192  # of each sequence, where the batch is asked for
_SHARE = 0.9  # of the memory, which is what serving engines take unless told otherwise


def sentence(bound: Mapping[str, str], moved: int, seconds: float, device: Device) -> str:
    """Return the sentence that ``bound`` asks for.

    Args:
        bound: ``says``, ``tokens`` or ``batch``, and ``model``, a name that ``harness.models`` knows.
        moved: bytes that the kernel had to move.
        seconds: the time it took.
        device: the GPU in question.

    Raises:
        KataError: nobody knows the model.
    """
    model = find_model(bound["model"])
    return tokens(model, moved / seconds) if bound["says"] == "tokens" else batch(model, device)


def tokens(model: Model, rate: float) -> str:
    """Return how many tokens a second ``rate`` (bytes/s) allows one sequence of ``model`` at most.

    A token reads every weight once in bfloat16, but for the input embedding, of which it needs one row.
    """
    lookup = 0 if model.tied else model.vocab * model.hidden
    weights = physics.weight_bytes(model.active - lookup, 16)
    return (
        f"{rate / 1e12:.2f} TB/s: a token of {model.name} in bfloat16 reads {weights / 1e9:.1f} GB of weights, so one "
        f"sequence gets {physics.decode_rate(weights, rate):,.0f} tokens/s at most"
    )


def batch(model: Model, device: Device) -> str:
    """Return how many sequences of ``model`` fit beside its weights, both in bfloat16, on one ``device``."""
    weights, each = physics.weight_bytes(model.parameters, 16), model.kv_bytes_per_token(16)
    budget = physics.kv_budget(device.mem_bytes, weights, _SHARE)
    fits = physics.batch_that_fits(budget, each, _TOKENS)
    return (
        f"{model.name} in bfloat16 leaves {budget / 1e9:,.1f} GB of the {device.name} for keys and values; a token "
        f"keeps {each:,.0f} bytes, so {fits:,} sequences of {_TOKENS:,} tokens fit: that caps the batch"
    )
