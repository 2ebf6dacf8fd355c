/* A row of twelve scores, piece by piece: the running maximum, and a sum that is measured from it. */

import { World, choice, define, digits, label, line, path, range, rect } from "../shared/kit.js";
import { ROWS, TYPES, expLimit, run } from "./model.js";

const DEPTH = 7; // how far below the largest score the figure reaches

const number = (x) => {
  if (Number.isNaN(x)) return "nan";
  if (x === Infinity) return "inf";
  if (x === -Infinity) return "−inf";
  if (Math.abs(x) >= 1e4) return x < 0 && x < -6e4 ? "lowest" : x.toExponential(1).replace("e+", "e");
  return Math.abs(x) < 1e-3 && x !== 0 ? x.toExponential(1).replace("e-", "e−") : digits(x, 3);
};

class SoftmaxPieces extends World {
  start = { row: "usual", method: "online", type: "float32", from: "lowest", piece: 3 };
  scenes = [
    {
      name: "No maximum",
      set: { row: "twelve", method: "plain", type: "float16" },
      after:
        "exp(11.2), the very first, is past what float16 can hold. The sum is inf, and inf / inf is nan; a finite value over inf is 0.",
    },
    {
      name: "Rising scores",
      set: { row: "rising" },
      after: "The maximum rises at every piece, and each time all that was added so far shrinks by α. Nothing is lost.",
    },
    {
      name: "Not rescaled",
      set: { row: "rising", method: "stale" },
      after:
        "Each piece was added against its own maximum, as if 1 had the same worth everywhere. The sum is too large, and the weights are too small.",
    },
    {
      name: "Masked start",
      set: { row: "masked", from: "inf", piece: 2 },
      after: "The maximum starts at −inf and stays there. −inf − −inf is nan, and a sum that was nan once stays nan.",
    },
    {
      name: "From the lowest",
      set: { row: "masked", piece: 2 },
      after: "Now −inf − lowest is −inf, whose exp is 0. The first real score then shrinks a sum of 0 to 0.",
    },
    {
      name: "Far below 0",
      set: { row: "deep", method: "plain" },
      after: "Every exp(−120) rounds to 0, the sum is 0, and 0 / 0 is nan. The maximum cures both ends.",
    },
  ];
  controls = [
    choice(
      "row",
      "The scores",
      [
        ["usual", "−1 to 3"],
        ["rising", "rising"],
        ["twelve", "near 12"],
        ["hundred", "near 100"],
        ["deep", "near −120"],
        ["masked", "four masked"],
      ],
      { wrapped: true },
    ),
    choice("method", "The method", [
      ["plain", "no max"],
      ["online", "online"],
      ["stale", "no rescale"],
    ]),
    choice(
      "type",
      "Computed in",
      Object.keys(TYPES).map((t) => [t, t]),
    ),
    choice(
      "from",
      "The maximum starts at",
      [
        ["lowest", "lowest number"],
        ["inf", "−inf"],
      ],
      { when: (s) => s.method !== "plain" },
    ),
    range("piece", "Scores in a piece", 0, 0, { values: [1, 2, 3, 4, 6, 12] }),
  ];
  guess = {
    ask: "What comes out of this row?",
    it: "it is",
    options: [
      ["right", "The softmax"],
      ["wrong", "Numbers, but wrong ones"],
      ["nan", "nan, at least in places"],
    ],
  };
  legend = [
    ["cell", "a score, darker once it has come"],
    ["a", "its exp, against the maximum so far"],
    ["m", "the running maximum"],
  ];
  player = {
    label: "Pieces that are done",
    start: 2,
    pace: 700,
    steps: (m) => m.steps.length + 1,
    text: (m, at) => this.stepText(m, at),
  };

  model(s) {
    return { ...run({ ...s, row: ROWS[s.row] }), method: s.method, type: s.type, row: s.row, piece: s.piece };
  }
  answer(m) {
    return m.verdict;
  }
  given(m) {
    const how = {
      plain: "No maximum is subtracted: exp(x) is added as it is.",
      online: "A running maximum, and a sum that is rescaled when it rises.",
      stale: "A running maximum, but the sum is left as it was when it rises.",
    }[m.method];
    return `Twelve scores, ${m.piece} at a time, in ${m.type}. ${how}`;
  }
  explain(m) {
    if (m.verdict === "right") return "The weights are the softmax of this row.";
    if (m.verdict === "wrong") return `The weights add up to ${digits(m.sum, 3)} and not to 1.`;
    return `Largest x for exp in ${m.type}: ${digits(expLimit(m.type), 3)}. Look for the step where the sum stops being a number.`;
  }

  step(m) {
    return m.steps[Math.min(this.at, m.steps.length) - 1];
  }
  stepText(m, at) {
    if (!this.open) return `${m.steps.length} pieces, then every exp is divided by the sum`;
    if (at > m.steps.length) return `divided by ℓ = ${number(m.l)}: the weights add up to ${number(m.sum)}`;
    const one = this.step(m);
    if (!one) return "nothing done yet, ℓ = 0";
    const moved = m.method === "plain" ? "" : `m ${number(one.before)} → ${number(one.m)}, α = ${number(one.alpha)}, `;
    return `scores ${one.first}–${one.last}: ${moved}ℓ = ${number(one.l)}`;
  }

  counters(m) {
    const one = this.step(m),
      done = this.at > m.steps.length;
    return [
      { label: `largest x for exp`, value: digits(expLimit(m.type), 3) },
      { label: "largest score", value: digits(Math.max(...m.scores), 3) },
      {
        label: "running max m",
        value: m.method === "plain" ? "none" : one ? number(one.m) : "–",
        tone: "m",
        secret: true,
      },
      { label: "rescale α", value: one && m.method === "online" ? number(one.alpha) : "–", secret: true },
      { label: "running sum ℓ", value: one ? number(one.l) : "0", tone: "a", secret: true },
      { label: "weights add up to", value: done ? number(m.sum) : "–", secret: true },
    ];
  }

  say(m) {
    if (!this.open) return "Twelve scores in pieces. Predict what comes out before you look.";
    const words = { right: "the softmax", wrong: "wrong numbers", nan: "nan in places" }[m.verdict];
    return `${this.stepText(m, this.at)}. What comes out: ${words}.`;
  }

  draw(m, { width, small, open, at }) {
    const n = m.scores.length,
      left = 4,
      step = (width - 2 * left) / n,
      high = small ? 90 : 112,
      low = 100,
      top = 26,
      base = top + high,
      y2 = base + 52,
      base2 = y2 + low,
      most = Math.max(...m.scores);
    const X = (i) => left + i * step,
      Y = (x) => base - Math.max(0, Math.min(1, (x - most + DEPTH) / DEPTH)) * (high - 8);
    const divided = at > m.steps.length,
      now = open ? this.step(m) : null;
    let s = label(0, 10, "scores", "cap");
    m.scores.forEach((x, i) => {
      const seen = now && i <= now.last;
      if (Number.isFinite(x))
        s += rect(X(i) + 2, Y(x), step - 4, base - Y(x), seen ? "g-ink" : "g-cell", seen ? 'opacity=".45"' : "");
      s += label(
        X(i) + step / 2,
        base + 13,
        small && Number.isFinite(x) ? digits(x, 2) : number(x),
        small ? "tiny" : "",
        "middle",
      );
    });
    for (const { first } of m.steps.slice(1)) s += line(X(first), top, X(first), base2, "g-line");
    s += line(left, base, width - left, base, "g-wire");
    if (!open) s += label(width / 2, y2 + low / 2, "sealed until you commit", "cap", "middle");
    if (now && m.method !== "plain") s += this.staircase(m, X, Y, at);
    s += label(
      0,
      y2 - 8,
      divided ? "weights: divided by the sum" : m.method === "plain" ? "exp(x)" : "exp(x − m), added so far",
      "cap",
    );
    if (now) s += this.exps(m, now, divided, { X, step, base2, low, small });
    s += line(left, base2, width - left, base2, "g-wire");
    const words = open ? ` ${this.stepText(m, at)}.` : "";
    return { height: base2 + 20, svg: s, label: `Twelve scores as bars, and below what is added up.${words}` };
  }

  staircase(m, X, Y, at) {
    let d = "";
    m.steps.slice(0, at).forEach((one) => {
      if (!(one.m > -6e4)) return;
      d += `${d ? "V" : `M${X(one.first).toFixed(1)} `}${Y(one.m).toFixed(1)}H${X(one.last + 1).toFixed(1)}`;
    });
    return d ? path(d, "g-wire-m") : "";
  }

  /* what was added, against the maximum of this moment: when that rises, all that is here shrinks */
  exps(m, now, divided, { X, step, base2, low, small }) {
    const against = (i) => (m.method === "stale" ? m.steps[Math.floor(i / m.piece)].m : now.m);
    const values = m.scores.map((x, i) => (divided ? m.out[i] : Math.exp(x - against(i))));
    const limit = TYPES[m.type].largest,
      finite = values.filter((v, i) => v <= limit && i <= now.last),
      full = divided ? Math.max(0.3, ...finite) : m.method === "plain" ? Math.max(1e-300, ...finite) : 1;
    let s = "";
    values.forEach((v, i) => {
      if (i > now.last) return;
      const h = (Math.min(1, v / full) || 0) * (low - 18),
        bad = !(v <= limit);
      if (!bad) s += rect(X(i) + 2, base2 - h, step - 4, h, "g-a");
      const words = bad ? (Number.isNaN(v) ? "nan" : "inf") : number(v);
      if (!small || bad || i % 3 === 0)
        s += label(X(i) + step / 2, base2 + 13, words, bad ? "t-ink" : small ? "tiny" : "", "middle");
    });
    return s;
  }
}

define("softmax-pieces", SoftmaxPieces);
