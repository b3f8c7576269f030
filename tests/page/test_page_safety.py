"""The question page in a real browser: hostile text, API keys and the widget on other sites."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser import Site, window
from tests.conftest import ServiceFactory
from tests.model_replies import draft, structured
from tests.model_server import ModelServer
from tests.page.conftest import Open, ServeModel
from tests.page.hostile import HOSTILE, PAYLOADS, hostile_answer, hostile_platform
from tests.page.page_actions import ENGLISH, SHIPPING, answer_with, answered, ask, problem

pytestmark = pytest.mark.acceptance


def test_api_key_is_requested_once(chromium: Browser, served: str) -> None:
    keys: list[str | None] = []

    def guard(route: Route) -> None:
        keys.append(route.request.headers.get("authorization"))
        if keys[-1] is None:
            problem(401, "no key")(route)
        else:
            route.continue_()

    with window(chromium, served, **ENGLISH) as opened:
        page = opened.page
        page.goto(served)
        page.route("**/ask", guard)
        ask(page, "what does error 44203 mean?")
        expect(page.get_by_role("dialog")).to_contain_text("no key")
        page.get_by_label("API key", exact=True).fill("key-of-mine")
        page.keyboard.press("Enter")
        answered(page)
        ask(page, "what does error 44201 mean?")
        expect(page.locator(".turn .details")).to_have_count(2)
    assert keys == [None, "Bearer key-of-mine", "Bearer key-of-mine"]


def test_html_in_an_answer_is_shown_as_text(open_page: Open) -> None:
    """Every string of the answer contains HTML and scripts."""
    opened = open_page()
    page = opened.page
    answer_with(page, hostile_answer())
    ask(page, HOSTILE)
    answered(page)
    page.locator(".details summary").click()
    expect(page.locator(".step")).to_contain_text(PAYLOADS[1])
    page.locator(".citation").first.click()
    expect(page.get_by_role("dialog")).to_contain_text(PAYLOADS[1])
    assert made_of_it(page) == []
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator(".step")).to_contain_text(PAYLOADS[1])
    assert made_of_it(page) == []


def test_hostile_document_and_model_output_are_inert(
    open_page: Open,
    serve_model: ServeModel,
    make_service: ServiceFactory,
    model_server: ModelServer,
    tmp_path: Path,
) -> None:
    """End to end: from the file through the index and the model to the page."""
    answer_service = make_service(platform=hostile_platform(tmp_path))
    model_server.reply(structured(api_name=None), draft(f"The kettle needs vinegar. {HOSTILE} [1]"))
    with serve_model(model_server, answer_service, unverified="list") as url:
        page = open_page(url).page
        assert page.title() == f"Kettles {PAYLOADS[0]}"
        ask(page, f"does the kettle need vinegar? {HOSTILE}")
        answered(page)
        expect(page.locator(".step").first).to_contain_text("The kettle needs vinegar.")
        page.locator(".citation").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("alert(1)")
        assert made_of_it(page) == []


def made_of_it(page: Page) -> list[str]:
    """Return elements and URLs that only a payload can create."""
    violations: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("body :is(img, script, iframe, object, svg:not(.icon)), body a")]
          .filter((node) => node.tagName !== "A" || !/^https?:/.test(node.protocol))
          .map((node) => node.outerHTML)
          .filter((html) => !html.startsWith('<a class="skip"'))"""
    )
    return violations


def test_widget_works_on_another_site(chromium: Browser, served: str, site: Site) -> None:
    tag = f'<script src="{served}/widget.js" data-language="zh" defer></script>'
    site.pages["/guide"] = f"<!doctype html><title>Docs</title><link rel=icon href=data:,>{tag}"
    with window(chromium, "http://", **ENGLISH) as opened:
        page = opened.page
        page.goto(f"{site.origin()}/guide")
        page.get_by_role("button", name="问文档").click()
        frame = page.frame_locator("iframe")
        box = frame.get_by_role("textbox")
        box.fill(SHIPPING)
        box.press("Enter")
        expect(frame.locator(".step").first).to_contain_text("order/ship")
        box.press("Escape")
        expect(page.locator("iframe")).to_be_hidden()
        expect(page.get_by_role("button", name="问文档")).to_be_focused()
        page.keyboard.press("Enter")
        expect(frame.locator(".quotes")).to_be_visible()
        frame.get_by_role("button", name="关闭").click()
        expect(page.locator("iframe")).to_be_hidden()
        assert opened.faults == []


def test_unlisted_site_cannot_frame_the_page(chromium: Browser, served: str, site: Site) -> None:
    site.pages["/frame"] = f'<link rel=icon href=data:,><iframe src="{served}/embed"></iframe>'
    with window(chromium, "http://") as opened:
        page = opened.page
        with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
            page.goto(f"{site.origin('127.0.0.1')}/frame")
