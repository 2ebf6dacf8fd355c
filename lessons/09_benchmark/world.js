/* A benchmark with mistakes to switch on and off: what it reports, beside the time that is true. */

import { World, choice, define, digits, label, line, quantity, range, rect, toggle } from "../shared/kit.js";
import { TRUTH, measure } from "./model.js";

const LOW = 8e-6; // seconds, the lower end of the scale
const time = (s) => (s >= 0.1 ? quantity(s, "s") : s >= 1e-3 ? quantity(s, "ms") : quantity(s, "µs"));

class BenchWorld extends World {
  start = { sync: true, compiled: true, warm: true, flush: true, n: 100, stat: "trimmed", coarse: false, seed: 1 };
  scenes = [
    {
      name: "Warm L2",
      set: { flush: false },
      after:
        "Each launch finds its inputs in the cache, where the last one left them. In a model other layers ran in between.",
    },
    {
      name: "No sync",
      set: { sync: false },
      after:
        "A launch only queues work. The clock was read before the GPU was done, so this is the time of the host, for a kernel of any length.",
    },
    {
      name: "Compile in the loop",
      set: { compiled: false, stat: "mean" },
      after: "One sample of 0.4 seconds, and the mean gives each of the hundred its part of it.",
    },
    {
      name: "The mean of all",
      set: { stat: "mean" },
      after:
        "One launch in twelve is disturbed and takes five times as long. They are few, and a mean believes them all.",
    },
    {
      name: "Idle clock",
      set: { warm: false },
      after:
        "A hundred short launches are over long before the clock is up. More samples of the same do not help either.",
    },
    {
      name: "Coarse timer",
      set: { coarse: true, stat: "median" },
      after:
        "Each sample is two ticks or three. The median can only be one of these; the mean of what lies near it is right.",
    },
    {
      name: "Two mistakes",
      set: { warm: false, flush: false },
      after:
        "An idle clock makes it longer and a warm cache shorter, and here they cancel. On another kernel they will not.",
    },
  ];
  controls = [
    toggle("sync", "Waits for the GPU", { off: "no", on: "yes" }),
    toggle("compiled", "First launch", { off: "counts", on: "left out" }),
    toggle("warm", "Before it, the GPU", { off: "idled", on: "worked" }),
    toggle("flush", "L2 before each launch", { off: "warm", on: "emptied" }),
    toggle("coarse", "The timer", { off: "fine", on: "coarse" }),
    choice("stat", "Reported is the", [
      ["mean", "mean"],
      ["median", "median"],
      ["trimmed", "trimmed"],
    ]),
    range("n", "Samples", 0, 0, { values: [1, 3, 10, 30, 100, 300] }),
    range("seed", "Run number", 1, 12),
  ];
  guess = {
    ask: "The kernel takes 60 microseconds, cold and at full clock. What does this measurement report?",
    options: [
      ["far_short", "Less than half of it"],
      ["short", "Too little"],
      ["right", "The truth, within a twentieth"],
      ["long", "Too much"],
      ["far_long", "More than double"],
    ],
  };
  legend = [
    ["a", "the truth"],
    ["ink", "a sample"],
    ["m", "what is reported"],
  ];

  model(s) {
    const m = measure({ ...s, tick: s.coarse ? 25e-6 : 0 });
    return { ...m, ...s };
  }
  answer(m) {
    return m.verdict;
  }
  given(m) {
    const faults = [
      !m.sync && "the host’s clock, without waiting",
      !m.compiled && "the first launch counts",
      !m.warm && "the GPU idled before",
      !m.flush && "inputs may be in L2",
      m.coarse && "a timer with ticks of two fifths of the kernel",
    ].filter(Boolean);
    const rest = { mean: "the mean of all", median: "the median", trimmed: "the mean of what lies near the median" }[
      m.stat
    ];
    return `${m.n === 1 ? "One sample" : `${m.n} samples`}, ${rest}. ${faults.length ? `Careless: ${faults.join("; ")}.` : "All else is done with care."}`;
  }
  explain(m) {
    if (m.n === 1)
      return "One sample has no spread, so nothing tells whether this launch was a disturbed one. Try other runs.";
    const off = Math.abs(m.ratio - 1),
      interval = 2 * m.error,
      holds = Math.abs(m.reported - TRUTH) <= interval;
    if (interval > 0.1 * m.reported) return "So wide an interval says nothing, whether or not it holds the truth.";
    if (holds) return "The interval holds the truth.";
    return off > 0.05 && interval < 0.05 * m.reported
      ? "A narrow interval around a wrong value: repeating does not find what is wrong with all samples alike."
      : "The interval misses the truth.";
  }

  counters(m) {
    return [
      { label: "truth", value: time(TRUTH), tone: "a" },
      { label: "reported", value: time(m.reported), tone: "m", secret: true },
      { label: "reported / truth", value: digits(m.ratio, 3) + "×", secret: true },
      { label: "± two errors", value: m.n === 1 ? "unknown" : time(2 * m.error), secret: true },
      { label: "shortest sample", value: time(Math.min(...m.times)), secret: true },
      { label: "longest sample", value: time(Math.max(...m.times)), secret: true },
    ];
  }

  say(m) {
    return `Reported: ${time(m.reported)}, ${digits(m.ratio, 3)} times the truth. ${this.explain(m)}`;
  }
  readout(m) {
    return this.open ? this.explain(m) : "";
  }

  draw(m, { width, small, open }) {
    const left = 48,
      right = width - 6,
      top = 20,
      high = small ? 210 : 260,
      base = top + high;
    const most = m.compiled ? 1e-3 : 1,
      marks = m.compiled ? [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4] : [1e-5, 1e-4, 1e-3, 1e-2, 1e-1];
    const Y = (t) => base - (Math.log(Math.max(LOW, t) / LOW) / Math.log(most / LOW)) * high;
    let s = label(left, 11, "samples in the order in which they were taken", "cap");
    for (const t of marks)
      s += line(left, Y(t), right, Y(t), "g-line") + label(left - 6, Y(t) + 3.5, time(t), "", "end");
    s += line(left, base, right, base, "g-wire");
    if (open) {
      const step = (right - left - 8) / m.times.length,
        r = Math.max(1.5, Math.min(4, step / 2 - 0.3));
      m.times.forEach((t, i) => {
        s += rect(left + 4 + (i + 0.5) * step - r, Y(t) - r, 2 * r, 2 * r, "g-ink", 'opacity=".45"');
      });
      s += rect(left, Y(m.reported) - 1.5, right - left, 3, "g-m");
      const below = m.ratio < 1;
      s += label(right, Y(m.reported) + (below ? 15 : -7), `reported ${time(m.reported)}`, "t-m", "end");
    } else s += label((left + right) / 2, top + high / 3, "sealed until you commit", "cap", "middle");
    s += rect(left, Y(TRUTH) - 1, right - left, 2, "g-a");
    s += label(left + 4, Y(TRUTH) + (open && m.ratio < 1 ? -7 : 15), `truth ${time(TRUTH)}`, "t-a");
    const known = open ? ` Reported ${time(m.reported)}.` : "";
    return {
      height: base + 10,
      svg: s,
      label: `Samples of a kernel that takes ${time(TRUTH)}, on a logarithmic scale.${known}`,
    };
  }
}

define("bench-world", BenchWorld);
