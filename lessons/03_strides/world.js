/* A view over a strip of memory: which element is where. */

import { World, count, define, label, path, percent, plural, range, rect } from "../shared/kit.js";
import { COLS, ROWS, view } from "./model.js";

const asked = (m) => m.cells[Math.min(m.ask, m.count - 1)]; // the element that the question is about

class StrideStrip extends World {
  start = { size0: 6, size1: 8, stride0: 8, stride1: 1, offset: 0, at: [2, 3] };
  scenes = [
    {
      name: "Transpose",
      set: { size0: 8, size1: 6, stride0: 1, stride1: 8, at: [5, 2] },
      after: "x.t() swaps sizes and strides and moves nothing. A step along its row is a step of 8 in memory.",
    },
    {
      name: "Slice",
      set: { size0: 4, size1: 5, offset: 10, at: [2, 3] },
      after:
        "x[1:5, 2:7] begins at element 1 × 8 + 2 = 10. Its strides are still those of the whole: rows stay 8 apart, though they have 5 elements.",
    },
    {
      name: "Every other column",
      set: { size1: 4, stride1: 2, at: [3, 3] },
      after: "x[:, ::2] doubles one stride. Half of what lies in between belongs to x, and not to the view.",
    },
    {
      name: "Expand",
      set: { size0: 5, stride0: 0, offset: 16, at: [4, 6] },
      after: "x[2:3].expand(5, 8): the stride 0 does not move at all. Five rows, and one of them in memory.",
    },
    {
      name: "Windows",
      set: { size0: 10, size1: 4, stride0: 1, stride1: 1, at: [7, 2] },
      after:
        "as_strided((10, 4), (1, 1)): each row begins one element after the one before. 40 elements, and 13 in memory.",
    },
  ];
  controls = [
    range("size0", "Rows", 1, 10),
    range("size1", "Columns", 1, 10),
    range("offset", "First element", 0, 47),
    range("stride0", "Stride from row to row", 0, 16),
    range("stride1", "Stride from column to column", 0, 16),
  ];
  guess = {
    ask: (m) => `At which place in the strip is element [${asked(m).i}, ${asked(m).j}] of the view?`,
    unit: "place",
    min: 0,
    max: 500,
    from: 0,
    reply: (said, m) => {
      const { i, j } = asked(m);
      if (said === i * m.size1 + j) return "That takes the view's own shape for its strides.";
      if (said === i * m.stride0 + j * m.stride1) return "The view does not begin at place 0.";
      if (said === m.offset + j * m.stride0 + i * m.stride1) return "That is [column, row].";
      return "";
    },
  };
  legend = [
    ["a", "element of the view"],
    ["m", "in between, and not reached"],
    ["cell", "other memory"],
  ];
  cursor = {
    label: "Element of the view",
    max: (m) => m.count - 1,
    at: 9,
    text: (m, k) => {
      const { i, j, at } = m.cells[k];
      if (!this.open) return `[${i}, ${j}], at ${m.offset} + ${i} × ${m.stride0} + ${j} × ${m.stride1}`;
      const out = at >= m.memory ? ", outside of the memory" : "";
      return `[${i}, ${j}] → ${m.offset} + ${i} × ${m.stride0} + ${j} × ${m.stride1} = place ${at}${out}`;
    },
    hit: (x, y, m) => {
      const g = this.geo,
        j = Math.floor((x - g.left) / g.wide),
        i = Math.floor((y - g.top) / g.cell);
      if (i >= 0 && i < m.size0 && j >= 0 && j < m.size1) return i * m.size1 + j;
      const c = Math.floor(x / g.unit),
        r = Math.floor((y - g.strip) / g.step);
      if (r < 0 || c < 0 || c >= g.per) return -1;
      return m.cells.findIndex((one) => one.at === r * g.per + c);
    },
  };

  model(s) {
    const m = view(s);
    return { ...m, ask: Math.min(s.at[0], s.size0 - 1) * s.size1 + Math.min(s.at[1], s.size1 - 1) };
  }
  answer(m) {
    return asked(m).at;
  }
  given(m) {
    return `<b class="a">shape [${m.size0}, ${m.size1}]</b>, strides [${m.stride0}, ${m.stride1}], first element ${m.offset}. The memory is that of a contiguous ${ROWS} × ${COLS} matrix x.`;
  }

  explain(m) {
    if (m.outside) return `${plural(m.outside, "element")} lie outside of the memory. torch would refuse such a view.`;
    if (m.contiguous) return "Contiguous: read in order of its indices, the view is one run of memory.";
    if (m.different < m.count)
      return `${m.count} elements in ${m.different} places: some indices name the same element, so do not write here.`;
    if (m.skipped) return `${m.skipped} places between its first and last element are not the view's.`;
    return "Each place of its span is used once, but not in the order of its indices.";
  }

  counters(m) {
    return [
      { label: "elements of the view", value: m.count, tone: "a" },
      { label: "different places", value: m.different, secret: true },
      { label: "from first to last", value: m.span, secret: true },
      { label: "not reached in between", value: m.skipped, tone: "m", secret: true },
      { label: "contiguous", value: m.contiguous ? "yes" : "no", secret: true },
      { label: "bytes copied to make it", value: 0 },
    ];
  }

  meter(m) {
    return {
      a: m.different,
      m: m.span,
      full: Math.max(m.memory, m.span),
      note: `The full bar is ${count(Math.max(m.memory, m.span))} places. ${this.open ? `${percent(m.different / m.span, 2)} of its span is the view's.` : ""}`,
    };
  }

  say(m) {
    return `Shape ${m.size0} by ${m.size1}, strides ${m.stride0} and ${m.stride1}, first element ${m.offset}: ${m.different} different places, ${m.skipped} skipped, ${m.contiguous ? "contiguous" : "not contiguous"}.`;
  }

  draw(m, { width, small, open, cursor }) {
    const cell = Math.min(small ? 26 : 36, (width - 24) / m.size1),
      wide = small ? cell : Math.min(56, (width - 24) / m.size1),
      left = 22,
      top = 34,
      per = small ? 12 : 24,
      unit = width / per,
      high = small ? 22 : 24,
      step = high + (small ? 14 : 16);
    const bottom = top + m.size0 * cell,
      strip = bottom + 64;
    this.geo = { cell, wide, left, top, per, unit, strip, step };
    let s = label(0, 11, "the view, by its indices", "cap");
    for (let j = 0; j < m.size1; j++) s += label(left + (j + 0.5) * wide, top - 6, j, "", "middle");
    for (let i = 0; i < m.size0; i++) s += label(left - 6, top + (i + 0.5) * cell + 4, i, "", "end");
    m.cells.forEach(({ i, j, at }, k) => {
      const x = left + j * wide,
        y = top + i * cell,
        lit = k === cursor || k === m.ask;
      s += rect(x, y, wide - 2, cell - 2, lit ? "g-a" : "g-a-soft");
      if (open) s += label(x + wide / 2 - 1, y + cell / 2 + 3, at, lit ? "t-on" : "t-ink", "middle");
      else if (k === m.ask) s += label(x + wide / 2 - 1, y + cell / 2 + 4, "?", "t-on", "middle");
    });
    const now = m.cells[cursor];
    s += rect(left + now.j * wide - 2.5, top + now.i * cell - 2.5, wide + 3, cell + 3, "g-pick");
    s += label(
      0,
      strip - 16,
      `memory, one strip of ${m.memory} elements${small ? "" : ", in rows to fit the page"}`,
      "cap",
    );
    s += this.strip(m, { open, cursor, per, unit, high, step, strip });
    const place = (at) => [((at % per) + 0.5) * unit, strip + Math.floor(at / per) * step];
    if (open && now.at < m.memory) {
      const [x, y] = place(now.at),
        x0 = left + (now.j + 1) * wide - 1, // between two columns, clear of the numbers below
        y0 = top + (now.i + 1) * cell;
      s += path(
        `M${x0.toFixed(1)} ${y0.toFixed(1)}V${bottom.toFixed(1)}C${x0.toFixed(1)} ${(bottom + 40).toFixed(1)} ${x.toFixed(1)} ${(bottom + 10).toFixed(1)} ${x.toFixed(1)} ${(y - 2).toFixed(1)}`,
        "g-wire",
      );
    }
    const known = open ? ` It reaches ${m.different} places and skips ${m.skipped}.` : "";
    return {
      height: strip + Math.ceil(m.memory / per) * step + 4,
      svg: s,
      label: `A view of shape ${m.size0} by ${m.size1} above a strip of ${m.memory} elements.${known}`,
    };
  }

  strip(m, { open, cursor, per, unit, high, step, strip }) {
    let s = "";
    for (let a = 0; a < m.memory; a++) {
      const x = (a % per) * unit,
        y = strip + Math.floor(a / per) * step;
      const kind = !open ? "g-cell" : m.reached.has(a) ? "g-a" : a > m.low && a < m.high ? "g-m" : "g-cell";
      s += rect(x, y, unit - 1.5, high, kind, kind === "g-m" ? 'data-skip=""' : "");
      if (a % 4 === 0 || unit > 26) s += label(x + unit / 2, y + high + 10, a, "", "middle");
      if (open && a === m.cells[cursor].at) s += rect(x - 2, y - 2, unit + 2.5, high + 4, "g-pick");
    }
    return s;
  }

  reveal(svg) {
    for (const el of svg.querySelectorAll("[data-skip]"))
      el.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 500, easing: "ease-out" });
  }
}

define("stride-strip", StrideStrip);
