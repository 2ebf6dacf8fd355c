"""Page frame: the style sheet and the HTML around what ``page`` says."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2129; --soft: #5b6472; --line: #d9dde3; --tile: #f4f6f8;
  --pass: #1a7f37; --near: #9a6700; --bad: #c0292d; --todo: #6b7380; --help: #5b4bb7; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e6e9ee; --soft: #9aa4b2; --line: #333a45;
  --tile: #1d2229; --pass: #4cc267; --near: #d9a441; --bad: #ff7b72; --todo: #8b95a3; --help: #a99cf5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.45 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.5rem; }
header p, small, .none, footer { color: var(--soft); }
header p { margin: .2rem 0 1.2rem; }
ul { list-style: none; margin: 0 0 1.4rem; padding: 0; display: flex; flex-wrap: wrap; gap: .7rem; }
.tiles li { flex: 1 1 11rem; padding: .7rem .9rem; background: var(--tile); border-radius: .5rem; color: var(--soft);
  font-size: .9rem; overflow-wrap: anywhere; }
.tiles b { display: block; color: var(--ink); font-size: 1.5rem; line-height: 1.25; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .5rem 1rem .5rem 0; text-align: left; vertical-align: top; font-weight: normal; white-space: nowrap; }
thead th { color: var(--soft); font-size: .85rem; border-bottom: 1px solid var(--line); }
tbody { border-bottom: 1px solid var(--line); break-inside: avoid; }
tbody th { font-weight: 600; white-space: normal; min-width: 13rem; }
small { display: block; font-size: .82rem; font-weight: normal; min-height: 1em; }
svg { max-width: 100%; }
.why td { padding-top: 0; color: var(--soft); font-size: .88rem; white-space: normal; overflow-wrap: anywhere; }
.word { font-weight: 600; } .word.pass { color: var(--pass); } .word.near { color: var(--near); }
.word.bad { color: var(--bad); } .word.todo { color: var(--todo); }
svg { display: inline-block; vertical-align: middle; }
circle.pass { fill: var(--pass); } circle.near { fill: var(--near); } circle.bad { fill: var(--bad); }
circle.todo { fill: var(--todo); } path.help { fill: none; stroke: var(--help); stroke-width: 1.6; }
line.reset { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 2 2; } line.base { stroke: var(--line); }
.next { padding: .7rem .9rem; background: var(--tile); border-radius: .5rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font-size: .92rem; margin: 1.4rem 0; }
.legend { gap: .3rem 1.2rem; font-size: .82rem; color: var(--soft); margin: 1rem 0; }
@media screen and (max-width: 46rem) { body { padding: 1rem; } thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: .1rem 1.3rem; padding: .5rem 0; } tbody th { flex: 1 0 100%; }
  th, td { display: block; padding: 0; } td[data-name=history] { flex: 1 0 100%; }
  td[data-name]:not([data-name=history])::before { content: attr(data-name); display: block; color: var(--soft);
  font-size: .78rem; } .why { padding-top: 0; } .tiles li { flex-basis: 8rem; } }
@media print { :root { color-scheme: light; font-size: 11px; --paper: #fff; --ink: #000; --soft: #444;
  --line: #bbb; --tile: #fff; --pass: #1a7f37; --near: #9a6700; --bad: #c0292d; --todo: #6b7380; --help: #5b4bb7; }
  body { padding: 0; max-width: none; } .tiles li, .next { border: 1px solid var(--line); }
  .wide { overflow: visible; } svg { max-width: none; zoom: .75; }
  svg, .word { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""

FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Kernel Kata: {when}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>Kernel Kata</h1>
<p>As of <time datetime="{machine}">{when}</time></p>
</header>
<main>
<ul class="tiles">{tiles}</ul>
<div class="wide">
<table>
<thead><tr><th scope="col">kata</th><th scope="col">verdict</th><th scope="col">streak</th><th scope="col">help</th>\
<th scope="col">due again</th><th scope="col">history, oldest first</th></tr></thead>
{rows}
</table>
</div>
<ul class="legend">{legend}</ul>
<p class="next">{next}</p>
</main>
<footer><small>A streak counts rounds in a row that ended in a pass without a peek. Help is that of the round that is
open, or else of the last one.</small></footer>
</body>
</html>
"""
