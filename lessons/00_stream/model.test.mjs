import assert from "node:assert/strict";
import test from "node:test";
import { bytesPerToken, pass, readWeights, run } from "./model.js";

const llm = {
  layers: 32,
  q_heads: 32,
  kv_heads: 8,
  head_dim: 128,
  parameters: 8030261248,
  vocab: 128256,
  hidden: 4096,
  tied: false,
};
const gpu = { mem_bw: 3.35e12, flop: 989.4e12, mem_bytes: 85e9 };
const chat = { gpu, llm, prompt: 512, out: 24 };

test("a pass takes the longer of reading and arithmetic", () => {
  assert.equal(pass(gpu, 3.35e12, 1).time, 1);
  assert.equal(pass(gpu, 1, 989.4e12).time, 1);
  assert.equal(pass(gpu, 1, 989.4e12).bound, "arithmetic");
});

test("the input embedding is not read, unless it is the output head too", () => {
  assert.equal(readWeights(llm), 8030261248 - 128256 * 4096);
  assert.equal(readWeights({ ...llm, tied: true }), 8030261248);
});

test("one sequence decodes at bandwidth over bytes", () => {
  const m = run(chat);
  assert.equal(m.first.bytes, readWeights(llm) * 2 + 513 * bytesPerToken(llm));
  assert.equal(m.first.bound, "memory");
  assert.ok(Math.abs(m.each - gpu.mem_bw / m.first.bytes) < 1e-9);
});

test("a short prompt costs one reading of the weights, a long one is bound by arithmetic", () => {
  assert.equal(run({ ...chat, prompt: 16 }).prefill.bound, "memory");
  assert.equal(run(chat).prefill.bound, "arithmetic");
  assert.ok(Math.abs(run({ ...chat, prompt: 16 }).worth - 1) < 0.01);
});

test("passes add up, and each one reads a little more than the one before", () => {
  const m = run({ ...chat, batch: 4 });
  assert.equal(m.steps.length, 23);
  assert.ok(Math.abs(m.total - m.prefill.time - m.steps.reduce((s, p) => s + p.time, 0)) < 1e-12);
  for (let i = 1; i < m.steps.length; i++) assert.equal(m.steps[i].bytes - m.steps[i - 1].bytes, 4 * m.perToken);
});

test("a batch shares the weights: all together write more, each a little less", () => {
  const one = run(chat),
    many = run({ ...chat, batch: 32 });
  assert.ok(many.rate > 25 * one.rate && many.rate < 32 * one.rate);
  assert.ok(many.each < one.each);
});

test("an answer of one token needs the prompt's pass alone", () => {
  const m = run({ ...chat, out: 1 });
  assert.equal(m.total, m.prefill.time);
  assert.ok(Number.isFinite(m.worth));
});

test("weights must fit, with a tenth held back", () => {
  assert.equal(run(chat).fits, true);
  assert.equal(run({ ...chat, gpu: { ...gpu, mem_bytes: 17e9 } }).fits, false);
});
