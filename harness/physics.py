"""Physics: the equations of inference on a GPU, as plain functions of plain numbers. No torch, no files.

Lessons, the mock questions, the speed model and the JavaScript worlds share these; ``tests/physics_vectors.json`` holds
the values that every implementation must give. Units everywhere: bytes, seconds, FLOP, FLOP/s, bytes/s, bits, Hz;
1 GB is 1e9 bytes. Nothing here knows a GPU or a model: the caller passes the numbers, and so says what it assumes.

Sources: roofline, Williams, Waterman and Patterson 2009, https://doi.org/10.1145/1498765.1498785; Little's law, Little
1961, https://doi.org/10.1287/opre.9.3.383; speculative decoding, Leviathan et al. 2022, https://arxiv.org/abs/2211.17192;
rounding errors of sums, Higham and Mary 2019, https://doi.org/10.1137/18M1226312; MBU, Databricks 2023,
https://www.databricks.com/blog/llm-inference-performance-engineering-best-practices; MFU, Chowdhery et al. 2022,
https://arxiv.org/abs/2204.02311. A formula without a source is arithmetic on the units.
"""

from __future__ import annotations

import math

from harness.errors import KataError, did_you_mean

SECTOR = 32  # bytes; what DRAM, L2 and L1 exchange on NVIDIA GPUs
WARP = 32  # lanes that issue one memory request together

# format: bits of an element, elements a scale, bits of that scale (with its zero point or minimum), scales a second
# scale, bits of the second scale. Sources: bitsandbytes (nf4), OCP MX v1.0 (mxfp), NVIDIA's NVFP4 blog post, llama.cpp
# ggml-common.h (q4_0, q8_0, q4_k), AutoGPTQ and AWQ with groups of 128 (int4)
FORMATS: dict[str, tuple[int, int, int, int, int]] = {
    "float32": (32, 1, 0, 1, 0),
    "bfloat16": (16, 1, 0, 1, 0),
    "float16": (16, 1, 0, 1, 0),
    "float8": (8, 1, 0, 1, 0),
    "int8": (8, 1, 0, 1, 0),
    "mxfp8": (8, 32, 8, 1, 0),
    "mxfp4": (4, 32, 8, 1, 0),
    "nvfp4": (4, 16, 8, 1, 0),  # and 32 bits a tensor, which no tensor of a model notices
    "nf4": (4, 64, 32, 1, 0),
    "nf4_nested": (4, 64, 8, 256, 32),
    "int4_group128": (4, 128, 16 + 4, 1, 0),
    "q8_0": (8, 32, 16, 1, 0),
    "q4_0": (4, 32, 16, 1, 0),
    "q4_k": (4, 256, 16 + 16 + 96, 1, 0),
}


# -- roofline ----------------------------------------------------------------------------------------------------------


def intensity(flop: float, moved: float) -> float:
    """Return the arithmetic intensity I = W / Q in FLOP/byte of ``flop`` (W) on ``moved`` bytes (Q)."""
    return flop / moved


def ridge(flop_rate: float, bandwidth: float) -> float:
    """Return the intensity in FLOP/byte above which compute binds: peak FLOP/s over bytes/s."""
    return flop_rate / bandwidth


def roofline(at: float, flop_rate: float, bandwidth: float) -> float:
    """Return the attainable FLOP/s at the intensity ``at`` (FLOP/byte): min(peak, intensity * bandwidth)."""
    return min(flop_rate, at * bandwidth)


def limit_time(flop: float, moved: float, flop_rate: float, bandwidth: float) -> float:
    """Return the least time in s of a kernel: the larger of moved / bandwidth and flop / flop_rate, overlapped."""
    return max(flop / flop_rate, moved / bandwidth)


def mbu(moved: float, seconds: float, bandwidth: float) -> float:
    """Return the model bandwidth utilisation: bytes that had to move, over time, over the peak bytes/s."""
    return moved / seconds / bandwidth


def mfu(flop: float, seconds: float, flop_rate: float) -> float:
    """Return the model FLOP utilisation: FLOP that had to be done, over time, over the peak FLOP/s."""
    return flop / seconds / flop_rate


# -- weights -----------------------------------------------------------------------------------------------------------


def bits_per_weight(name: str) -> float:
    """Return the bits that one weight costs in a format of ``FORMATS``, its share of the scales included.

    Raises:
        KataError: the format is not known.
    """
    if name not in FORMATS:
        raise KataError(f"format={name!r} is none of {', '.join(FORMATS)}.{did_you_mean(name, FORMATS)}")
    element, block, scale, second, second_scale = FORMATS[name]
    return element + (scale + second_scale / second) / block


def weight_bytes(parameters: float, bits: float) -> float:
    """Return the bytes of ``parameters`` weights at ``bits`` each (see ``bits_per_weight``)."""
    return parameters * bits / 8


def checkpoint_bytes(parameters: float, linear: float, bits: float, rest_bits: float = 16) -> float:
    """Return the bytes of a checkpoint whose ``linear`` weights have ``bits`` and whose others keep ``rest_bits``.

    Embeddings, the output head and the norms usually stay at 16 bits.
    """
    return (linear * bits + (parameters - linear) * rest_bits) / 8


def linear_flop(batch: float, outputs: float, inputs: float) -> float:
    """Return the FLOP of [batch, inputs] times a weight [outputs, inputs]: a multiply and an add each."""
    return 2 * batch * outputs * inputs


def linear_bytes(batch: float, outputs: float, inputs: float, weight_bits: float = 16, bits: float = 16) -> float:
    """Return the least bytes of that product: the weight once, the activations (``bits`` each) in and out."""
    return (outputs * inputs * weight_bits + batch * (inputs + outputs) * bits) / 8


def tile_intensity(block_m: float, block_n: float, bits: float = 16) -> float:
    """Return the FLOP per byte that a tile [block_m, block_n] of a matmul has on what it loads, from L2 or memory.

    Each step along k loads block_m + block_n elements and does 2 block_m block_n FLOP; k cancels.
    """
    return 2 * block_m * block_n / ((block_m + block_n) * bits / 8)


# -- decode and prefill ------------------------------------------------------------------------------------------------


def decode_floor(moved: float, bandwidth: float) -> float:
    """Return the least time in s of one decode step that reads ``moved`` bytes (weights and KV) once."""
    return moved / bandwidth


def decode_rate(moved: float, bandwidth: float, batch: float = 1) -> float:
    """Return the largest tokens/s of ``batch`` sequences that share such a step."""
    return batch * bandwidth / moved


def amortised_time(batch: float, parameters: float, bits: float, flop_rate: float, bandwidth: float) -> float:
    """Return t(B) in s: one step over the weights for ``batch`` tokens, KV and activations left out.

    t(B) = max(parameters * bits / 8 / bandwidth, 2 * parameters * B / flop_rate): flat until ``critical_batch``.
    """
    return max(weight_bytes(parameters, bits) / bandwidth, 2 * parameters * batch / flop_rate)


def critical_batch(bits: float, flop_rate: float, bandwidth: float) -> float:
    """Return the batch at which weights of ``bits`` stop being memory-bound: flop_rate * bits / 8 / (2 * bandwidth)."""
    return flop_rate * bits / 8 / (2 * bandwidth)


def crossover_batch(flop_rate_16: float, bandwidth: float, other_bits: float = 8) -> float:
    """Return the batch up to which W4A16 is faster than weights and activations of ``other_bits`` (W8A8).

    W4A16 computes at the 16-bit rate: 2 P B / flop_rate_16. W8A8, still memory-bound, takes P * other_bits / 8 /
    bandwidth. They are equal at B = flop_rate_16 * other_bits / 8 / (2 * bandwidth), whatever P and the weight format.
    An ideal: dequantisation, tiles of 64 rows and real matmul efficiency all make it come earlier.
    """
    return critical_batch(other_bits, flop_rate_16, bandwidth)


def prefill_flop(parameters: float, tokens: float) -> float:
    """Return the FLOP of a prompt in the weights: 2 a parameter and token. Pass the active parameters of a MoE."""
    return 2 * parameters * tokens


def attention_flop(
    queries: float, keys: float, heads: float, head_dim: float, layers: float = 1, causal: bool = False
) -> float:
    """Return the FLOP of attention: Q K^T and P V, 2 each a query, key, head and channel; causal does half.

    Half is the limit for queries = keys; the diagonal's own half is left out.
    """
    full = 4 * queries * keys * heads * head_dim * layers
    return full / 2 if causal else full


def scores_bytes(queries: float, keys: float, heads: float, bits: float = 16) -> float:
    """Return the bytes of a score matrix [heads, queries, keys] that attention must never write."""
    return queries * keys * heads * bits / 8


# -- KV cache ----------------------------------------------------------------------------------------------------------


def kv_bytes_per_token(layers: float, kv_heads: float, head_dim: float, bits: float = 16) -> float:
    """Return the bytes of K and V that one token keeps: 2 * layers * kv_heads * head_dim * bits / 8."""
    return 2 * layers * kv_heads * head_dim * bits / 8


def kv_budget(memory: float, weights: float, share: float = 1.0, reserve: float = 0.0) -> float:
    """Return the bytes left for the KV cache: share * memory - weights - reserve (activations, graphs); never below 0.

    ``share`` is how much of the memory the engine may take.
    """
    return max(0.0, share * memory - weights - reserve)


def batch_that_fits(budget: float, per_token: float, tokens: float) -> int:
    """Return how many sequences of ``tokens`` fit into ``budget`` bytes of KV cache at ``per_token`` bytes."""
    return math.floor(budget / (per_token * tokens))


def decode_step_time(weights: float, per_token: float, tokens: float, batch: float, bandwidth: float) -> float:
    """Return the least time in s of a step: the weights once, and the KV cache of each of ``batch`` sequences."""
    return (weights + batch * tokens * per_token) / bandwidth


def kv_intensity(q_heads: float, kv_heads: float, bits: float = 16) -> float:
    """Return the FLOP/byte of decode attention: each element of K and V serves q_heads / kv_heads queries."""
    return 2 * (q_heads / kv_heads) / (bits / 8)


# -- the chip ----------------------------------------------------------------------------------------------------------


def registers_bytes(sms: int, registers_per_sm: int = 65_536) -> int:
    """Return the bytes of all registers of a GPU, 4 each."""
    return sms * registers_per_sm * 4


def shared_bytes(sms: int, shared_per_sm: int) -> int:
    """Return the bytes of shared memory of all SMs together."""
    return sms * shared_per_sm


def bytes_in_flight(bandwidth: float, latency: float) -> float:
    """Return Little's law for memory: the bytes that must be on their way to fill ``bandwidth`` at ``latency`` s.

    The latency is that of a loaded memory, about twice the idle one; say which you assume.
    """
    return bandwidth * latency


def reached_bandwidth(in_flight: float, latency: float, bandwidth: float) -> float:
    """Return the bytes/s that ``in_flight`` bytes can keep up: in_flight / latency, never more than ``bandwidth``."""
    return min(bandwidth, in_flight / latency)


def sectors_per_request(stride: int, size: int, lanes: int = WARP) -> int:
    """Return the 32-byte sectors that a warp touches: ``lanes`` elements of ``size`` bytes, ``stride`` elements apart.

    The first lane starts a sector; an element lies within one sector.
    """
    return len({lane * stride * size // SECTOR for lane in range(lanes)})


def waves(programs: int, sms: int, per_sm: int = 1) -> int:
    """Return how many rounds ``programs`` of equal length take when ``per_sm`` of them are resident on each SM."""
    return -(-programs // (sms * per_sm))


def wave_efficiency(programs: int, sms: int, per_sm: int = 1) -> float:
    """Return the share of the slots of these rounds that do work; the rest is the tail."""
    return programs / (waves(programs, sms, per_sm) * sms * per_sm)


def launch_share(work: float, launch: float) -> float:
    """Return work / (work + launch): the share of the time that is work when each launch adds ``launch`` s."""
    return work / (work + launch)


# -- speculation -------------------------------------------------------------------------------------------------------


def accepted_tokens(acceptance: float, drafted: int) -> float:
    """Return the expected tokens of one pass of the target: (1 - a^(g+1)) / (1 - a), the bonus token among them."""
    return float(drafted + 1) if acceptance == 1 else (1 - acceptance ** (drafted + 1)) / (1 - acceptance)


def speculative_speedup(acceptance: float, drafted: int, draft_cost: float) -> float:
    """Return the gain over plain decoding when a drafted token costs ``draft_cost`` passes of the target."""
    return accepted_tokens(acceptance, drafted) / (drafted * draft_cost + 1)


# -- numbers and samples -----------------------------------------------------------------------------------------------


def unit_roundoff(mantissa_bits: int) -> float:
    """Return u, the largest relative error of one rounding: 2^-(mantissa_bits + 1); 23 for float32, 7 for bfloat16."""
    return 2.0 ** -(mantissa_bits + 1)


def sum_error(terms: int, mantissa_bits: int = 23) -> float:
    """Return the worst relative error of adding ``terms`` positive numbers one by one: gamma = n u / (1 - n u).

    With independent roundings it grows as sqrt(n) only.
    """
    nu = (terms - 1) * unit_roundoff(mantissa_bits)
    return nu / (1 - nu)


def exp_limit(largest: float) -> float:
    """Return the x above which exp(x) overflows a type whose largest number is ``largest``: its logarithm."""
    return math.log(largest)


def median_ranks(samples: int, confidence: float = 0.95) -> tuple[int, int]:
    """Return the ranks (from 1, sorted) of an interval that covers the median of any distribution with ``confidence``.

    From the binomial distribution: of n independent samples, k or fewer lie below the median with probability
    sum C(n, i) / 2^n. Too few samples for the confidence give (1, n).
    """
    below, rank = 0.0, 0
    while rank < samples // 2:
        below += math.comb(samples, rank) / 2**samples
        if below > (1 - confidence) / 2:
            break
        rank += 1
    return max(rank, 1), samples + 1 - max(rank, 1)
