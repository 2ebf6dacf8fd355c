"""What a speed means for a model: the sentences, and numbers worked out by hand."""

from __future__ import annotations

import pytest

from harness.bound import sentence
from harness.device import find_device
from harness.errors import KataError


def test_a_rate_is_tokens_a_second():
    """Llama 3.1 8B: 8.03e9 parameters less 128,256 x 4,096 of the input embedding, two bytes each: 15.01 GB."""
    text = sentence({"says": "tokens", "model": "llama-3.1-8b"}, 4_270_000_000, 1e-3, find_device("H200"))

    assert text == (
        "4.27 TB/s: a token of Llama 3.1 8B in bfloat16 reads 15.0 GB of weights, so one sequence gets 284 tokens/s at most"
    )


def test_a_budget_is_a_batch():
    """0.9 * 141e9 bytes or so, less 16.06 GB of weights; 2 * 32 layers * 8 heads * 128 * 2 = 131,072 bytes a token."""
    device = find_device("H200")
    budget = 0.9 * device.mem_bytes - 2 * 8_030_261_248
    text = sentence({"says": "batch", "model": "Llama 3.1 8B"}, 1, 1.0, device)

    assert f"a token keeps 131,072 bytes, so {int(budget / 131_072 / 8192)} sequences of 8,192 tokens fit" in text


def test_an_unknown_model_is_one_sentence():
    with pytest.raises(KataError, match="llama-9"):
        sentence({"says": "tokens", "model": "llama-9"}, 1, 1.0, find_device("H200"))
