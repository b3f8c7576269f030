"""The question page in a real browser: axe-core, the keyboard and the theme."""

import pytest
from playwright.sync_api import Browser, expect

from schemas.answer import Page as DocumentPage
from schemas.question import StructuredQuestion
from tests.browser import window
from tests.page.conftest import Open
from tests.page.page_actions import (
    CHINESE,
    ENGLISH,
    answer_with,
    answered,
    ask,
    made_answer,
    problem,
    violations,
)

pytestmark = pytest.mark.acceptance


def test_shortcuts_focus_the_question_box(open_page: Open) -> None:
    page = open_page().page
    box = page.get_by_role("textbox")
    for shortcut in ("/", "Control+k"):
        page.evaluate("document.activeElement.blur()")
        expect(box).not_to_be_focused()
        page.keyboard.press(shortcut)
        expect(box).to_be_focused()
    page.keyboard.type("a/b")
    expect(box).to_have_value("a/b")


def test_page_is_usable_with_the_keyboard(open_page: Open) -> None:
    page = open_page().page
    page.keyboard.type("what does error\nmean")
    assert page.locator(".turn").count() == 1, "Enter sends"
    answered(page)
    page.keyboard.press("Control+A")
    page.keyboard.type("what does")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("error 44203 mean?")
    assert page.locator(".turn").count() == 1, "Shift+Enter does not"
    page.keyboard.press("Enter")
    answered(page)
    for _ in range(30):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.className") == "citation":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".turn:last-child .citation:focus")).to_have_count(1)


def test_enter_that_confirms_a_composition_does_not_send(open_page: Open) -> None:
    page = open_page(**CHINESE).page
    box = page.get_by_role("textbox")
    box.fill("fahuo")
    box.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    box.dispatch_event("keydown", {"key": "Enter", "keyCode": 229})
    assert page.locator(".turn").count() == 0
    box.dispatch_event("keydown", {"key": "Enter"})
    expect(page.locator(".turn")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violations(open_page: Open, scheme: str) -> None:
    page = open_page(color_scheme=scheme, viewport={"width": 1280, "height": 860}).page
    expect(page.locator(".suggestions button").first).to_be_visible()
    assert violations(page) == []
    answer_with(page, made_answer("It is `so`. [1]", unverified=["so"], unsupported=[1]))
    ask(page, "is it so?")
    answered(page)
    page.locator(".details summary").click()
    assert violations(page) == []
    page.set_viewport_size({"width": 375, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth") == 375, "nothing is cut off"
    assert violations(page) == []
    page.locator(".step .citation").click()
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violations_without_an_answer(
    chromium: Browser, served: str, scheme: str
) -> None:
    """An uncovered and an off-topic question, a problem, and the key dialog, in the page of the widget."""
    nearest = [DocumentPage(title="Shipping", page_url="https://open.example.com/")]
    refusal = StructuredQuestion(type="unknown")
    with window(chromium, served, color_scheme=scheme, **ENGLISH) as opened:
        page = opened.page
        page.goto(f"{served}/embed")
        answer_with(page, made_answer("Nothing is said.", sources=[], nearest=nearest))
        ask(page, "by drone?")
        answered(page)
        answer_with(page, made_answer("No.", sources=[], type="unknown", structured=refusal))
        ask(page, "the weather?")
        answered(page)
        page.route("**/ask", problem(503, "the model rests", **{"Retry-After": "60"}))
        ask(page, "what?")
        expect(page.get_by_role("alert")).to_be_visible()
        page.evaluate("scrollTo(0, 0)")
        assert violations(page) == []
        page.route("**/ask", problem(401, "no key"))
        ask(page, "who?")
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(page) == []


def test_chosen_theme_is_remembered(open_page: Open) -> None:
    page = open_page(color_scheme="light").page
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Light or dark").click()
    dark = page.evaluate(background)
    assert light != dark
    page.reload()
    assert page.evaluate(background) == dark
