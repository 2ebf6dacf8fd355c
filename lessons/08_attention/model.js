/* Lesson 8, the model: what the KV cache costs, what fits, and which tiles a causal kernel visits. Pure. */

export const PAGE = 16; // tokens of a page
export const RESERVE = 0.1; // share of the memory kept for activations, workspaces and the runtime

/** Bytes that one token keeps in all layers: a key and a value for each KV head. */
export const bytesPerToken = ({ layers, kv_heads, head_dim }, bits) => (2 * layers * kv_heads * head_dim * bits) / 8;

/**
 * A GPU filled with weights, a reserve and sequences.
 *
 * `gpu`: {mem_bytes, mem_bw}, bytes and bytes/s; `model`: {layers, kv_heads, head_dim, parameters}; `weightBits`,
 * `kvBits`; `tokens` of each sequence; `paged`, or else room for `longest` tokens each; `batch`: how many want to run,
 * Infinity for as many as fit. Returns bytes, counts and the bound on tokens/s that reading sets.
 */
export function fill({ gpu, model, weightBits, kvBits, tokens, paged = true, longest = tokens, batch = Infinity }) {
  const reserve = RESERVE * gpu.mem_bytes,
    weights = (model.parameters * weightBits) / 8,
    room = gpu.mem_bytes - reserve - weights;
  const perToken = bytesPerToken(model, kvBits);
  const held = paged ? Math.ceil(tokens / PAGE) * PAGE : Math.max(longest, tokens); // token slots of a sequence
  const slot = held * perToken,
    used = tokens * perToken;
  const fits = Math.max(0, Math.floor(room / slot)),
    running = Math.min(batch, fits);
  const read = weights + running * used;
  const rate = (b) => (b * gpu.mem_bw) / (weights + b * used);
  return {
    memory: gpu.mem_bytes,
    reserve,
    weights,
    room,
    perToken,
    held,
    slot,
    used,
    fits,
    running,
    waiting: batch === Infinity ? 0 : Math.max(0, batch - fits),
    read,
    cacheRead: running * used,
    cacheShare: running ? (running * used) / read : 0,
    waste: 1 - tokens / held,
    rate,
    tokensPerSecond: running ? rate(running) : 0,
    ceiling: gpu.mem_bw / used,
    equal: weights / used,
  };
}

export const TILE = 4; // queries and keys of a tile in the picture; real ones have 64 or 128

/**
 * Which keys each query sees, and the tiles that follow. `queries` are the last ones of a sequence of `keys` valid keys
 * (cut at `slots` in the cache). `anchor`: "bottom" lines the last query up with the last key; "top" the first with the
 * first, a mistake. Returns rows [{first, last, kinds}] with a kind for each key tile: full, part, none.
 */
export function tiles({ queries, keys, slots = keys, anchor = "bottom" }) {
  const offset = anchor === "bottom" ? keys - queries : 0,
    rows = [],
    count = { full: 0, part: 0, none: 0 };
  const sees = (i, j) => j < keys && j <= i + offset;
  for (let first = 0; first < queries; first += TILE) {
    const last = Math.min(queries, first + TILE) - 1,
      kinds = [];
    for (let k = 0; k < slots; k += TILE) {
      let seen = 0,
        all = 0;
      for (let i = first; i <= last; i++)
        for (let j = k; j < Math.min(slots, k + TILE); j++) {
          all++;
          if (sees(i, j)) seen++;
        }
      const kind = seen === all ? "full" : seen ? "part" : "none";
      count[kind]++;
      kinds.push(kind);
    }
    rows.push({ first, last, kinds });
  }
  return {
    queries,
    keys,
    slots,
    offset,
    rows,
    sees,
    ...count,
    visited: count.full + count.part,
    total: rows.length * Math.ceil(slots / TILE),
  };
}

const SCORES = [
  0.9, -0.4, 1.3, 0.2, 0.5, 1.1, -0.8, 0.1, 2.4, 0.6, -0.2, 1.5, 0.3, 1.9, 0.8, -0.6, 1.2, 2.1, 0.4, 0, 3.6, 1.4, 0.7,
  2.2, 0.2, 2.8, -0.5, 1, 2.6, 3.1, 1.7, 0.4,
];

/** A score q·k, the same every time: something to run a softmax over. */
export const score = (i, j) => Math.round((SCORES[j % SCORES.length] + 0.25 * Math.sin(1.7 * i + j)) * 10) / 10;

/** One query's softmax, tile by tile: steps [{tile, scores, top, m, alpha, l}], and the sum taken at once. */
export function online(map, i) {
  let m = -Infinity,
    l = 0;
  const steps = [],
    all = [];
  for (let k = 0; k < map.slots; k += TILE) {
    const scores = [];
    for (let j = k; j < k + TILE; j++) if (j < map.slots && map.sees(i, j)) scores.push(score(i, j));
    if (!scores.length) continue;
    all.push(...scores);
    const top = Math.max(...scores),
      next = Math.max(m, top),
      alpha = m === -Infinity ? 0 : Math.exp(m - next);
    l = l * alpha + scores.reduce((sum, s) => sum + Math.exp(s - next), 0);
    m = next;
    steps.push({ tile: k / TILE, scores, top, m, alpha, l });
  }
  const top = Math.max(...all);
  return { steps, m, l, direct: all.reduce((sum, s) => sum + Math.exp(s - top), 0) };
}
