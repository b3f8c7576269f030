"""The question page in a real browser: conversations, steps, feedback and problems."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, expect

from app.service.answer_service import AnswerService
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from schemas.insights import Feedback
from tests.browser import window
from tests.model_replies import interrupted_answer, is_classification, structured
from tests.model_server import ModelServer
from tests.page.conftest import Open, ServeModel
from tests.page.page_actions import (
    CHINESE,
    ENGLISH,
    answer_with,
    answered,
    ask,
    change_language,
    made_answer,
    problem,
)

pytestmark = pytest.mark.acceptance


def test_suggestions_follow_the_language_and_are_asked_on_click(open_page: Open) -> None:
    page = open_page().page
    expect(page.locator(".suggestions button").first).to_contain_text(
        re.compile("^[^\u4e00-\u9fff]+$")
    )
    change_language(page, "切换到中文")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("#tools .language")).to_be_focused()
    first = page.locator(".suggestions button").first
    expect(first).to_contain_text(re.compile("[\u4e00-\u9fff]"))
    assert page.locator(".suggestions button").count() == 4
    question = first.inner_text()
    first.click()
    answered(page)
    expect(page.locator(".turn").get_by_role("heading", level=2)).to_have_text(question)
    expect(page.locator(".actions")).to_contain_text("复制为 Markdown")
    change_language(page, "Switch to English")
    expect(page.locator(".actions")).to_contain_text("Copy as Markdown")
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.locator(".actions")).to_contain_text("Copy as Markdown")


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
    model_server.default = interrupted_answer
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


def test_steps_of_a_retried_answer_are_not_shown_early(
    open_page: Open, serve_model: ServeModel, model_server: ModelServer
) -> None:
    """Steps are shown 400 ms after the first one; the time before the retry does not count."""
    model_server.route(is_classification, structured())
    model_server.default = interrupted_answer
    with serve_model(model_server) as url:
        page = open_page(url).page
        page.clock.install()
        page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
        ask(page, "发货接口是哪个")
        expect(page.locator(".step")).to_have_count(1)
        page.clock.run_for(300)
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".step")).to_have_count(1)
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        page.clock.run_for(300)
        expect(page.locator(".step")).to_be_hidden()
        page.clock.run_for(200)
        expect(page.locator(".step")).to_be_visible()


def test_steps_restart_when_the_model_breaks_off(
    open_page: Open, serve_model: ServeModel, model_server: ModelServer
) -> None:
    model_server.reply(structured())
    model_server.default = lambda request: interrupted_answer(request, "close")
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


def test_feedback_form_is_not_covered_by_the_question_box(open_page: Open) -> None:
    page = open_page(viewport={"width": 375, "height": 620}).page
    answer_with(page, made_answer("It is so. [1]\n\n" + "A line.\n\n" * 8))
    ask(page, "is it so?")
    answered(page)
    page.route("**/feedback", lambda route: route.fulfill(status=204))
    button = page.get_by_role("button", name="Not helpful")
    button.evaluate("node => node.scrollIntoView({ block: 'end' })")
    button.click()
    expect(page.locator(".comment")).to_be_visible()
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


def test_problem_that_a_retry_cannot_solve_has_no_retry_button(
    chromium: Browser, served: str
) -> None:
    with window(chromium, served, **ENGLISH) as opened:
        page = opened.page
        page.goto(served)
        ask(page, "a" * 20_001)
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("The question has 20001 characters, which is more than")
        expect(alert).not_to_contain_text("question:")
        assert page.get_by_role("button", name="Try again").count() == 0
        expect(page.locator("#status")).to_be_empty()


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
