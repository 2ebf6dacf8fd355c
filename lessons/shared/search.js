/* Search over an index that the home page carries: every section of every page with its words. */

import { $ } from "./figures.js";

const plain = (text) =>
  text
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "");
const escaped = (text) =>
  text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** The best entries for a query: every word must occur; titles count more than text, whole words more than parts. */
export function find(index, query, most = 12) {
  const words = plain(query).split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const scored = [];
  for (const entry of index) {
    const title = plain(`${entry.page} ${entry.title}`),
      text = plain(entry.text);
    let score = 0;
    for (const word of words) {
      const whole = new RegExp(`(^|[^a-z0-9])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`);
      const gain =
        (whole.test(title) ? 10 : title.includes(word) ? 4 : 0) + (whole.test(text) ? 2 : text.includes(word) ? 1 : 0);
      if (!gain) {
        score = -1;
        break;
      }
      score += gain;
    }
    if (score > 0) scored.push([score, entry]);
  }
  return scored
    .sort((a, b) => b[0] - a[0])
    .slice(0, most)
    .map(([, entry]) => entry);
}

/** Some words of the text around the first hit, as HTML with the hits marked. */
export function excerpt(text, query, size = 140) {
  const words = plain(query).split(/\s+/).filter(Boolean),
    low = plain(text);
  const hits = words.map((w) => low.indexOf(w)).filter((i) => i >= 0);
  const from = Math.max(0, (hits.length ? Math.min(...hits) : 0) - 40),
    cut = text.slice(from, from + size);
  const marked = words.length
    ? escaped(cut).replace(
        new RegExp(`(${words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi"),
        "<mark>$1</mark>",
      )
    : escaped(cut);
  return (from ? "… " : "") + marked + (from + size < text.length ? " …" : "");
}

const input = globalThis.document?.getElementById("search");
if (input) {
  const index = JSON.parse($("#index").textContent),
    list = $(".found"),
    status = $("#found-count");
  const run = () => {
    const query = input.value.trim(),
      hits = find(index, query);
    list.innerHTML = hits
      .map(
        (e) =>
          `<li><a href="${e.url}"><small>${escaped(e.page)}</small><b>${escaped(e.title)}</b><span>${excerpt(e.text, query)}</span></a></li>`,
      )
      .join("");
    status.textContent = !query
      ? ""
      : hits.length
        ? `${hits.length} found`
        : "Nothing found. Try fewer or shorter words.";
    document.body.classList.toggle("searching", Boolean(query));
  };
  input.oninput = run;
  input.form.onsubmit = (e) => {
    e.preventDefault();
    $("a", list)?.focus();
  };
  input.onkeydown = (e) => {
    if (e.key === "Escape") {
      input.value = "";
      run();
    }
  };
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) {
    input.value = asked;
    run();
  }
  if (location.hash === "#search") input.focus();
}
