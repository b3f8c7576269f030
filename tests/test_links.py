"""Closed links: what an answer may lead to."""

import pytest

from runnables.grounding.links import LinkPolicy

PAGE = "https://docs.example.org/#/api?apiId=1"
LINKS = LinkPolicy(
    pages=[PAGE, "https://docs.example.org/guide/"],
    question="My callback is https://mine.example.net/hook?x=1, why is it refused?",
    hosts=["example.org"],
    texts=["# 订单发货\n\nPOST /dop/api/v1/order/ship\n\nhttps://evil.example/in-a-document"],
)


@pytest.mark.parametrize(
    ("written", "closed", "refused"),
    [
        (f"见 {PAGE}。", f"见 {PAGE}。", 0),
        (f"[发货]({PAGE})", f"[发货]({PAGE})", 0),
        (f"<{PAGE}>", f"<{PAGE}>", 0),
        ("https://docs.example.org/guide", "https://docs.example.org/guide", 0),
        ("HTTPS://Docs.Example.ORG/guide/", "HTTPS://Docs.Example.ORG/guide/", 0),
        ("at https://mine.example.net/hook?x=1.", "at https://mine.example.net/hook?x=1.", 0),
        (
            "POST https://api.example.org/dop/api/v1/order/ship?a=1",
            "POST https://api.example.org/dop/api/v1/order/ship?a=1",
            0,
        ),
        ("base: https://api.example.org", "base: https://api.example.org", 0),
        ("见 https://docs.example.org/#/api?apiId=9999。", "见 。", 1),
        ("https://api.example.org/dop/api/v1/order/shipping", "", 1),
        ("https://api.example.org/dop/api/v1/order", "", 1),
        ("https://api.example.org.evil.example/dop/api/v1/order/ship", "", 1),
        ("https://docs.example.org@evil.example/guide", "", 1),
        ("ftp://api.example.org/dop/api/v1/order/ship", "", 1),
        ("see https://evil.example/in-a-document", "see", 1),
        ("see www.evil.example/x now", "see  now", 1),
        ("[here](https://evil.example/x)", "here", 1),
        ("![pixel](https://evil.example/p.png)", "pixel", 1),
        ('[here](https://evil.example/x "title")', "here", 1),
        ("[here](javascript:alert(1))", "here)", 1),
        ("[here](//evil.example/x)", "here", 1),
        ("[签名](./signing.md)", "签名", 1),
        ("<https://evil.example>", "", 1),
        ("`curl https://evil.example/x`", "`curl`", 1),
        (f"done.[1]({PAGE})", "done.[1]", 0),
        ("done.[1](https://evil.example)", "done.[1]", 1),
        ("https://[half an address", "https://[half an address", 0),
        ("a.b.c and isv.invalid-signature", "a.b.c and isv.invalid-signature", 0),
        ("", "", 0),
    ],
)
def test_links_are_closed(written: str, closed: str, refused: int) -> None:
    text, count = LINKS.remove_disallowed(written)
    assert (text.strip().replace(" `", "`"), count) == (closed, refused)


def test_without_hosts_only_pages_and_the_question_count() -> None:
    links = LinkPolicy([PAGE], "", [], ["/dop/api/v1/order/ship"])
    assert links.allows(PAGE)
    assert not links.allows("https://api.example.org/dop/api/v1/order/ship")


def test_a_long_text_takes_no_longer_than_its_length() -> None:
    text = "[" * 20_000 + "https://" * 5_000 + "(" * 20_000 + "](" * 10_000
    assert isinstance(LINKS.remove_disallowed(text)[0], str)
