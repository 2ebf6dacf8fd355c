/* World: the frame of a micro-world. */

import { drawCard, worded } from "./card.js";
import { $, $$, calm } from "./figures.js";
import { showControls, showCounters, showLine, showMeter } from "./readouts.js";
import { skeleton } from "./skeleton.js";

let made = 0;

/**
 * The frame of a micro-world. A subclass has the fields start, scenes, controls, guess, legend (and cursor, player) and
 * the methods model, answer, counters, draw, say (and given, explain, meter, side, readout, reveal, live).
 * lessons/README.md says what each gives. Nothing is revealed before the learner has committed to a prediction.
 */
export class World extends (globalThis.HTMLElement ?? class {}) {
  scenes = [];
  controls = [];
  legend = [];
  guess = null;
  cursor = null;
  player = null;
  start = {};

  connectedCallback() {
    if (this.id_) return;
    this.id_ = `w${++made}`;
    this.said = {};
    this.scene = this.scenes.length ? 0 : -1;
    this.at = this.player?.start ?? 0;
    this.state = { ...this.start, ...this.scenes[0]?.set };
    this.point = this.cursor?.at ?? 0;
    const told = $(".nojs", this); // kept for paper, where nobody can commit to a number
    this.innerHTML = skeleton(this);
    if (told) this.append(told);
    this.figure = $(".w-view", this);
    this.svg = $("svg", this.figure);
    $$(".tabs button", this).forEach((b, i) => {
      b.onclick = () => this.go(i);
    });
    this.addEventListener("input", (e) => this.set(e.target));
    if (this.cursor) this.wireCursor();
    if (this.player) this.wirePlayer();
    new ResizeObserver(() => {
      if (this.figure.clientWidth !== this.width) this.update();
    }).observe(this.figure);
    this.update();
    this.ask();
  }

  /** Whether the answer of what is shown may be seen. */
  get open() {
    return (
      !this.guess || (this.scene >= 0 && !this.guess.once ? this.scene in this.said : Object.keys(this.said).length > 0)
    );
  }

  /* -- wiring -- */

  wireCursor() {
    this.figure.onkeydown = (e) => {
      const top = this.cursorMax(),
        page = Math.max(2, Math.round(top / 8));
      const by = {
        ArrowRight: 1,
        ArrowUp: 1,
        ArrowLeft: -1,
        ArrowDown: -1,
        PageUp: page,
        PageDown: -page,
        Home: -top,
        End: top,
      }[e.key];
      if (by) {
        e.preventDefault();
        this.point = Math.min(top, Math.max(0, this.point + by));
        this.update();
      }
    };
    this.figure.onpointermove = this.figure.onpointerdown = (e) => {
      const box = this.svg.getBoundingClientRect();
      const found = this.cursor.hit?.(e.clientX - box.left, e.clientY - box.top, this.m);
      if (Number.isInteger(found) && found >= 0 && found <= this.cursorMax() && found !== this.point) {
        this.point = found;
        this.update();
      }
    };
  }

  cursorMax() {
    return typeof this.cursor.max === "function" ? this.cursor.max(this.m) : this.cursor.max;
  }

  wirePlayer() {
    $("[data-play]", this).onclick = () => (this.timer ? this.stop() : this.play());
    $("[data-at]", this).oninput = (e) => {
      e.stopPropagation();
      this.stop();
      this.at = +e.target.value;
      this.update();
      this.tell();
    };
  }

  /* -- what the learner does -- */

  go(i) {
    this.stop();
    this.scene = i;
    this.fresh = false;
    this.state = { ...this.start, ...this.scenes[i].set };
    this.m = this.model(this.state);
    if (this.player) this.at = this.open ? this.player.steps(this.m) : (this.player.start ?? 0);
    this.update();
    this.ask();
    this.tell();
  }

  set(input) {
    const c = this.controls.find((one) => one.key === input.dataset?.key);
    if (!c) return;
    this.stop();
    this.state[c.key] =
      c.kind === "choice" ? c.options[+input.value][0] : c.values ? c.values[+input.value] : +input.value;
    this.scene = -1;
    this.fresh = false;
    this.update();
    this.ask();
    this.tell();
  }

  commit(value) {
    const truth = this.answer(this.m),
      key = this.guess.once ? 0 : this.scene >= 0 ? this.scene : "own";
    this.said[key] = { value, truth };
    this.fresh = true;
    this.ask();
    if (this.player) {
      this.at = 0;
      this.update();
      this.play();
    } else {
      this.update(!calm());
      this.tell(`You predicted ${worded(this.guess, value)}. `, 0);
    }
    ($(".w-ask .btn", this) ?? $(".w-ask", this)).focus({ preventScroll: true });
  }

  play() {
    const end = this.player.steps(this.m);
    if (calm()) {
      this.at = end;
      this.update();
      this.tell();
      return;
    }
    if (this.at >= end) this.at = 0;
    $("[data-play]", this).textContent = "Pause";
    this.timer = setInterval(() => {
      this.at++;
      this.update();
      if (this.at >= end) {
        this.stop();
        this.tell();
      }
    }, this.player.pace ?? 70);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    if (this.player) $("[data-play]", this).textContent = "Play";
  }

  /* -- what is shown -- */

  /** Draw everything but the card. `animate`: this is the moment in which the answer shows. */
  update(animate = false) {
    this.m = this.model(this.state);
    this.width = this.figure.clientWidth;
    if (!this.width) return;
    if (this.cursor) this.point = Math.min(this.point, this.cursorMax());
    if (this.player) this.at = Math.min(this.at, this.player.steps(this.m));
    const drawn = this.draw(this.m, {
      width: this.width,
      small: this.width < 480,
      open: this.open,
      cursor: this.point,
      at: this.at,
      id: this.id_,
    });
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${Math.round(drawn.height)}`);
    this.svg.innerHTML = drawn.svg;
    if (!this.cursor) this.svg.setAttribute("aria-label", drawn.label);
    showLine(this, drawn.label);
    showControls(this);
    showMeter(this);
    showCounters(this, animate);
    if (this.side) $("[data-side]", this).innerHTML = this.side(this.m) ?? "";
    if (animate) this.reveal?.(this.svg, this.m);
  }

  /** The card beside the figure. */
  ask() {
    drawCard(this);
  }

  /** Say to screen readers what is so now, once things have come to rest. */
  tell(before = "", wait = 350) {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      const name = this.scenes[this.scene]?.name;
      $("[role=status]", this).textContent =
        this.open || this.player
          ? before + this.say(this.m)
          : `${name ? name : "Your own setting"}. Predict before you look.`;
    }, wait);
  }
}

/** Make the element of a world known, once the page is read. */
export function define(name, world) {
  customElements.define(name, world);
}
