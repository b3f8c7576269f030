"""Language detection and token estimates."""

import pytest

from ingestion.text.language import detect_language, estimate_tokens
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
    ("text", "expected"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("中文字", 3), ("中文 abc", 3), ("\n\n", 1)],
)
def test_tokens_are_estimated(text: str, expected: int) -> None:
    assert estimate_tokens(text) == expected
