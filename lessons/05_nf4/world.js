/* A block of weights: where its values fall, which codes a format has there, and what rounding to them costs. */

import { World, choice, count, define, digits, label, line, path, range, rect, times } from "../shared/kit.js";
import { CODE_BITS, WEIGHTS, quantise, verdict } from "./model.js";

const BINS = 48;
const TICKS = 64; // weights that are drawn one by one
const NAMES = { nf4: "NF4", int4: "INT4", fp4: "FP4", fp8: "FP8" };
const sigma = (x, wanted = 3) => `${digits(x, wanted)} σ`;

class BlockWorld extends World {
  start = { format: "nf4", block: 64, outlier: 0, nested: false };
  scenes = [
    {
      name: "An outlier",
      set: { outlier: 12 },
      after: (m) =>
        `One weight in 512 stretches its block: here ${m.used} codes of 16 do all the work. But only one block in eight suffers.`,
    },
    {
      name: "An outlier in 512",
      set: { outlier: 12, block: 512 },
      after: "Now every block has an outlier. Fewer scales save a tenth of the bits, and this is the price.",
    },
    {
      name: "INT4: even steps",
      set: { format: "int4" },
      after: "Most weights are small, and even steps spend few codes there. NF4 sets its codes where the weights are.",
    },
    {
      name: "One scale for all",
      set: { block: 4096 },
      after:
        "Without outliers this costs less than you may fear: the largest of 4,096 normal weights is only half as large again as the largest of 64.",
    },
    {
      name: "The scale in 8 bits",
      set: { nested: true },
      after:
        "The absmax of a block varies little from block to block, so eight bits hold it well. A third of a bit saved.",
    },
    {
      name: "FP8, and an outlier",
      set: { format: "fp8", block: 512, outlier: 12 },
      after:
        "A float has steps that shrink towards zero, so an outlier hardly hurts it. It costs almost twice the bits.",
    },
  ];
  controls = [
    choice("format", "Format", Object.entries(NAMES)),
    range("block", "Weights that share a scale", 0, 0, {
      values: [32, 64, 128, 256, 512, 1024, 2048, 4096],
      show: count,
    }),
    choice("outlier", "One weight in 512 is", [
      [0, "ordinary"],
      [6, "6 σ"],
      [12, "12 σ"],
      [24, "24 σ"],
    ]),
    choice("nested", "A scale is kept in", [
      [false, "32 bits"],
      [true, "8 bits"],
    ]),
  ];
  guess = {
    ask: "Against NF4 in blocks of 64 with no outlier, the mean error of all 4,096 weights is …",
    options: [
      ["less", "smaller"],
      ["same", "the same, within a tenth"],
      ["more", "larger, up to double"],
      ["worse", "more than double"],
    ],
  };
  legend = [
    ["cell", "weights of one block"],
    ["a", "a code that some weight takes"],
    ["a-soft", "a code that none takes"],
    ["m", "the weight that sets the scale"],
  ];
  cursor = {
    label: "Code to inspect",
    max: (m) => m.codes.length - 1,
    at: 9,
    text: (m, i) => this.codeText(m, i),
    hit: (x, y, m) => this.codeAt(x, m),
  };

  model(state) {
    return quantise(state);
  }
  answer(m) {
    return verdict(m.ratio);
  }
  given(m) {
    const outliers = m.outlier ? `; one in 512 is ${m.outlier} σ large` : "";
    return `4,096 normal weights, blocks of ${count(m.block)}, <b class="a">${NAMES[m.format]}</b>${outliers}. The figure shows the first block.`;
  }
  explain(m) {
    if (m.used <= m.codes.length / 2 && m.format !== "fp8")
      return `The block uses ${m.used} of its ${m.codes.length} codes. The others lie between its bulk and its largest weight.`;
    return `The mean error is ${times(m.ratio)} that of NF4 in blocks of 64.`;
  }

  codeText(m, i) {
    const value = m.codes[i],
      n = m.times[i],
      who = n === 1 ? "1 weight takes it" : `${count(n)} weights take it`;
    const taken = this.open ? `, ${who}` : "";
    return `code ${i} = ${digits(value, 4)} → × ${digits(m.absmax, 3)} σ = ${sigma(value * m.absmax)}${taken}`;
  }

  counters(m) {
    return [
      { label: "bits per weight", value: digits(m.bits, 4) },
      { label: "bytes, all weights", value: count((WEIGHTS * m.bits) / 8) },
      { label: "scale of this block", value: sigma(m.absmax), tone: "m", secret: true },
      { label: "codes it uses", value: m.used, tone: "a", secret: true },
      { label: "mean error", value: sigma(m.error), secret: true },
      { label: "against NF4 in 64s", value: digits(m.ratio, 3) + "×", secret: true },
    ];
  }

  meter(m) {
    return {
      a: CODE_BITS[m.format],
      m: m.bits,
      full: 9,
      secret: false,
      note: "Bits per weight, out of nine: blue is the code, amber its share of the scale.",
    };
  }

  say(m) {
    const used = `The first block uses ${m.used} of ${m.codes.length} codes.`;
    return `${NAMES[m.format]}, ${digits(m.bits, 4)} bits a weight. Mean error ${sigma(m.error)}, ${digits(m.ratio, 3)} times that of NF4 in blocks of 64. ${used}`;
  }

  codeAt(x, m) {
    const at = (2 * (x - this.geo.left)) / this.geo.wide - 1;
    let best = 0;
    m.codes.forEach((c, i) => {
      if (Math.abs(c - at) < Math.abs(m.codes[best] - at)) best = i;
    });
    return best;
  }

  draw(m, { width, small, open, cursor }) {
    const left = 12,
      wide = width - 2 * left,
      top = 22,
      high = small ? 110 : 140,
      base = top + high,
      strip = base + 8,
      fan = small ? 62 : 80,
      codeY = strip + 12 + fan,
      codeH = 26;
    this.geo = { left, wide };
    const X = (v) => left + ((v + 1) / 2) * wide;
    let s = label(left, 10, `${count(m.block)} weights of one block: how many lie where`, "cap");
    s += this.histogram(m, X, base, high - 8) + line(left, base, left + wide, base, "g-wire");
    const shown = m.weights.slice(0, TICKS);
    shown.forEach((v, i) => {
      const x = X(v),
        to = X(m.codes[m.picked[i]]),
        mid = strip + 12 + fan * 0.5;
      const here = m.picked[i] === cursor;
      s += rect(x - 0.5, strip, 1, 10, "g-ink");
      if (open)
        s += path(
          `M${x.toFixed(1)} ${strip + 12}C${x.toFixed(1)} ${mid} ${to.toFixed(1)} ${mid} ${to.toFixed(1)} ${codeY - 2}`,
          here ? "g-wire" : "g-fan",
        );
    });
    const bar = m.codes.length > 16 ? 1.4 : small ? 5 : 8;
    m.codes.forEach((c, i) => {
      const cls = open && !m.times[i] ? "g-a-soft" : "g-a";
      s += rect(X(c) - bar / 2, codeY, bar, codeH, cls);
    });
    s += rect(X(m.codes[cursor]) - bar / 2 - 2, codeY - 2, bar + 4, codeH + 4, "g-pick");
    if (open && m.largest >= 0) {
      const x = X(m.weights[m.largest]);
      s += rect(x - 3, base - 30, 6, 30, "g-m") + rect(x - 1.5, strip, 3, 10, "g-m");
    }
    const edge = open ? sigma(m.absmax) : "largest";
    s += label(left, codeY + codeH + 14, `−${edge}`, open ? "t-m" : "");
    s += label(left + wide, codeY + codeH + 14, `+${edge}`, open ? "t-m" : "", "end");
    s += label(X(0), codeY + codeH + 14, "0", "", "middle");
    s += label(
      left,
      codeY + codeH + 32,
      small
        ? `the codes of ${NAMES[m.format]}`
        : `the codes of ${NAMES[m.format]}, stretched to the block’s largest weight`,
      "cap",
    );
    const known = open
      ? ` ${m.used} of ${m.codes.length} codes are used; the largest weight is ${sigma(m.absmax)}.`
      : "";
    return {
      height: codeY + codeH + 40,
      svg: s,
      label: `A histogram of ${m.block} weights over the codes of ${NAMES[m.format]}.${known}`,
    };
  }

  histogram(m, X, base, high) {
    const bins = new Array(BINS).fill(0);
    for (const v of m.weights) bins[Math.min(BINS - 1, Math.floor(((v + 1) / 2) * BINS))]++;
    const most = Math.max(...bins),
      step = (X(1) - X(-1)) / BINS;
    return bins
      .map((n, i) => rect(X(-1) + i * step, base - (n / most) * high, step - 1, (n / most) * high, "g-cell"))
      .join("");
  }
}

define("block-world", BlockWorld);
