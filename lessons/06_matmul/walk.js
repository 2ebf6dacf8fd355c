/* One program walks along K: the tiles that it loads from A and B, and how often each number is loaded in all. */

import {
  World,
  choice,
  count,
  define,
  digits,
  facts,
  label,
  line,
  percent,
  plural,
  quantity,
  range,
  rect,
  times,
} from "../shared/kit.js";
import { roof, tiles } from "./model.js";

const PRODUCTS = {
  square: { M: 4096, N: 4096, K: 4096 },
  tokens: { M: 64, N: 14336, K: 4096 },
};
const SIDES = [16, 32, 64, 128, 256];

class TileWalk extends World {
  start = { product: "square", bm: 64, bn: 64, bk: 64, stages: 4 };
  scenes = [
    {
      name: "64 × 64",
      set: {},
      after: "There are 64 columns of tiles, and the programs of each of them load all of A.",
    },
    {
      name: "128 × 256",
      set: { bm: 128, bn: 256 },
      after: "A wide tile spares A, a high one spares B. B is loaded 32 times here, once for each row of tiles.",
    },
    {
      name: "256 × 128",
      set: { bm: 256, bn: 128 },
      after: "The same tile on its side: A and B change places, and the bytes in all stay the same.",
    },
    {
      name: "16 × 16",
      set: { bm: 16, bn: 16 },
      after:
        "Each number serves 16 outputs, and is fetched again for the next 16. The tensor cores wait nearly all the time.",
    },
    {
      name: "64 tokens",
      set: { product: "tokens", bm: 64, bn: 256 },
      after:
        "A small matrix is loaded often and the large one once: with a single row of tiles nothing of B comes twice.",
    },
  ];
  controls = [
    choice("product", "The product", [
      ["square", "4096 × 4096 × 4096"],
      ["tokens", "64 × 14336 × 4096"],
    ]),
    range("bm", "Rows of a tile", 0, 0, { values: SIDES }),
    range("bn", "Columns of a tile", 0, 0, { values: SIDES }),
    range("bk", "Of K at a step", 0, 0, { values: [32, 64, 128] }),
    range("stages", "Pairs of tiles in flight", 1, 6),
  ];
  guess = {
    ask: "How many times is each number of A loaded?",
    it: "it is",
    unit: "times",
    min: 1,
    max: 4096,
    from: 8,
    reply: (said, m) =>
      said === m.readsB && m.readsA !== m.readsB
        ? "That is how often a number of B is loaded."
        : said === m.steps
          ? "Those are the steps along K. In them a program meets different numbers."
          : "",
  };
  legend = [
    ["m", "loaded in this step"],
    ["m-soft", "loaded by this program before or after"],
    ["a", "the outputs that it owns"],
    ["cell", "left to other programs"],
  ];
  cursor = {
    label: "Program to follow",
    at: 200,
    max: (m) => m.programs - 1,
    text: (m, i) => this.words(m, i),
    hit: (x, y, m) => this.programAt(x, y, m),
  };
  player = { label: "Steps along K that are done", start: 12, steps: (m) => m.steps };

  model(s) {
    return { ...PRODUCTS[s.product], ...s, ...tiles({ ...PRODUCTS[s.product], ...s }) };
  }
  answer(m) {
    return m.readsA;
  }
  given(m) {
    return `A is ${count(m.M)} × ${count(m.K)}, B is ${count(m.K)} × ${count(m.N)}, both bf16. A program owns <b class="a">${m.bm} × ${m.bn} outputs</b>.`;
  }
  explain(m) {
    if (m.shared > facts.shared)
      return "The tiles in flight do not fit into shared memory: such a kernel does not start.";
    if (m.accumulator >= facts.registers)
      return "The sums alone fill all registers of an SM. They would spill into memory.";
    if (m.programs < facts.sms) return `${m.programs} programs on ${facts.sms} SMs: some have nothing to do.`;
    return m.intensity >= facts.peak / facts.l2
      ? "Enough work on each byte: the tensor cores set the pace."
      : `The loads set the pace: at most ${percent(m.intensity / (facts.peak / facts.l2), 2)} of the tensor cores' peak.`;
  }

  words(m, i) {
    const at = Math.max(1, this.at),
      from = (at - 1) * m.bk,
      where = `program ${count(i)}: rows from ${count(Math.floor(i / m.cols) * m.bm)}, columns from ${count((i % m.cols) * m.bn)}`;
    return this.open ? `${where}; k from ${count(from)}, step ${at} of ${m.steps}` : where;
  }

  counters(m) {
    return [
      { label: "A is loaded", value: `${count(m.readsA)}×`, tone: "m", secret: true },
      { label: "B is loaded", value: `${count(m.readsB)}×`, tone: "m", secret: true },
      { label: "loaded in all", value: quantity(m.loaded, "GB"), secret: true },
      { label: "against once each", value: times(m.loaded / m.least), secret: true },
      { label: "tiles in flight", value: quantity(m.shared, "KiB") },
      {
        label: "at most",
        value: quantity(roof(m.intensity, facts.peak, facts.l2), "TFLOP/s"),
        tone: "a",
        secret: true,
      },
    ];
  }

  meter(m) {
    const ridge = facts.peak / facts.l2;
    return {
      a: m.intensity,
      m: ridge,
      full: 136,
      note: `Blue: ${digits(m.intensity, 3)} FLOP a loaded byte. Amber: what is missing to ${digits(ridge, 2)}, where the peak is reached.`,
    };
  }

  say(m) {
    if (!this.open) return `Tiles of ${m.bm} by ${m.bn}. Predict how often A is loaded.`;
    return `A is loaded ${plural(m.readsA, "time")}, B ${plural(m.readsB, "time")}, ${quantity(m.loaded, "GB")} in all. ${this.explain(m)}`;
  }

  programAt(x, y, m) {
    const g = this.geo,
      c = Math.floor(((x - g.x) / g.wide) * (m.N / m.bn)),
      r = Math.floor(((y - g.y) / g.high) * (m.M / m.bm));
    return c >= 0 && r >= 0 && c < m.cols && r < m.rows ? r * m.cols + c : -1;
  }

  draw(m, { width, small, open, cursor, at }) {
    const gap = small ? 14 : 22,
      top = 18,
      side = Math.min((width - gap) / 2, 250),
      deep = side, // pixels of K
      high = m.M < 1000 ? 30 : side,
      wide = m.N > 10000 ? Math.min(width - gap - deep, side * 1.3) : side;
    const x = deep + gap,
      y = top + deep + gap;
    this.geo = { x, y, wide, high };
    const row = Math.floor(cursor / m.cols),
      col = cursor % m.cols,
      th = Math.max(2, (m.bm / m.M) * high),
      tw = Math.max(2, (m.bn / m.N) * wide),
      tk = Math.max(2, (m.bk / m.K) * deep);
    const ty = Math.min(y + high - th, y + row * (m.bm / m.M) * high),
      tx = Math.min(x + wide - tw, x + col * (m.bn / m.N) * wide),
      k = ((Math.max(1, at) - 1) * m.bk * deep) / m.K;
    let s = rect(0, y, deep, high, "g-cell") + rect(x, top, wide, deep, "g-cell") + rect(x, y, wide, high, "g-cell");
    s += label(0, y - 6, open ? `A: each number ${count(m.readsA)}×` : "A", "cap");
    s += label(x, 10, open ? `B: each number ${count(m.readsB)}×` : "B", "cap");
    if (tw >= 6 && th >= 6) {
      for (let c = 1; c < m.cols; c++) s += line(x + c * tw, y, x + c * tw, y + high, "g-line");
      for (let r = 1; r < m.rows; r++) s += line(x, y + r * th, x + wide, y + r * th, "g-line");
    }
    if (open) {
      s += rect(0, ty, deep, th, "g-m-soft") + rect(tx, top, tw, deep, "g-m-soft");
      s += rect(k, ty, tk, th, "g-m") + rect(tx, top + k, tw, tk, "g-m");
    }
    s += rect(tx, ty, tw, th, "g-a", open ? `opacity="${(0.3 + (0.7 * at) / m.steps).toFixed(2)}"` : "");
    s += rect(tx - 1.5, ty - 1.5, tw + 3, th + 3, "g-pick");
    s += label(x, y + high + 14, `output: ${count(m.programs)} tiles`, "cap");
    const known = open ? ` Each number of A is loaded ${plural(m.readsA, "time")}, of B ${plural(m.readsB, "time")}.` : "";
    return {
      height: y + high + 20,
      svg: s,
      label: `A to the left, B above, the output between them, in tiles of ${m.bm} by ${m.bn}.${known}`,
    };
  }
}

define("tile-walk", TileWalk);
