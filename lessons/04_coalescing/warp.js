/* One warp, one load: which sectors its lanes touch. */

import { $$, World, choice, count, define, label, path, percent, plural, range, rect, times } from "../shared/kit.js";
import { SECTOR, WIDEST, request } from "./model.js";

const EASE = "cubic-bezier(.2,.7,.2,1)";

class WarpWorld extends World {
  start = { stride: 1, offset: 0, elem: 4, vec: 1, walk: "row" };
  scenes = [
    {
      name: "Every 2nd float",
      set: { stride: 2 },
      after:
        "A sector holds eight floats, and the lanes use four of them. Double the stride and you double the sectors.",
    },
    {
      name: "Every 8th",
      set: { stride: 8 },
      after: "Each lane has a sector to itself now: four bytes used, 28 carried for nothing.",
    },
    {
      name: "Every 32nd",
      set: { stride: 32 },
      after: "No worse than every 8th. With one float each, 32 lanes cannot touch more than 32 sectors.",
    },
    {
      name: "Off by one",
      set: { offset: 1 },
      after: "The run starts four bytes into a sector, so its last float lands in a fifth one.",
    },
    {
      name: "bf16, down a column",
      set: { elem: 2, walk: "col" },
      after: "A sector a lane again, but a bf16 uses two bytes of it. Small types waste more.",
    },
    {
      name: "Four floats a lane",
      set: { vec: 4 },
      after: (m) =>
        `${m.sectors.length} sectors for ${count(m.asked)} bytes: no waste. One request does the work of four.`,
    },
  ];
  controls = [
    range("stride", "Stride between lanes", 0, 32),
    range("offset", "Offset, in elements", 0, 31),
    choice("elem", "Data type", [
      [4, "float32"],
      [2, "bf16"],
      [1, "fp8"],
    ]),
    choice("vec", "Elements per lane", [
      [1, "1"],
      [2, "2"],
      [4, "4"],
      [8, "8"],
    ]),
    choice("walk", "The lanes walk", [
      ["row", "along a row"],
      ["col", "down a column"],
    ]),
  ];
  guess = {
    ask: "How many 32-byte sectors will move?",
    it: "it moves",
    unit: "sectors",
    min: 1,
    max: 256,
    from: (m) => m.best,
    reply: (said, m) => (said === m.best && said < m.sectors.length ? "That would do if the bytes were packed." : ""),
  };
  legend = [
    ["a", "asked for by a lane"],
    ["m", "moved as well"],
    ["cell", "left where it was"],
  ];
  cursor = {
    label: "Lane to inspect",
    max: 31,
    at: 5,
    text: (m, i) => {
      const { from, to } = m.lanes[i];
      return `lane ${i} → ${to - from === 1 ? `byte ${from}` : `bytes ${from}–${to - 1}`}, line ${from >> 7}, sector ${(from >> 5) & 3}`;
    },
    hit: (x, y) => (y > 56 ? -1 : Math.floor(this.byteAt(x) / 4)),
  };

  model(state) {
    return request(state);
  }
  answer(m) {
    return m.sectors.length;
  }
  given(m) {
    return `32 lanes × ${m.item} B = <b class="a">${count(m.asked)} bytes asked</b>. The blue cells show where they are.`;
  }

  explain(m) {
    if (m.stride === 0) return "Every lane reads the same address. It is fetched once and handed to all 32.";
    const split =
      m.requests > 1
        ? m.item > WIDEST && m.width === WIDEST
          ? ` A lane loads at most ${WIDEST} bytes at once, so this takes ${m.requests} requests.`
          : ` Not aligned to ${Math.min(WIDEST, m.item)} bytes, so a lane loads ${m.width} at a time: ${m.requests} requests.`
        : "";
    if (m.eff === 1) return "Every byte that moved was asked for." + split;
    if (m.sectors.length === 32 && m.item < 32)
      return "Each lane has a sector to itself. A longer stride cannot add another." + split;
    if (m.sectors.length === m.best + 1) return "The run starts inside a sector, so it needs one more." + split;
    return `${percent(Math.max(0, 1 - m.eff))} of what moved is thrown away.${split}`;
  }

  counters(m) {
    return [
      { label: "requests", value: m.requests },
      { label: "sectors", value: m.sectors.length, secret: true },
      { label: "bytes asked", value: m.asked, tone: "a" },
      { label: "bytes moved", value: m.moved, tone: "m", secret: true },
      { label: "efficiency", value: percent(m.eff), secret: true },
      { label: "time, against packed", value: times(m.moved / m.asked), secret: true },
    ];
  }

  meter(m) {
    const full = Math.max(1024, m.moved, m.asked);
    return { a: m.asked, m: m.moved, full, note: `The full bar is ${count(full)} bytes.` };
  }
  say(m) {
    const bytes = `${m.moved} bytes moved for ${m.asked} asked, efficiency ${percent(m.eff)}`;
    return `${plural(m.sectors.length, "sector")}: ${bytes}, ${plural(m.requests, "request")}.`;
  }

  /* sectors against stride: not before the stride scenes are answered, for it would give them away */
  side(m) {
    if (!this.open || !(2 in this.said || (this.scene < 0 && 0 in this.said && 1 in this.said))) return "";
    const all = Array.from({ length: 33 }, (_, stride) => request({ ...this.state, stride }).sectors.length),
      top = Math.max(32, ...all);
    const bars = all
      .map((n, i) => rect(i * 3, 56 - (n / top) * 56, 2.4, (n / top) * 56, i === m.stride ? "g-ink" : "g-m"))
      .join("");
    return `<svg class="spark" viewBox="0 0 99 56" preserveAspectRatio="none" role="img"
        aria-label="Sectors at strides 0 to 32: they grow to ${top} and stay.">${bars}</svg>
      <p class="meter-t keys"><span>sectors at stride 0</span><span>32</span></p>`;
  }

  byteAt(x) {
    const { left, gap, byte } = this.geo;
    for (let s = 3; s >= 0; s--) {
      const x0 = left + s * (32 * byte + gap);
      if (x >= x0) return Math.min(s * 32 + 31, s * 32 + Math.floor((x - x0) / byte));
    }
    return -1;
  }

  draw(m, { width, small, open, cursor }) {
    const left = small ? 0 : 44,
      gap = small ? 4 : 7,
      byte = (width - left - 3 * gap) / 128;
    const high = small ? 7 : 10,
      step = high + 2,
      laneY = 18,
      laneH = small ? 20 : 24,
      fan = small ? 40 : 52,
      top = laneY + laneH + fan;
    this.geo = { left, gap, byte };
    const X = (b) => left + Math.floor(b / 32) * gap + b * byte; // of a byte within its line
    const all = m.lines.at(-1) < 32,
      shown = all ? Array.from({ length: 32 }, (_, i) => i) : m.lines.slice(0, 32);
    const row = new Map(shown.map((l, i) => [l, top + i * step])),
      foot = top + 32 * step + 12;
    const laneX = (i) => X(i * 4) + 2 * byte,
      y0 = laneY + laneH;
    const goal = ({ from }) => X(from & 127) + (Math.min(m.item, 32 - (from & 31)) * byte) / 2;
    const curve = (x, to) =>
      `M${x.toFixed(1)},${y0}C${x.toFixed(1)},${y0 + fan * 0.6} ${to.toFixed(1)},${top - fan * 0.6} ${to.toFixed(1)},${top}`;
    // a lane's bytes, cut where a sector ends
    const pieces = ({ from, to }, cls, pad, extra = "") => {
      let out = "";
      for (let a = from; a < to;) {
        const y = row.get(a >> 7),
          end = Math.min(to, ((a >> 5) + 1) << 5),
          w = (end - a) * byte,
          cut = w > 6 ? 1 : w > 2 ? 0.5 : 0;
        if (y !== undefined) out += rect(X(a & 127) - pad, y - pad, w - cut + 2 * pad, high + 2 * pad, cls, extra);
        a = end;
      }
      return out;
    };
    let s = label(left, 9, "the warp: 32 lanes", "cap");
    s += label(
      left,
      foot,
      all
        ? "memory: one 128-byte line per row"
        : `memory: only lines that are touched${m.lines.length > 32 ? `, ${m.lines.length - 32} more below` : ""}`,
      "cap",
    );
    if (!small) s += label(width, foot, `four sectors of ${SECTOR} bytes`, "cap", "end");
    m.lanes.forEach((lane, i) => {
      s += path(curve(laneX(i), goal(lane)), "g-fan");
    });
    for (let i = 0; i < 32; i++) {
      s += rect(X(i * 4) + 0.5, laneY, 4 * byte - 1, laneH, "g-a", i === cursor ? "" : 'opacity=".82"');
      if (4 * byte > 14 || i % 8 === 0)
        s += label(laneX(i), laneY + laneH / 2 + 3.6, i, 4 * byte > 14 ? "t-on" : "t-on tiny", "middle");
    }
    shown.forEach((l, r) => {
      for (let q = 0; q < 4; q++) s += rect(X(q * 32), row.get(l), 32 * byte, high, "g-cell");
      if (!small && r % 4 === 0) s += label(0, row.get(l) + high - 1, (l * 128).toString(16).padStart(4, "0"));
    });
    if (open)
      for (const q of m.sectors)
        if (row.has(q >> 2)) s += rect(X((q & 3) * 32), row.get(q >> 2), 32 * byte, high, "g-m", 'data-sector=""');
    m.lanes.forEach((lane, i) => {
      s += pieces(lane, "g-a", 0, `data-lane="${i}"`);
    });
    const picked = m.lanes[cursor],
      y = row.get(picked.from >> 7);
    if (y !== undefined)
      s += path(`${curve(laneX(cursor), goal(picked))}V${y - 1.5}`, "g-wire") + pieces(picked, "g-pick", 1.5);
    const known = open ? `, ${m.sectors.length} sectors or ${m.moved} bytes moved` : "";
    return {
      height: foot + 8,
      svg: s,
      label: `32 lanes over memory. ${m.asked} bytes asked${known}. Rows are 128-byte lines of four sectors.`,
    };
  }

  /* requests fly down lane by lane, then the sectors fill */
  reveal(svg, m) {
    const { left, gap, byte } = this.geo,
      when = (delay, duration) => ({ delay, duration, easing: EASE, fill: "backwards" });
    for (const el of $$("[data-lane]", svg)) {
      const i = +el.dataset.lane,
        x = left + Math.floor(i / 8) * gap + i * 4 * byte;
      el.animate(
        [
          { transform: `translate(${x - el.getAttribute("x")}px,${20 - el.getAttribute("y")}px)` },
          { transform: "none" },
        ],
        when(i * 14, 420),
      );
    }
    $$("[data-sector]", svg).forEach((el, i) =>
      el.animate(
        [
          { opacity: 0, transform: "scaleX(0)", transformOrigin: "left", transformBox: "fill-box" },
          { opacity: 1, transform: "scaleX(1)", transformOrigin: "left", transformBox: "fill-box" },
        ],
        when(420 + (i * 450) / m.sectors.length, 320),
      ),
    );
  }
}

define("warp-world", WarpWorld);
