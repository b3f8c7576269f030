"""The question page in a real browser: how answers are displayed."""

import re

import pytest
from playwright.sync_api import expect

from schemas.answer import Page as DocumentPage
from tests.model_replies import draft, structured
from tests.model_server import ModelServer
from tests.page.conftest import Open, ServeModel
from tests.page.page_actions import (
    CHINESE,
    SHIPPING,
    answer_with,
    answered,
    ask,
    change_language,
    made_answer,
    made_source,
)

pytestmark = pytest.mark.acceptance


def test_chinese_question_is_answered(open_page: Open) -> None:
    page = open_page(**CHINESE).page
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    ask(page, SHIPPING)
    answered(page)
    expect(page.locator(".doubtful")).to_have_text("文档没有明确写到。最接近的内容：")
    steps = page.locator(".step")
    expect(steps.first).to_contain_text("order/ship")
    expect(steps.last).to_be_hidden()
    page.locator(".quotes summary").click()
    expect(steps.last).to_be_visible()
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


def test_unverified_facts_are_marked(
    open_page: Open, serve_model: ServeModel, model_server: ModelServer
) -> None:
    steps = (
        "调用“订单发货”接口提交发货。[1]",
        "然后调用“订单发货”接口 `/dop/api/v9/order/teleport` 提交订单发货的包裹。[1]",
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
    """A high confidence needs no remark; further quotes with a low confidence are folded."""
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
    steps = ["It is so. [1]", "It may be so. [1]"]
    low = made_answer("", answer=steps, confidence="low", answered_by="extractive")
    answer_with(page, low)
    ask(page, "low?")
    answered(page)
    turn = page.locator(".turn:last-child")
    expect(turn.locator(".doubts")).to_contain_text("Not clearly covered. This comes closest:")
    expect(turn.locator(".step").first).to_be_visible()
    expect(turn.locator(".step").last).to_be_hidden()
    turn.locator(".quotes summary").press("Enter")
    expect(turn.locator(".step").last).to_be_visible()


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
    expect(page.locator(".turn:last-child .step .citation")).to_have_text("1")
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
    change_language(page, "切换到中文")
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


def test_answer_is_copied_as_markdown(open_page: Open) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"]).page
    ask(page, "what does error 44203 mean?")
    page.get_by_role("button", name="Copy as Markdown").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("## what does error 44203 mean?\n\n")
    target = "<https://open.example.com/#/api?apiId=1206>"
    assert f"- [1] [Update SKU Price › Error codes]({target})" in copied
    assert f"### Related pages\n\n- {target}" in copied


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
