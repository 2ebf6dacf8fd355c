/* Batch against the price of a token: weights are shared, the cache is not, and arithmetic is the floor. */

import {
  World,
  choice,
  count,
  define,
  digits,
  facts,
  label,
  line,
  path,
  percent,
  plural,
  quantity,
  range,
  rect,
} from "../shared/kit.js";
import { step } from "./model.js";

const BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const TOKENS = [0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768];
const gb = (b) => quantity(b, b < 1e9 ? "MB" : "GB");
const time = (s) => (s < 1e-3 ? quantity(s, "µs") : quantity(s, "ms"));

class BatchCost extends World {
  start = { gpu: "h100", model: "llama8", bits: 16, tokens: 512, batch: 16 };
  scenes = [
    {
      name: "16 users",
      set: {},
      after:
        "Nearly sixteen. A pass reads the weights once for all of them, and sixteen short caches add little to it.",
    },
    {
      name: "16 long documents",
      set: { gpu: "h200", tokens: 32768 },
      after: (m) =>
        `Each sequence reads ${gb(m.own)} of its own, and that is shared with nobody. The weights are a small part of the pass now.`,
    },
    {
      name: "1024, weights alone",
      set: { tokens: 0, batch: 1024 },
      after: (m) =>
        `No cache to read, and still it ends: ${digits(m.ridge)} operations fit into the time of a byte. Beyond that the arithmetic takes longer than the reading.`,
    },
    {
      name: "256 users",
      set: { batch: 256 },
      after: (m) =>
        `Even caches of 512 tokens add up: ${quantity(m.cache, "GB")} of them, more than the weights. However much larger, a batch could halve the price once more at most.`,
    },
    {
      name: "Weights in int4",
      set: { bits: 4, tokens: 2048 },
      after:
        "Small weights make the first user faster, so there is less left to share. Batching and small weights want the same bytes.",
    },
  ];
  controls = [
    choice(
      "gpu",
      "GPU",
      Object.entries(facts.gpus ?? {}).map(([k, g]) => [k, g.name]),
    ),
    choice(
      "model",
      "Model",
      Object.entries(facts.models ?? {}).map(([k, m]) => [k, m.name]),
    ),
    choice("bits", "Bits of a weight", [
      [16, "16"],
      [8, "8"],
      [4, "4"],
    ]),
    range("tokens", "Tokens of each sequence", 0, 0, { values: TOKENS, show: count }),
    range("batch", "Batch", 0, 0, { values: BATCHES, show: count }),
  ];
  guess = {
    ask: (m) => `How many times cheaper is a token in a batch of ${count(m.batch)} than for one user alone?`,
    unit: "times",
    it: "it is",
    min: 1,
    max: 100000,
    from: (m) => m.batch,
    shown: (v) => `${digits(v)}×`,
    near: (said, truth) => Math.abs(said / truth - 1) < 0.15,
    reply: (said, m) => (said === m.batch ? "That would be so if nothing but the weights cost anything." : ""),
  };
  legend = [
    ["a", "reading weights, shared"],
    ["m", "reading a cache of one's own"],
    ["outline", "arithmetic"],
    ["ink", "what a token costs"],
  ];

  model(s) {
    const gpu = facts.gpus[s.gpu],
      llm = facts.models[s.model];
    return { ...step({ gpu, llm, batch: s.batch, bits: s.bits, tokens: s.tokens }), gpu, llm };
  }
  answer(m) {
    return m.gain;
  }
  given(m) {
    const own = m.own ? `<b class="m">${gb(m.own)} of cache</b> for each sequence` : "no cache";
    return `${m.llm.name}, ${m.gpu.name}: <b class="a">${quantity(m.weights, "GB")} of weights</b>, ${own}. ${quantity(m.gpu.mem_bw, "TB/s")}, ${quantity(m.gpu.flop, "TFLOP/s")}.`;
  }

  explain(m) {
    if (m.batch > m.fits)
      return `Only ${plural(m.fits, "such sequence")} fit into the memory of this card. The numbers say what a larger one would do.`;
    if (m.bound === "arithmetic") return "Arithmetic takes longest. A larger batch takes longer in proportion.";
    if (m.bound === "cache")
      return `${percent(m.cache / m.moved, 2)} of what a pass reads is cache, which nobody shares.`;
    return `${percent(m.weights / m.moved, 2)} of what a pass reads is shared. Another user is almost free.`;
  }

  counters(m) {
    return [
      { label: "a pass takes", value: time(m.time), secret: true },
      { label: "bound by", value: m.bound, secret: true },
      { label: "weights, for each token", value: time(m.weightsEach), tone: "a", secret: true },
      { label: "cache, for each token", value: time(m.cacheEach), tone: "m", secret: true },
      { label: "tokens/s, all users", value: Math.round(m.rate), as: count, secret: true },
      { label: "tokens/s for each", value: digits(m.rate / m.batch), secret: true },
      { label: "FLOP for each byte read", value: digits(m.intensity), secret: true },
      { label: "ridge of the card, FLOP/B", value: digits(m.ridge) },
    ];
  }

  meter(m) {
    return {
      a: this.open ? m.weights : 0,
      m: m.moved,
      full: m.moved,
      note: "What one pass reads: weights, and the caches of all.",
    };
  }
  readout(m) {
    if (!this.open) return `batch 1: a token costs ${time(m.alone.each)}`;
    const full = m.batch > m.fits ? `; but only ${count(m.fits)} fit` : "";
    return `batch ${count(m.batch)}: a token costs ${time(m.each)}, alone ${time(m.alone.each)}${full}`;
  }
  say(m) {
    return `Batch ${m.batch}: a token costs ${time(m.each)}, ${digits(m.gain)} times less than alone. Bound by ${m.bound}.`;
  }

  draw(m, { width, small, open }) {
    const left = small ? 44 : 60,
      top = 26,
      high = small ? 210 : 300,
      base = top + high,
      last = BATCHES.length - 1;
    const all = BATCHES.map((b) => m.at(b)),
      dear = Math.log10(m.alone.each * 1.6),
      cheap = Math.log10(Math.min(m.mathEach, all[last].each) / 2);
    const X = (b) => left + 8 + (Math.log2(b) / last) * (width - left - 24),
      Y = (t) => top + ((dear - Math.log10(t)) / (dear - cheap)) * high;
    let s = label(0, 11, "time of a pass for each token, both axes in powers", "cap");
    for (let e = Math.ceil(cheap); e <= dear; e++) {
      const y = Y(10 ** e);
      s += line(left, y, width, y, "g-line") + label(left - 6, y + 4, time(10 ** e), "", "end");
    }
    BATCHES.forEach((b, i) => {
      if (!small || i % 2 === 0) s += label(X(b), base + 15, count(b), b === m.batch ? "t-ink" : "", "middle");
    });
    s += path(`M${left} ${top}V${base}H${width}`, "g-wire") + label(width, base + 30, "batch", "cap", "end");
    if (open) s += this.curves(m, { X, Y, base, width, top, cheapest: 10 ** cheap });
    else {
      s += rect(X(1) - 4, Y(m.alone.each) - 4, 8, 8, "g-ink");
      s += label((left + width) / 2, top + high / 2 + 6, "?", "big", "middle");
      s += line(X(m.batch), top, X(m.batch), base, "g-line", 'stroke-dasharray="3 3"');
    }
    const known = open ? ` At ${m.batch} a token costs ${time(m.each)}, bound by ${m.bound}.` : "";
    return {
      height: base + 36,
      svg: s,
      label: `Cost of a token against batch sizes from 1 to 1,024; alone it is ${time(m.alone.each)}.${known}`,
    };
  }

  /* three parts and their sum: weights fall with the batch, cache and arithmetic do not */
  curves(m, { X, Y, base, width, top, cheapest }) {
    const clip = (y) => Math.min(base, Math.max(top, y));
    const at = (t) => clip(Y(t)).toFixed(1);
    const w1 = m.weightsEach * m.batch;
    const end = Math.min(2 ** (BATCHES.length - 1), w1 / cheapest);
    const fall = `${X(1).toFixed(1)} ${at(w1)}L${X(end).toFixed(1)} ${at(w1 / end)}`;
    const sum = [];
    for (let i = 0; i <= 100; i++) {
      const b = 2 ** ((i / 100) * (BATCHES.length - 1));
      sum.push(`${X(b).toFixed(1)} ${at(m.at(b).each)}`);
    }
    let s = `<path d="M${fall}" style="fill:none;stroke:var(--a);stroke-width:3"/>`;
    if (m.own) s += `<path d="M${X(1)} ${at(m.cacheEach)}H${width}" style="fill:none;stroke:var(--m);stroke-width:3"/>`;
    s += `<path d="M${X(1)} ${at(m.mathEach)}H${width}" style="fill:none;stroke:var(--ink2);stroke-width:1.5;stroke-dasharray:5 4"/>`;
    s += `<path d="M${sum.join("L")}" style="fill:none;stroke:var(--ink);stroke-width:2"/>`;
    if (m.fits >= 1 && m.fits < 1024) {
      const x = X(m.fits);
      s += line(x, top, x, base, "g-wire", 'stroke-dasharray="2 4"');
      s += label(x - 5, top + 10, `${count(m.fits)} fit`, "cap", "end");
    }
    return (
      s + rect(X(m.batch) - 5, Y(m.each) - 5, 10, 10, "g-ink") + rect(X(m.batch) - 8, Y(m.each) - 8, 16, 16, "g-pick")
    );
  }
}

define("batch-cost", BatchCost);
