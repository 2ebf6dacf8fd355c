"""Page: the table of ``grade`` as one HTML file: no script, nothing to load, light and dark. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from html import escape

from harness.course import Course
from harness.loop.page_frame import FRAME, STYLE
from harness.record import Attempt, now
from harness.report import brief, next_step
from harness.streaks import Standing, day_streak
from harness.verdict import WORDS, Verdict

SHOWN = 32  # events of a kata's history that its picture has room for; the page says how many came before
_GROUPS = {"pass": "pass", "slow": "near", "undecided": "near", "todo": "todo"}
_STEP, _HEIGHT, _R = 12, 34, 4.2  # pixels: from dot to dot, of the picture, radius of a dot
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
    return FRAME.format(
        style=STYLE,
        when=f"{at:%Y-%m-%d %H:%M}",
        machine=f"{at:%Y-%m-%dT%H:%M:%S%z}",
        tiles="".join(_tiles(verdicts, standings, events, at, zone)),
        rows="\n".join(rows),
        next=escape(next_step(course, verdicts, standings)),
        legend="".join(_legend(events)),
    )


def _tiles(
    verdicts: Sequence[Verdict],
    standings: Mapping[str, Standing],
    events: Sequence[Attempt],
    at: datetime,
    zone: tzinfo | None,
) -> list[str]:
    """The four numbers at the top."""
    mine = [standings[v.slug[3:]] for v in verdicts if v.slug[3:] in standings]
    ready = [v.slug for v in verdicts if v.slug[3:] in standings and standings[v.slug[3:]].is_due]
    days = day_streak(events, at.date(), zone)
    best = max((s.streak for s in mine), default=0)
    facts = [
        (f"{sum(v.word == 'pass' for v in verdicts)} of {len(verdicts)}", "katas pass now"),
        (_count(days, "day"), "in a row with a pass"),
        (str(best), f"round{'s' if best != 1 else ''} in a row, the longest streak of a kata"),
        (str(len(ready)), f"due again from blank: {', '.join(ready)}" if ready else "due again from blank"),
    ]
    return [f"<li><b>{escape(number)}</b> {escape(what)}</li>" for number, what in facts]


def _row(
    course: Course, verdict: Verdict, standing: Standing, events: Sequence[Attempt], at: datetime, zone: tzinfo | None
) -> str:
    kata = course.kata(verdict.slug)
    tests = f"{sum(o == 'passed' for o in verdict.tests.values())} of {len(verdict.tests)} tests"
    reason = (
        verdict.reason.strip().splitlines()[0]
        if verdict.word not in ("pass", "todo") and verdict.reason.strip()
        else ""
    )
    detail = reason or (verdict.speed or {}).get("text") or brief(verdict.speed)
    group = _GROUPS.get(verdict.word, "bad")
    passes = _count(standing.passes, "pass", "es") if standing.passes else ""
    cells = [
        ("verdict", f'<span class="word {group}">{escape(verdict.word)}</span><small>{tests}</small>'),
        ("streak", f"{standing.streak or '–'}<small>{passes}</small>"),
        ("help", _help(standing)),
        ("due again", _due(standing, at)),
        ("history", picture(kata.id, verdict.slug, events, zone)),
    ]
    head = f'<th scope="row">{escape(verdict.slug)}<small>{escape(kata.spec.title)}</small></th>'
    body = "".join(f'<td data-name="{name}">{cell}</td>' for name, cell in cells)
    more = f'<tr class="why"><td colspan="6">{escape(detail)}</td></tr>' if detail else ""
    return f"<tbody><tr>{head}{body}</tr>{more}</tbody>"


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
