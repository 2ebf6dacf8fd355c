/* Programs on the SMs of a card: which places the last wave leaves empty. */

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
  range,
  rect,
} from "../shared/kit.js";
import { waves } from "./model.js";

const SIZES = [
  ...Array.from({ length: 6 }, (_, i) => 2 ** (16 + i)),
  2.5e6,
  2 ** 22,
  2 ** 23,
  2 ** 24,
  2 ** 25,
  2 ** 26,
];
const BLOCKS = [256, 512, 1024, 2048, 4096];
const BARS = 24; // waves drawn one by one

class WaveMap extends World {
  start = { gpu: "h200", n: 2.5e6, block: 1024, warps: 4 };
  scenes = [
    {
      name: "2.5 million elements",
      set: {},
      after: (m) =>
        `${count(m.programs)} programs in ${count(m.slots)} places: a full wave, then ${count(m.last)} more that take as long again.`,
    },
    {
      name: "A million",
      set: { n: 2 ** 20 },
      after: (m) =>
        `All run at once. But ${percent(m.idle / m.slots, 2)} of the places stay empty, so fewer requests are on their way than the memory could serve.`,
    },
    {
      name: "8 warps each",
      set: { warps: 8 },
      after: "Twice the threads for each program, so an SM holds half as many. Each of them is done sooner.",
    },
    {
      name: "32 million",
      set: { n: 2 ** 25 },
      after: (m) =>
        `With many waves the last one hardly counts: ${percent(m.eff)} of the places were busy. Tails matter for small kernels.`,
    },
    {
      name: "Blocks of 4096",
      set: { n: 2 ** 20, block: 4096, warps: 8 },
      after:
        "256 programs, two for each SM, where eight have room. Large blocks need large tensors, or there are not enough of them.",
    },
  ];
  controls = [
    choice(
      "gpu",
      "GPU",
      Object.entries(facts.gpus ?? {}).map(([k, g]) => [k, g.name]),
    ),
    choice("warps", "Warps of a program", [
      [1, "1"],
      [2, "2"],
      [4, "4"],
      [8, "8"],
    ]),
    range("n", "Elements", 0, 0, { values: SIZES, show: count }),
    range("block", "BLOCK", 0, 0, { values: BLOCKS, show: count }),
  ];
  guess = {
    ask: "How many waves does the card need?",
    unit: "waves",
    min: 1,
    max: 10000,
    from: 1,
    reply: (said, m) =>
      said === m.count - 1
        ? "Round up: what is left over needs a wave too."
        : said === m.each
          ? "That is how many one SM holds."
          : "",
  };
  legend = [
    ["a", "place with a program"],
    ["m", "place left empty"],
    ["cell", "not known yet"],
  ];
  cursor = {
    label: "SM to inspect, last wave",
    max: (m) => m.tail.length - 1,
    at: 7,
    text: (m, i) =>
      this.open
        ? `SM ${i}, last wave: ${m.tail[i]} of ${m.each} places have a program`
        : `SM ${i}: ${m.each} places for programs of ${this.state.warps * 32} threads`,
    hit: (x, y, m) => {
      const { cols, cell, top } = this.geo,
        col = Math.floor(x / cell),
        row = Math.floor((y - top) / cell),
        sm = row * cols + col;
      return col < cols && row >= 0 && sm < m.tail.length ? sm : -1;
    },
  };

  model(s) {
    const gpu = facts.gpus[s.gpu];
    return { ...waves({ gpu, programs: Math.ceil(s.n / s.block), warps: s.warps }), gpu };
  }
  answer(m) {
    return m.count;
  }
  given(m) {
    return `<b class="a">${plural(m.programs, "program")}</b> of ${this.state.warps * 32} threads. ${m.gpu.name}: ${m.gpu.sms} SMs, each with room for ${count(m.gpu.threads_per_sm)} threads and at most ${m.gpu.blocks_per_sm} programs.`;
  }

  explain(m) {
    if (m.count === 1 && m.idleSms) return `${plural(m.idleSms, "SM")} of ${m.gpu.sms} have nothing to do at all.`;
    if (!m.idle) return "The last wave is as full as the others.";
    return `${plural(m.idle, "place")} of ${count(m.slots)} stay empty in the last wave.`;
  }

  counters(m) {
    return [
      { label: "programs", value: m.programs },
      { label: "places on an SM", value: m.each, secret: true },
      { label: "places on the card", value: m.slots, secret: true },
      { label: "waves", value: m.count, secret: true },
      { label: "programs in the last", value: m.last, tone: "a", secret: true },
      { label: "empty in the last", value: m.idle, tone: "m", secret: true },
    ];
  }

  meter(m) {
    return {
      a: this.open ? m.programs : 0,
      m: m.count * m.slots,
      full: m.count * m.slots,
      note: this.open ? `${percent(m.eff)} of the places of all waves are used.` : "Places of all waves, and programs.",
    };
  }

  say(m) {
    return `${plural(m.count, "wave")}: ${count(m.programs)} programs over ${count(m.slots)} places, ${count(m.idle)} empty in the last wave.`;
  }

  draw(m, { width, small, open, cursor }) {
    const cols = small ? 12 : 22,
      cell = Math.min(width / cols, 34),
      rows = Math.ceil(m.gpu.sms / cols),
      top = 20;
    this.geo = { cols, cell, top };
    let s = label(0, 11, open ? `the last wave: ${m.gpu.sms} SMs, ${m.each} places each` : `${m.gpu.sms} SMs`, "cap");
    m.tail.forEach((busy, sm) => {
      const x = (sm % cols) * cell,
        y = top + Math.floor(sm / cols) * cell,
        w = cell - 3;
      if (!open) {
        s += rect(x, y, w, w, "g-cell");
      } else {
        const h = (w * busy) / m.each;
        s += rect(x, y, w, w - h, "g-m", 'data-idle=""') + rect(x, y + w - h, w, h, "g-a");
      }
      if (sm === cursor) s += rect(x - 1.5, y - 1.5, w + 3, w + 3, "g-pick");
    });
    const y = top + rows * cell + 26,
      high = small ? 40 : 60;
    s += label(0, y - 8, "all waves, one after the other", "cap");
    s += open
      ? this.strip(m, width, y, high)
      : rect(0, y, width, high, "g-cell") + label(width / 2, y + high / 2 + 5, "?", "big", "middle");
    s += line(0, y + high + 6, width, y + high + 6, "g-wire") + label(width, y + high + 20, "time →", "cap", "end");
    return {
      height: y + high + 26,
      svg: s,
      label: `${m.gpu.sms} SMs as squares${open ? `; ${m.idle} of ${m.slots} places empty in the last of ${plural(m.count, "wave")}` : ""}.`,
    };
  }

  /* a block for each wave, as full as it is; many waves run together, and the last keeps its width */
  strip(m, width, y, high) {
    const w = width / m.count,
      gap = w > 6 ? 2 : 0;
    let s = "";
    if (m.count <= BARS) for (let i = 0; i < m.count - 1; i++) s += rect(i * w, y, w - gap, high, "g-a");
    else s += rect(0, y, width - w, high, "g-a");
    const h = (high * m.last) / m.slots,
      x = (m.count - 1) * w;
    s += rect(x, y, Math.max(1, w), high - h, "g-m", 'data-idle=""') + rect(x, y + high - h, Math.max(1, w), h, "g-a");
    if (m.count > BARS) s += label(6, y + high / 2 + 4, `${count(m.count - 1)} full waves`, "t-on");
    else if (w > 180)
      s += label(x, y + high + 20, `the last: ${digits((100 * m.last) / m.slots, 2)} % full`, "cap");
    return s;
  }

  reveal(svg) {
    for (const el of svg.querySelectorAll("[data-idle]"))
      el.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 500, easing: "ease-out" });
  }
}

define("wave-map", WaveMap);
