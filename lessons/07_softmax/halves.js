/* A row cut in two: each side has a maximum and a sum of its own, and both become one. */

import { World, choice, define, digits, label, line, range, rect } from "../shared/kit.js";
import { merge, partial } from "./model.js";

const ROWS = {
  right: [0.5, 1, 0, 1.5, 0.5, 1, 2, 3, 2.5, 1, 2, 0.5],
  left: [2, 3, 2.5, 1, 2, 0.5, 0.5, 1, 0, 1.5, 0.5, 1],
  even: [0, 1, 2, 1, 0, 2, 1, 2, 0, 1, 2, 0],
  far: [0, 0.5, 1, 0, 0.5, 1, 8, 7, 7.5, 6, 8, 7],
  empty: [-Infinity, -Infinity, -Infinity, -Infinity, -Infinity, -Infinity, 1, 2, 0, 1.5, 2, 1],
};
const two = (x) => (x < -1e30 ? "lowest" : digits(x, 3));

class SoftmaxHalves extends World {
  start = { row: "right", cut: 6 };
  scenes = [
    {
      name: "Right is higher",
      set: {},
      after:
        "The right sum stays. The left one was measured from 1.5, so it shrinks by exp(1.5 − 3) before it is added.",
    },
    {
      name: "Equal maxima",
      set: { row: "even" },
      after: "Both were measured from the same maximum: the factors are 1, and the sums add up as they are.",
    },
    {
      name: "Far apart",
      set: { row: "far" },
      after:
        "exp(1 − 8) is under a thousandth. The left half hardly counts, and that is right: its weights are that small.",
    },
    {
      name: "One against eleven",
      set: { row: "left", cut: 1 },
      after: "How many scores stand behind a sum does not matter, only which maximum it was measured from.",
    },
    {
      name: "An empty half",
      set: { row: "empty" },
      after:
        "A half of −inf has the lowest number as its maximum and a sum of 0. Its factor is 0, and so is what it adds.",
    },
  ];
  controls = [
    choice(
      "row",
      "The scores",
      [
        ["right", "right higher"],
        ["left", "left higher"],
        ["even", "equal"],
        ["far", "far apart"],
        ["empty", "left masked"],
      ],
      { wrapped: true },
    ),
    range("cut", "Scores in the left part", 1, 11),
  ];
  guess = {
    ask: "What is ℓ of the whole row?",
    min: 0,
    max: 30,
    step: 0.1,
    from: 4,
    near: (said, truth) => Math.abs(said - truth) <= 0.05 * truth,
    reply: (said, m) =>
      Math.abs(said - m.a.l - m.b.l) < 0.06 && m.a.m !== m.b.m
        ? "That adds two sums that were measured from different maxima."
        : "",
  };
  legend = [
    ["cell", "a score"],
    ["m", "the maximum of its part"],
    ["a", "its exp, against the maximum of all"],
    ["a-soft", "against the maximum of its part"],
  ];

  model({ row, cut }) {
    const scores = ROWS[row],
      a = partial(scores.slice(0, cut)),
      b = partial(scores.slice(cut));
    return { scores, cut, a, b, whole: merge(a, b) };
  }
  answer(m) {
    return Math.round(m.whole.l * 1000) / 1000;
  }
  given({ a, b }) {
    return `Left: <b class="m">m = ${two(a.m)}</b>, <b class="a">ℓ = ${two(a.l)}</b>. Right: <b class="m">m = ${two(b.m)}</b>, <b class="a">ℓ = ${two(b.l)}</b>.`;
  }
  explain({ a, b, whole }) {
    return `${two(a.l)} × ${two(whole.shrink[0])} + ${two(b.l)} × ${two(whole.shrink[1])} = ${two(whole.l)}.`;
  }
  counters(m) {
    return [
      { label: "left: m, ℓ", value: `${two(m.a.m)}, ${two(m.a.l)}` },
      { label: "right: m, ℓ", value: `${two(m.b.m)}, ${two(m.b.l)}` },
      { label: "left shrinks by", value: two(m.whole.shrink[0]), secret: true },
      { label: "right shrinks by", value: two(m.whole.shrink[1]), secret: true },
      { label: "m of both", value: two(m.whole.m), tone: "m", secret: true },
      { label: "ℓ of both", value: two(m.whole.l), tone: "a", secret: true },
    ];
  }
  say(m) {
    return `Left shrinks by ${two(m.whole.shrink[0])}, right by ${two(m.whole.shrink[1])}. The sum of both is ${two(m.whole.l)}.`;
  }
  readout(m) {
    return this.open ? this.explain(m) : "";
  }

  draw(m, { width, open }) {
    const n = m.scores.length,
      left = 4,
      gap = 14,
      step = (width - 2 * left - gap) / n,
      high = 96,
      base = 22 + high,
      base2 = base + 40 + 90,
      top = Math.max(...m.scores),
      depth = Math.max(4, top + 1);
    const X = (i) => left + i * step + (i >= m.cut ? gap : 0),
      Y = (x) => base - Math.max(0, (x - top + depth) / depth) * (high - 8);
    let s = label(0, 10, "scores, cut in two", "cap") + label(0, base + 30, "exp, added up", "cap");
    m.scores.forEach((x, i) => {
      const part = i < m.cut ? m.a : m.b;
      if (Number.isFinite(x)) s += rect(X(i) + 2, Y(x), step - 4, base - Y(x), "g-cell");
      else s += label(X(i) + step / 2, base - 5, "−inf", width < 460 ? "tiny" : "", "middle");
      const own = Math.exp(x - part.m) * 84,
        all = Math.exp(x - m.whole.m) * 84;
      s += rect(X(i) + 2, base2 - own, step - 4, own, "g-a-soft");
      if (open) s += rect(X(i) + 2, base2 - all, step - 4, all, "g-a");
    });
    for (const [part, from, to] of [
      [m.a, 0, m.cut - 1],
      [m.b, m.cut, n - 1],
    ]) {
      s += line(X(from), base, X(to) + step, base, "g-wire") + line(X(from), base2, X(to) + step, base2, "g-wire");
      if (part.m > -1e30) s += line(X(from), Y(part.m), X(to) + step, Y(part.m), "g-wire-m");
    }
    const known = open ? ` The sum of both is ${two(m.whole.l)}.` : "";
    return {
      height: base2 + 12,
      svg: s,
      label: `Twelve scores in two parts with maxima ${two(m.a.m)} and ${two(m.b.m)}.${known}`,
    };
  }
}

define("softmax-halves", SoftmaxHalves);
