/* Lesson 3, the model: shape, strides and offset over a strip of memory. Pure. */

export const ROWS = 6; // of the matrix that owns the memory
export const COLS = 8;

/** Where element (i, j) lies, in elements from the beginning of the memory. */
export const address = ({ offset, stride0, stride1 }, i, j) => offset + i * stride0 + j * stride1;

/**
 * A view of two dims over `memory` elements: sizes, strides and the first element.
 *
 * Returns its cells [{i, j, at}] in the order of its indices, the different addresses, how many lie outside, the span
 * from the lowest to the highest, what of the span the view does not reach, and whether it is contiguous.
 */
export function view({ size0, size1, stride0, stride1, offset }, memory = ROWS * COLS) {
  const cells = [];
  for (let i = 0; i < size0; i++)
    for (let j = 0; j < size1; j++) cells.push({ i, j, at: address({ offset, stride0, stride1 }, i, j) });
  const ats = cells.map((c) => c.at),
    low = Math.min(...ats),
    high = Math.max(...ats),
    reached = new Set(ats);
  return {
    size0,
    size1,
    stride0,
    stride1,
    offset,
    memory,
    cells,
    reached,
    count: cells.length,
    different: reached.size,
    low,
    high,
    span: high - low + 1,
    skipped: high - low + 1 - reached.size,
    outside: ats.filter((a) => a < 0 || a >= memory).length,
    contiguous: (size1 === 1 || stride1 === 1) && (size0 === 1 || stride0 === size1),
  };
}

/** The strides of a contiguous tensor with these sizes. */
export function dense(sizes) {
  const strides = [];
  sizes.reduceRight((step, size) => (strides.unshift(step), step * size), 1);
  return strides;
}

/** The digits of a program's number: an index for each dim, the last dim counting fastest. */
export function digits(pid, bases) {
  const out = [];
  let rest = pid;
  for (const base of [...bases].reverse()) {
    out.unshift(rest % base);
    rest = Math.floor(rest / base);
  }
  return out;
}

/** Sectors of 32 bytes that `n` neighbours along a dim of this stride touch, from the start of one. */
export const sectors = (n, stride, bytes) =>
  new Set(Array.from({ length: n }, (_, i) => Math.floor((i * stride * bytes) / 32))).size;
