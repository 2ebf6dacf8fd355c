/* A prompt, then an answer token by token: what the memory and the arithmetic do meanwhile. */

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
} from "../shared/kit.js";
import { run } from "./model.js";

const PROMPTS = [8, 32, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const OUTS = [8, 16, 24, 32, 48, 64, 96, 128];
const ROWS = 6; // sequences drawn of a batch
const time = (s) => (s < 1e-3 ? quantity(s, "µs") : s < 1 ? quantity(s, "ms") : quantity(s, "s"));

class DecodeLoop extends World {
  start = { gpu: "h100", model: "llama8", prompt: 512, out: 24, batch: 1 };
  scenes = [
    {
      name: "A chat",
      set: {},
      after:
        "Hundreds of tokens for the time of about two. The whole prompt goes through each weight while it is there; a token of the answer fetches all of them for itself.",
    },
    {
      name: "A short question",
      set: { prompt: 32 },
      after:
        "One pass over the weights either way. Up to a few hundred tokens fit into the time that reading takes, so a prompt of 32 costs what one token costs.",
    },
    {
      name: "A long document",
      set: { prompt: 32768 },
      after: (m) =>
        `Now the arithmetic decides: ${quantity(m.prefill.flop, "TFLOP")}. Yet for ${count(m.prompt)} tokens of prompt it is a bargain still.`,
    },
    {
      name: "32 users",
      set: { batch: 32 },
      after: (m) =>
        `32 prompts are 32 times the arithmetic. But look at the answer: all 32 get a token out of each pass, ${count(m.rate)} a second together.`,
    },
    {
      name: "A small card",
      set: { gpu: "l4" },
      after:
        "Eight times less arithmetic and eleven times less bandwidth: the exchange is much the same, everything is slower.",
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
      "Model, in bf16",
      // without the version: "Llama 8B"
      Object.entries(facts.models ?? {}).map(([k, m]) => [k, m.name.replace(/ ?\d+\.\d+ /, " ")]),
    ),
    range("prompt", "Tokens of the prompt", 0, 0, { values: PROMPTS, show: count }),
    range("out", "Tokens of the answer", 0, 0, { values: OUTS, show: count }),
    range("batch", "Users at once", 0, 0, { values: [1, 2, 4, 8, 16, 32, 64, 128, 256], show: count }),
  ];
  guess = {
    ask: (m) =>
      `The prompt goes in as one pass, the answer comes out a pass a token. How many answer passes take as long as the ${m.batch > 1 ? `${m.batch} prompts` : "prompt"} of ${count(m.prompt)} tokens?`,
    unit: "passes",
    it: "it takes as long as",
    min: 0,
    max: 100000,
    from: (m) => m.prompt,
    shown: (v) => digits(v, v < 10 ? 2 : 3),
    near: (said, truth) => Math.abs(said / truth - 1) < 0.2,
    reply: (said, m) =>
      said === m.prompt
        ? "That would be so if each token of the prompt needed a pass of its own."
        : said > 3 * m.worth
          ? "A prompt is far cheaper than that."
          : "",
  };
  legend = [
    ["m", "memory is reading"],
    ["a", "arithmetic is busy"],
    ["cell", "idle"],
    ["ink", "tokens known"],
  ];
  player = {
    label: "Pass of the loop",
    start: 6,
    pace: 90,
    steps: (m) => m.out,
    text: (m, at) => {
      if (!at) return "before the first pass";
      const p = at === 1 ? m.prefill : m.steps[at - 2];
      const what = at === 1 ? `prefill, ${count(m.prompt)} tokens in` : "decode, 1 token in";
      return `pass ${at} of ${m.out}: ${what}${m.batch > 1 ? ` for each of ${m.batch}` : ""}; reads ${quantity(p.bytes, "GB")}, does ${quantity(p.flop, "GFLOP")}`;
    },
  };

  model(s) {
    const gpu = facts.gpus[s.gpu],
      llm = facts.models[s.model];
    return { ...run({ gpu, llm, prompt: s.prompt, out: s.out, batch: s.batch }), gpu, llm };
  }

  answer(m) {
    return m.worth;
  }

  given(m) {
    return `${m.llm.name}: <b class="m">${quantity(m.weights, "GB")} read in a pass</b>. ${m.gpu.name}: ${quantity(m.gpu.mem_bw, "TB/s")}, ${quantity(m.gpu.flop, "TFLOP/s")}.`;
  }

  explain(m) {
    if (!m.fits) return "This does not fit into the card's memory. The times are what they would be if it did.";
    const busy = percent(m.first.math / m.first.time, 2);
    if (m.first.bound === "arithmetic")
      return "So many users that arithmetic takes longer than reading, even in decode.";
    return `While it writes, the arithmetic is busy for ${busy} of the time.`;
  }

  counters(m) {
    return [
      { label: "the prompt takes", value: time(m.prefill.time), secret: true },
      { label: "an answer token takes", value: time(m.first.time), tone: "m", secret: true },
      { label: "of which arithmetic", value: time(m.first.math), tone: "a", secret: true },
      { label: "the whole request", value: time(m.total), secret: true },
      { label: "tokens/s for each user", value: digits(m.each), secret: true },
      { label: "tokens/s, all users", value: digits(m.rate), secret: true },
    ];
  }

  meter(m) {
    return {
      a: m.first.math,
      m: m.first.read,
      full: m.first.time,
      note: "One pass of decode. Amber: reading. Blue: arithmetic, at the same time.",
    };
  }

  say(m) {
    if (!this.open) return `${this.player.text(m, this.at)}. Predict before you look at times.`;
    return `The prompt takes ${time(m.prefill.time)}, as long as ${digits(m.worth, 2)} answer passes of ${time(m.first.time)}. Decode is bound by ${m.first.bound}, prefill by ${m.prefill.bound}.`;
  }

  draw(m, { width, small, open, at }) {
    const rows = Math.min(m.batch, ROWS),
      cell = (small ? 11 : 15) + (rows === 1 ? 9 : rows < 4 ? 4 : 0),
      top = 18;
    let s = this.tokens(m, { width, at, rows, cell, top });
    let y = top + rows * cell + 13;
    if (m.batch > ROWS) {
      s += label(0, y, `and ${plural(m.batch - ROWS, "more sequence")} like these`, "cap");
      y += 14;
    }
    y += 14;
    const high = small ? 36 : 96;
    s += this.track(m, "read", "g-m", "memory", { width, open, at, y, high });
    s += this.track(m, "math", "g-a", "arithmetic", { width, open, at, y: y + high + 26, high });
    const base = y + 2 * high + 38;
    if (open) {
      const x = (m.prefill.time / m.total) * width;
      s += line(0, base, width, base, "g-wire") + line(x, base - 5, x, base + 5, "g-wire");
      s += label(0, base + 16, `prefill ${time(m.prefill.time)}`, "t-ink");
      s += label(width, base + 16, `decode ${time(m.decode)}`, "t-ink", "end");
    }
    const state = open ? `Prompt ${time(m.prefill.time)}, then ${time(m.first.time)} a token` : "Times hidden";
    return {
      height: base + 22,
      svg: s,
      label: `A prompt of ${m.prompt} tokens and an answer of ${m.out}, ${at} passes done. ${state}.`,
    };
  }

  /* what is known: the prompt as one block, each answer token as a cell; a row for each sequence */
  tokens(m, { width, at, rows, cell, top }) {
    const left = Math.min(width * 0.3, 150),
      step = (width - left - 4) / m.out;
    let s =
      label(0, 10, `prompt, ${count(m.prompt)}${width < 480 ? "" : " tokens"}`, "cap") +
      label(left + 4, 10, `answer, ${m.out} tokens`, "cap");
    for (let r = 0; r < rows; r++) {
      const y = top + r * cell;
      s += rect(0, y, left, cell - 2, at ? "g-ink" : "g-cell");
      for (let i = 0; i < m.out; i++) {
        const x = left + 4 + i * step;
        s += rect(x, y, step - (step > 4 ? 1.5 : 0.5), cell - 2, i < at ? "g-ink" : "g-cell");
      }
    }
    if (at) s += rect(left + 2.5 + (at - 1) * step, top - 2, step + 1, rows * cell + 2, "g-pick");
    return s;
  }

  /* when one half of the card is busy: a block for each pass done, as wide as it takes */
  track(m, key, cls, name, { width, open, at, y, high }) {
    let s = label(0, y - 6, open ? `${name}, over time` : name, "cap") + rect(0, y, width, high, "g-cell");
    if (!open) return s + label(width / 2, y + high / 2 + 4, "shows when you have committed", "cap", "middle");
    const X = (t) => (t / m.total) * width;
    let t = 0;
    for (const p of [m.prefill, ...m.steps].slice(0, at)) {
      const full = X(p.time),
        gap = full > 5 ? 1 : 0,
        w = X(p[key]);
      s += rect(X(t), y, Math.max(0.75, Math.min(w, full - gap)), high, cls);
      t += p.time;
    }
    return s;
  }
}

define("decode-loop", DecodeLoop);
