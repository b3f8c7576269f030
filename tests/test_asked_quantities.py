"""Tests of the quantities that questions ask for."""

import pytest

from runnables.question.needs import AskedQuantity, asked_quantities, states_quantity


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("令牌多久过期", {"time"}),
        ("How long is a token valid?", {"time", "length"}),
        ("一次最多传多少个订单", {"count"}),
        ("what is the rate limit", {"count"}),
        ("the biggest file I can send", {"size"}),
        ("备注长度有要求吗", {"length"}),
        ("发一条要多少钱", {"money"}),
        ("how much is the small plan", {"money"}),
        ("how much data can I send", {"count"}),
        ("请求体最大多少", {"count", "size"}),
        ("能传 80M 吗", {"size"}),
        ("等 5m 再重试", set()),
        ("How do I create an order?", set()),
    ],
)
def test_question_asks_for_quantities(question: str, expected: set[AskedQuantity]) -> None:
    assert asked_quantities(question) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("有效期 2 小时", "time"),
        ("两个月后删除", "time"),
        ("可每天同步一次", "time"),
        ("refreshed once a day", "time"),
        ("deleted after seven days", "time"),
        ("at most 30 MB", "size"),
        ("不超过 64 个字符", "length"),
        ("up to 50 per page", "count"),
        ("每秒 20 次", "count"),
        ("0.05 元一条", "money"),
    ],
)
def test_text_states_a_quantity(text: str, kind: AskedQuantity) -> None:
    assert states_quantity(text, frozenset({kind}))


@pytest.mark.parametrize("text", ["错误码 40014", "version 2 of the API", "见第 3 节"])
def test_other_numbers_are_no_quantities(text: str) -> None:
    assert not states_quantity(text, frozenset({"time", "size", "money"}))
    assert not states_quantity("有效期 2 小时", frozenset())
