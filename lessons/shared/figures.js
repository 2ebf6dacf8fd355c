/* What draws: the document, and pieces of SVG. */

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

/** Whether the reader asked for no motion. */
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The `[facts]` of the lesson's front matter, computed at build; empty outside a page. */
export const facts = globalThis.document?.getElementById("facts")
  ? JSON.parse(document.getElementById("facts").textContent)
  : {};

/* -- pieces of SVG -- */

const at = (x) => (Number.isInteger(x) ? x : (+x).toFixed(2));
export const rect = (x, y, w, h, cls, extra = "") =>
  `<rect x="${at(x)}" y="${at(y)}" width="${at(Math.max(0, w))}" height="${at(Math.max(0, h))}" class="${cls}" ${extra}/>`;
export const path = (d, cls, extra = "") => `<path d="${d}" class="${cls}" ${extra}/>`;
export const line = (x1, y1, x2, y2, cls = "g-line", extra = "") =>
  path(`M${at(x1)} ${at(y1)}L${at(x2)} ${at(y2)}`, cls, extra);
/** Words in a figure. `cls`: cap (caption), big, t-a, t-m, t-ink; none is small mono. `anchor`: start, middle, end. */
export const label = (x, y, words, cls = "", anchor = "start") =>
  `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}"${cls ? ` class="${cls}"` : ""}>${words}</text>`;
/** A fill of slanted lines: put it into the figure once, then use fill="url(#id)". */
export const hatch = (id) =>
  `<defs><pattern id="${id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
  `<path class="g-hatch" d="M0 0V6"/></pattern></defs>`;
