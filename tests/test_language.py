"""Language detection and token estimates."""

import pytest

from ingestion.text.language import (
    detect_language,
    detect_question_language,
    estimate_tokens,
    remove_pasted_text,
)
from schemas.choices import Language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("怎么发货", "zh"),
        ("how do I ship an order", "en"),
        ("", "en"),
        ("12345 /?!", "en"),
        ("，。！", "en"),
        ("调用 order_ship 报错 isv.invalid-signature", "zh"),
        ("What does 订单 mean in the field order_no of this API?", "en"),
        ("中文 one two three", "zh"),
        ("中文 one two three four", "en"),
        ("豈更", "zh"),
    ],
)
def test_language_is_detected(text: str, expected: Language) -> None:
    assert detect_language(text) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("SIGN_ERROR", None),
        ("HTTP 429", None),
        ("http 429", None),
        ("sms 1003", None),
        ("try http 429", "en"),
        ("GET orderId", None),
        ("openid", None),
        ("`order`", None),
        ("", None),
        ("java报InvalidKeySpecException", "zh"),
        ("sign_type RSA2 InvalidKeySpecException 求助", "zh"),
        ('curl -X POST -H "Content-Type: application/json" 返回 CERT_EXPIRED', "zh"),
        ("IllegalStateException: Unable to decode the key of this request 怎么办", "zh"),
        ("how do I fix SIGN_ERROR", "en"),
        ("HOW DO I SHIP", "en"),
        ("in Java?", "en"),
        ("What does 订单 mean in the field order_no of this API?", "en"),
        ("What does errCode 7 余额不足 mean?", "en"),
        ("how to 查询余额", "zh"),
        ("what is 测试账号的地址", "zh"),
        ("what is the 测试账号", "en"),
    ],
)
def test_language_of_a_question_is_that_of_its_words_outside_of_code(
    question: str, expected: Language | None
) -> None:
    assert detect_question_language(question) == expected


@pytest.mark.parametrize(
    ("question", "prose"),
    [
        ("2024-08-01 12:00:01.2 ERROR [exec-3] c.x.PayService - bad sign", ""),
        ("[ERROR] Failed to pay the order", ""),
        ("java.net.SocketTimeoutException: Read timed out at com.acme.Client.run", ""),
        ("Caused by: a.SSLException: Received alert\n    at a.B.run(B.java:3)", ""),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3, in pay\n'
            "    raise ApiError(sign)\nacme.ApiError: bad sign",
            "",
        ),
        ("HTTP/1.1 401 Unauthorized", ""),
        ("String sign = md5(text);\nif (isValid(sign)) {", ""),
        ('{"code": 1003, "msg": "签名错误"', "{ ,"),
        ("My call fails with\na.IOException: Read timed out", "My call fails with"),
        ("a.IOException: Read timed out 怎么办", "怎么办"),
        ("a.IOException: bad sign. How do I fix it?", "a.IOException: bad sign. How do I fix it?"),
    ],
)
def test_logs_and_code_are_removed(question: str, prose: str) -> None:
    assert remove_pasted_text(question).strip() == prose


def test_code_blocks_are_removed() -> None:
    text = "签名不对\n```java\nString sign;\n```\nwhy\n```\nopen"
    assert remove_pasted_text(text).split() == ["签名不对", "why"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("中文字", 3), ("中文 abc", 3), ("\n\n", 1)],
)
def test_tokens_are_estimated(text: str, expected: int) -> None:
    assert estimate_tokens(text) == expected
