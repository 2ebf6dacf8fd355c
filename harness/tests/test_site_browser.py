"""Every lesson page in a real browser, from disk and without a network: loads, is driven, is readable by all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.tests import site_pages

WIDTHS = (375, 1280)
# what axe calls serious or critical fails; the rest it reports is advice
BAD = ("serious", "critical")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return a Chromium that the whole file shares."""
    program = site_pages.browser_path()
    try:
        import axe_playwright_python  # noqa: F401  (only whether it is there)
        from playwright.sync_api import sync_playwright
    except ImportError:
        site_pages.missing(
            "Playwright and axe are not installed, so no page was opened: pip install -c constraints.txt -e '.[dev]'."
        )
    flags = [*site_pages.FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=flags)
        yield running
        running.close()


@contextmanager
def opened(browser: Any, path: str, width: int = 1280, scheme: str = "light", motion: str = "reduce") -> Iterator[Any]:
    """Open a page from disk with the network cut; leaving fails if it complained or asked the network for anything."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion=motion)
    context.set_offline(True)
    page = context.new_page()
    page.set_default_timeout(10_000)
    heard: list[str] = []
    page.on(
        "console",
        lambda message: (
            heard.append(f"{message.type}: {message.text}") if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else heard.append(request.url)
    )
    page.goto((site_pages.built() / path).as_uri())
    try:
        yield page
    finally:
        context.close()
    assert not heard


def lessons() -> list[str]:
    return [f"{slug}/index.html" for slug in site_pages.slugs()]


def faults(page: Any, where: str | None = None, rules: list[str] | None = None) -> list[str]:
    """What axe finds wrong with the page as it stands, and where. ``where``: a selector; ``rules``: these alone."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    found = Axe().run(page, context=where, options=options).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found
        if one["impact"] in BAD
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", site_pages.paths())
def test_a_page_reads_well_at_every_width(browser, path, scheme):
    with opened(browser, path, scheme=scheme) as page:
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(50)
            assert page.evaluate("document.documentElement.scrollWidth") == width
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        text = page.evaluate("getComputedStyle(document.body).color")
        assert (brightness(dark) < brightness(text)) == (scheme == "dark")
        # colours are all that the scheme changes
        assert faults(page, rules=["color-contrast"] if scheme == "dark" else None) == []


def brightness(colour: str) -> float:
    return sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3])


@pytest.mark.parametrize("path", lessons())
def test_the_theme_button_turns_the_page_and_says_what_it_does_next(browser, path):
    with opened(browser, path) as page:
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("#theme")

        assert page.inner_text("#theme") == "Light"
        assert brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) < brightness(before)


@pytest.mark.parametrize("path", lessons())
def test_each_world_is_driven_by_the_keyboard_alone(browser, path):
    with opened(browser, path) as page:
        for i in range(page.locator(".world").count()):
            world = page.locator(".world").nth(i)
            assert_sealed(world)
            predict(page, world)
            assert_revealed(world)
            press_on_every_control(page, world)
            if world.locator(".w-view[role=slider]").count():
                move_the_cursor(page, world)
            if world.locator("[data-play]").count():
                play(page, world)
            assert "Infinity" not in world.inner_text() and not re.search(r"\b(NaN|undefined)\b", world.inner_text())
        assert faults(page, ".world") == []


def assert_sealed(world: Any) -> None:
    """Before a prediction the card asks, and what is secret reads ?."""
    assert world.locator(".guess").count() == 1
    secrets = world.locator("dd[data-secret]").all_inner_texts()
    assert secrets and set(secrets) == {"?"}


def predict(page: Any, world: Any) -> None:
    field = world.locator(".guess input").first
    field.focus()
    if field.get_attribute("type") == "radio":
        page.keyboard.press("Space")
        world.locator(".guess .btn").focus()
    page.keyboard.press("Enter")


def assert_revealed(world: Any) -> None:
    """After it: what was said beside what is so, the secrets open, the focus in the world, the live region speaks."""
    assert world.locator(".verdict").count() == 1
    assert "?" not in world.locator("dd[data-secret]").all_inner_texts()
    assert world.evaluate("el => el.contains(document.activeElement)")
    world.page.wait_for_timeout(450)
    assert len(world.locator("[role=status]").inner_text()) > 20


def press_on_every_control(page: Any, world: Any) -> None:
    """Each control answers the arrow keys with a new value and a new picture or counter."""
    for k in range(world.locator(".controls .ctl").count()):
        control = world.locator(".controls .ctl").nth(k)
        field = control.locator("input:checked, input[type=range]").first
        if field.is_disabled():
            continue
        before = value_of(control)
        field.focus()
        key = (
            "ArrowRight"
            if field.get_attribute("type") == "radio"
            or int(float(field.input_value())) < int(float(field.get_attribute("max") or 0))
            else "ArrowLeft"
        )
        page.keyboard.press(key)
        assert value_of(control) != before, f"control {k} does not answer {key}"
        assert world.locator(".controls .ctl").nth(k).evaluate("el => el.contains(document.activeElement)")


def value_of(control: Any) -> str:
    return control.evaluate(
        "el => { const i = el.querySelector('input[type=range]') ?? el.querySelector('input:checked'); return i.value; }"
    )


def move_the_cursor(page: Any, world: Any) -> None:
    cursor = world.locator(".w-view[role=slider]")
    cursor.focus()
    page.keyboard.press("Home")
    first = cursor.get_attribute("aria-valuetext")
    page.keyboard.press("ArrowRight")
    assert cursor.get_attribute("aria-valuetext") != first
    page.keyboard.press("End")
    assert cursor.get_attribute("aria-valuenow") == cursor.get_attribute("aria-valuemax")


def play(page: Any, world: Any) -> None:
    scrub = world.locator("[data-at]")
    scrub.focus()
    page.keyboard.press("Home")
    assert scrub.input_value() == "0"
    world.locator("[data-play]").focus()
    page.keyboard.press("Enter")
    assert scrub.input_value() == scrub.get_attribute("max")  # at once: the reader asked for no motion


@pytest.mark.parametrize("path", lessons())
def test_each_world_is_driven_by_the_mouse_at_a_phone_s_width(browser, path):
    with opened(browser, path, width=375, motion="no-preference") as page:
        for i in range(page.locator(".world").count()):
            world = page.locator(".world").nth(i)
            if world.locator(".guess [data-by]").count():
                before = world.locator(".guess input").input_value()
                world.locator(".guess [data-by='1']").click()
                assert world.locator(".guess input").input_value() != before
            else:
                world.locator(".guess .opt").last.click()
            world.locator(".guess .btn").click()
            assert world.locator(".verdict").count() == 1
            for tab in world.locator(".tabs button").all():
                tab.click()
                assert tab.get_attribute("aria-pressed") == "true"
            picture = world.locator(".w-view svg").inner_html()
            assert picture and "NaN" not in picture
        assert page.evaluate("document.documentElement.scrollWidth") == 375


@pytest.mark.parametrize("path", lessons())
def test_the_quiz_says_right_and_why_wrong(browser, path):
    with opened(browser, path) as page:
        total = page.locator(".quiz fieldset").count()
        for i in range(total):
            question = page.locator(".quiz fieldset").nth(i)
            if question.locator(".opt").count():
                question.locator("input[value='1']").check()
                assert (
                    "no" in (question.locator(".fb").get_attribute("class") or "")
                    and len(question.locator(".fb").inner_text()) > 20
                )
                question.locator("input[value='0']").check()
            else:
                first = question.locator("legend").inner_text()
                answer(page, question, str(float(question.get_attribute("data-answer")) * 3 + 17))
                assert (
                    "no" in (question.locator(".fb").get_attribute("class") or "")
                    and len(question.locator(".fb").inner_text()) > 20
                )
                redraw(question, first)
                answer(page, question, question.get_attribute("data-answer"))
            assert "ok" in (question.locator(".fb").get_attribute("class") or "")
        assert page.inner_text(".quiz .score") == f"{total} of {total} answered right."


def answer(page: Any, question: Any, text: str) -> None:
    question.locator("input").fill(text)
    page.keyboard.press("Enter")


def redraw(question: Any, first: str) -> None:
    """Draw until the words differ: the same numbers may come twice, not twenty times."""
    for _ in range(20):
        question.locator(".quiet").click()
        if question.locator("legend").inner_text() != first:
            return
    raise AssertionError("New numbers brings no new numbers")


def test_a_quiz_answer_that_is_no_number_is_asked_for_again(browser):
    with opened(browser, lessons()[0]) as page:
        question = page.locator(".quiz fieldset:has(.answer)").first
        answer(page, question, "about four")

        assert "no number" in question.locator(".fb").inner_text()


def test_search_finds_sections_and_leads_there(browser):
    with opened(browser, "index.html") as page:
        page.keyboard.press("/")
        page.keyboard.type("coalescing sector")
        assert page.locator(".found a").count() >= 1
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("04_coalescing"))


def test_a_page_says_its_result_without_javascript(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site_pages.built() / lessons()[0]).as_uri())

    assert page.locator(".world .nojs").first.is_visible()
    assert not page.locator("#theme").is_visible()
    context.close()


@pytest.mark.parametrize("path", [path for path in site_pages.paths() if path.startswith("reference/")])
def test_a_reference_page_prints_on_one_sheet(browser, path):
    with opened(browser, path) as page:
        printed = page.pdf(format="A4", print_background=True)

    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
