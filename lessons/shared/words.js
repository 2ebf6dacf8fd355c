/* Numbers as words, by the same rules as harness/site/units.py. */

const SCALES = (() => {
  const si = { "": 1, K: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 };
  const out = {
    bytes: 1,
    bits: 1,
    "FLOP/B": 1,
    W: 1,
    "%": 0.01,
    "tokens/s": 1,
    tokens: 1,
    s: 1,
    ms: 1e-3,
    µs: 1e-6,
    ns: 1e-9,
  };
  for (const [p, f] of Object.entries({ ...si, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 }))
    for (const per of ["", "/s"]) out[`${p}B${per}`] = f;
  for (const [p, f] of Object.entries(si)) {
    out[`${p}FLOP`] = out[`${p}FLOP/s`] = f;
    out[`${p}Hz`] = f;
  }
  return out;
})();

/** A whole number with thousands separators: 67,108,864. */
export const count = (n) => Math.round(n).toLocaleString("en-US").replace("-", "−");

/** A number with so many significant digits, digits before the point always all of them: 1,095 or 0.0123. */
export function digits(value, wanted = 3) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return String(value);
  const size = Math.floor(Math.log10(Math.abs(value)));
  let places = Math.max(0, wanted - 1 - size);
  if (Math.abs(+value.toFixed(Math.min(places, 20))) >= 10 ** (size + 1)) places = Math.max(0, places - 1);
  let text = value.toLocaleString("en-US", {
    minimumFractionDigits: Math.min(places, 20),
    maximumFractionDigits: Math.min(places, 20),
  });
  if (text.includes(".") && Math.abs(+text.replaceAll(",", "") - value) <= 1e-9 * Math.abs(value))
    text = text.replace(/\.?0+$/, "");
  return text.replace("-", "−");
}

/** A quantity given in base units: quantity(4.27e12, "TB/s") is 4.27 TB/s. */
export function quantity(value, unit, wanted = 3) {
  if (!(unit in SCALES)) throw new Error(`unit ${unit} is not known`);
  return `${digits(value / SCALES[unit], wanted)} ${unit}`;
}

export const percent = (share, wanted = 3) => quantity(share, "%", wanted);
export const times = (ratio) => digits(ratio, 2) + "×";
export const plural = (n, word, more = word + "s") => `${count(n)} ${n === 1 ? word : more}`;

/** What a quiz prints of a value: text as it is, whole numbers in full, others with four digits. */
export const show = (x) => (typeof x !== "number" ? String(x) : Number.isInteger(x) ? count(x) : digits(x, 4));

/** Whether two numbers agree to a relative tolerance; 0 means equal but for the last bits of floating point. */
export const near = (a, b, tolerance = 0) => Math.abs(a - b) <= Math.max(1e-9, tolerance) * Math.abs(b);

/** What somebody typed, as a number: 1,024 and 1 024 are 1024; 2,5 and 2.5 are 2.5. NaN if it is none. */
export function parse(text) {
  const plain = text.trim().replace(/[−–]/g, "-").replace(/[\s_]/g, "");
  const grouped = /^-?\d{1,3}(,\d{3})+(\.\d*)?$/.test(plain) ? plain.replaceAll(",", "") : plain.replace(",", ".");
  const bare = grouped.replace(/(×|%|[a-zA-Zµ/]+)$/, "");
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(bare) ? Number(bare) : NaN;
}
