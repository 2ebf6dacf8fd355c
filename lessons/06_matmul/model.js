/* Lesson 6, the model: what a tiled product loads, and what the programs that run together need. Pure. */

/**
 * A product [M, K] times [K, N] in tiles of bm × bn outputs, bk of K at a step; `bytes` of an element, `stages` pairs
 * of tiles in flight.
 *
 * Returns rows and cols of tiles, programs, steps, readsA and readsB (how often each number is loaded), loaded and
 * least (bytes, of A and B), flop, intensity (FLOP per loaded byte), shared and accumulator (bytes of a program).
 */
export function tiles({ M, N, K, bm, bn, bytes = 2, bk = 64, stages = 4 }) {
  const rows = Math.ceil(M / bm),
    cols = Math.ceil(N / bn),
    steps = Math.ceil(K / bk);
  const loadedA = cols * rows * bm * K * bytes,
    loadedB = rows * cols * bn * K * bytes;
  return {
    rows,
    cols,
    steps,
    programs: rows * cols,
    readsA: cols,
    readsB: rows,
    loaded: loadedA + loadedB,
    least: (M + N) * K * bytes,
    flop: 2 * M * N * K,
    intensity: (2 * bm * bn) / ((bm + bn) * bytes),
    shared: (bm + bn) * bk * bytes * stages,
    accumulator: bm * bn * 4,
  };
}

/** The tile of each program, in order: `group` rows of tiles at a time, column after column. [{m, n}]; 1 is row by row. */
export function order(rows, cols, group) {
  const out = [];
  for (let pid = 0; pid < rows * cols; pid++) {
    const first = Math.floor(pid / (group * cols)) * group,
      high = Math.min(rows - first, group),
      within = pid % (group * cols);
    out.push({ m: first + (within % high), n: Math.floor(within / high) });
  }
  return out;
}

/** What some programs need together: {a, b}: different rows of tiles of A, different columns of tiles of B. */
export function need(programs) {
  return { a: new Set(programs.map((p) => p.m)).size, b: new Set(programs.map((p) => p.n)).size };
}

/** FLOP/s that a tile may reach: the peak, or what its loads allow at `bandwidth` bytes a second. */
export const roof = (intensity, peak, bandwidth) => Math.min(peak, intensity * bandwidth);
