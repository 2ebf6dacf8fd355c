/* The card of a world: the question, then what was said beside what is so, then what to notice. */

import { $, $$ } from "./figures.js";
import { near, show } from "./words.js";

const spoken = (words, ...args) => (typeof words === "function" ? words(...args) : words);

/** What a prediction reads as: the words of an option, or a number. */
export function worded(guess, value) {
  const option = guess.options?.find(([key]) => key === value);
  return option ? option[1] : (guess.shown ?? show)(value);
}

/** Draw the card of a world for what it shows now. */
export function drawCard(world) {
  const box = $(".w-ask", world),
    { guess, scenes } = world,
    m = world.m ?? world.model(world.state);
  $$(".tabs button", world).forEach((b, i) => {
    const said = world.said[i],
      known = said && !guess.once && typeof said.truth === "number";
    b.innerHTML = scenes[i].name + (known ? `<b>${worded(guess, said.truth)}</b>` : "");
  });
  const given = world.given ? `<p>${world.given(m)}</p>` : "";
  if (!world.open) return question(world, box, m, given);
  const scene = scenes[world.scene];
  const said = guess?.once ? world.said[0] : scene ? world.said[world.scene] : world.fresh ? world.said.own : null;
  if (said) answered(world, box, m, said);
  else box.innerHTML = `${given}<p class="q">${world.explain?.(m) ?? spoken(scene?.after, m) ?? ""}</p>`;
}

/** After a prediction: both numbers, what to say to a likely wrong one, why it is so, and the way on. */
function answered(world, box, m, said) {
  const { guess, scenes } = world,
    scene = scenes[world.scene];
  const live = `${world.explain?.(m) ?? ""} Keep changing the controls: the counters now follow.`;
  const why = spoken(scene?.after, m, said.value) ?? spoken(guess.after, m, said.value) ?? (guess.once ? "" : live);
  const next = guess.once ? -1 : scenes.findIndex((_, i) => !(i in world.said));
  const on = guess.once
    ? ""
    : next >= 0
      ? `<button class="btn" type="button">Next</button>`
      : `<p>All ${scenes.length} done. Now use the controls.</p>`;
  box.innerHTML = `<p class="verdict${guess.options ? " text" : ""}">
      <span><small>you said</small>${worded(guess, said.value)}</span>
      <span class="m"><small>${guess.it ?? "it is"}</small>${worded(guess, said.truth)}</span></p>
    <p>${reply(guess, said, m)}${why}</p>${on}`;
  const button = $(".btn", box);
  if (!button) return;
  button.onclick = () => {
    world.go(next);
    $(".w-ask input", world).focus({ preventScroll: true });
  };
}

function reply(guess, { value, truth }, m) {
  const exact = typeof truth === "number" ? near(value, truth) : value === truth;
  if (exact) return typeof truth === "number" ? "Exactly. " : "Right. ";
  if (guess.near?.(value, truth, m)) return "Close. ";
  const words = guess.reply?.(value, m);
  return words ? words + " " : "";
}

/** Before it: the question, and a number to step or options to choose from. Enter commits. */
function question(world, box, m, given) {
  const { guess } = world,
    name = `${world.id_}-guess`,
    asked = spoken(world.scenes[world.scene]?.ask ?? guess.ask, m);
  const field = guess.options ? options(guess, name) : stepper(guess, name, spoken(guess.from ?? guess.min, m));
  box.innerHTML = `${given}<p class="q">${asked}</p><form class="guess" novalidate>${field}<button class="btn">Commit</button></form>`;
  const input = $("input", box);
  $$("[data-by]", box).forEach((b) => {
    b.onclick = () => {
      const moved = (+input.value || 0) + b.dataset.by * (guess.step ?? 1);
      input.value = +Math.min(guess.max, Math.max(guess.min, moved)).toFixed(6);
    };
  });
  $("form", box).onsubmit = (e) => {
    e.preventDefault();
    const value = guess.options
      ? guess.options[$("input:checked", box)?.value]?.[0]
      : input.value.trim() && +input.value;
    const fine = guess.options ? value !== undefined : value !== "" && value >= guess.min && value <= guess.max;
    if (fine) world.commit(value);
    else input.focus();
  };
}

const options = (guess, name) =>
  guess.options
    .map(
      ([, words], i) =>
        `<label class="opt"><input type="radio" name="${name}" value="${i}"><span>${words}</span></label>`,
    )
    .join("");

const stepper = (guess, id, first) => `<div class="num">
    <button type="button" data-by="-1" aria-label="Less">−</button>
    <input id="${id}" type="number" inputmode="decimal" min="${guess.min}" max="${guess.max}" step="any" value="${first}"
      aria-label="Your prediction${guess.unit ? `, in ${guess.unit}` : ""}">
    <button type="button" data-by="1" aria-label="More">+</button></div>`;
