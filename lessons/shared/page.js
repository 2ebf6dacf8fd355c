/* The furniture of every page: the colour theme, the copy button, and / to search. */

import { $ } from "./figures.js";

const root = document.documentElement,
  theme = $("#theme");
const stored = (() => {
  try {
    return localStorage.getItem("kata-theme");
  } catch {
    return null;
  }
})();
if (stored) root.dataset.theme = stored;
const dark = () =>
  (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const named = () => {
  theme.textContent = dark() ? "Light" : "Dark";
};
theme.onclick = () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try {
    localStorage.setItem("kata-theme", root.dataset.theme);
  } catch {
    /* a page from disk may have no storage */
  }
  named();
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", named);
named();

const copy = $("#copy");
if (copy)
  copy.onclick = async () => {
    const code = $("#cmd");
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch {
      const range = document.createRange(),
        selection = getSelection();
      range.selectNodeContents(code);
      selection.removeAllRanges();
      selection.addRange(range);
      copy.textContent = "Selected";
    }
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1600);
  };

document.addEventListener("keydown", (e) => {
  if (e.key !== "/" || e.ctrlKey || e.metaKey || e.altKey || /^(input|textarea|select)$/i.test(e.target.tagName))
    return;
  e.preventDefault();
  const box = $("#search");
  if (box) box.focus();
  else location.href = $("#to-search").href;
});
