import assert from "node:assert/strict";
import test from "node:test";
import { bytesPerToken, critical, layer, step } from "./model.js";

const llm = {
  layers: 32,
  q_heads: 32,
  kv_heads: 8,
  head_dim: 128,
  parameters: 8030261248,
  vocab: 128256,
  hidden: 4096,
};
const gpu = { mem_bw: 3.35e12, flop: 989.4e12, mem_bytes: 85e9 };
const near = (a, b) => assert.ok(Math.abs(a / b - 1) < 1e-9, `${a} is not ${b}`);

test("alone, nothing is gained", () => {
  assert.equal(step({ gpu, llm, batch: 1, tokens: 2048 }).gain, 1);
});

test("without a cache the gain is the batch, until arithmetic binds at the ridge", () => {
  near(step({ gpu, llm, batch: 16 }).gain, 16);
  const edge = critical(gpu, 16);
  near(edge, gpu.flop / gpu.mem_bw);
  near(step({ gpu, llm, batch: 1024 }).gain, edge);
  assert.equal(step({ gpu, llm, batch: 1024 }).bound, "arithmetic");
});

test("smaller weights reach the ridge earlier", () => {
  near(critical(gpu, 4), critical(gpu, 16) / 4);
});

test("with a cache the gain ends at all bytes over one sequence's own", () => {
  const m = step({ gpu, llm, batch: 1e9, tokens: 32768 });
  assert.ok(Math.abs(m.gain / ((m.weights + m.own) / m.own) - 1) < 1e-6);
  assert.equal(step({ gpu, llm, batch: 16, tokens: 32768 }).bound, "cache");
});

test("a token's price is its share of the weights and all of its cache", () => {
  const m = step({ gpu, llm, batch: 16, tokens: 4096 });
  near(m.each, m.weightsEach + m.cacheEach);
  near(m.own, 4096 * bytesPerToken(llm));
  near(m.rate, 16 / m.time);
});

test("what fits leaves a tenth and the weights", () => {
  const m = step({ gpu, llm, batch: 1, tokens: 8192 });
  assert.equal(m.fits, Math.floor((0.9 * 85e9 - 2 * 8030261248) / m.own));
  assert.equal(step({ gpu, llm, batch: 1 }).fits, Infinity);
});

test("a loop over tokens outside reads the weights for each of them", () => {
  const shape = { batch: 16, outputs: 512, inputs: 256 };
  assert.equal(layer({ ...shape, shared: false }).weights, 16 * layer(shape).weights);
  assert.equal(layer(shape).flop, 2 * 16 * 512 * 256);
});
