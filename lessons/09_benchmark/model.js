/* Lesson 9, the model: a simulated GPU whose true time is known, and measurements of it with mistakes. Pure. */

export const TRUTH = 60e-6; // seconds: a cold launch at full clock
export const QUEUE = 12.8e-6; // seconds of the host to queue a launch
const COMPILE = 0.4, // seconds that the first launch takes longer
  RAMP = 0.2, // seconds of work until the clock is up
  FLUSH = 40e-6, // seconds of work to evict the inputs
  CACHED = 0.52, // a launch whose inputs are in L2, against a cold one
  NOISE = 0.01,
  RARE = 12, // one launch in so many is disturbed
  DISTURBED = 5; // and takes so many times as long

function source(seed) {
  let s = (seed * 7919 + 17) | 0;
  return () => {
    s = (s + 0x6d2b79f5) | 0;
    let t = Math.imul(s ^ (s >>> 15), 1 | s);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * The samples that a measurement takes, in seconds.
 *
 * `sync`: whether it waits for the GPU; `compiled`: whether the first launch is left out; `warm`: whether the GPU has
 * worked before; `flush`: whether L2 is emptied before each launch; `n`: samples; `tick`: of the timer, seconds.
 */
export function samples({ sync = true, compiled = true, warm = true, flush = true, n = 100, tick = 0, seed = 1 } = {}) {
  const random = source(seed),
    out = [];
  let worked = warm ? RAMP : 0;
  for (let i = 0; i < n; i++) {
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
      disturbed = random() < 1 / RARE ? DISTURBED : 1,
      phase = random();
    const clock = 2 - Math.min(1, worked / RAMP),
      time = TRUTH * (1 + NOISE * normal) * disturbed * clock * (flush ? 1 : CACHED);
    worked += time + (flush ? FLUSH : 0);
    const seen = (sync ? time : QUEUE * (1 + NOISE * normal)) + (!compiled && i === 0 ? COMPILE : 0);
    out.push(tick ? Math.floor(seen / tick + phase) * tick : seen);
  }
  return out;
}

export const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

export function median(list) {
  const sorted = [...list].sort((a, b) => a - b),
    half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** The samples near the median: within two ticks or 15 %, whichever is more. */
export function near(list, tick = 0) {
  const middle = median(list);
  return list.filter((t) => Math.abs(t - middle) <= Math.max(2 * tick, 0.15 * middle));
}

/** Standard error of a mean: the deviation of the samples over the root of their number; 0 for a single one. */
export function standardError(list) {
  if (list.length < 2) return 0;
  const m = mean(list);
  return Math.sqrt(list.reduce((s, t) => s + (t - m) ** 2, 0) / (list.length - 1) / list.length);
}

/** What a measurement reports: {times, reported, ratio (to the truth), error (standard error), verdict}. */
export function measure({ stat = "trimmed", ...rest } = {}) {
  const times = samples(rest),
    kept = stat === "trimmed" ? near(times, rest.tick ?? 0) : times;
  const reported = stat === "median" ? median(times) : mean(kept),
    ratio = reported / TRUTH;
  return { times, kept, reported, ratio, error: standardError(kept), verdict: verdict(ratio) };
}

/** "far_short" (below a half), "short", "right" (within 5 %), "long", "far_long" (above double). */
export function verdict(ratio) {
  if (ratio < 0.5) return "far_short";
  if (ratio < 0.95) return "short";
  if (ratio <= 1.05) return "right";
  return ratio <= 2 ? "long" : "far_long";
}
