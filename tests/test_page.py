"""The question page and the widget in a real browser."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect
from pydantic import SecretStr

from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from schemas.answer import Answer, Round, Source
from schemas.answer import Page as DocumentPage
from schemas.insights import Feedback
from schemas.question import StructuredQuestion
from tests.browser import (
    Site,
    Window,
    missing_chromium,
    running_chromium,
    running_site,
    window,
)
from tests.conftest import ServiceFactory
from tests.live_server import live_server
from tests.model_replies import draft, is_classification, structured
from tests.model_script import Recorded, Reply
from tests.model_server import ModelServer
from tests.openai_objects import events

pytestmark = pytest.mark.acceptance

SHIPPING = "怎么发货"
CHINESE = {"locale": "zh-CN"}
ENGLISH = {"locale": "en-US"}

Open = Callable[..., Window]
ServeModel = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser of this module."""
    if reason := missing_chromium():
        pytest.skip(reason)
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The site that embeds the widget."""
    with running_site() as other:
        yield other


@pytest.fixture(scope="module")
def served(sample_service: AnswerService, site: Site) -> Iterator[str]:
    """A server of the samples without a model; `site` may frame it."""
    settings = sample_service.settings.model_copy(update={"embed_origins": (site.origin(),)})
    with live_server(AnswerService(settings, sample_service.platform, sample_service.job)) as url:
        yield url


@pytest.fixture
def open_page(chromium: Browser, served: str) -> Iterator[Open]:
    """Open the page, in English by default. Errors in the page fail the test."""
    with ExitStack() as stack:
        windows: list[Window] = []

        def opened(url: str = served, **context: Any) -> Window:
            windows.append(stack.enter_context(window(chromium, url, **(ENGLISH | context))))
            windows[-1].page.goto(url)
            return windows[-1]

        yield opened
        assert [fault for each in windows for fault in each.faults] == []


@pytest.fixture
def serve_model(sample_service: AnswerService) -> ServeModel:
    """Serve the samples with the scripted model."""

    @contextmanager
    def serving(
        server: ModelServer, answer_service: AnswerService = sample_service, **more: Any
    ) -> Iterator[str]:
        scripted = {
            "chat_model": "openai:scripted-chat",
            "chat_base_url": server.base_url,
            "chat_api_key": SecretStr("test-key"),
        }
        settings = answer_service.settings.model_copy(update=scripted | more)
        with live_server(
            AnswerService(settings, answer_service.platform, answer_service.job)
        ) as url:
            yield url

    return serving


def ask(page: Page, question: str) -> None:
    """Type the question and send it."""
    page.get_by_role("textbox").fill(question)
    page.keyboard.press("Enter")


def answered(page: Page) -> None:
    """Wait for the last answer to be complete."""
    expect(page.locator(".turn:last-child .details")).to_be_visible()


def answer_with(page: Page, answer: Answer) -> None:
    """Answer the next questions with `answer` instead of the server."""
    body = f"event: answer\r\ndata: {answer.model_dump_json(by_alias=True)}\r\n\r\n"
    page.route("**/ask", lambda route: route.fulfill(content_type="text/event-stream", body=body))


def problem(status: int, detail: str, **headers: str) -> Callable[[Route], None]:
    """Return a route that responds with a problem."""
    body = json.dumps({"status": status, "detail": detail, "code": "x", "retryable": True})
    kind = "application/problem+json"
    return lambda route: route.fulfill(status=status, body=body, content_type=kind, headers=headers)


def test_chinese_question_is_answered(open_page: Open) -> None:
    page = open_page(**CHINESE).page
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    ask(page, SHIPPING)
    answered(page)
    expect(page.locator(".doubtful")).to_have_text("文档没有明确写到。最接近的页面：")
    steps = page.locator(".step")
    expect(steps.first).to_be_hidden()
    page.locator(".quotes summary").click()
    assert steps.count() > 1
    expect(steps.first).to_contain_text("order/ship")
    expect(page.get_by_role("link", name="订单发货").first).to_have_attribute(
        "href", "https://open.example.com/#/api?apiId=1110"
    )
    expect(page.get_by_role("status").first).to_contain_text("回答完毕")
    assert page.evaluate(LAYOUT_SHIFT) < 0.1, "nothing jumps while the steps come"

    page.get_by_text("详情", exact=True).click()
    expect(page.locator(".details")).to_contain_text("一般问题")
    expect(page.locator(".details")).to_contain_text("extractive")


LAYOUT_SHIFT = """() => new Promise((resolve) => {
  const sum = (list) => list.getEntries().reduce((all, entry) => all + (entry.hadRecentInput ? 0 : entry.value), 0);
  new PerformanceObserver((list) => resolve(sum(list))).observe({ type: "layout-shift", buffered: true });
  setTimeout(resolve, 300, 0);
})"""


def test_citation_opens_the_source_with_its_page(open_page: Open) -> None:
    page = open_page().page
    ask(page, "what does error 44203 mean?")
    page.locator(".citation").first.click()
    dialog = page.get_by_role("dialog", name="Update SKU Price")
    expect(dialog.get_by_role("cell", name="44203", exact=True)).to_be_visible()
    expect(dialog.get_by_role("link")).to_have_attribute(
        "href", "https://open.example.com/#/api?apiId=1206"
    )
    expect(dialog.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator(".citation").first).to_be_focused()


def test_off_topic_question_is_marked_as_refused(open_page: Open) -> None:
    page = open_page(**CHINESE).page
    ask(page, "今天天气怎么样")
    expect(page.locator("[data-outcome=refused]")).to_contain_text("与青桥开放平台无关")
    assert page.locator(".doubts *, .citation, .pages").count() == 0


def test_suggestions_follow_the_language_and_are_asked_on_click(open_page: Open) -> None:
    page = open_page().page
    expect(page.locator(".suggestions button").first).to_contain_text(
        re.compile("^[^\u4e00-\u9fff]+$")
    )
    page.get_by_role("button", name="切换到中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.get_by_role("button", name="Switch to English")).to_be_focused()
    first = page.locator(".suggestions button").first
    expect(first).to_contain_text(re.compile("[\u4e00-\u9fff]"))
    assert page.locator(".suggestions button").count() == 4
    question = first.inner_text()
    first.click()
    answered(page)
    expect(page.locator(".turn").get_by_role("heading", level=2)).to_have_text(question)
    expect(page.locator(".actions")).to_contain_text("复制为 Markdown")
    page.get_by_role("button", name="Switch to English").click()
    expect(page.locator(".actions")).to_contain_text("Copy as Markdown")
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator(".quotes")).to_be_visible()


def test_conversation_continues_until_a_new_one_starts(open_page: Open) -> None:
    page = open_page(**CHINESE).page
    ask(page, "发货接口是哪个")
    answered(page)
    ask(page, "那错误码呢")
    answered(page)
    expect(page.locator(".turn:last-child .pages")).to_contain_text("订单发货1错误码")

    session = page.evaluate("sessionStorage.getItem('apidesk.session')")
    with page.expect_request("**/sessions/*") as deleting:
        page.get_by_role("button", name="新对话").click()
    assert deleting.value.method == "DELETE"
    assert deleting.value.url.endswith(session)
    assert deleting.value.response().status == 204  # type: ignore[union-attr]
    expect(page.locator(".turn")).to_have_count(0)
    assert page.evaluate("sessionStorage.getItem('apidesk.session')") != session


def test_steps_appear_as_they_arrive_and_can_be_stopped(
    open_page: Open, serve_model: ServeModel, model_server: ModelServer
) -> None:
    """The model falls silent within its second step; stopping cancels its call."""
    model_server.reply(structured())
    model_server.default = lambda request: cut_at(request, "发货前先", "stall")
    with serve_model(model_server) as url:
        page = open_page(url).page
        ask(page, "发货接口是哪个")
        expect(page.locator(".step")).to_have_text(["调用“订单发货”接口提交发货。1"])
        expect(page.locator(".answer")).to_have_attribute("aria-busy", "true")
        expect(page.locator(".progress")).to_contain_text("Writing the answer from")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".stopped")).to_be_visible()
        assert model_server.abandoned.wait(10)
        expect(page.locator(".step")).to_have_count(1)


def test_steps_restart_when_the_model_breaks_off(
    open_page: Open, serve_model: ServeModel, model_server: ModelServer
) -> None:
    model_server.reply(structured())
    model_server.default = lambda request: cut_at(request, "发货前先", "close")
    with serve_model(model_server) as url:
        page = open_page(url).page
        page.evaluate(WATCH_STEPS)
        ask(page, "发货接口是哪个")
        answered(page)
        model_said = "调用“订单发货”接口提交发货。1"
        assert page.evaluate("steps")[0] == model_said
        assert page.locator(".step").count() > 0
        assert model_said not in page.locator(".step").all_text_contents()
        expect(page.locator(".rest .notice")).to_contain_text("Answered with limitations")


WATCH_STEPS = """() => {
  window.steps = [];
  const added = (node) => node.className === "step" && steps.push(node.textContent);
  new MutationObserver((records) => records.forEach((record) => record.addedNodes.forEach(added)))
    .observe(document.getElementById("conversation"), { subtree: true, childList: true });
}"""


def test_unverified_facts_are_marked(
    open_page: Open, serve_model: ServeModel, model_server: ModelServer
) -> None:
    steps = (
        "调用“订单发货”接口提交发货。[1]",
        "然后调用 `/dop/api/v9/order/teleport`。[1]",
        "火星上的仓库每周三晚上八点免费赠送三百个纸箱。[1]",
    )
    model_server.reply(structured(), draft(*steps))
    with serve_model(model_server) as url:
        page = open_page(url).page
        ask(page, "发货接口是哪个")
        answered(page)
        expect(page.locator(".step mark")).to_have_text("/dop/api/v9/order/teleport(unverified)")
        expect(page.locator(".doubtful li")).to_have_text("/dop/api/v9/order/teleport")
        expect(page.locator(".unsupported .doubt")).to_have_count(1)
        expect(page.locator(".doubts .doubtful")).to_contain_text("Not clearly covered")
        expect(page.locator(".step").first).to_be_visible()


def test_uncovered_question_shows_the_nearest_pages(open_page: Open) -> None:
    page = open_page().page
    nearest = [
        DocumentPage(title="Shipping", page_url="https://open.example.com/docs/shipping-flow")
    ]
    answer_with(page, made_answer("Nothing is said about it.", sources=[], nearest=nearest))
    ask(page, "can I ship by drone?")
    expect(page.locator("[data-outcome=uncovered] .outcome")).to_be_visible()
    expect(page.get_by_role("link", name="Shipping")).to_be_visible()
    assert page.locator(".doubts *").count() == 0


def test_doubt_is_said_above_the_steps(open_page: Open) -> None:
    """A high confidence needs no remark; quotes that hardly answer the question are folded below the pages."""
    page = open_page().page
    answer_with(page, made_answer("It is so. [1]", confidence="high"))
    ask(page, "high?")
    answered(page)
    assert page.locator(".doubts *").count() == 0
    page.unroute("**/ask")
    answer_with(page, made_answer("It is so. [1]", confidence="medium"))
    ask(page, "medium?")
    answered(page)
    expect(page.locator(".turn:last-child .doubts")).to_contain_text("Check it against the pages")
    expect(page.locator(".turn:last-child .step")).to_be_visible()
    page.unroute("**/ask")
    answer_with(page, made_answer("It is so. [1]", confidence="low", answered_by="extractive"))
    ask(page, "low?")
    answered(page)
    turn = page.locator(".turn:last-child")
    expect(turn.locator(".doubts")).to_contain_text("Not clearly covered. Closest pages:")
    expect(turn.locator(".doubts").get_by_role("link", name="Title").first).to_be_visible()
    expect(turn.locator(".rest .pages")).to_have_count(0)
    expect(turn.locator(".step")).to_be_hidden()
    turn.locator(".quotes summary").press("Enter")
    expect(turn.locator(".step")).to_be_visible()


def test_sources_are_listed_by_page_with_a_preview(open_page: Open) -> None:
    page = open_page().page
    more = DocumentPage(title="Shipping", page_url="https://open.example.com/docs/shipping-flow")
    sources = [
        made_source("The first text."),
        made_source("The second text.").model_copy(update={"number": 2, "section": "Second"}),
        made_source("Another page.", "Other", "https://open.example.com/other").model_copy(
            update={"number": 3}
        ),
    ]
    answer_with(page, made_answer("So. [1][2][3]", sources=sources, related_pages=[more]))
    ask(page, "is it so?")
    answered(page)
    pages = page.locator(".pages > ul > li")
    expect(pages).to_have_text(
        [re.compile("^Title1Title2Second$"), re.compile("^Other"), "Shipping"]
    )
    section = pages.first.get_by_role("link", name="Second")
    expect(section).to_have_attribute("href", "https://open.example.com/")
    section.hover()
    expect(page.locator(".preview")).to_contain_text("The second text.")
    page.keyboard.press("Escape")
    expect(page.locator(".preview")).to_have_count(0)
    page.locator(".step .citation").first.hover()
    expect(page.locator(".preview")).to_contain_text("The first text.")
    page.mouse.move(0, 0)
    expect(page.locator(".preview")).to_have_count(0)
    pages.first.get_by_role("button", name="Source 2").click()
    expect(page.get_by_role("dialog")).to_contain_text("The second text.")


def test_error_codes_are_cards_and_parameters_a_table(open_page: Open) -> None:
    page = open_page().page
    ask(page, "what does error 44203 mean?")
    answered(page)
    card = page.locator(".error-card")
    expect(card.locator("strong")).to_have_text("44203")
    expect(card.locator("dt")).to_have_text(["Message", "Cause", "Remedy"])
    expect(card.locator(".citation")).to_have_text("1")
    ask(page, "which parameters does Update SKU Price need?")
    answered(page)
    columns = page.locator(".turn:last-child .step").get_by_role("columnheader")
    expect(columns).to_have_text(["Name", "Type", "Required", "Description"])
    page.set_viewport_size({"width": 375, "height": 780})
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    required = page.locator(".turn:last-child td:nth-child(3)").first
    label = required.evaluate("node => getComputedStyle(node, '::before').content")
    assert label == '"Required "'


def test_language_changes_while_an_answer_shows_a_table(open_page: Open) -> None:
    page = open_page().page
    ask(page, "which parameters does Update SKU Price need?")
    answered(page)
    page.get_by_role("button", name="切换到中文").click()
    expect(page.locator(".actions")).to_contain_text("复制为 Markdown")
    expect(page.get_by_role("textbox")).to_have_attribute(
        "placeholder", re.compile("[\u4e00-\u9fff]")
    )


def test_only_procedures_are_numbered(open_page: Open) -> None:
    page = open_page().page
    ask(page, "How do I test in the sandbox?")
    answered(page)
    items = page.locator(".step ol")
    assert items.evaluate_all("nodes => nodes.map((node) => node.start)")[:3] == [1, 2, 3]
    assert page.locator("ol:not(.step ol)").count() == 0


def test_code_is_copied(open_page: Open) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"]).page
    answer_with(page, made_answer("Run this: [1]\n\n```sh\ncurl -s example\n```"))
    ask(page, "how?")
    answered(page)
    page.locator(".code").get_by_role("button", name="Copy").click()
    expect(page.locator(".code").get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "curl -s example\n"


def test_follow_ups_are_asked_on_click(open_page: Open) -> None:
    page = open_page().page
    ask(page, "what does error 44203 mean?")
    answered(page)
    buttons = page.locator(".follow-ups button")
    expect(buttons).to_have_count(3)
    question = buttons.first.inner_text()
    assert "Update SKU Price" in question
    buttons.first.click()
    expect(page.locator(".turn:last-child .question")).to_have_text(question)
    answered(page)
    expect(page.locator(".turn:last-child .follow-ups button").first).to_be_visible()
    expect(page.locator(".turn:first-child .follow-ups")).to_be_hidden()


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


def test_feedback_form_is_not_covered_by_the_question_box(open_page: Open) -> None:
    page = open_page(viewport={"width": 375, "height": 620}).page
    answer_with(page, made_answer("It is so. [1]\n\n" + "A line.\n\n" * 8))
    ask(page, "is it so?")
    answered(page)
    page.route("**/feedback", lambda route: route.fulfill(status=204))
    button = page.get_by_role("button", name="Not helpful")
    button.evaluate("node => node.scrollIntoView({ block: 'end' })")
    button.click()
    page.wait_for_function(
        """() => {
            const box = (name) => document.querySelector(name).getBoundingClientRect();
            return box(".comment").bottom <= box(".composer").top;
        }""",
        timeout=5_000,
    )


def test_feedback_is_stored(open_page: Open, sample_service: AnswerService) -> None:
    page = open_page().page
    ask(page, "what does error 44203 mean?")
    answered(page)
    page.get_by_role("button", name="Not helpful").click()
    page.get_by_label("What was right or wrong?").fill("it is another by now")
    page.keyboard.press("Enter")
    expect(page.locator(".feedback-result form")).to_have_count(0)
    expect(page.get_by_role("button", name="Not helpful")).to_have_attribute("aria-pressed", "true")
    engine = open_engine(sample_service.settings)
    records = RecordStore(engine).since(datetime.now(UTC) - timedelta(hours=1))
    judged = [(record.question, record.feedback) for record in records if record.feedback]
    engine.dispose()
    wrong = Feedback(score=-1, comment="it is another by now")
    assert ("what does error 44203 mean?", wrong) in judged


def test_answer_is_copied_as_markdown(open_page: Open, served: str) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"]).page
    ask(page, "what does error 44203 mean?")
    page.get_by_role("button", name="Copy as Markdown").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("## what does error 44203 mean?\n\n")
    target = "<https://open.example.com/#/api?apiId=1206>"
    assert f"- [1] [Update SKU Price › Error codes]({target})" in copied
    assert f"### Related pages\n\n- {target}" in copied


def test_problem_is_shown_with_a_retry_button(chromium: Browser, served: str) -> None:
    with window(chromium, served, **ENGLISH) as opened:
        page = opened.page
        page.clock.install()
        page.goto(served)
        page.route("**/ask", problem(503, "the model rests", **{"Retry-After": "7"}))
        ask(page, "what does error 44203 mean?")
        expect(page.get_by_role("alert")).to_contain_text("the model rests")
        expect(page.get_by_role("button", name="Try again in 7 s")).to_be_disabled()
        page.unroute("**/ask")
        page.clock.fast_forward(3_000)
        page.clock.run_for(8_000)
        page.get_by_role("button", name="Try again").click()
        answered(page)
        assert page.get_by_role("alert").count() == 0


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


def test_markdown_is_rendered(open_page: Open) -> None:
    page = open_page().page
    step = (
        "Send **all** of `[1]` to https://open.example.com/a, as [it says [1]](https://b.example/) [1][7]\n\n"
        "| a | b |\n| - | - |\n| 1 | 2 |\n\n- one\n\n```\n<b>\n```"
    )
    answer_with(page, made_answer(step))
    ask(page, "what is sent?")
    answered(page)
    shown = page.locator(".step .prose")
    assert shown.locator("a").evaluate_all("nodes => nodes.map((node) => node.href)") == [
        "https://open.example.com/a",
        "https://b.example/",
    ]
    assert shown.locator("strong, td, li, code").all_inner_texts() == [
        "all",
        "[1]",
        "1",
        "2",
        "one",
        "<b>\n",
    ]
    expect(shown.locator(".citation")).to_have_text(["1"])
    expect(shown.locator("p")).to_have_text(re.compile(r"\[7\]$"))


PAYLOADS = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[link](javascript:alert(1))",
    "![image](https://evil.example/x.png)",
    '"><svg onload=alert(1)>',
)
HOSTILE = " ".join(PAYLOADS)


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


def violations(page: Page) -> list[str]:
    """Return serious and critical violations of axe-core, after all transitions have ended."""
    page.emulate_media(reduced_motion="reduce")
    violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{each['id']}: {node['html']}"
        for each in violations
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_chosen_theme_is_remembered(open_page: Open) -> None:
    page = open_page(color_scheme="light").page
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Light or dark").click()
    dark = page.evaluate(background)
    assert light != dark
    page.reload()
    assert page.evaluate(background) == dark


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


def made_answer(step: str, **fields: Any) -> Answer:
    """Return an answer with one step and, by default, one source."""
    source = made_source("It is so.")
    made: dict[str, Any] = {
        "id": "made",
        "question": "q",
        "introduction": "",
        "answer": [step],
        "related_url": [],
        "type": "general",
        "structured": StructuredQuestion(type="general"),
        "sources": [source],
        "confidence": "medium",
        "language": "en",
        "answered_by": "scripted",
        "timings": {"total": 1},
    }
    return Answer(**(made | fields))


def made_source(text: str, name: str = "Title", url: str = "https://open.example.com/") -> Source:
    """Return source 1."""
    return Source(
        number=1, source=name, document_id=name, title=name, section=name, page_url=url, api_name=name, api_url=url, score=1, text=text
    )  # fmt: skip


def hostile_answer() -> Answer:
    """Return an answer whose every string is hostile."""
    address = "javascript:alert(1)"
    structured = StructuredQuestion(
        type="general",
        api_name=HOSTILE,
        api_url=HOSTILE,
        request_param={HOSTILE: HOSTILE},
        response=HOSTILE,
        error=HOSTILE,
        search_terms=("<img src=x onerror=alert(1)>",),
        trace_id=HOSTILE,
    )
    return made_answer(
        f"{HOSTILE} [1]",
        id="../../x",
        introduction=HOSTILE,
        related_url=[address, HOSTILE],
        nearest=[DocumentPage(title=HOSTILE, page_url=address)],
        structured=structured,
        sources=[made_source(HOSTILE, HOSTILE, address)],
        unverified=["onerror=alert(1)", HOSTILE],
        answered_by=HOSTILE,
        degraded=HOSTILE,
        rounds=[Round(tool=HOSTILE, arguments={"a": HOSTILE}, results=1, milliseconds=1, error=HOSTILE)],
    )  # fmt: skip


def hostile_platform(folder: Path) -> Path:
    """Write a platform whose name and document are hostile."""
    page = f"---\ntitle: 'Kettle {PAYLOADS[0]}'\nurl: 'javascript:alert(1)'\n---\n"
    page += f"# Vinegar {PAYLOADS[0]}\n\nThe kettle needs vinegar. {HOSTILE}\n"
    (folder / "docs").mkdir()
    (folder / "docs" / "kettle.md").write_text(page)
    platform = folder / "platform.toml"
    platform.write_text(f"""
[platform]
name = "Kettles {PAYLOADS[0]}"
description = "Kettles, vinegar and {PAYLOADS[1]}"
audience = "cooks"
tone = "plain"
greeting = "Hello."
refusal = "Not about kettles."
language = "en"

[[sources]]
name = "docs"
kind = "markdown"
path = "docs"
page_url = "{{url}}"
""")
    return platform


def cut_at(request: Recorded, at: str, action: Literal["close", "stall"]) -> Reply:
    """The answer streamed up to `at`, then silence or the end of the connection."""
    assert not is_classification(request)
    text = json.dumps(
        {"question": "q", "answer": ["调用“订单发货”接口提交发货。[1]", "发货前先取得运单号。[1]"]},
        ensure_ascii=False,
    )
    sent, sent_text = 0, ""
    for event in events(Reply(text), request):
        sent += len(event)
        sent_text += json.loads(event.removeprefix(b"data: "))["choices"][0]["delta"]["content"]
        if at in sent_text:
            break
    return Reply(text, action=action, reset_after=sent)
