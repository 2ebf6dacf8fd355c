/* Lesson 1, the model: a grid of blocks over n elements, and how the programs find places on the card. Pure. */

/**
 * Blocks of `block` lanes over `n` elements. `up`: the number of programs is rounded up, else down, a mistake.
 * Returns counts: programs, lanes launched, lanes off (no element for them), lanes of the last block that work, and the
 * elements that no program has.
 */
export function grid({ n, block, up = true }) {
  const programs = up ? Math.ceil(n / block) : Math.floor(n / block),
    lanes = programs * block,
    done = Math.min(n, lanes),
    off = lanes - done;
  return {
    n,
    block,
    up,
    programs,
    lanes,
    done,
    off,
    last: programs ? block - off : 0,
    missing: n - done,
    used: lanes ? done / lanes : 1,
  };
}

/** The element that a lane of a program has: pid * block + lane. */
export const element = (pid, lane, block) => pid * block + lane;

/** Programs of `warps` warps that one SM holds at once, threads and places counted; registers may allow fewer. */
export const perSm = ({ threads_per_sm, blocks_per_sm }, warps) =>
  Math.min(blocks_per_sm, Math.floor(threads_per_sm / (32 * warps)));

/**
 * Programs of equal length on a card, wave by wave. `gpu`: {sms, threads_per_sm, blocks_per_sm}. Returns the slots of the
 * card, the waves, how many programs the last one has, what each SM has of it, and the share of slots that work.
 */
export function waves({ gpu, programs, warps = 4 }) {
  const each = perSm(gpu, warps),
    slots = gpu.sms * each,
    count = Math.ceil(programs / slots),
    last = programs - (count - 1) * slots;
  const tail = Array.from({ length: gpu.sms }, (_, sm) => Math.floor(last / gpu.sms) + (sm < last % gpu.sms ? 1 : 0));
  return {
    programs,
    each,
    slots,
    count,
    last,
    tail,
    idle: slots - last,
    idleSms: tail.filter((t) => t === 0).length,
    eff: programs / (count * slots),
  };
}

/** The least time in s of an elementwise kernel: its bytes, or starting its programs one after the other. */
export function time({ n, block, bytes, bandwidth, launch }) {
  const moving = (n * bytes) / bandwidth,
    starting = Math.ceil(n / block) * launch;
  return { moving, starting, time: Math.max(moving, starting) };
}
