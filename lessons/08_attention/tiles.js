/* The tiles that a causal kernel visits, and one row's running softmax. */

import { World, choice, count, define, label, line, path, plural, rect } from "../shared/kit.js";
import { TILE, online, score, tiles } from "./model.js";

const SLOTS = 32;
const SHOWN = {
  prefill: { queries: 32, keys: 32 },
  chunk: { queries: 12, keys: 32 },
  decode: { queries: 1, keys: 32 },
  short: { queries: 12, keys: 22 },
  empty: { queries: 12, keys: 6 },
};

class TileMap extends World {
  start = { shape: "prefill", anchor: "bottom" };
  scenes = [
    {
      name: "Prefill",
      set: { shape: "prefill" },
      after: "Just over half. What lies above the diagonal is never read, and only the tiles on it need a mask.",
    },
    {
      name: "Last chunk",
      set: { shape: "chunk" },
      after: "The first query of the chunk already has 20 keys behind it. The last query lines up with the last key.",
    },
    {
      name: "Decode",
      set: { shape: "decode" },
      after:
        "One row that sees everything. Nothing to skip, nothing to mask, and one query to share each key that was read.",
    },
    {
      name: "Short sequence",
      set: { shape: "short" },
      after:
        "The cache has room for 32 keys and this sequence has 22. What lies beyond is somebody else's, or nobody's.",
    },
    {
      name: "More queries than keys",
      set: { shape: "empty" },
      after: "The first six queries come before the first key. They see nothing, and the answer for them is 0.",
    },
  ];
  controls = [
    choice(
      "shape",
      "Queries over keys",
      [
        ["prefill", "32 over 32"],
        ["chunk", "12 over 32"],
        ["decode", "1 over 32"],
        ["short", "12 over 22"],
        ["empty", "12 over 6"],
      ],
      { wrapped: true },
    ),
    choice("anchor", "The mask lines up", [
      ["bottom", "last with last"],
      ["top", "first with first"],
    ]),
  ];
  guess = {
    it: "it visits",
    unit: "tiles",
    min: 0,
    max: 64,
    from: (m) => Math.ceil(m.total / 2),
    ask: (m) => `How many of these ${m.total} tiles must a causal kernel visit?`,
    reply: (said, m) =>
      said === m.total && m.visited < m.total
        ? "That is all of them."
        : said === m.full && m.part
          ? "Those need no mask. The ones with a part to see must be visited too."
          : "",
  };
  legend = [
    ["m", "seen"],
    ["m-soft", "loaded, then masked"],
    ["cell", "never read"],
    ["outline", "this row of tiles"],
  ];
  cursor = {
    label: "Row of query tiles to follow",
    at: 5,
    max: (m) => Math.max(0, m.rows.length - 1),
    text: (m, i) => this.rowText(m, i),
    hit: (x, y, m) => this.rowAt(x, y, m),
  };
  player = {
    label: "Key tiles that this row has done",
    start: 3,
    steps: (m) => Math.max(1, this.row(m).steps.length),
    pace: 500,
  };

  model(s) {
    return {
      ...tiles({ ...SHOWN[s.shape], slots: SLOTS, anchor: s.anchor }),
      right: tiles({ ...SHOWN[s.shape], slots: SLOTS }),
      shape: s.shape,
      anchor: s.anchor,
    };
  }
  answer(m) {
    return m.visited;
  }
  given(m) {
    const sizes = `${plural(m.queries, "query", "queries")}, ${m.keys} keys, tiles of ${TILE} × ${TILE}`;
    return `${sizes} (real ones have 64 or 128). The last query lines up with the last key; a query sees what lies left of the line.`;
  }
  followed(m) {
    const r = m.rows[Math.min(this.point ?? 0, m.rows.length - 1)];
    return r.last;
  }
  row(m) {
    return online(m, this.followed(m));
  }
  lost(m) {
    let n = 0;
    for (let i = 0; i < m.queries; i++) for (let j = 0; j < SLOTS; j++) if (m.right.sees(i, j) && !m.sees(i, j)) n++;
    return n;
  }

  explain(m) {
    const lost = this.lost(m);
    if (lost)
      return `Lined up first with first, ${count(lost)} pairs that should count are hidden: the queries forget what came before them.`;
    if (m.anchor === "top" && m.offset !== m.right.offset)
      return "Lined up first with first, queries see keys that come after them.";
    return m.anchor === "top"
      ? "As many queries as keys: both ways of lining up are the same. That is why square tests do not find this mistake."
      : `${m.visited} of ${m.total} tiles are visited, ${m.part} of them with a mask.`;
  }

  rowText(m, i) {
    const row = m.rows[i],
      steps = this.row(m).steps,
      one = steps[Math.min(this.at, steps.length) - 1],
      name = `query ${this.followed(m)}`;
    if (!this.open) return `queries ${row.first}–${row.last}`;
    if (!steps.length) return `${name} sees no key: its sum is 0, and the answer is 0`;
    if (!one) return `${name}: nothing done yet, m = −∞, ℓ = 0`;
    const moved =
      one.alpha < 1 && one.alpha > 0
        ? `m rises, so what was summed shrinks by α = ${one.alpha.toFixed(3)}`
        : one.alpha === 0
          ? "the first tile: nothing to rescale"
          : "m stays, α = 1";
    return `${name}, tile ${one.tile}: ${moved}`;
  }

  counters(m) {
    const all = this.row(m),
      one = all.steps[Math.min(this.at, all.steps.length) - 1];
    return [
      { label: "tiles visited", value: m.visited, tone: "m", secret: true },
      { label: "of them with a mask", value: m.part, secret: true },
      { label: "running max m", value: one ? one.m.toFixed(1) : "−∞", secret: true },
      { label: "rescale α", value: one ? one.alpha.toFixed(3) : "–", secret: true },
      { label: "running sum ℓ", value: one ? one.l.toFixed(3) : "0", secret: true },
      { label: "summed at once", value: all.direct.toFixed(3), secret: true },
    ];
  }

  say(m) {
    return this.open
      ? `${m.visited} of ${m.total} tiles visited, ${m.part} with a mask. ${this.rowText(m, Math.min(this.point, m.rows.length - 1))}.`
      : `${m.queries} queries over ${m.keys} keys, ${m.total} tiles. Predict how many are visited.`;
  }

  rowAt(x, y, m) {
    const g = this.geo;
    return x < g.side && y >= g.y(0) && y <= g.y(m.queries) ? Math.floor((y - g.y(0)) / (g.cell * TILE)) : -1;
  }

  draw(m, { width, small, open, cursor, at }) {
    const beside = width > 560,
      side = Math.min(width, beside ? Math.floor(width * 0.56) : 420),
      left = 20,
      top = 20,
      cell = (side - left) / SLOTS,
      first = SLOTS - m.queries;
    const X = (j) => left + j * cell,
      Y = (i) => top + (first + i) * cell;
    this.geo = { side, cell, y: Y };
    let s = label(left, 11, "keys in the cache, by tile", "cap");
    s +=
      rect(left, top, SLOTS * cell, first * cell, "g-line") +
      (m.right.offset > 8
        ? label(left + (SLOTS * cell) / 2, top + (first * cell) / 2 + 4, "earlier queries, done", "cap", "middle")
        : "");
    m.rows.forEach((row, r) =>
      row.kinds.forEach((kind, k) => {
        const x = X(k * TILE),
          y = Y(row.first),
          w = cell * TILE - 1,
          h = cell * (row.last - row.first + 1) - 1;
        if (!open || kind === "none") {
          s += rect(x, y, w, h, "g-cell");
          return;
        }
        s += rect(x, y, w, h, kind === "full" ? "g-m" : "g-m-soft");
        if (kind === "part")
          for (let i = row.first; i <= row.last; i++) {
            let n = 0;
            while (n < TILE && m.sees(i, k * TILE + n)) n++;
            if (n) s += rect(x, Y(i), Math.min(w, n * cell), Math.min(cell, y + h - Y(i)), "g-m");
          }
      }),
    );
    s += this.edge(m, X, Y);
    const now = m.rows[Math.min(cursor, m.rows.length - 1)];
    s += rect(left - 1.5, Y(now.first) - 1.5, SLOTS * cell + 2, cell * (now.last - now.first + 1) + 2, "g-pick");
    for (let k = 0; k < SLOTS / TILE; k++)
      s += label(X(k * TILE) + (cell * TILE) / 2, top + SLOTS * cell + 13, k, "", "middle");
    const bars = open
      ? this.bars(
          m,
          at,
          beside ? side + 28 : 0,
          beside ? 20 : top + SLOTS * cell + 34,
          beside ? width - side - 28 : width,
          beside ? Math.min(230, SLOTS * cell - 10) : 130,
        )
      : { svg: "", bottom: 0 };
    return {
      height: Math.max(top + SLOTS * cell + 20, bars.bottom + 6),
      svg: s + bars.svg,
      label:
        `A map of ${m.queries} queries over ${SLOTS} places for keys, in tiles of ${TILE}.` +
        (open ? ` ${m.visited} of ${m.total} tiles visited.` : ""),
    };
  }

  /* the line that causal order and the sequence's length draw: what lies left of it is seen */
  edge(m, X, Y) {
    const limit = (i) => Math.min(m.right.keys, Math.max(0, i + m.right.offset + 1));
    let d = `M${X(limit(0)).toFixed(1)} ${Y(0).toFixed(1)}`;
    for (let i = 0; i < m.queries; i++) d += `H${X(limit(i)).toFixed(1)}V${Y(i + 1).toFixed(1)}`;
    return path(d, "g-wire");
  }

  /* the scores of the row that is followed, with the running maximum over what is done */
  bars(m, at, x0, y0, width, high) {
    const i = this.followed(m),
      all = online(m, i).steps,
      low = -1.2,
      top = 4.2,
      step = width / SLOTS,
      base = y0 + high;
    const Y = (v) => base - ((v - low) / (top - low)) * (high - 26),
      X = (j) => x0 + j * step;
    let s = label(x0, y0 + 9, `scores of query ${i}, and the running max`, "cap"),
      d = "";
    all.forEach(({ tile, m: max }, n) => {
      const done = n < at;
      for (let j = tile * TILE; j < (tile + 1) * TILE; j++)
        if (m.sees(i, j))
          s += rect(
            X(j) + 1,
            Y(score(i, j)),
            step - 2,
            base - Y(score(i, j)),
            done ? "g-m" : "g-cell",
            done && n < at - 1 ? 'opacity=".5"' : "",
          );
      if (done)
        d += `${d ? "V" : `M${X(tile * TILE).toFixed(1)} `}${Y(max).toFixed(1)}H${X((tile + 1) * TILE).toFixed(1)}`;
    });
    if (d) s += path(d, "g-wire");
    if (!all.length) s += label(x0 + width / 2, y0 + high / 2, "no key to see", "cap", "middle");
    return { svg: s + line(x0, base, x0 + width, base, "g-wire"), bottom: base };
  }
}

define("tile-map", TileMap);
