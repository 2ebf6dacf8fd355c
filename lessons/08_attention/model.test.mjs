import assert from "node:assert/strict";
import test from "node:test";
import { PAGE, RESERVE, TILE, bytesPerToken, fill, online, score, tiles } from "./model.js";

const model = { layers: 32, kv_heads: 8, head_dim: 128, parameters: 8e9 },
  gpu = { mem_bytes: 80e9, mem_bw: 3.35e12 };
const base = { gpu, model, weightBits: 16, kvBits: 16, tokens: 8192 };

test("a token keeps a key and a value in each layer and KV head", () => {
  assert.equal(bytesPerToken(model, 16), 131072);
  assert.equal(bytesPerToken(model, 8), 65536);
  assert.equal(bytesPerToken({ ...model, kv_heads: 32 }, 16), 4 * 131072);
});

test("what fits is what is left, over a sequence, rounded down", () => {
  const c = fill(base);
  assert.equal(c.fits, Math.floor((80e9 * (1 - RESERVE) - 16e9) / (8192 * 131072)));
  assert.equal(c.running, c.fits);
  assert.ok(c.fits * c.slot <= c.room && (c.fits + 1) * c.slot > c.room);
});

test("weights larger than the memory leave room for none", () => {
  const c = fill({ ...base, model: { ...model, parameters: 70e9 } });
  assert.deepEqual([c.fits, c.running, c.tokensPerSecond], [0, 0, 0]);
});

test("pages waste less than a page; a contiguous strip wastes what is not used", () => {
  assert.equal(fill({ ...base, tokens: 17 }).held, 2 * PAGE);
  const strip = fill({ ...base, tokens: 2048, paged: false, longest: 32768 });
  assert.equal(strip.held, 32768);
  assert.equal(strip.waste, 1 - 2048 / 32768);
  assert.equal(fill({ ...base, tokens: 4096, paged: false, longest: 1024 }).held, 4096);
});

test("a larger batch than fits waits", () => {
  const c = fill({ ...base, batch: 1000 });
  assert.equal(c.running + c.waiting, 1000);
});

test("the rate grows with the batch, halves its reach at `equal`, and never passes the ceiling", () => {
  const c = fill(base);
  for (let b = 1; b < 200; b++) assert.ok(c.rate(b) < c.rate(b + 1) && c.rate(b + 1) < c.ceiling);
  assert.ok(Math.abs(c.rate(c.equal) - c.ceiling / 2) < 1e-6 * c.ceiling);
  assert.ok(Math.abs(c.tokensPerSecond - (c.running * gpu.mem_bw) / c.read) < 1e-6);
});

test("a square causal map visits the lower triangle; the diagonal is masked", () => {
  const map = tiles({ queries: 32, keys: 32 });
  assert.deepEqual([map.visited, map.part, map.total], [36, 8, 64]);
});

test("fewer queries than keys: the last query sees the last key", () => {
  const map = tiles({ queries: 12, keys: 32 });
  assert.ok(map.sees(11, 31) && !map.sees(10, 31) && map.sees(0, 20) && !map.sees(0, 21));
  assert.equal(map.visited, 6 + 7 + 8);
  assert.equal(tiles({ queries: 1, keys: 32 }).visited, 8);
  assert.equal(tiles({ queries: 12, keys: 32, anchor: "top" }).visited, 1 + 2 + 3);
});

test("queries before the first key see nothing", () => {
  const map = tiles({ queries: 12, keys: 6, slots: 32 });
  assert.deepEqual(
    map.rows.map((r) => r.kinds.filter((k) => k !== "none").length),
    [0, 1, 2],
  );
  assert.deepEqual(online(map, 0), { steps: [], m: -Infinity, l: 0, direct: 0 });
});

test("no tile counts twice, and a visited tile has a key that is seen", () => {
  for (const settings of [
    { queries: 9, keys: 30, slots: 32 },
    { queries: 32, keys: 32 },
    { queries: 5, keys: 3, slots: 8 },
  ]) {
    const map = tiles(settings);
    assert.equal(map.full + map.part + map.none, map.total);
    map.rows.forEach((row) =>
      row.kinds.forEach((kind, k) => {
        let seen = 0;
        for (let i = row.first; i <= row.last; i++)
          for (let j = k * TILE; j < (k + 1) * TILE; j++) if (map.sees(i, j)) seen++;
        assert.equal(seen > 0, kind !== "none");
      }),
    );
  }
});

test("tile by tile the softmax has the sum that all at once has", () => {
  for (const queries of [1, 12, 32]) {
    const map = tiles({ queries, keys: 32 });
    for (let i = 0; i < queries; i++) {
      const row = online(map, i);
      assert.ok(Math.abs(row.l / row.direct - 1) < 1e-12);
      assert.equal(
        row.m,
        Math.max(...Array.from({ length: 32 }, (_, j) => (map.sees(i, j) ? score(i, j) : -Infinity))),
      );
    }
  }
});
