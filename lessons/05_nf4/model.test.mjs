import assert from "node:assert/strict";
import test from "node:test";
import {
  CODES,
  FP4,
  FP8,
  INT4,
  NF4,
  WEIGHTS,
  bits,
  dynamicMap,
  layer,
  nearest,
  nest,
  quantise,
  verdict,
} from "./model.js";

test("each format has its codes, in order, from -1 to 1, with a zero", () => {
  assert.deepEqual(
    Object.values(CODES).map((c) => c.length),
    [16, 15, 15, 253],
  );
  for (const codes of Object.values(CODES)) {
    assert.equal(codes[0], -1);
    assert.equal(codes.at(-1), 1);
    assert.ok(codes.some((c) => c === 0));
    for (let i = 1; i < codes.length; i++) assert.ok(codes[i] > codes[i - 1]);
  }
});

test("INT4 has even steps, FP4 is E2M1 over 6, FP8 is E4M3 over 448", () => {
  assert.ok(INT4.every((c, i) => Math.abs(c * 7 - (i - 7)) < 1e-12));
  assert.deepEqual(
    FP4.slice(7).map((c) => +(c * 6).toFixed(9)),
    [0, 0.5, 1, 1.5, 2, 3, 4, 6],
  );
  assert.equal(FP8[127] * 448, 2 ** -9);
  assert.equal(+(FP8[251] * 448).toFixed(9), 416);
});

test("64 even steps from -1 to 1 in NF4, packed high nibble first", () => {
  const picked = Array.from({ length: 64 }, (_, i) => nearest(NF4, -1 + (2 * i) / 63));
  const hex = picked.map((c) => c.toString(16)).join("");
  assert.equal(hex, "00000111111112222233344445556667788899aaabbbccccddddeeeeeeefffff");
});

test("a tie goes to the lower code, and what lies outside to the last", () => {
  assert.equal(nearest([0, 1, 2], 0.5), 0);
  assert.equal(nearest([0, 1, 2], 0.51), 1);
  assert.deepEqual([nearest(NF4, -3), nearest(NF4, 3)], [0, 15]);
});

test("bits per weight", () => {
  assert.equal(bits({ format: "nf4", block: 64 }), 4.5);
  assert.equal(bits({ format: "nf4", block: 64, nested: true }), 4.126953125);
  assert.equal(bits({ format: "fp8", block: 128 }), 8.25);
});

test("the layer is normal, and has an outlier in each 512", () => {
  const w = layer();
  assert.equal(w.length, WEIGHTS);
  assert.ok(Math.abs(w.reduce((a, b) => a + b, 0) / WEIGHTS) < 0.05);
  assert.ok(Math.abs(w.reduce((a, b) => a + b * b, 0) / WEIGHTS - 1) < 0.05);
  assert.equal(layer(12).filter((v) => v === 12).length, 8);
});

test("NF4 in blocks of 64 errs by 0.073 deviations, as bitsandbytes does, and nesting adds next to nothing", () => {
  const m = quantise();
  assert.ok(Math.abs(m.error / 0.0728 - 1) < 0.03);
  assert.equal(m.ratio, 1);
  assert.ok(Math.abs(quantise({ nested: true }).ratio - 1) < 0.005);
});

test("no weight is further from its code than half the widest gap", () => {
  for (const format of Object.keys(CODES)) {
    const m = quantise({ format, block: 128, outlier: 12 });
    const gap = Math.max(...m.codes.slice(1).map((c, i) => c - m.codes[i]));
    m.weights.forEach((v, i) => assert.ok(Math.abs(v - m.codes[m.picked[i]]) <= gap / 2 + 1e-12));
    assert.equal(
      m.times.reduce((a, b) => a + b, 0),
      128,
    );
    assert.equal(Math.abs(m.weights[m.largest]), 1);
  }
});

test("an outlier costs its block most codes, and larger blocks spread the damage", () => {
  assert.ok(quantise({ outlier: 12 }).used < quantise().used / 2);
  const ratio = (block) => quantise({ outlier: 12, block }).ratio;
  assert.ok(ratio(32) < ratio(64) && ratio(64) < ratio(256) && ratio(256) < ratio(512));
});

test("the nested map has 256 codes, and what is nested stays near", () => {
  const map = dynamicMap();
  assert.equal(map.length, 256);
  assert.equal(new Set(map).size, 256);
  const absmax = [2, 2.5, 3, 2.2];
  nest(absmax).forEach((v, i) => assert.ok(Math.abs(v - absmax[i]) < 0.01));
});

test("verdicts", () => {
  assert.deepEqual([0.5, 1.05, 1.5, 3].map(verdict), ["less", "same", "more", "worse"]);
});
