/* Lesson 7, the model: a softmax piece by piece in a type's own arithmetic, and the merging of two halves. Pure. */

export const TYPES = {
  float32: { largest: 3.4028234663852886e38, round: Math.fround },
  float16: { largest: 65504, round: half },
};

const usual = [1.2, -0.4, 0.8, 2.1, -1.3, 0.3, 1.7, -0.8, 0.5, 2.6, -0.2, 1.1];
export const ROWS = {
  usual,
  rising: usual.map((_, i) => i / 2),
  twelve: usual.map((x) => x + 10),
  hundred: usual.map((x) => x + 100),
  deep: usual.map((x) => x - 120),
  masked: usual.map((x, i) => (i < 4 ? -Infinity : x)),
};

/** x rounded to float16, ties to even; beyond 65504 it is infinite. */
export function half(x) {
  if (!Number.isFinite(x) || x === 0) return x;
  let size = Math.floor(Math.log2(Math.abs(x)));
  if (2 ** size > Math.abs(x)) size--;
  const step = 2 ** (Math.max(size, -14) - 10),
    n = x / step,
    low = Math.floor(n),
    tie = n - low === 0.5;
  const rounded = (tie ? low + (low % 2 !== 0 ? 1 : 0) : Math.round(n)) * step;
  return Math.abs(rounded) > 65504 ? Math.sign(x) * Infinity : rounded;
}

/** The softmax of some scores in double precision, none of them +∞; what others are compared with. */
export function softmax(scores) {
  const m = Math.max(...scores),
    p = scores.map((x) => Math.exp(x - m)),
    l = p.reduce((a, b) => a + b, 0);
  return p.map((v) => v / l);
}

/**
 * A softmax over `row` (scores), `piece` scores at a time, every result rounded to `type`.
 *
 * `method`: "plain" (no maximum), "online" (maximum and sum together), "stale" (the sum is not rescaled);
 * `from`: what the running maximum starts at, "lowest" (finite number) or "inf" (minus infinity).
 * Returns steps [{first, last, before, m, alpha, l}], what comes out, the truth, and a verdict: right, wrong or nan.
 */
export function run({ row = usual, piece = 3, method = "online", from = "lowest", type = "float32" } = {}) {
  const { largest, round } = TYPES[type],
    exp = (x) => round(Math.exp(round(x)));
  const scores = row.map(round),
    steps = [];
  let m = method === "plain" ? 0 : from === "inf" ? -Infinity : -largest,
    l = 0;
  for (let first = 0; first < scores.length; first += piece) {
    const part = scores.slice(first, first + piece),
      before = m;
    if (method !== "plain") m = Math.max(m, ...part);
    const alpha = method === "online" ? exp(before - m) : 1;
    l = round(l * alpha);
    for (const x of part) l = round(l + exp(x - m));
    steps.push({ first, last: first + part.length - 1, before, m, alpha, l });
  }
  const out = scores.map((x) => round(exp(x - m) / l)),
    truth = softmax(scores);
  const off = out.map((v, i) => Math.abs(v - truth[i]));
  return { scores, steps, out, truth, m, l, verdict: verdict(off), sum: out.reduce((a, b) => a + b, 0) };
}

function verdict(off) {
  if (off.some(Number.isNaN)) return "nan";
  return off.some((v) => v > 0.004) ? "wrong" : "right";
}

/** Maximum and sum of a part of a row, as a program keeps them: {m, l}. No finite score: the lowest number, and 0. */
export function partial(scores) {
  const m = Math.max(-TYPES.float32.largest, ...scores);
  return { m, l: scores.reduce((sum, x) => sum + Math.exp(x - m), 0) };
}

/** Two parts as one: both sums brought to the larger maximum; `shrink` is what each was multiplied by. */
export function merge(a, b) {
  const m = Math.max(a.m, b.m),
    shrink = [Math.exp(a.m - m), Math.exp(b.m - m)];
  return { m, l: a.l * shrink[0] + b.l * shrink[1], shrink };
}

/** The largest x whose exp a type can hold. */
export const expLimit = (type) => Math.log(TYPES[type].largest);
