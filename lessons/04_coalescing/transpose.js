/* A transpose, request by request. */

import { World, define, digits, facts, label, percent, plural, quantity, rect, times } from "../shared/kit.js";
import { total, transpose } from "./model.js";

const N = 32;
const LETTER = (r, c) =>
  (c >= 5 && c < 11 && r >= 4 && r < 28) ||
  (r >= 4 && r < 10 && c >= 5 && c < 26) ||
  (r >= 14 && r < 19 && c >= 5 && c < 21); // an F, to see the turn
// by sectors alone: what row-wise moves over what was asked
const BY_SECTORS = total(transpose("row", N)).moved / total(transpose("row", N)).asked;
const MEASURED = { row: facts.row, col: facts.column, tile: facts.tile };

class TransposeWorld extends World {
  start = { mode: "row" };
  scenes = [
    {
      name: "Row-wise",
      set: { mode: "row" },
      after: () =>
        `Its sectors alone say ${BY_SECTORS} times. The rest: each of its stores fills four bytes of a sector, ` +
        `and a sector written in part costs about ${digits(facts.partial_cost, 2)} times a read one.`,
    },
    {
      name: "Column-wise",
      set: { mode: "col" },
      after:
        "As many sectors as row-wise. But they are read, not written in part, and reading is cheaper: half the time.",
    },
    {
      name: "Through a tile",
      set: { mode: "tile" },
      after: "Rows on both sides. The turn happens between, where there are no sectors.",
    },
  ];
  guess = {
    once: true,
    ask: "On an H200, how many times longer does the row-wise kernel take than the tiled one?",
    it: "measured",
    min: 1,
    max: 40,
    step: 0.5,
    from: 1,
    shown: (x) => times(x),
    near: (said, truth) => Math.abs(said / truth - 1) < 0.15,
    reply: (said) => (Math.abs(said - BY_SECTORS) < 0.01 ? "That is what the sectors say." : ""),
  };
  legend = [
    ["a", "asked for"],
    ["m", "moved as well"],
    ["a-soft", "done"],
  ];
  player = {
    label: "Requests issued so far",
    start: 12,
    steps: () => 2 * N,
    text: (m, at) => {
      const s = m.steps[at - 1];
      return s
        ? `request ${at} of ${2 * N}: ${s.op} ${s.dir === "row" ? "row" : "column"} ${s.index} of “${s.where}” → ` +
            plural(s.sectors.length, "sector")
        : `request 0 of ${2 * N}`;
    },
  };

  model(state) {
    return { mode: state.mode, steps: transpose(state.mode, N) };
  }
  answer() {
    return MEASURED.row / MEASURED.tile;
  }
  given() {
    return "Row-wise or tiled, each element is read once and written once.";
  }
  done(m) {
    return total(m.steps.slice(0, this.at), facts.partial_cost);
  }

  counters(m) {
    const t = this.done(m),
      real = MEASURED[m.mode];
    return [
      { label: "requests", value: t.requests },
      { label: "sectors", value: t.sectors },
      { label: "bytes asked", value: t.asked, tone: "a" },
      { label: "bytes moved", value: t.moved, tone: "m" },
      { label: "efficiency", value: this.at ? percent(t.eff) : "–" },
      { label: "modelled time", value: times(t.time), secret: true },
      {
        label: "measured, 8192 × 8192 float32",
        value: `${quantity(real, "µs")} · ${times(real / MEASURED.tile)}`,
        secret: true,
        wide: true,
      },
    ];
  }

  meter(m) {
    const t = this.done(m);
    return {
      a: t.asked,
      m: t.moved,
      full: 36864,
      note: "The full bar is what the row-wise kernel moves.",
      secret: false,
    };
  }
  say(m) {
    const t = this.done(m);
    const bytes = `${t.moved} bytes moved for ${t.asked} asked, efficiency ${percent(t.eff)}`;
    return `${this.at} of ${2 * N} requests: ${plural(t.sectors, "sector")}, ${bytes}.`;
  }

  draw(m, { width, small, at }) {
    const done = m.steps.slice(0, at),
      now = done.at(-1),
      tile = m.mode === "tile";
    const gap = small ? 8 : 22,
      side = Math.floor((width - 2 * gap) / 2.36),
      mid = width - 2 * gap - 2 * side,
      top = 22;
    const cell = side / N,
      xOut = width - side,
      xMid = side + gap,
      midCell = mid / N,
      yMid = top + (side - mid) / 2;
    const block = (x0, r, c, w, cls) =>
      rect(x0 + c * cell, top + r * cell, w * cell - (cell > 3 ? 0.6 : 0.2), cell - (cell > 3 ? 0.6 : 0.2), cls);
    let s =
      label(0, 11, "in", "cap") +
      label(xMid + mid / 2, yMid - 8, tile ? "tile" : small ? "" : "registers", "cap", "middle") +
      label(xOut, 11, "out", "cap");
    for (const x0 of [0, xOut])
      for (let r = 0; r < N; r++) for (let q = 0; q < 4; q++) s += block(x0, r, q * 8, 8, "g-cell");
    const seen = { in: new Set(), out: new Set() };
    for (const step of done) for (const [r, c] of step.cells) seen[step.where].add(r * N + c);
    const runs = (x0, y0, u, has, cls) => {
      for (let r = 0; r < N; r++)
        for (let c = 0; c < N;) {
          if (!has(r, c)) {
            c++;
            continue;
          }
          let e = c;
          while (e < N && has(r, e)) e++;
          s += rect(x0 + c * u, y0 + r * u, (e - c) * u, u, cls);
          c = e;
        }
    };
    runs(0, top, cell, (r, c) => seen.in.has(r * N + c), "g-a-soft");
    runs(xOut, top, cell, (r, c) => seen.out.has(r * N + c), "g-a-soft");
    runs(0, top, cell, LETTER, "g-glyph");
    runs(xOut, top, cell, (r, c) => LETTER(c, r) && seen.out.has(r * N + c), "g-glyph");
    if (tile) {
      s += rect(xMid, yMid, mid, mid, "g-cell");
      runs(xMid, yMid, midCell, (r, c) => seen.in.has(r * N + c), "g-a-soft");
      runs(xMid, yMid, midCell, (r, c) => LETTER(r, c) && seen.in.has(r * N + c), "g-glyph");
      if (now)
        s +=
          now.op === "write"
            ? rect(xMid + now.index * midCell, yMid, Math.max(1.5, midCell), mid, "g-a")
            : rect(xMid, yMid + now.index * midCell, mid, Math.max(1.5, midCell), "g-a");
    } else s += rect(xMid, top + side / 2 - 4, mid, 8, now ? "g-a" : "g-cell");
    if (now) {
      const x0 = now.where === "in" ? 0 : xOut;
      for (const q of now.sectors) s += block(x0, Math.floor(q / 4), (q % 4) * 8, 8, "g-m");
      for (const [r, c] of now.cells) s += block(x0, r, c, 1, "g-a");
    }
    return {
      height:
        top +
        side +
        this.tape(m, width, small, at, top + side + 14, (x) => {
          s += x;
        }),
      svg: s,
      label: `A 32 by 32 matrix being transposed, ${at} of ${2 * N} requests issued.`,
    };
  }

  /* the sectors of each request, in order: where the map shows which, the tape shows how many */
  tape(m, width, small, at, y0, add) {
    const high = small ? 56 : 76,
      step = width / m.steps.length,
      tall = (n) => (n / 32) * high;
    add(label(0, y0 + 10, "sectors, request by request", "cap"));
    m.steps.forEach((one, i) => {
      const x = i * step,
        w = step - (step > 5 ? 1.5 : 0.6),
        base = y0 + 22 + high,
        useful = tall(one.asked / 32),
        h = tall(one.sectors.length);
      add(
        i < at
          ? rect(x, base - h, w, h, "g-m") + rect(x, base - useful, w, useful, "g-a")
          : rect(x, base - h, w, h, "g-cell"),
      );
    });
    return 14 + 22 + high + 6;
  }
}

define("transpose-world", TransposeWorld);
