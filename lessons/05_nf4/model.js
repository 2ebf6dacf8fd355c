/* Lesson 5, the model: 4,096 weights, cut into blocks, each rounded to the codes of a format. Pure. */

export const WEIGHTS = 4096;
export const GROUP = 256; // absmax that share one absmax2

// quantiles of a normal distribution, scaled to -1 … 1: what bitsandbytes calls NF4
export const NF4 = [
  -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
  -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
  0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
];
export const INT4 = Array.from({ length: 15 }, (_, i) => (i - 7) / 7);
export const FP4 = bothSigns([0, 0.5, 1, 1.5, 2, 3, 4, 6], 6);
export const FP8 = bothSigns(e4m3(), 448);
export const CODES = { nf4: NF4, int4: INT4, fp4: FP4, fp8: FP8 };
export const CODE_BITS = { nf4: 4, int4: 4, fp4: 4, fp8: 8 };

/** The positive numbers of FP8 E4M3, 0 first: subnormals in steps of 2^-9, then eight a power of two, up to 448. */
function e4m3() {
  const all = [];
  for (let exponent = 0; exponent < 16; exponent++)
    for (let m = 0; m < 8; m++) all.push(exponent ? (1 + m / 8) * 2 ** (exponent - 7) : (m / 8) * 2 ** -6);
  return all.slice(0, -1); // the last pattern is NaN
}

function bothSigns(values, largest) {
  const negative = values.slice(1).map((v) => -v / largest);
  return [...negative.reverse(), ...values.map((v) => v / largest)];
}

/** The 256 codes of a nested absmax: seven decades in linear steps, both signs, 0 and 1; sorted. */
export function dynamicMap() {
  const all = [0, 1];
  for (let i = 0; i < 7; i++) {
    const steps = 2 ** i,
      edge = (k) => 0.1 + (0.9 * k) / steps;
    for (let k = 0; k < steps; k++) {
      const v = ((edge(k) + edge(k + 1)) / 2) * 10 ** (i - 6);
      all.push(v, -v);
    }
  }
  return all.sort((a, b) => a - b);
}

/** The number of the code nearest to x; a tie goes to the lower one. `codes` is sorted. */
export function nearest(codes, x) {
  let low = 0,
    high = codes.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (x > (codes[mid] + codes[mid + 1]) / 2) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** Bits that one weight costs: its code, and its share of the block's absmax (and of the group's absmax2). */
export function bits({ format, block, nested = false }) {
  return CODE_BITS[format] + (nested ? 8 + 32 / GROUP : 32) / block;
}

/** Normal weights with deviation 1, always the same; one in 512 is `outlier` large, if that is not 0. */
export function layer(outlier = 0) {
  const out = new Array(WEIGHTS);
  let seed = 20;
  const uniform = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  for (let i = 0; i < WEIGHTS; i++)
    out[i] = Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  if (outlier) for (let i = 21; i < WEIGHTS; i += 512) out[i] = outlier;
  return out;
}

/** absmax after a second quantisation, as bitsandbytes does it: the mean off, 8-bit codes, an absmax2 a group. */
export function nest(absmax) {
  const codes = dynamicMap(),
    offset = absmax.reduce((a, b) => a + b, 0) / absmax.length,
    out = [];
  for (let g = 0; g < absmax.length; g += GROUP) {
    const rest = absmax.slice(g, g + GROUP).map((v) => v - offset),
      absmax2 = Math.max(...rest.map(Math.abs));
    for (const v of rest) out.push(absmax2 ? codes[nearest(codes, v / absmax2)] * absmax2 + offset : offset);
  }
  return out;
}

/** All weights in a format: {codes, picked (code numbers), absmax (as the kernel gets it), error (mean, in deviations)}. */
function rounded({ format, block, outlier, nested }) {
  const codes = CODES[format],
    w = layer(outlier),
    exact = [];
  for (let i = 0; i < WEIGHTS; i += block) exact.push(Math.max(...w.slice(i, i + block).map(Math.abs)));
  const absmax = nested ? nest(exact) : exact;
  const picked = w.map((v, i) => nearest(codes, v / exact[Math.floor(i / block)]));
  const off = w.map((v, i) => Math.abs(codes[picked[i]] * absmax[Math.floor(i / block)] - v));
  return { codes, w, picked, exact, absmax, off, error: off.reduce((a, b) => a + b, 0) / WEIGHTS };
}

/**
 * A format over the layer, and its first block.
 *
 * `format`: of CODES; `block`: weights that share an absmax; `outlier`: see layer; `nested`: whether absmax has 8 bits.
 * Returns codes, the first block's weights (over its absmax), their code numbers, how often each code occurs there,
 * absmax, largest (which weight sets it), error of the layer, ratio to NF4 in blocks of 64 without outliers, bits.
 */
export function quantise({ format = "nf4", block = 64, outlier = 0, nested = false } = {}) {
  const all = rounded({ format, block, outlier, nested }),
    plain = rounded({ format: "nf4", block: 64, outlier: 0, nested: false });
  const absmax = all.exact[0],
    first = all.w.slice(0, block),
    picked = all.picked.slice(0, block),
    times = all.codes.map(() => 0);
  for (const code of picked) times[code]++;
  return {
    format,
    block,
    outlier,
    nested,
    codes: all.codes,
    weights: first.map((v) => v / absmax),
    picked,
    times,
    used: times.filter((n) => n > 0).length,
    absmax,
    largest: first.findIndex((v) => Math.abs(v) === absmax),
    error: all.error,
    ratio: all.error / plain.error,
    bits: bits({ format, block, nested }),
  };
}

/** How a ratio of errors reads: "less", "same" (within a tenth), "more" (up to double) or "worse". */
export function verdict(ratio) {
  return ratio < 0.9 ? "less" : ratio <= 1.1 ? "same" : ratio <= 2 ? "more" : "worse";
}
