/* Lesson 0, the model: what a prompt and each token after it cost, in bytes, FLOP and seconds. Pure. */

/** Weights that one pass reads: all but the input embedding, of which a token needs one row. */
export const readWeights = ({ parameters, vocab, hidden, tied }) => parameters - (tied ? 0 : vocab * hidden);

/** Bytes that one token keeps in all layers: a key and a value for each KV head. */
export const bytesPerToken = ({ layers, kv_heads, head_dim }, bits = 16) =>
  (2 * layers * kv_heads * head_dim * bits) / 8;

/** The least time of a pass: reading and arithmetic overlap, so the longer of them. `gpu`: {mem_bw, flop}. */
export function pass(gpu, bytes, flop) {
  const read = bytes / gpu.mem_bw,
    math = flop / gpu.flop;
  return { bytes, flop, read, math, time: Math.max(read, math), bound: read >= math ? "memory" : "arithmetic" };
}

/**
 * A batch of equal requests: a prompt of `prompt` tokens each, then `out` tokens one by one.
 *
 * `llm`: {layers, q_heads, kv_heads, head_dim, parameters, vocab, hidden, tied}; weights and cache in `bits`. The prompt
 * gives the first token, so `steps` has out - 1 entries. Seconds, bytes, FLOP; floors, at the peaks of the datasheet.
 */
export function run({ gpu, llm, prompt, out, bits = 16, batch = 1 }) {
  const params = readWeights(llm),
    weights = (params * bits) / 8,
    perToken = bytesPerToken(llm, bits),
    wide = llm.q_heads * llm.head_dim * llm.layers; // channels of the queries, all layers
  const prefill = pass(
    gpu,
    weights + batch * prompt * perToken,
    batch * (2 * params * prompt + 2 * prompt * prompt * wide),
  );
  const steps = Array.from({ length: Math.max(0, out - 1) }, (_, i) => {
    const seen = prompt + i + 1;
    return pass(gpu, weights + batch * seen * perToken, batch * (2 * params + 4 * seen * wide));
  });
  const first = steps[0] ?? pass(gpu, weights + batch * prompt * perToken, batch * 2 * params);
  const decode = steps.reduce((sum, s) => sum + s.time, 0);
  const all = (llm.parameters * bits) / 8 + batch * (prompt + out) * perToken;
  return {
    prompt,
    out,
    batch,
    weights,
    perToken,
    prefill,
    steps,
    first,
    decode,
    total: prefill.time + decode,
    worth: prefill.time / first.time, // answer tokens that could be written while the prompt is read
    each: 1 / first.time, // tokens/s of one sequence
    rate: batch / first.time, // … of all together
    fits: all <= 0.9 * gpu.mem_bytes,
  };
}
