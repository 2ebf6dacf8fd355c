/* What a lesson's world.js imports: words for numbers, pieces of SVG, controls, and World. */

export { count, digits, near, parse, percent, plural, quantity, show, times } from "./words.js";
export { $, $$, calm, facts, hatch, label, line, path, rect } from "./figures.js";
export { choice, range, toggle } from "./controls.js";
export { World, define } from "./world.js";
