import assert from "node:assert/strict";
import test from "node:test";
import { COLS, ROWS, address, dense, digits, sectors, view } from "./model.js";

const whole = { size0: ROWS, size1: COLS, stride0: COLS, stride1: 1, offset: 0 };
const turned = { size0: COLS, size1: ROWS, stride0: 1, stride1: COLS, offset: 0 };

test("the matrix itself reaches everything, in order", () => {
  const m = view(whole);
  assert.deepEqual(
    m.cells.map((c) => c.at),
    Array.from({ length: 48 }, (_, i) => i),
  );
  assert.deepEqual([m.contiguous, m.skipped, m.outside], [true, 0, 0]);
});

test("a transpose reaches the same elements in another order", () => {
  const m = view(turned);
  assert.deepEqual([m.different, m.skipped, m.contiguous], [48, 0, false]);
  for (let i = 0; i < ROWS; i++)
    for (let j = 0; j < COLS; j++) assert.equal(address(whole, i, j), address(turned, j, i));
});

test("a slice moves the first element and skips what it leaves out", () => {
  const m = view({ size0: 4, size1: 5, stride0: 8, stride1: 1, offset: 10 });
  assert.deepEqual([m.low, m.high, m.count, m.skipped, m.contiguous], [10, 38, 20, 9, false]);
});

test("stride 0 repeats, stride 1 twice slides a window", () => {
  assert.equal(view({ size0: 5, size1: 8, stride0: 0, stride1: 1, offset: 16 }).different, 8);
  const m = view({ size0: 10, size1: 4, stride0: 1, stride1: 1, offset: 0 });
  assert.deepEqual([m.count, m.different], [40, 13]);
});

test("what leaves the memory is counted", () => {
  assert.equal(view({ ...whole, offset: 3 }).outside, 3);
});

test("strides of a contiguous tensor", () => {
  assert.deepEqual(dense([2, 3, 4]), [12, 4, 1]);
  assert.deepEqual(dense([7]), [1]);
});

test("digits count through all indices once, in order", () => {
  const bases = [2, 3, 4],
    seen = Array.from({ length: 24 }, (_, p) => digits(p, bases));
  assert.equal(new Set(seen.map(String)).size, 24);
  const strides = dense(bases);
  seen.forEach((d, p) => assert.equal(p, d[0] * strides[0] + d[1] * strides[1] + d[2] * strides[2]));
});

test("neighbours along a long stride have a sector each", () => {
  assert.equal(sectors(64, 1, 2), 4);
  assert.equal(sectors(64, 16384, 2), 64);
});
