/* The order of the programs: what those that run at the same time need of A and B. */

import { World, choice, count, define, facts, label, quantity, range, rect } from "../shared/kit.js";
import { need, order } from "./model.js";

const BM = 128,
  BN = 256;
const PRODUCTS = {
  up: { M: 4096, N: 14336, K: 4096 },
  large: { M: 8192, N: 8192, K: 8192 },
  square: { M: 4096, N: 4096, K: 4096 },
};

class TileGroups extends World {
  start = { product: "up", group: 1 };
  scenes = [
    {
      name: "Row by row",
      set: {},
      after: "Two rows of tiles and a bit, and with them every column: all of B has to pass for three rows of A.",
    },
    {
      name: "Groups of 8 rows",
      set: { group: 8 },
      after: "A block of 8 × 17 tiles. The same number of programs, and less than half the stripes.",
    },
    {
      name: "Groups of 32",
      set: { group: 32 },
      after: "Too high again: this is column by column, and now all of A is needed for five columns.",
    },
    {
      name: "8192, groups of 8",
      set: { product: "large", group: 8 },
      after: "As many stripes, and each is twice as long, for K is 8192. Taken row by row it would be 37.",
    },
    {
      name: "4096, row by row",
      set: { product: "square" },
      after:
        "Only 16 columns of tiles: a wave takes eight rows anyhow. Here grouping changes nothing, and measurements say so.",
    },
  ];
  controls = [
    choice("product", "The product", [
      ["up", "4096 × 14336"],
      ["large", "8192 × 8192"],
      ["square", "4096 × 4096"],
    ]),
    range("group", "Rows of tiles in a group", 0, 0, { values: [1, 2, 4, 8, 16, 32] }),
  ];
  guess = {
    ask: "How many stripes do they need together: rows of tiles of A, and columns of tiles of B?",
    unit: "stripes",
    min: 2,
    max: 132,
    from: 40,
    near: (said, truth) => Math.abs(said - truth) <= 2,
    reply: (said) => (said === 132 ? "Programs share: two in a row of tiles need the same stripe of A." : ""),
  };
  legend = [
    ["a", "the first wave: one program an SM"],
    ["m", "stripes that they need"],
    ["cell", "later"],
  ];

  model({ product, group }) {
    const p = PRODUCTS[product],
      rows = Math.ceil(p.M / BM),
      cols = Math.ceil(p.N / BN),
      wave = order(rows, cols, group).slice(0, facts.sms ?? 132),
      n = need(wave);
    return { ...p, rows, cols, group, wave, ...n, stripes: n.a + n.b, bytes: (n.a * BM + n.b * BN) * p.K * 2 };
  }
  answer(m) {
    return m.stripes;
  }
  given(m) {
    const how = m.group === 1 ? "row by row" : `in groups of ${m.group} rows`;
    return `${m.rows} × ${m.cols} tiles of 128 × 256, taken ${how}. The blue ones run first: <b class="a">${m.wave.length} programs</b>.`;
  }
  explain(m) {
    return `${m.a} stripes of A and ${m.b} of B: ${quantity(m.bytes, "MB")} for one wave.`;
  }
  counters(m) {
    return [
      { label: "programs", value: count(m.rows * m.cols) },
      { label: "in the first wave", value: m.wave.length, tone: "a" },
      { label: "stripes of A", value: m.a, tone: "m", secret: true },
      { label: "stripes of B", value: m.b, tone: "m", secret: true },
      { label: "bytes for the wave", value: quantity(m.bytes, "MB"), secret: true },
      { label: "L2 holds", value: quantity(facts.l2_bytes, "MB") },
    ];
  }
  say(m) {
    return `${m.a} stripes of A and ${m.b} of B, ${quantity(m.bytes, "MB")} for the first wave.`;
  }

  draw(m, { width, small, open }) {
    const edge = small ? 12 : 18,
      gap = 6,
      cell = Math.min((width - edge - gap) / m.cols, 300 / m.rows, 16),
      x = edge + gap,
      y = 18 + edge + gap;
    const now = new Set(m.wave.map((p) => p.m * m.cols + p.n)),
      rows = new Set(m.wave.map((p) => p.m)),
      cols = new Set(m.wave.map((p) => p.n)),
      pad = cell > 4 ? 1 : 0.5;
    let s = label(0, 11, `A at the left, B above: a stripe for each row and column${small ? "" : " of tiles"}`, "cap");
    for (let r = 0; r < m.rows; r++)
      s += rect(0, y + r * cell, edge, cell - pad, open && rows.has(r) ? "g-m" : "g-cell");
    for (let c = 0; c < m.cols; c++)
      s += rect(x + c * cell, 18, cell - pad, edge, open && cols.has(c) ? "g-m" : "g-cell");
    for (let r = 0; r < m.rows; r++)
      for (let c = 0; c < m.cols; c++)
        s += rect(x + c * cell, y + r * cell, cell - pad, cell - pad, now.has(r * m.cols + c) ? "g-a" : "g-cell");
    const known = open ? ` They need ${m.a} stripes of A and ${m.b} of B.` : "";
    return {
      height: y + m.rows * cell + 8,
      svg: s,
      label: `${m.rows} by ${m.cols} tiles of the output; ${m.wave.length} of them are computed first.${known}`,
    };
  }
}

define("tile-groups", TileGroups);
