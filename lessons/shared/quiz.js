/* The quiz of a page: choice questions in a new order each time, number questions with fresh numbers at each try. */

import { $, $$ } from "./figures.js";
import { near, parse } from "./words.js";

const pick = (list, random) => list[Math.floor(random() * list.length)];

/** Draw the numbers of a question; again while its `unless` holds. `random`: as Math.random. */
export function drawn(question, random = Math.random) {
  for (let tries = 0; tries < 200; tries++) {
    const values = Object.fromEntries(Object.entries(question.draw).map(([name, list]) => [name, pick(list, random)]));
    const made = question.make(values);
    if (!made.skip()) return { ...made, values };
  }
  throw new Error("no draw satisfies the question's `unless`");
}

/** Whether `v` is right, and what to say to it. */
export function judge(made, v, tolerance) {
  if (near(v, made.answer, tolerance)) return { ok: true, words: made.right(v) };
  for (const [when, why] of made.wrong) {
    const hit = when(v);
    if (hit === true || (typeof hit === "number" && near(v, hit, Math.max(tolerance, 0.005))))
      return { ok: false, words: why(v) };
  }
  return { ok: false, words: made.otherwise(v) };
}

export function startQuiz(questions, root = $(".quiz")) {
  if (!root) return;
  const right = new Set(),
    score = $(".score", root);
  const count = () => {
    score.textContent = `${right.size} of ${questions.length} answered right.`;
  };
  $$("fieldset", root).forEach((set) => {
    const index = +set.dataset.q,
      question = questions[index],
      fb = $(".fb", set);
    const say = (ok, words) => {
      fb.className = "fb " + (ok ? "ok" : "no");
      fb.innerHTML = words;
      if (ok) right.add(index);
      count();
    };
    if (question.make) number(question, set, fb, say);
    else choices(question, set, say);
  });
  count();
}

function choices(question, set, say) {
  const box = $(".opts", set),
    options = $$(".opt", box);
  for (let i = options.length - 1; i > 0; i--) {
    const k = Math.floor(Math.random() * (i + 1));
    [options[i], options[k]] = [options[k], options[i]];
  }
  box.append(...options);
  $$("input", box).forEach((radio) => {
    radio.onchange = () => say(radio.value === "0", question.whys[+radio.value]);
  });
}

function number(question, set, fb, say) {
  const input = $("input", set),
    ask = $("[data-ask]", set);
  let made;
  const fresh = () => {
    made = drawn(question);
    ask.innerHTML = made.ask();
    input.value = "";
    fb.className = "fb";
    fb.textContent = "";
    set.dataset.answer = String(made.answer);
  };
  $("form", set).onsubmit = (e) => {
    e.preventDefault();
    const v = parse(input.value);
    if (Number.isNaN(v)) {
      fb.className = "fb no";
      fb.textContent = "That is no number that can be read. Digits, and a point if need be.";
      input.focus();
      return;
    }
    const { ok, words } = judge(made, v, question.tolerance);
    say(ok, words);
  };
  $(".quiet", set).onclick = () => {
    fresh();
    input.focus();
  };
  fresh();
}
