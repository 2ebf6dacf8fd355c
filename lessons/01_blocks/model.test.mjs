import assert from "node:assert/strict";
import test from "node:test";
import { element, grid, perSm, time, waves } from "./model.js";

const gpu = { sms: 132, threads_per_sm: 2048, blocks_per_sm: 32 };

test("rounding up reaches each element once, rounding down loses the end", () => {
  for (const n of [1, 7, 1000, 1024, 1025, 5001])
    for (const block of [32, 128, 1024]) {
      const up = grid({ n, block }),
        down = grid({ n, block, up: false });
      assert.equal(up.missing, 0);
      assert.equal(up.lanes - up.off, n);
      assert.equal(down.missing, n % block);
      assert.equal(down.off, 0);
      assert.equal(up.programs - down.programs, n % block ? 1 : 0);
    }
});

test("1000 elements in one block of 1024 leave 24 lanes", () => {
  const m = grid({ n: 1000, block: 1024 });
  assert.deepEqual([m.programs, m.off, m.last], [1, 24, 1000]);
});

test("no elements need no program", () => {
  const m = grid({ n: 0, block: 256 });
  assert.deepEqual([m.programs, m.off, m.last, m.used], [0, 0, 0, 1]);
});

test("programs and lanes number the elements without gap or repetition", () => {
  const all = [];
  for (let pid = 0; pid < 4; pid++) for (let lane = 0; lane < 8; lane++) all.push(element(pid, lane, 8));
  assert.deepEqual(
    all,
    Array.from({ length: 32 }, (_, i) => i),
  );
});

test("threads, then places, bound what an SM holds", () => {
  assert.equal(perSm(gpu, 4), 16);
  assert.equal(perSm(gpu, 8), 8);
  assert.equal(perSm(gpu, 1), 32);
});

test("one program too many is another wave", () => {
  const full = waves({ gpu, programs: 2112 }),
    more = waves({ gpu, programs: 2113 });
  assert.deepEqual([full.count, full.idle, full.eff], [1, 0, 1]);
  assert.deepEqual([more.count, more.last, more.idleSms], [2, 1, 131]);
  assert.ok(Math.abs(more.eff - 2113 / 4224) < 1e-12);
});

test("the last wave is dealt out evenly", () => {
  const m = waves({ gpu, programs: 2112 + 200 });
  assert.equal(
    m.tail.reduce((a, b) => a + b, 0),
    200,
  );
  assert.deepEqual([Math.max(...m.tail), Math.min(...m.tail)], [2, 1]);
});

test("small blocks are bound by starting programs", () => {
  const args = { n: 2 ** 26, bytes: 6, bandwidth: 4.27e12, launch: 0.604e-9 };
  const small = time({ ...args, block: 64 }),
    large = time({ ...args, block: 1024 });
  assert.equal(small.time, small.starting);
  assert.equal(large.time, large.moving);
});
