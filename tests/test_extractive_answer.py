"""Answers quoted without a model: short steps, each with a citation."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from runnables.answer.passages import MAX_QUOTED_CHARS
from runnables.answer.segments import Segment, quotable_markdown
from schemas.answer import Answer
from tests.small_platform import PLATFORM, quoted_page, settings_of

API = "https://open.example.com/#/api?apiId="
GUIDE = "https://open.example.com/docs/"
QUESTIONS = Path(__file__).parent / "data" / "on_topic.jsonl"
GAPS = QUESTIONS.with_name("gap_questions.jsonl")


def ask(client: TestClient[Litestar], question: str) -> dict[str, Any]:
    response = client.post("/ask", json={"question": question})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize(
    ("question", "page", "first", "later"),
    [
        pytest.param("发货接口是哪个", API + "1110", "`POST /dop/api/v1/order/ship`", "订单履约权限包", id="which interface"),
        pytest.param("获取商品详情", API + "1201", "`GET /dop/api/v1/product/detail`", "商品读取权限包", id="a bare name"),
        pytest.param("订单发货有哪些必填参数", API + "1110", "| 名称 | 类型 | 必填 | 说明 |", "| `order_no` | string | 是 | ", id="parameters"),
        pytest.param("Which parameters does Update SKU Price require?", API + "1206", "| Name | Type | Required | Description |", "| `item_id` |", id="parameters, English"),
        pytest.param("调用订单发货要什么权限包", API + "1110", "订单履约权限包", "", id="permission"),
        pytest.param("订单发货返回 41024 怎么处理", API + "1110", "`41024`", "", id="an error of an API"),
        pytest.param("40014", GUIDE + "error-handling", "40014", "", id="an error of the platform"),
        pytest.param("what does error 44203 mean", API + "1206", "| Error code | Message | Cause | Remedy |\n| --- | --- | --- | --- |\n| `44203` | ", "", id="an error, English"),
        pytest.param("怎么发货", API + "1110", "`POST /dop/api/v1/order/ship`", "`request_id`", id="how to, over the API"),
        pytest.param("怎么签名", GUIDE + "signing", "sign", "", id="how to, of a guide"),
        pytest.param("How do I test in the sandbox?", GUIDE + "sandbox-testing", "", "1. Create an application", id="how to, a numbered list"),
        pytest.param("订单发货返回哪些字段", API + "1110", "| `code` | string | 是 | 结果码", "| `data` | object |", id="response"),
        pytest.param("what does Update SKU Price return", API + "1206", "", "| `data` | object |", id="response, English"),
        pytest.param("order_no 是什么", API + "1102", "| `order_no` | string | 是 | 平台订单号", "| … |", id="a field"),
    ],
)  # fmt: skip
def test_requested_facts_come_first(
    client: TestClient[Litestar], question: str, page: str, first: str, later: str
) -> None:
    answer = ask(client, question)
    assert first in answer["answer"][0]
    assert any(later in step for step in answer["answer"])
    assert page in answer["relatedUrl"]
    assert answer["answeredBy"] == "extractive"


@pytest.mark.acceptance
def test_answers_are_short_cited_and_well_formed(client: TestClient[Litestar]) -> None:
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        answer = ask(client, json.loads(line)["question"])
        steps, sources = answer["answer"], answer["sources"]
        assert steps
        if not sources:
            assert answer["confidence"] == "low" or answer["type"] == "unknown"
            assert answer["relatedUrl"] == []
            continue
        assert all(re.search(r"\s\[\d+\](?: \|)?$", step) for step in steps), steps
        assert len(set(steps)) == len(steps)
        assert all(step.count("```") % 2 == 0 for step in steps), steps
        assert sum(map(len, steps)) <= 2.4 * MAX_QUOTED_CHARS
        is_uncertain = "may not answer it" in answer["introduction"]
        is_uncertain |= "不一定能回答" in answer["introduction"]
        assert is_uncertain == (answer["confidence"] == "low")
        assert {source["pageUrl"] for source in sources} <= set(answer["relatedUrl"])
        assert len(answer["relatedUrl"]) <= len(sources) + 3


@pytest.mark.acceptance
def test_uncovered_questions_rarely_get_high_confidence(client: TestClient[Litestar]) -> None:
    lines = map(json.loads, GAPS.read_text(encoding="utf-8").splitlines())
    asked = [line["question"] for line in lines if line["set"] == "zh_2"]
    answers = [ask(client, question) for question in asked]
    passed = [answer["confidence"] for answer in answers if answer["type"] != "unknown"]
    assert passed.count("high") <= 0.03 * len(passed)
    assert passed.count("medium") <= 0.25 * len(passed)


@pytest.mark.parametrize(
    "question",
    [
        "How do I cancel a drone pickup",
        "Can I receive orders by telegraph or carrier pigeon?",
        "how do I call the Create Coupon API?",
    ],
)
def test_questions_about_other_things_get_low_confidence(
    client: TestClient[Litestar], question: str
) -> None:
    assert ask(client, question)["confidence"] == "low"


def test_probably_off_topic_question_is_not_answered_but_gets_the_nearest_pages(
    client: TestClient[Litestar],
) -> None:
    answer = ask(client, "每天的帐去哪拿")
    assert answer["type"] == "unknown"
    assert (answer["sources"], answer["confidence"]) == ([], "low")
    assert GUIDE + "reconciliation" in [page["pageUrl"] for page in answer["nearest"]]


def test_off_topic_question_gets_no_pages(client: TestClient[Litestar]) -> None:
    answer = ask(client, "how do I poach an egg")
    assert (answer["type"], answer["nearest"]) == ("unknown", [])


@pytest.mark.parametrize(
    "question",
    [
        "order_teleport_no 是什么",
        "/dop/api/v1/order/teleport 接口怎么调用",
        "错误码 98765 怎么处理",
    ],
)
def test_question_about_an_unknown_identifier_is_not_covered(
    client: TestClient[Litestar], question: str
) -> None:
    answer = ask(client, question)
    assert answer["sources"] == []
    assert answer["confidence"] == "low" or answer["type"] == "unknown"


@pytest.mark.parametrize(
    ("question", "product"),
    [("how do I ship with Shopify", "Shopify"), ("淘宝的订单怎么发货", "淘宝")],
)
def test_question_about_another_platform_names_it(
    client: TestClient[Litestar], question: str, product: str
) -> None:
    answer = ask(client, question)
    assert answer["confidence"] == "low"
    assert f"`{product}`" in "\n".join([answer["introduction"], *answer["answer"]])


def test_platform_that_the_documents_mention_is_not_missing(tmp_path: Path) -> None:
    page = "# Import\n\n## Orders of Shopify\n\nSend the orders of Shopify to the import API as a file.\n"
    text = quoted_page(tmp_path, page, "How do I import orders of Shopify?")
    assert "as a file" in text
    assert "does not contain" not in text


def test_words_with_the_stem_of_a_platform_do_not_name_it(tmp_path: Path) -> None:
    page = (
        "# Messages\n\n- `content_type`: the type of a message\n- `body`: the text of a message\n"
    )
    text = quoted_page(tmp_path, page, "what is content_type")
    assert "the type of a message" in text
    assert "contentful" not in text


def test_not_covered_is_not_cited_although_a_page_says_the_same(tmp_path: Path) -> None:
    platform = tmp_path / "platform.toml"
    platform.write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    page = "# Limits\n\nThe documentation of Acme does not seem to cover this question about `order_no`.\n"
    (tmp_path / "guides" / "limits.md").write_text(page)

    async def answer() -> Answer:
        async with open_answer_service(settings_of(tmp_path)) as answer_service:
            question = "what is order_teleport_no for?"
            return await answer_service.ask(AskCommand(question))

    answered = asyncio.run(answer())
    assert answered.sources == []
    assert answered.confidence == "low"


def test_passages_are_quoted_below_the_headings_of_their_sections(tmp_path: Path) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    for name, hours in (("Refunds", 2), ("Payouts", 24)):
        page = (
            f"# {name}\n\n## Retries\n\nA failed webhook is delivered again after {hours} hours.\n"
        )
        (tmp_path / "guides" / f"{name.lower()}.md").write_text(page)
    (tmp_path / "guides" / "colours.md").write_text("# Colours\n\nThe logo is blue and white.\n")

    async def answer(question: str) -> Answer:
        async with open_answer_service(settings_of(tmp_path)) as answer_service:
            return await answer_service.ask(AskCommand(question))

    answered = asyncio.run(answer("when is a failed webhook delivered again"))
    assert {step.rpartition(" ")[0] for step in answered.answer} == {
        "**Refunds > Retries**\n\nA failed webhook is delivered again after 2 hours.",
        "**Payouts > Retries**\n\nA failed webhook is delivered again after 24 hours.",
    }
    (only,) = asyncio.run(answer("is the logo blue or white")).answer
    assert only == "**Colours**\n\nThe logo is blue and white. [1]"


def page_of_parameters(**descriptions: str) -> str:
    """Return a page about bans whose table has a long row per parameter."""
    filler = "It is kept. " * 20
    rows = [f"| {name} | {text} {filler}|" for name, text in descriptions.items()]
    lines = ["# Ban a user of a group", "", "| Name | Description |", "| --- | --- |", *rows]
    return "\n".join(lines)


def test_comparison_quotes_both_sides(tmp_path: Path) -> None:
    filler = "It is used for campaigns, and each campaign can use it as often as it needs to. " * 8
    page = (
        f"# Pushes\n\n## Broadcast\n\nA broadcast is sent to all devices. {filler}\n\n"
        f"## Multicast\n\nA multicast is sent to up to 500 devices. {filler}\n"
    )
    text = quoted_page(tmp_path, page, "what is the difference between multicast and broadcast?")
    assert "sent to all devices" in text
    assert "up to 500 devices" in text


def test_comparison_is_not_answered_with_another_comparison(tmp_path: Path) -> None:
    page = (
        "# 常见问题\n\n## 甲券和乙券有什么区别？\n\n甲券可以叠加，乙券不能叠加。\n\n"
        "# 消息\n\n## 订阅参数\n\n`presence` 表示通知成员的上线和下线，`history` 是补发的历史条数。\n"
    )
    text = quoted_page(tmp_path, page, "presence和history有什么区别")
    assert "补发的历史条数" in text
    assert "甲券可以叠加" not in text


def test_short_passages_of_six_sections_are_quoted_if_it_is_unclear_which_is_right(
    tmp_path: Path,
) -> None:
    details = "It is kept with its colour and its weight, and printed again on each label. " * 6
    sections = [f"## Shelf {n}\n\nShelf {n} accepts the kettle.\n\n{details}\n" for n in range(8)]
    answer = quoted_page(tmp_path, "# Shelves\n\n" + "\n".join(sections), "who accepts the kettle?")
    assert answer.count("**Shelves > Shelf") == 6
    assert details.strip() not in answer


def test_items_are_quoted_below_the_line_that_governs_their_list(tmp_path: Path) -> None:
    items = "\n".join(f"- Remove the {name} of the kiln." for name in ("lid", "door", "handle"))
    page = f"# Kilns\n\nThe following is **not** done. The list may grow.\n\n{items}\n"
    answer = quoted_page(tmp_path, page, "does closing a kiln remove its handle?")
    assert answer.index("is **not** done") < answer.index("handle of the kiln")


def test_question_with_only_codes_and_a_comparison_is_on_topic(tmp_path: Path) -> None:
    page = "# 交易\n\n## 预结算【2206】\n\n交易 2206 只试算，不扣款。\n\n## 结算【2207】\n\n交易 2207 正式扣款。\n"
    text = quoted_page(tmp_path, page, "2207和2206有什么区别")
    assert "正式扣款" in text
    assert "只试算" in text


def test_status_is_not_defined_beside_a_named_error(tmp_path: Path) -> None:
    page = (
        "# Errors\n\n| Code | Meaning |\n| --- | --- |\n| lock_timeout | Retry after a second. |\n\n"
        "# Idempotency\n\n| Status | Meaning |\n| --- | --- |\n| 409 | The key was used before. |\n"
    )
    text = quoted_page(tmp_path, page, "got 409 lock_timeout, what should I do?")
    assert "Retry after a second" in text
    assert "used before" not in text


def test_only_the_term_that_is_asked_for_is_quoted(tmp_path: Path) -> None:
    page = "# Glossary\n\n- **MAU**: monthly active users.\n- **SKU**: a unit of stock.\n- **Hub**: a gateway.\n"
    text = quoted_page(tmp_path, page, "what does MAU mean?")
    assert "monthly active users" in text
    assert "unit of stock" not in text


def test_pasted_request_is_not_answered_with_an_example_of_it(tmp_path: Path) -> None:
    page = (
        "# Groups\n\n## Fields\n\nAnybody can join a group if `open` is true. "
        "An open group ignores `allow_invites`.\n\n## Example\n\n"
        '```json\n{"open": true, "allow_invites": true}\n```\n'
    )
    question = 'why is allow_invites false? {"open": true, "allow_invites": true}'
    text = quoted_page(tmp_path, page, question)
    assert text.startswith("**Groups > Fields**")


def test_two_parts_of_a_question_are_answered_from_the_same_section(tmp_path: Path) -> None:
    filler = "The desk stores it with the other settings of the shop.\n\n" * 20
    page = (
        "# Access\n\nAn access token is valid for two hours.\n\n"
        f"{filler}To delete a webhook, send its id to the removal address.\n"
    )
    question = "How long is an access token valid? And how do I delete a webhook?"
    text = quoted_page(tmp_path, page, question)
    assert "valid for two hours" in text
    assert "send its id" in text


@pytest.mark.parametrize("header", ["| Plan | Limit | Limit |", "| Plan | | |"])
def test_columns_with_equal_titles_are_quoted(tmp_path: Path, header: str) -> None:
    row = "| Free plan | 10 per minute | 100 per day |"
    page = f"# Limits\n\n{header}\n| --- | --- | --- |\n{row}\n"
    assert row in quoted_page(tmp_path, page, "what are the limits of the free plan").replace(
        " [1]", ""
    )


def test_parameter_of_a_pasted_request_is_quoted(tmp_path: Path) -> None:
    page = page_of_parameters(user="The user.", group="The group.", lasts="Seconds.")
    text = quoted_page(tmp_path, page, 'ban a user of a group {"lasts": 30}')
    assert "| lasts | Seconds." in text


def test_row_that_is_asked_for_follows_the_rows_of_a_pasted_request(tmp_path: Path) -> None:
    page = page_of_parameters(
        lasts="Seconds.", other="Another one.", notice="Explains the moderator's decision."
    )
    question = '{"lasts": 30} which one explains the moderator\'s decision?'
    text = quoted_page(tmp_path, page, question)
    assert text.index("| lasts |") < text.index("| notice |")
    assert "| other |" not in text


def test_row_named_by_a_word_of_the_question_is_quoted(tmp_path: Path) -> None:
    page = page_of_parameters(
        batch_size="Defaults to 1000.", output="Defaults to all.", limit="Defaults to -1."
    )
    text = quoted_page(tmp_path, page, "what are the defaults for batch_size and limit of a ban?")
    assert "| batch_size |" in text
    assert "| limit |" in text
    assert "| output |" not in text


def test_items_keep_their_numbers(tmp_path: Path) -> None:
    page = "# Set up a webhook\n\n1. Open the console.\n2. Add a webhook.\n\n> It is free.\n\n3. Save it.\n"
    text = quoted_page(tmp_path, page, "how to set up a webhook")
    assert "2. Add a webhook. [1]" in text
    assert "3. Save it. [1]" in text


def test_code_is_quoted_below_the_paragraph_that_explains_it(tmp_path: Path) -> None:
    filler = "\n".join(f"flamingo_{n} = {n}" for n in range(60))
    page = f"# Birds\n\nThis prepares the cage.\n\n```\n{filler}\n```\n\nAll birds are counted at night.\n"
    text = quoted_page(tmp_path, page, "flamingo_12")
    assert text.startswith("**Birds**\n\nThis prepares the cage.")


def test_answer_is_framed_in_the_requested_language(client: TestClient[Litestar]) -> None:
    response = client.post("/ask", json={"question": "发货接口是哪个", "language": "en"})
    answer = response.json()
    assert answer["language"] == "en"
    assert answer["introduction"].startswith("Hello")
    assert "**: `POST /dop/api/v1/order/ship`" in answer["answer"][0]


def test_question_about_private_life_is_refused_although_it_shares_words(
    client: TestClient[Litestar],
) -> None:
    assert ask(client, "周末去哪家餐厅吃火锅有优惠")["type"] == "unknown"
    assert ask(client, "退款怎么处理")["type"] != "unknown"


@pytest.mark.parametrize(
    ("text", "is_introduction"),
    [
        ("These are the limits:", True),
        ("**参数如下：**", True),
        ("**Note**", True),
        ("**Note** Prices are in cents.", False),
        ("Prices are in cents.", False),
    ],
)
def test_label_or_announcement_introduces_what_follows(text: str, is_introduction: bool) -> None:
    assert Segment(0, "paragraph", text).is_introduction == is_introduction


def test_passage_does_not_end_with_the_label_of_what_is_not_quoted(tmp_path: Path) -> None:
    table = f"| Name | Note |\n| --- | --- |\n| receipt | {'Shown to the buyer. ' * 60}|"
    page = f"# Refunds\n\nA refund takes three days.\n\nOutput of the call\n\n{table}\n"
    text = quoted_page(tmp_path, page, "how long does a refund take?")
    assert "three days" in text
    assert "Output of the call" not in text


def test_url_of_another_server_of_an_api_is_quoted(tmp_path: Path) -> None:
    rows = "".join(
        f"| {name} | https://{host}.example/v2/firings |\n"
        for name, host in [("Production", "kiln"), ("Sandbox", "sandbox.kiln")]
    )
    urls = f"| Environment | URL |\n| --- | --- |\n{rows}"
    table = "| Name | Type | Required |\n| --- | --- | --- |\n| kiln | string | yes |\n"
    page = f"# Start a firing\n\n{urls}\nMethod: POST\n\n## Parameters\n\n{table}"
    text = quoted_page(tmp_path, page, "What is the sandbox URL of Start a firing?")
    assert "https://sandbox.kiln.example/v2/firings" in text


def test_passage_ends_with_the_announcement_that_answers(tmp_path: Path) -> None:
    code = "```json\n{}\n```\n".replace("{}", '{"result": "' + "x" * 900 + '"}')
    sentence = (
        "When the endpoint receives `point=ping`, it must reply with `result=pong`, as follows:"
    )
    page = f"# Endpoint\n\nThe endpoint is checked once.\n\n{sentence}\n\n{code}"
    assert sentence in quoted_page(tmp_path, page, "what does the endpoint reply to a ping?")


@pytest.mark.parametrize("last_chars", [200, 500])
def test_list_is_quoted_to_its_last_short_item_or_ends_with_an_ellipsis(
    tmp_path: Path, last_chars: int
) -> None:
    cold = "- `kiln.cold`: the kiln is cold. " + "It is sent once a day. " * 18
    hot = "- `kiln.hot`: the kiln is hot. " + "It is sent once a night. " * 14
    last = "- `kiln.fired`: sent later. " + "x" * last_chars
    page = (
        f"# Events\n\nA kiln sends these events:\n\n{cold}\n{hot}\n{last}\n\nThey have no order.\n"
    )
    text = quoted_page(tmp_path, page, "which events does a kiln send once a day or a night?")
    assert "kiln.hot" in text
    assert ("kiln.fired" in text) == (last_chars < 300)
    assert ("\n- …" in text) == (last_chars > 300)


@pytest.mark.parametrize(
    ("asked", "before", "after"),
    [([0, 1], False, True), ([2, 3], True, False), ([1, 2], True, True)],
)
def test_ellipsis_is_where_items_of_a_list_are_left_out(
    tmp_path: Path, asked: list[int], before: bool, after: bool
) -> None:
    names = ["cold", "warm", "hot", "fired"]
    fillers = ["The kiln glows red. " if i in asked else "Nothing else. " for i in range(4)]
    items = [f"- `kiln.{n}`: {f * (380 // len(f))}\n" for n, f in zip(names, fillers, strict=True)]
    page = f"# Events\n\nA kiln sends these events:\n\n{''.join(items)}\nThey have no order.\n"
    text = quoted_page(tmp_path, page, "which event means that the kiln glows red?")
    first, last = (names[i] for i in (asked[0], asked[-1]))
    assert (f"- …\n- `kiln.{first}`" in text) == before
    assert bool(re.search(rf"`kiln\.{last}`[^\n]*\n- …", text)) == after


def test_announcement_of_code_that_is_not_asked_for_is_not_quoted(tmp_path: Path) -> None:
    page = (
        "# List kilns\n\nThe path is `/v2/kilns`.\n\n"
        "If the list of kilns has more pages, repeat the call with the cursor.\n\n"
        "A list of kilns like this one is returned by the call with the cursor:\n\n"
        '```json\n{"kilns": []}\n```\n'
    )
    curl = "curl https://kiln.example/v2/kilns?cursor=x"
    text = quoted_page(tmp_path, page, f"{curl}  is a list like this one returned by the call?")
    assert "repeat the call" in text
    assert "like this one" not in text


@pytest.mark.parametrize(
    "question",
    [
        "订单发货接口有哪些必填参数，fast_lane_no 要传吗？",
        "Which parameters does Update SKU Price require besides fast_lane_no?",
    ],
)
def test_missing_identifier_in_a_documented_question_lowers_the_confidence(
    client: TestClient[Litestar], question: str
) -> None:
    answer = ask(client, question)
    assert answer["confidence"] == "low"
    assert answer["sources"], "the rest of the question is documented"
    assert "fast_lane_no" in answer["introduction"]


def test_identifier_within_a_hyphenated_name_is_not_missing(tmp_path: Path) -> None:
    text = quoted_page(
        tmp_path,
        "# Discounts\n\nA second request with the same number returns 400-NUMBER_TAKEN.\n",
        "why does the second request return NUMBER_TAKEN?",
    )
    assert "400-NUMBER_TAKEN" in text
    assert "does not contain" not in text


def test_small_table_of_parameters_is_quoted_as_a_whole(tmp_path: Path) -> None:
    rows = "| days | Length. |\n| scope | Where. |"
    page = f"# Ban a user of a group\n\n| Name | Description |\n| --- | --- |\n{rows}\n"
    text = quoted_page(tmp_path, page, 'Ban a user: {"days": 3}, did I forget a parameter?')
    assert "| days | Length. |" in text
    assert "| scope | Where. " in text


def test_only_the_status_whose_cause_has_the_code_is_quoted(tmp_path: Path) -> None:
    causes = {"400": "AP.0011 - too many apps", "403": "AP.0004 - no such role"}
    responses = {status: {"description": cause} for status, cause in causes.items()}
    operation = {"operationId": "addApp", "summary": "Add an app", "responses": responses}
    api = {"openapi": "3.0.0", "info": {"title": "Acme", "version": "1"}}
    (tmp_path / "api.json").write_text(json.dumps({**api, "paths": {"/apps": {"post": operation}}}))
    text = quoted_page(
        tmp_path,
        "# Start\n\nHello.\n",
        "what is AP.0011",
        '[[sources]]\nname = "api"\nkind = "openapi"\npath = "api.json"\n',
    )
    assert "AP.0011 - too many apps" in text
    assert "AP.0004" not in text


LABELS = {
    "openapi": "3.0.0",
    "info": {"title": "Labels", "version": "1"},
    "servers": [{"url": "https://api.example.com"}],
    "paths": {
        path: {
            method: {
                "summary": summary,
                "parameters": [{"name": "page", "in": "query", "schema": {"type": "integer"}}],
                "responses": {
                    "200": {"description": "The request was a success"},
                    "404": {"description": f"Nothing to {summary.lower()}"},
                },
            }
            for method, summary in operations.items()
        }
        for path, operations in {
            "/v1/labels": {"get": "List labels", "post": "Create a label"},
            "/v1/labels/{id}": {
                "get": "Read a label",
                "put": "Replace a label",
                "delete": "Delete a label",
            },
            "/v1/teams/{id}/labels": {"get": "List labels of a team", "post": "Add labels"},
            "/v1/shops/{shop}/v1/teams/{id}/labels": {"get": "List labels of a shop"},
            "/v1/drafts": {"get": "List drafts"},
            "/v1/archive/drafts": {"get": "List drafts"},
        }.items()
    },
}
"""Operations of which several have the same path."""


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("which endpoint do I need to read a label", "Read a label"),
        ("怎么替换一个标签", "Replace a label"),
        ("list labels of a team returns 404, what is wrong?", "List labels of a team"),
        ("GET /v1/labels", "List labels"),
        ("what does delete /v1/labels/7 need?", "Delete a label"),
        ("POST /v1/labels returns 400, which parameters are required?", "Create a label"),
        ("`/v1/labels/{id}` 用 DELETE 报错", "Delete a label"),
        (
            "curl -X PUT https://api.example.com/v1/labels/7 -d '{\"page\": 2}' fails",
            "Replace a label",
        ),
        ("curl https://api.example.com/v1/labels/7 fails, why?", "Read a label"),
        ("curl -H 'A: b' --data page=1 https://api.example.com/v1/labels fails", "Create a label"),
        ("POST /v1/teams/7/labels", "Add labels"),
        ("GET /v1/teams/7/labels", "List labels of a team"),
    ],
)
def test_api_of_the_stated_method_or_name_is_quoted(
    tmp_path: Path, question: str, name: str
) -> None:
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    source = '\n[[sources]]\nname = "api"\nkind = "openapi"\npath = "labels.json"\n'
    text = quoted_page(tmp_path, "# Acme\n\nAn API for shops.\n", question, source)
    assert text.startswith(f"**{name}**")
    assert all(
        f"**{other}**" not in text for other in ("List labels", "Create a label") if other != name
    )


def test_all_apis_of_the_stated_name_are_quoted(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text(json.dumps(LABELS))
    source = '\n[[sources]]\nname = "api"\nkind = "openapi"\npath = "labels.json"\n'
    question = "which endpoint do I need to list drafts"
    text = quoted_page(tmp_path, "# Acme\n\nAn API for shops.\n", question, source)
    assert "`GET /v1/drafts`" in text
    assert "`GET /v1/archive/drafts`" in text
    assert "labels" not in text


@pytest.mark.parametrize("question", ["怎麼開發票", "怎么开发票"])
@pytest.mark.parametrize(
    "text", ["发票在订单页开具，一天之内到账。", "發票在訂單頁開具，一天之內到賬。"]
)
def test_traditional_characters_match_simplified_ones(
    tmp_path: Path, question: str, text: str
) -> None:
    assert text in quoted_page(tmp_path, f"# 发票\n\n{text}\n", question)


def test_quoted_code_keeps_its_tags() -> None:
    text = "`<a>` and ``<b> ` </b>`` in <i>code</i>"
    assert quotable_markdown(text) == "`<a>` and ``<b> ` </b>`` in code"


def test_quoted_text_keeps_placeholders_but_no_tags() -> None:
    text = "<p>no answer from <kiln> for <span class='k'>key</span> <user_id></p>, <note>x</note>"
    assert quotable_markdown(text) == "no answer from `<kiln>` for key `<user_id>`, x"
    assert quotable_markdown("`a` array<string> of<b> keys</b>") == "`a` `array<string>` of keys"
    assert quotable_markdown("密钥<key>无效") == "密钥`<key>`无效"
    code = "Run:\n  ```\n  fire <kiln>\n  ```"
    assert quotable_markdown(code) == code


def test_quoted_text_keeps_its_line_breaks() -> None:
    assert quotable_markdown("a → b  \nc ![](d.png)\ne  ") == "a → b  \nc\ne"
