"""All lesson pages, built: their links, anchors, sizes, numbers; their JavaScript under Node.js."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.course import ROOT
from harness.record import Attempt, now, stamp
from harness.site import pages, quiz
from harness.site.book import LIMIT, build
from harness.site.dialect import Context
from harness.site.markup import Markup
from harness.site.roles import Roles
from harness.store import Store
from harness.tests import site_pages
from harness.tests.toys import python
from harness.verdict import WORDS

DATA = Path(__file__).resolve().parent / "data"
SITE = ROOT / "harness" / "site"
BELOW = {"errors", "physics", "models", "device", "course", "record", "store", "streaks"}


class Seen(HTMLParser):
    """The links, ids and titles of one page; void and foreign elements do not matter here."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.loaded: list[str] = []
        self.levels: list[int] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.ids.append(found["id"] or "")
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        if tag in ("img", "script", "iframe", "link", "source") and (found.get("src") or found.get("href")):
            self.loaded.append(found.get("src") or found.get("href") or "")
        if tag in ("h1", "h2", "h3", "h4"):
            self.levels.append(int(tag[1]))


def seen(path: str) -> Seen:
    return Seen((site_pages.built() / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", site_pages.paths())
def test_links_and_anchors_resolve(path):
    page = seen(path)
    here = (site_pages.built() / path).parent
    broken = []
    for link in page.links:
        target, _, anchor = link.partition("#")
        if target.startswith("https://") or link == "index.html#search":
            continue
        file = here / target.partition("?")[0] if target else site_pages.built() / path
        if not file.is_file() or (anchor and anchor not in Seen(file.read_text(encoding="utf-8")).ids):
            broken.append(link)

    assert not broken


@pytest.mark.parametrize("path", site_pages.paths())
def test_a_page_is_one_small_file_in_order(path):
    page = seen(path)

    assert len((site_pages.built() / path).read_bytes()) < LIMIT
    assert all(target.startswith("data:") for target in page.loaded)
    assert len(page.ids) == len(set(page.ids))
    assert page.levels.count(1) == 1 and page.levels[0] == 1
    assert all(b - a <= 1 for a, b in zip(page.levels, page.levels[1:], strict=False))


def test_no_page_has_a_number_that_was_typed():
    assert site_pages.book().typed_numbers() == []


@pytest.mark.parametrize("slug", site_pages.slugs())
def test_a_lesson_is_neither_thin_nor_endless(slug):
    lesson = next(one for one in site_pages.book().lessons if one.slug == slug)
    body = Markup(pages._context(site_pages.book(), lesson)).page(lesson.body)
    text = (ROOT / "lessons" / slug / "lesson.md").read_text(encoding="utf-8")

    assert 1000 <= pages.words(lesson.folder) <= 2200
    assert 5 <= len(lesson.questions) <= 7
    assert sum(q.is_number for q in lesson.questions) >= 2
    assert body.worlds, "a lesson has a world to drive"
    assert {"```harness", "bars(", "::: mistake", "$$"} <= {
        part for part in ("```harness", "bars(", "::: mistake", "$$") if part in text
    }
    assert lesson.front.get("sources") and lesson.front.get("depends")


@pytest.mark.parametrize("slug", site_pages.slugs())
def test_what_the_harness_says_begins_with_a_verdict(slug):
    text = (ROOT / "lessons" / slug / "lesson.md").read_text(encoding="utf-8")
    said = re.findall(r"^```harness\n(\S+)", text, re.M)

    assert said and {word.rstrip(":") for word in said} <= set(WORDS)


def test_home_shows_what_the_records_say(tmp_path):
    at = now() - timedelta(hours=1)
    Store(tmp_path / "records").append(Attempt(id="coalescing", slug="04_coalescing", verdict="pass", time=stamp(at)))
    build(tmp_path / "out", records=tmp_path / "records")
    home, lesson = (
        (tmp_path / "out" / path).read_text(encoding="utf-8") for path in ("index.html", "04_coalescing/index.html")
    )

    assert '<i class="pip passed"></i>passed, due again in 1 day' in home
    assert 'title="4 Coalescing: passed, due again in 1 day"' in lesson


def test_a_build_takes_old_pages_away_and_leaves_other_folders_alone(tmp_path):
    (tmp_path / "a" / "99_gone").mkdir(parents=True)
    (tmp_path / "a" / "index.html").write_text("old", encoding="utf-8")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.txt").write_text("keep", encoding="utf-8")
    for folder in "ab":
        build(tmp_path / folder, records=tmp_path / "none")

    assert not (tmp_path / "a" / "99_gone").exists()
    assert (tmp_path / "b" / "mine.txt").is_file()


def test_the_command_builds_and_says_what_is_wrong(tmp_path):
    good = python("-m", "harness.site", "--out", str(tmp_path / "out"), "--records", str(tmp_path), cwd=ROOT)
    bad = python("-m", "harness.site", "77", "--out", str(tmp_path / "out"), cwd=ROOT)

    assert (good.returncode, good.stderr) == (0, "")
    assert "kB  index.html" in good.stdout and "Open " in good.stdout
    assert bad.returncode == 1 and bad.stderr.startswith("lesson='77' is none of ")


# -- JavaScript --------------------------------------------------------------------------------------------------------


def run_node(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([site_pages.node(), *args], cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("folder", ["shared", *site_pages.slugs()])
def test_models_pass_their_own_tests(folder):
    files = sorted(str(p) for p in (ROOT / "lessons" / folder).glob("*.test.mjs"))
    result = run_node("--test", *files)

    assert files
    assert result.returncode == 0, result.stdout[-3000:]


@pytest.mark.parametrize("slug", site_pages.slugs())
def test_models_agree_with_physics(slug):
    lesson = next(one for one in site_pages.book().lessons if one.slug == slug)
    pairs = pages.same_values(lesson.folder)
    roles = Roles(f"lessons/{slug}/vectors.toml")
    roles.add(facts=lesson.facts)
    result = run_node(
        str(DATA / "same_values.mjs"),
        str(lesson.folder / "model.js"),
        json.dumps(lesson.facts),
        json.dumps([js for js, _ in pairs]),
    )

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [pytest.approx(roles.value(expression), rel=1e-9) for _, expression in pairs]


@pytest.mark.parametrize("slug", site_pages.slugs())
def test_every_draw_of_every_question_makes_sense(slug, tmp_path):
    lesson = next(one for one in site_pages.book().lessons if one.slug == slug)
    shared = ROOT / "lessons" / "shared"
    module = quiz.module(lesson.questions, Markup(Context(slug, pair=lesson.pair)))
    module = module.replace('"../shared/kit.js"', json.dumps(str(shared / "kit.js"))).replace(
        '"./model.js"', json.dumps(str(lesson.folder / "model.js"))
    )
    (tmp_path / "questions.mjs").write_text(module, encoding="utf-8")
    result = run_node(
        str(DATA / "quiz_draws.mjs"), str(tmp_path / "questions.mjs"), str(shared / "quiz.js"), json.dumps(lesson.facts)
    )

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == []


# -- the builder's own order -------------------------------------------------------------------------------------------


def imported(path: Path) -> set[str]:
    """The harness's modules that a file imports while it is imported, but for type checkers."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("harness"):
            found |= (
                {f"{node.module}.{a.name}" for a in node.names}
                if node.module in ("harness", "harness.site")
                else {node.module or ""}
            )
    return {name.removeprefix("harness.") for name in found}


@pytest.mark.parametrize("path", sorted(SITE.glob("*.py")), ids=lambda path: path.stem)
def test_the_builder_stands_on_the_lower_layers_alone(path):
    assert {name for name in imported(path) if not name.startswith("site.")} <= BELOW


def test_the_builder_s_modules_form_no_circle():
    edges = {p.stem: {n.removeprefix("site.") for n in imported(p) if n.startswith("site.")} for p in SITE.glob("*.py")}

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join([*above, name])
        for other in edges.get(name, ()):
            visit(other, (*above, name))

    for name in edges:
        visit(name, ())
