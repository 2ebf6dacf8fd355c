/* What a world shows around its figure: a line of words, the controls, the meter, the counters. */

import { $, $$ } from "./figures.js";
import { show } from "./words.js";

/** The line under the figure, which the cursor and the player say too. `described`: the figure in words. */
export function showLine(world, described) {
  const { cursor, player, figure, m } = world;
  const words = cursor?.text(m, world.point) ?? player?.text?.(m, world.at) ?? world.readout?.(m) ?? "";
  $(".readout", world).textContent = words;
  if (cursor) {
    const now = { valuemax: world.cursorMax(), valuenow: world.point, valuetext: words, description: described };
    for (const [key, value] of Object.entries(now)) figure.setAttribute(`aria-${key}`, value);
  }
  if (player) {
    const scrub = $("[data-at]", world);
    scrub.max = player.steps(m);
    scrub.value = world.at;
    scrub.setAttribute("aria-valuetext", player.text?.(m, world.at) ?? `${world.at} of ${scrub.max}`);
  }
  $$(".tabs button", world).forEach((b, i) => b.setAttribute("aria-pressed", i === world.scene));
}

/** Each control with the value that its setting has. */
export function showControls(world) {
  for (const input of $$("[data-key]", world)) {
    const c = world.controls.find((one) => one.key === input.dataset.key);
    const value = world.state[c.key];
    input.disabled = c.when ? !c.when(world.state) : false;
    if (c.kind === "choice") {
      input.checked = c.options[+input.value][0] === value;
      continue;
    }
    input.value = c.values ? c.values.indexOf(value) : value;
    const words = c.show(value);
    $("output", input.parentNode).textContent = words;
    input.setAttribute("aria-valuetext", words);
  }
}

/** Two quantities on one bar; the second is hidden until the learner has committed, unless `secret` is false. */
export function showMeter(world) {
  const meter = world.meter?.(world.m);
  if (!meter) return;
  const box = $("[data-meter]", world);
  const wide = (x) => `${(100 * x) / meter.full}%`;
  if (!box.firstChild) {
    box.innerHTML = `<div class="meter" aria-hidden="true"><i></i><b></b></div><p class="meter-t"></p>`;
  }
  $("b", box).style.width = wide(meter.a);
  $("i", box).style.width = world.open || meter.secret === false ? wide(meter.m) : 0;
  $(".meter-t", box).textContent = meter.note ?? "";
}

/** The counters; `animate`: the secret ones count up, for this is the moment in which they show. */
export function showCounters(world, animate) {
  const list = world.counters(world.m);
  const box = $(".counts", world);
  const fill = (part) => {
    box.innerHTML = list.map((c) => counter(c, c.secret && !world.open, c.secret ? part : 1)).join("");
  };
  cancelAnimationFrame(world.frame);
  if (!animate) {
    fill(1);
    return;
  }
  const began = performance.now();
  const tick = (now) => {
    const part = Math.min(1, Math.max(0, (now - began - 200) / 800));
    fill(part);
    if (part < 1) world.frame = requestAnimationFrame(tick);
  };
  tick(began);
}

function counter({ label, value, tone = "", secret, wide, as = show }, hidden, part) {
  const grown = Number.isInteger(value) ? Math.round(value * part) : value * part;
  const words = hidden ? "?" : typeof value === "number" ? as(grown) : value;
  return `<div${wide ? ' class="two"' : ""}><dt>${label}</dt><dd class="${tone}"${secret ? " data-secret" : ""}>${words}</dd></div>`;
}
