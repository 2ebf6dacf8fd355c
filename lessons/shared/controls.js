/* The controls of a world, as data: World draws them. */

import { show } from "./words.js";

/** A slider over min … max, or over the list `values`. `show(value)`: its words; `when(state)`: whether it counts now. */
export const range = (key, label, min, max, { step = 1, show: worded = show, values = null, when = null } = {}) => ({
  kind: "range",
  key,
  label,
  min: values ? 0 : min,
  max: values ? values.length - 1 : max,
  step: values ? 1 : step,
  show: worded,
  values,
  when,
});
/** One of a few: [[value, words], …]. `wrapped`: two in a row, for long words. */
export const choice = (key, label, options, { wrapped = false, when = null } = {}) => ({
  kind: "choice",
  key,
  label,
  options,
  wrapped,
  when,
});
/** Something that is on or off. */
export const toggle = (key, label, { off = "off", on = "on", when = null } = {}) =>
  choice(
    key,
    label,
    [
      [false, off],
      [true, on],
    ],
    { when },
  );
