/* Blocks over n elements: a row for each program, a cell for each lane. */

import { World, choice, count, define, hatch, label, line, percent, plural, range, rect } from "../shared/kit.js";
import { element, grid } from "./model.js";

const SIZES = [1, 7, 100, 500, 1000, 1024, 1025, 1500, 2000, 2048, 2100, 3000, 4000, 5001];
const BLOCKS = [32, 64, 128, 256, 512, 1024, 2048];
const SHOWN = 9; // rows at most; of more programs the first ones and the last

class BlockGrid extends World {
  start = { n: 1000, block: 256, up: true, masked: true };
  scenes = [
    {
      name: "1000 in 256s",
      set: {},
      after: "Four blocks are 1,024 lanes. The last 24 stand behind the end: they run, and must not touch anything.",
    },
    {
      name: "One too many",
      set: { n: 1025, block: 1024 },
      after:
        "One element more than a block, and a second program runs for it alone. With a million elements nobody would notice; with a thousand it is half.",
    },
    {
      name: "Smaller blocks",
      set: { n: 1025, block: 128 },
      after: "At most one block less one lane is ever wasted. Smaller blocks waste less here, and cost something else.",
    },
    {
      name: "Seven elements",
      set: { n: 7, block: 1024 },
      after: "A block is as long as you compiled it, whatever the tensor is. Seven lanes work.",
    },
    {
      name: "Rounded down",
      set: { n: 2000, block: 512, up: false },
      after:
        "No lane is wasted, for the last program was never launched: 464 elements keep whatever was in the memory before. That is what rounding down does.",
    },
  ];
  controls = [
    range("n", "Elements", 0, 0, { values: SIZES, show: count }),
    range("block", "BLOCK", 0, 0, { values: BLOCKS, show: count }),
    choice("up", "Number of programs", [
      [true, "rounded up"],
      [false, "rounded down"],
    ]),
    choice("masked", "Loads and stores", [
      [true, "with mask"],
      [false, "without"],
    ]),
  ];
  guess = {
    ask: "How many lanes have no element to work on?",
    unit: "lanes",
    min: 0,
    max: 10000,
    from: 100,
    reply: (said, m) =>
      said === m.last && m.off
        ? "Those are the lanes of the last block that do have one."
        : said === m.n % m.block && m.missing
          ? "There would be a last block for that. With the division rounded down there is none."
          : "",
  };
  legend = [
    ["a", "a lane with an element"],
    ["m", "a lane with none"],
    ["hatch", "an element that no program has"],
    ["cell", "not known yet"],
  ];
  cursor = {
    label: "Element that a lane has",
    max: (m) => Math.max(0, m.lanes - 1),
    at: 300,
    text: (m, i) => {
      if (!m.lanes) return "no program is launched";
      const pid = Math.floor(i / m.block),
        lane = i % m.block,
        at = `program ${pid}, lane ${lane} → element ${pid} × ${m.block} + ${lane} = ${count(element(pid, lane, m.block))}`;
      return i < m.n || !this.open
        ? at
        : `${at}, ${this.state.masked ? "mask off: touches nothing" : "no mask: somebody else's memory"}`;
    },
    hit: (x, y, m) => this.laneAt(x, y, m),
  };

  model(state) {
    return grid(state);
  }
  answer(m) {
    return m.off;
  }
  given(m) {
    return `<b class="a">${plural(m.n, "element")}</b> in blocks of ${count(m.block)}, the number of programs ${m.up ? "rounded up" : "rounded down"}.`;
  }

  explain(m) {
    if (m.missing) return `${plural(m.missing, "element")} at the end have no program. Nobody writes them.`;
    if (!m.off) return "The blocks fit exactly. A mask would have nothing to do, and costs next to nothing.";
    if (!this.state.masked)
      return `${plural(m.off, "lane")} read and write behind the end. On a GPU that may go unnoticed, until it does not.`;
    return `${percent(1 - m.used, 2)} of the lanes are masked off, all of them in the last block.`;
  }

  counters(m) {
    return [
      { label: "programs", value: m.programs },
      { label: "lanes launched", value: m.lanes },
      { label: "lanes at work", value: m.done, tone: "a", secret: true },
      { label: "lanes without element", value: m.off, tone: "m", secret: true },
      { label: "elements not written", value: m.missing, secret: true },
      { label: "outside the tensor", value: this.state.masked ? 0 : m.off, secret: true },
    ];
  }

  meter(m) {
    return {
      a: this.open ? m.done : 0,
      m: m.lanes,
      full: Math.max(m.lanes, m.n),
      note: `The full bar is ${count(Math.max(m.lanes, m.n))} lanes.`,
    };
  }

  say(m) {
    const lost = m.missing ? ` ${plural(m.missing, "element")} not written.` : "";
    return `${plural(m.programs, "program")} of ${m.block} lanes. ${count(m.off)} lanes have no element.${lost}`;
  }

  laneAt(x, y, m) {
    const { left, wide, top, step, rows } = this.geo,
      row = rows[Math.floor((y - top) / step)];
    if (row === undefined || row < 0 || x < left) return -1;
    return row * m.block + Math.min(m.block - 1, Math.floor(((x - left) / wide) * m.block));
  }

  /* the programs that are drawn, -1 for a gap */
  rows(m) {
    if (m.programs <= SHOWN) return Array.from({ length: m.programs }, (_, i) => i);
    return [...Array.from({ length: SHOWN - 2 }, (_, i) => i), -1, m.programs - 1];
  }

  draw(m, { width, small, open, cursor, id }) {
    const left = small ? 44 : 74,
      wide = width - left,
      top = 22,
      rows = this.rows(m),
      step = rows.length > 5 ? (small ? 22 : 28) : small ? 30 : 62,
      high = step - 6;
    this.geo = { left, wide, top, step, rows };
    let s =
      hatch(`${id}h`) +
      label(0, 11, small ? "pid" : "program", "cap") +
      label(left, 11, `${count(m.block)} lanes each`, "cap");
    rows.forEach((pid, r) => {
      const y = top + r * step;
      if (pid < 0) {
        s += label(left, y + high / 2 + 4, `… ${count(m.programs - SHOWN + 1)} more, all full`, "cap");
        return;
      }
      s += label(0, y + high / 2 + 4, pid) + this.lanes(m, { pid, x: left, y, wide, high, open });
    });
    const pid = Math.floor(cursor / m.block),
      at = rows.indexOf(pid);
    if (at >= 0) {
      const lane = Math.max(3, wide / m.block);
      s += rect(left + ((cursor % m.block) / m.block) * wide - 1, top + at * step - 3, lane + 2, high + 6, "g-pick");
    }
    let foot = top + rows.length * step + 4;
    if (open && m.missing) {
      const w = (m.missing / m.block) * wide;
      s += rect(left, foot, w, high, "g-line", `style="fill:url(#${id}h)"`);
      s += label(left, foot + high + 14, `${plural(m.missing, "element")} without a program`, "cap");
      foot += high + 20;
    }
    const known = open ? `, ${m.off} of their lanes without element, ${m.missing} elements without program` : "";
    return {
      height: foot + 4,
      svg: s,
      label: `${plural(m.programs, "program")} of ${m.block} lanes over ${m.n} elements${known}.`,
    };
  }

  /* the lanes of one program; single cells where they are wide enough to be seen */
  lanes(m, { pid, x, y, wide, high, open }) {
    const on = Math.max(0, Math.min(m.block, m.n - pid * m.block)),
      cell = wide / m.block;
    if (!open) return rect(x, y, wide, high, pid === m.programs - 1 ? "g-cell" : "g-a-soft");
    let s =
      rect(x, y, on * cell, high, "g-a") + rect(x + on * cell, y, (m.block - on) * cell, high, "g-m", 'data-off=""');
    if (cell >= 5)
      for (let i = 1; i < m.block; i++) s += line(x + i * cell, y, x + i * cell, y + high, "g-line", 'opacity=".5"');
    if (pid === m.programs - 1 && on && on < m.block && on * cell > 60)
      s += label(x + on * cell - 4, y + high / 2 + 4, `${count(on)} on`, "t-on", "end");
    return s;
  }

  reveal(svg) {
    for (const el of svg.querySelectorAll("[data-off]"))
      el.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 500, easing: "ease-out" });
  }
}

define("block-grid", BlockGrid);
