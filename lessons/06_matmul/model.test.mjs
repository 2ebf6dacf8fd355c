import assert from "node:assert/strict";
import test from "node:test";
import { need, order, roof, tiles } from "./model.js";

const square = { M: 4096, N: 4096, K: 4096 };

test("a number of A is loaded once for each column of tiles, one of B once for each row", () => {
  const t = tiles({ ...square, bm: 128, bn: 256 });
  assert.deepEqual([t.rows, t.cols, t.programs, t.steps], [32, 16, 512, 64]);
  assert.deepEqual([t.readsA, t.readsB], [16, 32]);
  assert.equal(t.loaded, (16 + 32) * 4096 * 4096 * 2);
});

test("intensity is the FLOP over the loaded bytes, whatever K is", () => {
  for (const [bm, bn] of [
    [16, 16],
    [128, 256],
    [1, 64],
  ])
    for (const K of [64, 4096]) {
      const t = tiles({ M: 4096, N: 4096, K, bm, bn });
      assert.ok(Math.abs(t.flop / t.loaded - t.intensity) < 1e-9);
    }
});

test("one tile that is as large as the output loads everything once", () => {
  const t = tiles({ M: 256, N: 512, K: 64, bm: 256, bn: 512 });
  assert.equal(t.loaded, t.least);
});

test("shared memory and accumulator of a program", () => {
  const t = tiles({ ...square, bm: 128, bn: 256, bk: 64, stages: 4 });
  assert.equal(t.shared, 196608);
  assert.equal(t.accumulator, 131072);
});

test("every tile has one program, whatever the group", () => {
  for (const [rows, cols] of [
    [32, 16],
    [7, 5],
    [1, 9],
    [33, 3],
  ])
    for (const group of [1, 2, 4, 8, 32]) {
      const all = order(rows, cols, group);
      assert.equal(new Set(all.map((p) => p.m * cols + p.n)).size, rows * cols);
      assert.ok(all.every((p) => p.m < rows && p.n < cols));
    }
});

test("a group of one row goes row by row", () => {
  assert.deepEqual(order(4, 3, 1).slice(0, 4), [
    { m: 0, n: 0 },
    { m: 0, n: 1 },
    { m: 0, n: 2 },
    { m: 1, n: 0 },
  ]);
  assert.deepEqual(order(4, 3, 2).slice(0, 3), [
    { m: 0, n: 0 },
    { m: 1, n: 0 },
    { m: 0, n: 1 },
  ]);
});

test("programs in a group need fewer stripes", () => {
  const first = (group) => need(order(32, 56, group).slice(0, 132));
  assert.deepEqual(first(1), { a: 3, b: 56 });
  assert.deepEqual(first(8), { a: 8, b: 17 });
});

test("the roof is the smaller of both", () => {
  assert.equal(roof(10, 100, 5), 50);
  assert.equal(roof(30, 100, 5), 100);
});
