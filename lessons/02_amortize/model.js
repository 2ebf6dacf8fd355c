/* Lesson 2, the model: what a token costs when a batch shares the weights. Pure. */

/** Bytes that one token keeps in all layers: a key and a value for each KV head. */
export const bytesPerToken = ({ layers, kv_heads, head_dim }, bits = 16) =>
  (2 * layers * kv_heads * head_dim * bits) / 8;

/** The batch from which arithmetic takes longer than reading weights of `bits`; `gpu`: {mem_bw, flop}. */
export const critical = (gpu, bits) => (gpu.flop * bits) / 8 / (2 * gpu.mem_bw);

/**
 * One pass of decode for `batch` sequences of `tokens` tokens each.
 *
 * `gpu`: {mem_bytes, mem_bw, flop}; `llm`: {layers, q_heads, kv_heads, head_dim, parameters, vocab, hidden}. Weights in
 * `bits`, cache and arithmetic in 16. The weights are read once, each sequence's cache once; reading and arithmetic
 * overlap. Seconds and bytes; `gain`: how many times cheaper a token is than for one sequence alone.
 */
export function step({ gpu, llm, batch, bits = 16, tokens = 0 }) {
  const params = llm.parameters - llm.vocab * llm.hidden, // a row of the input embedding is read, not the table
    weights = (params * bits) / 8,
    own = tokens * bytesPerToken(llm);
  const flopEach = 2 * params + 4 * tokens * llm.q_heads * llm.head_dim * llm.layers;
  const at = (b) => {
    const read = (weights + b * own) / gpu.mem_bw,
      math = (b * flopEach) / gpu.flop;
    return { batch: b, read, math, time: Math.max(read, math), each: Math.max(read, math) / b };
  };
  const now = at(batch),
    alone = at(1);
  const room = 0.9 * gpu.mem_bytes - (llm.parameters * bits) / 8;
  return {
    ...now,
    at,
    alone,
    weights,
    own,
    cache: batch * own,
    moved: weights + batch * own,
    gain: alone.each / now.each,
    bound: now.math > now.read ? "arithmetic" : batch * own > weights ? "cache" : "weights",
    weightsEach: weights / gpu.mem_bw / batch,
    cacheEach: own / gpu.mem_bw,
    mathEach: flopEach / gpu.flop,
    intensity: (batch * flopEach) / (weights + batch * own),
    ridge: gpu.flop / gpu.mem_bw,
    rate: batch / now.time,
    fits: room <= 0 ? 0 : own ? Math.floor(room / own) : Infinity,
  };
}

/** Bytes that a linear layer [outputs, inputs] reads for `batch` tokens of `bytes` each, and how often the weights. */
export function layer({ batch, outputs, inputs, bytes = 2, shared = true }) {
  const weights = outputs * inputs * bytes * (shared ? 1 : batch),
    activations = batch * (inputs + outputs) * bytes,
    flop = 2 * batch * outputs * inputs;
  return { weights, activations, moved: weights + activations, flop, intensity: flop / (weights + activations) };
}
