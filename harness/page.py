"""Page: the table of ``grade`` as one HTML file: no script, nothing to load, light and dark, printable. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from html import escape

from harness.course import Course
from harness.record import Attempt, now
from harness.report import counted, next_step
from harness.streaks import Standing, day_streak
from harness.verdict import WORDS, Verdict

SHOWN = 40  # events of a kata's history that its picture has room for; the page says how many came before
_GROUPS = {"pass": "pass", "slow": "near", "undecided": "near", "todo": "todo"}
_STEP, _HEIGHT, _R = 13, 34, 4.5  # pixels: from dot to dot, of the picture, radius of a dot
# a pass stands at the top, what is right but slow in the middle, the rest at the bottom: readable without colours
_ROWS = {"pass": 8, "near": 17, "bad": 26, "todo": 26}


def page(
    course: Course,
    verdicts: Sequence[Verdict],
    standings: Mapping[str, Standing],
    events: Sequence[Attempt],
    at: datetime | None = None,
    zone: tzinfo | None = None,
) -> str:
    """Return the whole page.

    Args:
        verdicts: of this run, in the order of the table.
        standings: by kata id, as ``streaks.standings`` returns them.
        events: the whole history in its order, as ``Store.history`` returns it.
        at: the time of the page, with a zone (default: now).
        zone: the time zone in which times are shown and days counted (default: this system's).
    """
    at = (at or now()).astimezone(zone)
    empty = Standing("")
    rows = [_row(course, v, standings.get(v.slug[3:], empty), events, at, zone) for v in verdicts]
    return _TEMPLATE.format(
        style=_STYLE,
        when=f"{at:%Y-%m-%d %H:%M}",
        machine=f"{at:%Y-%m-%dT%H:%M:%S%z}",
        tiles="".join(_tiles(verdicts, standings, events, at, zone)),
        rows="\n".join(rows),
        next=escape(next_step(course, verdicts)),
        legend="".join(_legend(events)),
    )


def _tiles(
    verdicts: Sequence[Verdict], standings: Mapping[str, Standing], events: Sequence[Attempt], at: datetime, zone: tzinfo | None
) -> list[str]:
    """The four numbers at the top."""
    mine = [standings[v.slug[3:]] for v in verdicts if v.slug[3:] in standings]
    ready = [v.slug for v in verdicts if v.slug[3:] in standings and standings[v.slug[3:]].is_due]
    days = day_streak(events, at.date(), zone)
    facts = [
        (f"{sum(v.word == 'pass' for v in verdicts)} of {len(verdicts)}", "katas pass now"),
        (_count(days, "day"), "in a row with a pass"),
        (str(max((s.streak for s in mine), default=0)), "rounds in a row, the longest streak of a kata"),
        (str(len(ready)), f"due from blank: {', '.join(ready)}" if ready else "due from blank"),
    ]
    return [f"<li><b>{escape(number)}</b> {escape(what)}</li>" for number, what in facts]


def _row(
    course: Course, verdict: Verdict, standing: Standing, events: Sequence[Attempt], at: datetime, zone: tzinfo | None
) -> str:
    kata = course.kata(verdict.slug)
    passed = sum(1 for o in verdict.tests.values() if o == "passed")
    reason = verdict.reason.strip().splitlines()[0] if verdict.word not in ("pass", "todo") and verdict.reason.strip() else ""
    detail = reason or counted(verdict.speed)
    group = _GROUPS.get(verdict.word, "bad")
    cells = [
        f'<th scope="row">{escape(verdict.slug)}<small>{escape(kata.spec.title)}</small></th>',
        f'<td><span class="word {group}">{escape(verdict.word)}</span><small>{passed} of {len(verdict.tests)} tests</small></td>',
        f'<td class="n">{standing.streak or "–"}<small>{_count(standing.passes, "pass", "es") if standing.passes else ""}</small></td>',
        f"<td>{_help(standing)}</td>",
        f"<td>{_due(standing, at)}</td>",
        f"<td>{picture(kata.id, verdict.slug, events, zone)}</td>",
    ]
    more = f'<tr class="why"><td colspan="6">{escape(detail)}</td></tr>' if detail else ""
    return f"<tbody><tr>{''.join(cells)}</tr>{more}</tbody>"


def _help(standing: Standing) -> str:
    parts = [_count(standing.hints_used, "hint")] if standing.hints_used else []
    return ", ".join([*parts, *(["peeked"] if standing.peeked else [])]) or "–"


def _due(standing: Standing, at: datetime) -> str:
    if standing.due_at is None:
        return "–"
    if standing.is_due:
        return "<strong>now</strong>"
    days = -((at - standing.due_at).days)  # rounded up
    return f"in {_count(max(days, 1), 'day')}"


def _count(number: int, what: str, more: str = "s") -> str:
    return f"{number} {what}{more if number != 1 else ''}"


# -- the picture of a history ------------------------------------------------------------------------------------------


def picture(id: str, slug: str, events: Sequence[Attempt], zone: tzinfo | None = None) -> str:
    """Return a kata's history as inline SVG, oldest first: a dot a graded run, a line a reset, marks for help."""
    mine = [e for e in events if e.id == id and (e.kind != "attempt" or e.whole)]
    if not mine:
        return '<span class="none">no attempts yet</span>'
    shown = mine[-SHOWN:]
    width = _STEP * len(shown) + 4
    marks = "".join(_mark(e, _STEP * i + _STEP / 2 + 2, zone) for i, e in enumerate(shown))
    earlier = f"<small>and {len(mine) - len(shown)} before</small>" if len(mine) > len(shown) else ""
    label = escape(f"{slug}: {summary(mine)}", quote=True)
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}">'
        f'<line class="base" x1="0" x2="{width}" y1="{_HEIGHT - 1}" y2="{_HEIGHT - 1}"/>{marks}</svg>{earlier}'
    )


def summary(events: Sequence[Attempt]) -> str:
    """Return a history in words: ``5 attempts (3 wrong, 2 pass), 1 hint, 1 reset``."""
    words = [e.verdict for e in events if e.kind == "attempt"]
    counts = [f"{words.count(w)} {w}" for w in dict.fromkeys(words)]
    parts = [_count(len(words), "attempt") + (f" ({', '.join(counts)})" if counts else "")]
    for kind in ("hint", "peek", "reset"):
        if number := sum(e.kind == kind for e in events):
            parts.append(_count(number, kind))
    return ", ".join(parts)


def _mark(event: Attempt, x: float, zone: tzinfo | None) -> str:
    when = f"{event.at.astimezone(zone):%Y-%m-%d %H:%M}"
    what = event.verdict if event.kind == "attempt" else event.kind
    title = f"<title>{escape(f'{when}  {what}' + (f': {event.reason}' if event.reason else ''))}</title>"
    if event.kind == "reset":
        return f'<line class="reset" x1="{x:g}" x2="{x:g}" y1="3" y2="{_HEIGHT - 2}">{title}</line>'
    if event.kind == "hint":
        return f'<path class="help" d="M{x:g} 22l4 8h-8z">{title}</path>'
    if event.kind == "peek":
        return f'<path class="help" d="M{x:g} 20l5 5l-5 5l-5 -5z">{title}</path>'
    group = _GROUPS.get(event.verdict, "bad")
    return f'<circle class="{group}" cx="{x:g}" cy="{_ROWS[group]}" r="{_R}">{title}</circle>'


def _legend(events: Sequence[Attempt]) -> list[str]:
    """One entry for each kind of mark that can stand in a picture."""
    words = {g: [w for w in WORDS if _GROUPS.get(w, "bad") == g] for g in ("pass", "near", "bad")}
    dot = '<svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">{}</svg>'
    out = [
        (dot.format(f'<circle class="{group}" cx="6" cy="6" r="{_R}"/>'), ", ".join(names))
        for group, names in words.items()
    ]
    out += [
        (dot.format('<path class="help" d="M6 2l4 8h-8z"/>'), "hint"),
        (dot.format('<path class="help" d="M6 1l5 5l-5 5l-5 -5z"/>'), "peek"),
        (dot.format('<line class="reset" x1="6" x2="6" y1="0" y2="12"/>'), "reset: a new round"),
    ]
    return [f"<li>{mark} {escape(text)}</li>" for mark, text in out]


_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2129; --soft: #5b6472; --line: #d9dde3; --tile: #f4f6f8;
  --pass: #1a7f37; --near: #9a6700; --bad: #c0292d; --todo: #6b7380; --help: #5b4bb7; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e6e9ee; --soft: #9aa4b2; --line: #333a45;
  --tile: #1d2229; --pass: #4cc267; --near: #d9a441; --bad: #ff7b72; --todo: #8b95a3; --help: #a99cf5; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 72rem; background: var(--paper); color: var(--ink);
  font: 16px/1.45 system-ui, sans-serif; }
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
.n { font-variant-numeric: tabular-nums; }
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
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --tile: #fff;
  --pass: #1a7f37; --near: #9a6700; --bad: #c0292d; --todo: #6b7380; --help: #5b4bb7; }
  body { padding: 0; max-width: none; font-size: 11px; } .tiles li, .next { border: 1px solid var(--line); }
  .wide { overflow: visible; } svg, .word { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""

_TEMPLATE = """<!doctype html>
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
<th scope="col">due from blank</th><th scope="col">history, oldest first</th></tr></thead>
{rows}
</table>
</div>
<ul class="legend">{legend}</ul>
<p class="next">{next}</p>
</main>
<footer><small>A streak counts rounds in a row that ended in a pass without a peek. Help is that of the round that is open,
or else of the last one.</small></footer>
</body>
</html>
"""
