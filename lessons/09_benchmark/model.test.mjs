import assert from "node:assert/strict";
import test from "node:test";
import { QUEUE, TRUTH, mean, measure, median, near, samples, standardError } from "./model.js";

const ratio = (settings) => measure(settings).ratio;

test("done with care it reports the truth, whatever the run", () => {
  for (let seed = 1; seed <= 12; seed++) {
    const m = measure({ seed });
    assert.ok(Math.abs(m.ratio - 1) < 0.01);
    assert.equal(m.verdict, "right");
  }
});

test("a run repeats exactly", () => {
  assert.deepEqual(samples({ seed: 3 }), samples({ seed: 3 }));
  assert.notDeepEqual(samples({ seed: 3 }), samples({ seed: 4 }));
});

test("without a sync only the queueing is seen", () => {
  assert.ok(Math.abs(measure({ sync: false }).reported / QUEUE - 1) < 0.01);
});

test("each mistake goes its own way, and two may cancel", () => {
  assert.equal(measure({ flush: false }).verdict, "short");
  assert.equal(measure({ warm: false }).verdict, "long");
  assert.equal(measure({ compiled: false, stat: "mean" }).verdict, "far_long");
  assert.equal(measure({ compiled: false }).verdict, "right");
  assert.equal(measure({ stat: "mean" }).verdict, "long");
  assert.equal(measure({ warm: false, flush: false }).verdict, "right");
});

test("a median of coarse ticks is a multiple of a tick; the trimmed mean is not bound to one", () => {
  const tick = 25e-6;
  assert.ok(Math.abs((ratio({ tick, stat: "median" }) * TRUTH) / tick - 2) < 1e-9);
  assert.ok(Math.abs(ratio({ tick }) - 1) < 0.05);
});

test("a GPU that idled gets faster while it works", () => {
  const times = samples({ warm: false, n: 3000 });
  assert.ok(median(times.slice(0, 50)) > 1.9 * TRUTH);
  assert.ok(median(times.slice(-50)) < 1.1 * TRUTH);
});

test("mean, median, near and the standard error", () => {
  assert.deepEqual([mean([1, 2, 6]), median([6, 1, 2]), median([1, 2, 3, 4])], [3, 2, 2.5]);
  assert.deepEqual(near([10, 10.5, 11, 50]), [10, 10.5, 11]);
  assert.equal(standardError([4]), 0);
  assert.ok(Math.abs(standardError([1, 2, 3]) - Math.sqrt(1 / 3)) < 1e-12);
});
