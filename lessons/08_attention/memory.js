/* A card's memory filling with sequences, and what a batch then yields. */

import {
  World,
  choice,
  count,
  define,
  digits,
  facts,
  hatch,
  label,
  line,
  path,
  percent,
  plural,
  quantity,
  range,
  rect,
} from "../shared/kit.js";
import { RESERVE, fill } from "./model.js";

const gb = (bytes) => quantity(bytes, "GB");
const BITS = { bf16: 16, fp8: 8, int4: facts.int4_bits };
const TOKENS = [256, 512, 1024, 2048, 4096, 6144, 8192, 12288, 16384, 32768, 65536, 131072];
const BATCHES = [1, 2, 4, 8, 15, 16, 32, 64, 128, 256, 512, 1024, Infinity];
class KvMemory extends World {
  start = {
    gpu: "h100",
    model: "llama8",
    weights: "bf16",
    kv: "bf16",
    tokens: 8192,
    paged: true,
    longest: 32768,
    batch: Infinity,
  };
  scenes = [
    {
      name: "Llama 3.1 8B",
      set: {},
      after: (m) => `Full, the cache is ${digits((m.fits * m.slot) / m.weights, 2)} times the size of the weights.`,
    },
    {
      name: "Llama 2 7B",
      set: { model: "llama2", tokens: 4096 },
      after:
        "Half the context, and yet about half as many: it has 32 KV heads where Llama 3.1 has 8, so each token costs four times as much.",
    },
    {
      name: "Strips",
      set: { tokens: 2048, paged: false },
      after: (m) =>
        `${percent(m.waste, 2)} of every column is bought and empty. Switch to pages, and see how many fit.`,
    },
    {
      name: "70B on one card",
      set: { model: "llama70", weights: "fp8" },
      after: "A model that loads is not yet a model that serves.",
    },
    {
      name: "70B, all in fp8",
      set: { gpu: "h200", model: "llama70", weights: "fp8", kv: "fp8" },
      after: (m) => `The division gives ${digits(m.room / m.slot, 4)}. Round down: a part of a sequence does not run.`,
    },
  ];
  controls = [
    choice(
      "gpu",
      "GPU",
      Object.entries(facts.gpus).map(([k, g]) => [k, g.name]),
      { wrapped: true },
    ),
    choice(
      "model",
      "Model",
      Object.entries(facts.models).map(([k, m]) => [k, m.name]),
      { wrapped: true },
    ),
    choice("weights", "Weights in", [
      ["bf16", "bf16"],
      ["fp8", "fp8"],
      ["int4", "int4"],
    ]),
    choice("kv", "Cache in", [
      ["bf16", "bf16"],
      ["fp8", "fp8"],
    ]),
    range("tokens", "Tokens of a sequence", 0, 0, { values: TOKENS, show: count }),
    choice("paged", "A sequence gets", [
      [true, "pages of 16"],
      [false, "one strip"],
    ]),
    range("longest", "Length of a strip", 0, 0, {
      values: [2048, 4096, 8192, 16384, 32768, 65536, 131072],
      show: count,
      when: (s) => !s.paged,
    }),
    range("batch", "Batch", 0, 0, {
      values: BATCHES,
      show: (b) => (b === Infinity ? "as many as fit" : count(b)),
    }),
  ];
  guess = {
    unit: "sequences",
    it: "it holds",
    min: 0,
    max: 5000,
    from: 10,
    ask: (m) => `How many sequences of ${count(m.tokens)} tokens fit?`,
    near: (said, truth) => Math.abs(said / truth - 1) < 0.1,
  };
  legend = [
    ["a", "weights"],
    ["m", "cache, in use"],
    ["m-soft", "cache, bought and empty"],
    ["hatch", `reserve, ${RESERVE * 100} percent`],
    ["cell", "free"],
  ];

  model(s) {
    const m = fill({
      gpu: facts.gpus[s.gpu],
      model: facts.models[s.model],
      weightBits: BITS[s.weights],
      kvBits: BITS[s.kv],
      tokens: s.tokens,
      paged: s.paged,
      longest: s.longest,
      batch: s.batch,
    });
    return { ...m, tokens: s.tokens, strip: !s.paged, gpu: facts.gpus[s.gpu].name, llm: facts.models[s.model] };
  }

  answer(m) {
    return m.fits;
  }
  given(m) {
    const heads = `${m.llm.layers} layers, ${m.llm.kv_heads} KV heads of ${m.llm.head_dim}, cache in ${this.state.kv}`;
    const strip = m.strip ? ` Each sequence is given a strip of ${count(m.held)} tokens.` : "";
    return `${m.gpu}, <b class="a">${gb(m.weights)} of weights</b>: ${heads}.${strip}`;
  }

  explain(m) {
    if (!m.fits)
      return m.room <= 0 ? "The weights leave no room for a cache at all." : "The weights fit. Not one sequence does.";
    if (m.waiting) return `${plural(m.running, "sequence")} run, ${count(m.waiting)} wait for memory.`;
    if (m.waste > 0.3) return `${percent(m.waste, 2)} of each sequence's memory is empty.`;
    if (m.running < m.equal) return "Most of what a step reads is weights: another sequence costs little.";
    return `Most of what a step reads is cache: ${percent(m.cacheShare, 2)}. Another sequence pays for itself, and hardly helps the others.`;
  }

  counters(m) {
    return [
      { label: "cache per token", value: quantity(m.perToken, "KiB"), secret: true },
      { label: "cache per sequence", value: gb(m.slot), secret: true },
      { label: "sequences that fit", value: m.fits, tone: "m", secret: true },
      { label: "running", value: m.running, secret: true },
      { label: "tokens/s at most", value: Math.round(m.tokensPerSecond), as: count, secret: true },
      { label: "… for each sequence", value: m.running ? digits(m.tokensPerSecond / m.running) : "–", secret: true },
      { label: "of what a step reads is cache", value: percent(m.cacheShare, 2), tone: "m", secret: true, wide: true },
    ];
  }

  meter(m) {
    return {
      a: m.weights,
      m: m.read,
      full: Math.max(m.weights + m.fits * m.used, 1),
      note: this.open
        ? `One decode step reads ${gb(m.read)}: the weights once, each sequence's cache once.`
        : "One decode step reads the weights once, and each sequence's cache once.",
    };
  }
  say(m) {
    const fit = `${plural(m.fits, "sequence")} of ${count(m.tokens)} tokens fit, ${gb(m.slot)} each`;
    const rate = `${count(m.tokensPerSecond)} tokens a second; ${percent(m.cacheShare, 2)} of what a step reads is cache`;
    return `${m.gpu}: ${fit}. At most ${rate}.`;
  }

  draw(m, { width, small, open, id }) {
    const scale = width / Math.max(m.memory, m.weights + m.reserve),
      X = (b) => b * scale,
      top = 44,
      high = small ? 100 : 150;
    const said = !this.guess.once && this.scene in this.said ? this.said[this.scene].value : null;
    let s = hatch(`${id}h`) + this.captions(m, X, width, small);
    s += rect(0, top, X(m.memory), high, "g-cell") + rect(0, top, X(m.weights), high, "g-a");
    s += open
      ? this.columns(m, X, top, high)
      : m.room > m.slot
        ? this.column(m, X(m.weights), X(m.slot), top, high) +
          label(X(m.weights + m.room / 2), top + high / 2 + 6, "?", "big", "middle")
        : "";
    s += rect(X(m.memory - m.reserve), top, X(m.reserve), high, "g-line", `style="fill:url(#${id}h)"`);
    s += `<rect x="0.75" y="${top}" width="${X(m.memory) - 1.5}" height="${high}" class="g-wire"/>`;
    if (open && said !== null && said > 0) {
      const x = Math.min(width - 1, X(m.weights + said * m.slot));
      s +=
        line(x, top - 6, x, top + high + 6, "g-wire", 'stroke-dasharray="4 3"') +
        label(x, top + high + 18, `you said ${count(said)}`, "t-ink", x > width * 0.8 ? "end" : "middle");
    }
    const rest = open ? `${m.running} sequences of ${gb(m.slot)}` : "the rest free for the cache, one sequence drawn";
    const chart = this.chart(m, width, small, open, top + high + 40);
    return {
      height: top + high + 40 + chart.height,
      svg: s + chart.svg,
      label: `${m.gpu}: ${gb(m.memory)} of memory. Weights ${gb(m.weights)}, reserve ${gb(m.reserve)}, ${rest}.`,
    };
  }

  captions(m, X, width, small) {
    const mid = X(m.weights + Math.max(0, m.room) / 2);
    let s =
      label(0, 12, "weights", "cap t-a") +
      label(0, 30, gb(m.weights), "big t-a") +
      label(width, 12, "reserve", "cap", "end") +
      label(width, 30, gb(m.reserve), "big", "end");
    if (m.room > 0.12 * m.memory)
      s +=
        label(Math.max(mid, small ? 120 : 150), 12, "room for the cache", "cap t-m", "middle") +
        label(Math.max(mid, small ? 120 : 150), 30, gb(m.room), "big t-m", "middle");
    return s;
  }

  /* one sequence: what it uses from the bottom up, what it has bought beyond that pale */
  column(m, x, w, top, high) {
    const used = high * (m.used / m.slot),
      gap = w > 5 ? 1 : w > 2 ? 0.5 : 0;
    return (
      (m.waste > 0.01 ? rect(x, top, w - gap, high - used, "g-m-soft") : "") +
      rect(x, top + high - used, w - gap, used, "g-m", 'data-column=""')
    );
  }

  columns(m, X, top, high) {
    const w = X(m.slot),
      group = Math.max(1, Math.ceil(2.5 / w));
    let s = "";
    for (let i = 0; i < m.running; i += group)
      s += this.column(m, X(m.weights + i * m.slot), w * Math.min(group, m.running - i), top, high);
    return s;
  }

  /* tokens a second against the batch: a straight line if the cache were free to read, and what it is */
  chart(m, width, small, open, y0) {
    const left = small ? 40 : 52,
      high = small ? 120 : 150,
      top = y0 + 26,
      base = top + high;
    let s =
      label(0, y0 + 12, "tokens/s, at most, against sequences that run", "cap") +
      path(`M${left} ${top}V${base}H${width}`, "g-wire");
    if (!open || !m.fits) {
      s += label(
        (left + width) / 2,
        top + high / 2,
        open ? "nothing runs" : "the curve shows when you have committed",
        "cap",
        "middle",
      );
      return { svg: s, height: 26 + high + 26 };
    }
    const right = Math.max(4, Math.min(Math.max(m.fits * 1.25, m.equal * 1.5), m.fits * 3)),
      roof = m.ceiling * 1.15;
    const X = (b) => left + (b / right) * (width - left),
      Y = (v) => base - (v / roof) * high;
    const curve = (a, b) =>
      Array.from({ length: 41 }, (_, i) => {
        const n = a + ((b - a) * i) / 40;
        return `${X(n).toFixed(1)} ${Y(m.rate(n)).toFixed(1)}`;
      }).join("L");
    const straight = Math.min(right, (roof / m.ceiling) * m.equal);
    s += line(left, base, X(straight), Y((straight / m.equal) * m.ceiling), "g-wire-a", 'stroke-dasharray="2 4"');
    // left of the wall where the space behind it is too narrow for the words
    const end = width - X(m.fits) < 110 ? X(m.fits) - 8 : width;
    s +=
      line(left, Y(m.ceiling), width, Y(m.ceiling), "g-line") +
      label(end, Y(m.ceiling) - 5, `ceiling ${count(m.ceiling)}`, "t-m", "end");
    s +=
      path(`M${curve(m.fits, right)}`, "g-wire-m", 'stroke-dasharray="3 4" opacity=".6"') +
      path(`M${curve(0, m.fits)}`, "g-wire-m");
    s +=
      line(X(m.fits), top, X(m.fits), base, "g-wire") +
      label(X(m.fits), base + 15, `wall ${count(m.fits)}`, "t-ink", X(m.fits) > width - 60 ? "end" : "middle");
    if (m.equal < m.fits * 0.75 && X(m.equal) > left + 30)
      s +=
        line(X(m.equal), Y(m.rate(m.equal)), X(m.equal), base, "g-line") +
        label(X(m.equal), base + 15, `equal at ${digits(m.equal, 2)}`, "", "middle");
    s +=
      label(left - 6, Y(m.ceiling / 2) + 4, count(m.ceiling / 2), "", "end") +
      line(left - 3, Y(m.ceiling / 2), left, Y(m.ceiling / 2), "g-wire");
    if (m.running) {
      const x = X(m.running),
        y = Y(m.tokensPerSecond),
        late = x > (left + width) / 2;
      s +=
        `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="5" class="g-ink"/>` +
        label(x + (late ? -9 : 9), y + 16, count(m.tokensPerSecond), "t-ink", late ? "end" : "start");
    }
    return { svg: s, height: 26 + high + 26 };
  }

  reveal(svg) {
    const columns = [...svg.querySelectorAll("[data-column]")];
    columns.forEach((el, i) =>
      el.animate(
        [
          { transform: "scaleY(0)", transformBox: "fill-box", transformOrigin: "50% 100%" },
          { transform: "none", transformBox: "fill-box", transformOrigin: "50% 100%" },
        ],
        { delay: (700 * i) / columns.length, duration: 320, easing: "cubic-bezier(.2,.7,.2,1)", fill: "backwards" },
      ),
    );
  }
}

define("kv-memory", KvMemory);
