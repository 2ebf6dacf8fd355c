import assert from "node:assert/strict";
import test from "node:test";
import { ROWS, TYPES, expLimit, half, merge, partial, run, softmax } from "./model.js";

const close = (a, b, by = 1e-6) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`);

test("float16 rounds to eleven bits, ties to even, and ends at 65504", () => {
  assert.deepEqual([half(1 + 2 ** -11), half(1 + 3 * 2 ** -11)], [1, 1 + 2 ** -9]);
  assert.deepEqual([half(65519), half(65520), half(-70000)], [65504, Infinity, -Infinity]);
  assert.equal(half(2 ** -24), 2 ** -24);
  assert.equal(half(2 ** -26), 0);
});

test("online is the softmax, whatever the row and the size of a piece", () => {
  for (const row of Object.values(ROWS))
    for (const piece of [1, 2, 3, 4, 6, 12]) {
      const m = run({ row, piece });
      assert.equal(m.verdict, "right");
      close(m.sum, 1);
      m.out.forEach((v, i) => close(v, m.truth[i]));
    }
});

test("without the maximum exp overflows or everything vanishes", () => {
  assert.equal(run({ method: "plain" }).verdict, "right");
  assert.equal(run({ method: "plain", row: ROWS.hundred }).verdict, "nan");
  assert.equal(run({ method: "plain", row: ROWS.deep }).verdict, "nan");
  assert.equal(run({ method: "plain", row: ROWS.twelve }).verdict, "right");
  assert.equal(run({ method: "plain", row: ROWS.twelve, type: "float16" }).verdict, "nan");
  assert.equal(run({ row: ROWS.twelve, type: "float16" }).verdict, "right");
});

test("a sum that is not rescaled is wrong only where the maximum rises", () => {
  assert.equal(run({ method: "stale", row: ROWS.rising }).verdict, "wrong");
  assert.equal(run({ method: "stale", row: [...ROWS.rising].reverse() }).verdict, "right");
});

test("minus infinity is no start for a row whose first piece is masked", () => {
  assert.equal(run({ row: ROWS.masked, from: "inf" }).verdict, "nan");
  assert.equal(run({ row: ROWS.masked }).verdict, "right");
  assert.equal(run({ row: ROWS.usual, from: "inf" }).verdict, "right");
});

test("two halves merge to the whole, wherever the cut is and if one is empty", () => {
  for (const row of Object.values(ROWS)) {
    const whole = partial(row);
    for (let cut = 1; cut < row.length; cut++) {
      const both = merge(partial(row.slice(0, cut)), partial(row.slice(cut)));
      assert.equal(both.m, whole.m);
      close(both.l, whole.l, 1e-9);
    }
  }
  assert.deepEqual(partial([-Infinity, -Infinity]), { m: -TYPES.float32.largest, l: 0 });
});

test("limits of exp", () => {
  close(expLimit("float32"), 88.7228, 1e-3);
  close(expLimit("float16"), 11.0899, 1e-3);
  close(softmax([0, 0])[0], 0.5);
});
