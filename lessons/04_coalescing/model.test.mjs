import assert from "node:assert/strict";
import test from "node:test";
import { LINE, request, total, transpose } from "./model.js";

const sectors = (settings) => request(settings).sectors.length;

test("packed lanes share sectors: as many as the bytes fill", () => {
  for (const elem of [1, 2, 4, 8]) assert.equal(sectors({ elem }), elem);
  assert.equal(request().eff, 1);
});

test("min(32, stride × bytes) for one aligned element a lane", () => {
  for (const elem of [1, 2, 4])
    for (let stride = 1; stride <= 64; stride++) assert.equal(sectors({ elem, stride }), Math.min(32, stride * elem));
});

test("stride 0 is one address for all", () => {
  assert.equal(sectors({ stride: 0 }), 1);
  assert.equal(request({ stride: 0 }).eff, 4);
});

test("an offset inside a sector costs one more, a whole sector costs none", () => {
  assert.equal(sectors({ offset: 1 }), 5);
  assert.equal(sectors({ offset: 8 }), 4);
});

test("down a column each lane has a line of its own", () => {
  const m = request({ walk: "col", elem: 2 });
  assert.equal(m.sectors.length, 32);
  assert.equal(m.lines.length, 32);
  assert.equal(m.eff, 2 / 32);
  assert.equal(request({ walk: "col", pitch: LINE * 2 }).lines.length, 32);
});

test("wide loads save requests, and only where they are aligned", () => {
  assert.deepEqual([request({ vec: 4 }).requests, sectors({ vec: 4 })], [1, 16]);
  assert.equal(request({ vec: 8 }).requests, 2);
  assert.equal(request({ vec: 4, offset: 1 }).requests, 4);
  assert.equal(request({ vec: 4, offset: 2 }).requests, 2);
});

test("every lane's bytes lie in the sectors that move", () => {
  for (const settings of [
    { stride: 3, offset: 5 },
    { elem: 2, vec: 4, stride: 2, offset: 3 },
    { walk: "col", stride: 2 },
  ]) {
    const m = request(settings),
      has = new Set(m.sectors);
    for (const { from, to } of m.lanes) for (let b = from; b < to; b++) assert.ok(has.has(Math.floor(b / 32)));
    assert.equal(m.moved, 32 * has.size);
  }
});

test("a transpose reads and writes each element once, however it goes", () => {
  for (const mode of ["row", "col", "tile"]) {
    const steps = transpose(mode),
      of = (op) => steps.filter((s) => s.op === op).flatMap((s) => s.cells.map(String));
    assert.equal(steps.length, 64);
    for (const op of ["read", "write"]) assert.equal(new Set(of(op)).size, 1024);
  }
});

test("only the tile moves no more than was asked", () => {
  const moved = (mode) => total(transpose(mode)).moved;
  assert.deepEqual([moved("row"), moved("col"), moved("tile")], [36864, 36864, 8192]);
  assert.equal(total(transpose("tile")).time, 1);
});

test("partly written sectors cost more: row-wise is slower than column-wise", () => {
  const time = (mode) => total(transpose(mode), 2).time;
  assert.equal(time("row"), (4 + 64) / 8);
  assert.equal(time("col"), (32 + 4) / 8);
});
