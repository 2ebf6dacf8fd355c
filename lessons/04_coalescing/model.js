/* Lesson 4, the model: which sectors a warp's addresses fall into, and what a transpose asks of memory. Pure. */

export const LANES = 32;
export const SECTOR = 32; // bytes
export const LINE = 128; // bytes
export const WIDEST = 16; // bytes that one lane can load at once

/**
 * One load of a warp.
 *
 * `stride`: items from lane to lane (an item is `vec` elements); `offset`: elements before the first; `elem`: bytes of
 * an element; `walk`: "row", or "col" for lanes that step down a matrix whose rows are `pitch` bytes apart.
 * Returns lanes [{from, to}] in bytes, sectors and lines (numbers, sorted), bytes asked and moved, requests, and eff.
 */
export function request({ stride = 1, offset = 0, elem = 4, vec = 1, walk = "row", pitch = LINE } = {}) {
  const item = elem * vec,
    step = stride * (walk === "col" ? pitch : item),
    base = offset * elem;
  const lanes = [],
    seen = new Set();
  for (let lane = 0; lane < LANES; lane++) {
    const from = base + lane * step,
      to = from + item;
    lanes.push({ from, to });
    for (let s = Math.floor(from / SECTOR); s <= Math.floor((to - 1) / SECTOR); s++) seen.add(s);
  }
  const sectors = [...seen].sort((a, b) => a - b),
    lines = [...new Set(sectors.map((s) => Math.floor((s * SECTOR) / LINE)))];
  const asked = LANES * item,
    moved = sectors.length * SECTOR;
  return {
    item,
    lanes,
    sectors,
    lines,
    asked,
    moved,
    best: Math.max(1, Math.ceil(asked / SECTOR)),
    eff: asked / moved,
    requests: item / width(item, elem, base, step),
    width: width(item, elem, base, step),
    stride,
  };
}

/** Bytes that a lane loads at once: a power of two up to 16 to which every lane's address is aligned. */
function width(item, elem, base, step) {
  let bytes = Math.min(item, WIDEST);
  while (bytes > elem && (base % bytes || step % bytes)) bytes /= 2;
  return bytes;
}

/**
 * A transpose of n × n elements, one warp a row (or column), request by request: [{op, where, dir, index, cells,
 * sectors, partial, asked, moved}]. `mode`: "row" reads rows and writes columns, "col" the other way round, "tile"
 * reads and writes rows, with a tile between. A column that is written leaves its sectors partly filled.
 */
export function transpose(mode, n = 32, elem = 4) {
  const per = SECTOR / elem,
    steps = [];
  const add = (op, dir, index) => {
    const cells = Array.from({ length: n }, (_, k) => (dir === "row" ? [index, k] : [k, index]));
    const sectors = [...new Set(cells.map(([r, c]) => r * (n / per) + Math.floor(c / per)))];
    const partial = op === "write" && dir === "col" ? sectors.length : 0;
    steps.push({
      op,
      where: op === "read" ? "in" : "out",
      dir,
      index,
      cells,
      sectors,
      partial,
      asked: n * elem,
      moved: sectors.length * SECTOR,
    });
  };
  if (mode === "tile") for (const op of ["read", "write"]) for (let i = 0; i < n; i++) add(op, "row", i);
  else
    for (let i = 0; i < n; i++) {
      add("read", mode, i);
      add("write", mode === "row" ? "col" : "row", i);
    }
  return steps;
}

/** Sum of some requests; `time` is against moving the asked bytes alone, a partly written sector costing `partialCost`. */
export function total(steps, partialCost = 1) {
  const t = { requests: steps.length, sectors: 0, asked: 0, moved: 0, cost: 0 };
  for (const s of steps) {
    t.sectors += s.sectors.length;
    t.asked += s.asked;
    t.moved += s.moved;
    t.cost += s.sectors.length + s.partial * (partialCost - 1);
  }
  return { ...t, eff: t.moved ? t.asked / t.moved : 1, time: t.asked ? (t.cost * SECTOR) / t.asked : 1 };
}
