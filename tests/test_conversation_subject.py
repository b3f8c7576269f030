"""Rules decide what a follow-up is about."""

import pytest

from runnables.conversation import subject
from runnables.conversation.follow_up import make_standalone
from runnables.conversation.subject import conversation_subject, words_with_positions
from schemas.question import Turn
from tests.follow_ups import HOOKS, PRICE, SHIP, SHIPMENT, SIGN, turn


@pytest.mark.parametrize(
    ("questions", "expected"),
    [
        (["怎么申请退款", "多久到账", "手续费呢"], "申请退款的手续费"),
        (["怎么申请退款", "手续费呢", "积分呢"], "申请退款：积分呢"),
        (["推送重试几次", "沙箱呢", "间隔多久"], "推送重试：间隔多久"),
        (["退款期限", "那费率呢"], "退款的费率"),
        (["金卡有什么权益", "有效期多久"], "金卡：有效期多久"),
        (["标准版每天能调多少次", "超了怎么办"], "标准版：超了怎么办"),
        (["白名单在哪配", "最多几个"], "白名单：最多几个"),
        (["退款为什么失败了", "怎么解决"], "退款失败了怎么解决"),
        (["2013是什么", "那查询退款呢"], "查询退款是什么"),
        (["Java SDK 版本", "python的呢"], "python SDK 版本"),
        (["群聊最多多少人", "单聊呢", "有什么区别"], "单聊最多、群聊最多：有什么区别"),
        (["what is the max file size", "and for v1?", "what about the next version?"], "max file size: the next version?"),
        (["what is the rate limit on Team?", "and on Enterprise?"], "what is the rate limit on Enterprise?"),
        (["how do i set a timeout in node?", "and in python?", "and in go?"], "how do i set a timeout in go?"),
        (["how do i set a timeout in node?", "and in v2?"], "how do i set a timeout in node: in v2?"),
        (["sign a token in go", "same for java?"], "sign a token in java"),
        (["how many users on free", "the same on business?"], "how many users on business"),
        (["ruby sdk", "and php?", "and rust?"], "rust sdk"),
        (["does Team have SSO?", "and Business?", "and SCIM?"], "does Business have SCIM?"),
        (["does Apple Pay support refunds?", "and Enterprise?"], "does Apple Pay support refunds: Enterprise?"),
        (["can a sender create api keys?", "and an admin?"], "can the admin create api keys?"),
        (["what does status expired mean", "and voided?"], "what does status voided mean"),
        (["what does status expired mean", "and voided?", "whats the difference?"], "status expired, status voided: whats the difference?"),
        (["how do I create a shipment in node", "and in go?", "what is the difference?"], "create a shipment in node, create a shipment in go: what is the difference?"),
        (["how does Google Pay work", "how does Apple Pay work", "what is the difference?"], "Google Pay, Apple Pay: what is the difference?"),
        (["is cancelEnvelope deprecated?", "since when?"], "cancelEnvelope: since when?"),
        (["is API_TOKEN deprecated?", "since which version?", "what replaced it?"], "API_TOKEN: what replaced it?"),
        (["how do i void an envelope?", "which role can do that?", "and which scope?"], "void an envelope: which scope?"),
        (["how do i void an envelope?", "when an admin cancels, who can see that?"], "when an admin cancels, who can see that?"),
        (["what is ???", "and webhooks?"], "what is: webhooks?"),
    ],
)  # fmt: skip
def test_follow_up_keeps_the_first_subject(questions: list[str], expected: str) -> None:
    history: list[Turn] = []
    for text in questions:
        history.append(turn(make_standalone(text, history)))
    assert history[-1].question == expected


@pytest.mark.parametrize(
    ("questions", "api_name", "expected"),
    [
        (["How do I create a shipment in node?", "How do I create a shipment in go?"], "Create shipment", "Create shipment: node, go: what is the difference?"),
        (["How do I create a booking?", "How do I cancel a booking?"], "Cancel a booking", "create a booking, Cancel a booking: what is the difference?"),
        (["怎么申请退款", "怎么查询退款"], "查询退款", "申请退款、查询退款: what is the difference?"),
    ],
)  # fmt: skip
def test_comparison_names_both_things(questions: list[str], api_name: str, expected: str) -> None:
    history = [turn(question, "", api_name) for question in questions]
    assert make_standalone("what is the difference?", history) == expected


NOTICE = turn(
    "怎么发送通知",
    "| `title_text` | 标题 |\n| `labels[].key` | 标签 |\n| `Summary` | 摘要 |",
    "通知发送",
)
ENGLISH_NOTICE = turn("How do I send a notice?", NOTICE.answer, "Send notice")


@pytest.mark.parametrize(
    ("text", "history", "expected"),
    [
        ("名称有什么限制", [NOTICE], "通知发送：名称有什么限制"),
        ("最长多少", [NOTICE], "通知发送：最长多少"),
        ("labels 怎么填", [NOTICE], "通知发送：labels 怎么填"),
        ("labels 的 key 最长多少", [NOTICE], "通知发送：labels 的 key 最长多少"),
        ("colour 怎么填", [NOTICE], "colour 怎么填"),
        ("labels 怎么退款", [NOTICE], "labels 怎么退款"),
        ("is title_text required?", [ENGLISH_NOTICE], "Send notice: is title_text required?"),
        ("what is a summary?", [ENGLISH_NOTICE], "what is a summary?"),
        ("用草稿呢", [NOTICE], "怎么发送通知：用草稿呢"),
        ("用户呢", [NOTICE], "怎么发送通知：用户呢"),
        ("那撤销订单呢", [NOTICE], "怎么撤销订单"),
        ("抖抖呢", [turn("怎么添加订阅", "", "订阅")], "怎么添加订阅：抖抖呢"),
        ("那创建订单呢", [turn("怎么查询", "", "查询退款")], "怎么查询：创建订单呢"),
        ("返回 7 和 8 有什么区别", [turn("怎么退款"), NOTICE], "通知发送：返回 7 和 8 有什么区别"),
    ],
)  # fmt: skip
def test_operation_stays_the_subject(text: str, history: list[Turn], expected: str) -> None:
    assert make_standalone(text, history) == expected


CREATE_TOPIC = turn("怎么创建主题", "", "创建主题")
TEXT_NOTICE = turn("怎么发送通知：短信呢", "", "通知发送")


@pytest.mark.parametrize(
    ("text", "history", "expected"),
    [
        ("最长多少", [NOTICE, TEXT_NOTICE], "通知发送：短信最长多少"),
        ("返回哪些字段", [NOTICE, TEXT_NOTICE], "通知发送：返回哪些字段"),
        ("最长多少", [NOTICE, turn("怎么发送通知：iOS 呢", "", "通知发送")], "通知发送：iOS 最长多少"),
        ("怎么删掉它？", [CREATE_TOPIC], "主题怎么删掉它？"),
        ("怎么调用它", [CREATE_TOPIC], "创建主题怎么调用它"),
        ("它怎么调用", [CREATE_TOPIC], "创建主题怎么调用"),
        ("and how do I cancel it?", [SHIPMENT], "shipment: how do I cancel it?"),
        ("how do I call it?", [SHIPMENT], "Create shipment: how do I call it?"),
    ],
)  # fmt: skip
def test_subject_is_what_the_latest_turn_names_or_creates(
    text: str, history: list[Turn], expected: str
) -> None:
    assert make_standalone(text, history) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("两者一样吗", "订单列表、退款列表：两者一样吗"),
        ("这两个排序相同吗", "订单列表、退款列表：这两个排序相同吗"),
        ("有什么区别", "订单列表、退款列表：有什么区别"),
        ("do both have pages?", "订单列表、退款列表: do both have pages?"),
        ("can I use both email and sms?", "can I use both email and sms?"),
    ],
)
def test_follow_up_about_both_names_the_apis_of_the_two_latest_questions(
    text: str, expected: str
) -> None:
    history = [
        turn("订单列表有哪些参数", "", "订单列表"),
        turn("退款列表呢", "", "退款列表"),
    ]
    assert make_standalone(text, history) == expected


def test_positions_of_words() -> None:
    text = "İPTAL \ud800支付 the İade 退款"
    words = [text[start:end] for _, start, end in words_with_positions(text)]
    assert words == ["İPTAL", "支付", "İade", "退款"]


def test_language_without_rules_is_treated_like_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "detect_language", lambda _: "xx")
    assert make_standalone("how do I cancel it", [PRICE]) == "Update SKU Price: how do I cancel it"
    assert make_standalone("which errors", [turn("How do I verify webhooks?")]) == (
        "verify webhooks: which errors"
    )


@pytest.mark.parametrize(
    ("history", "focus"),
    [
        ([], ""),
        ([SHIP], "订单发货"),
        ([SIGN], "签名"),
        ([SHIP, SIGN], "签名"),
        ([SIGN, SHIP], "订单发货"),
        ([SIGN, turn("签名：有 Python 的例子吗")], "签名"),
        ([SHIP, turn("怎么办")], "订单发货"),
        ([HOOKS], "verify webhook signatures"),
        ([turn("How many calls per second may I make?")], "calls per second"),
        ([turn("怎么申请权限包，要多久")], "申请权限包"),
        ([turn("？？？")], ""),
    ],
)
def test_conversation_subject(history: list[Turn], focus: str) -> None:
    assert conversation_subject(history) == focus


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("which scopes are there", "scopes"),
        ("how long can a text be", "text"),
        ("and refunds?", "refunds"),
        ("how do reminders work", "reminders"),
        ("can recipients opt out", "recipients"),
        ("how does the price table work", "price table"),
        ("which environment variable is used", "environment variable"),
        ("how is the product feed updated", "product feed"),
        ("is the video embed supported", "video embed"),
        ("which placeholders exist", "placeholders"),
        ("which scopes does a refund need", "refund"),
        ("which card works in the sandbox", "card"),
        ("how many times can a booking be rescheduled", "booking"),
        ("is the booking confirmed by email", "booking"),
        ("is it possible to share a booking", "share a booking"),
        ("how do i cancel a booking", "cancel a booking"),
        ("does it cost anything", ""),
        ("and how many times can I move it", ""),
        ("支持哪些币种", "币种"),
        ("谁能创建密钥", "创建密钥"),
        ("收件人能退订吗", "收件人"),
        ("提醒是怎么工作的", "提醒"),
        ("需要哪些参数", ""),
        ("退款的手续费为什么变了", "退款的手续费变了"),
        ("回调域名在哪里设置", "回调域名"),
        ("biz_no是干嘛的", "biz_no"),
    ],
)
def test_subject_is_a_noun_phrase_or_an_action(question: str, subject: str) -> None:
    assert conversation_subject([turn(question)]) == subject
