"""Tests of the link policy: which links an answer may contain."""

import pytest

from runnables.grounding.markdown_text import LinkPolicy

PAGE = "https://docs.example.org/#/api?apiId=1"
POLICY = LinkPolicy(
    pages=[PAGE, "https://docs.example.org/guide/"],
    question="My callback is https://mine.example.net/hook?x=1, why is it refused?",
    hosts=["example.org"],
    texts=["# 订单发货\n\nPOST /dop/api/v1/order/ship\n\nhttps://evil.example/in-a-document"],
)


@pytest.mark.parametrize(
    ("text", "expected", "removed"),
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
        ("见 https://docs.example.org/#/api?apiId=9999。", "见。", 1),
        ("https://api.example.org/dop/api/v1/order/shipping", "", 1),
        ("https://api.example.org/dop/api/v1/order", "", 1),
        (
            "POST https://a.example.org.evil.example/dop/api/v1/order/ship",
            "POST /dop/api/v1/order/ship",
            1,
        ),
        ("https://docs.example.org@evil.example/guide", "", 1),
        ("ftp://api.example.org/dop/api/v1/order/ship", "/dop/api/v1/order/ship", 1),
        (
            "`POST https://evil.example/dop/api/v1/order/ship/?a=1`.",
            "`POST /dop/api/v1/order/ship`.",
            1,
        ),
        ("see https://evil.example/in-a-document", "see /in-a-document", 1),
        ("see https://evil.example/in-no-document", "see", 1),
        ("see www.evil.example/x now", "see now", 1),
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
        ("See https://evil.example/p and pricing for code.", "See and pricing for code.", 1),
        ("Send your key to https://evil.example; the code", "Send your key to; the code", 1),
        ("Ask (see https://evil.example/x) or write.", "Ask (see) or write.", 1),
        ("Ask support (https://evil.example/x) now.", "Ask support now.", 1),
        ("- https://evil.example/x\n- one", "- one", 1),
        ("见 https://evil.example/x 和价格", "见 和价格", 1),
        ('[click][ref]\n\n[ref]: https://evil.example/x "t"', "click", 1),
        ("[Ref] and [Ref][]\n\n[ref]: <https://evil.example/x>\nend", "Ref and Ref\n\nend", 1),
        ("done. [1]\n\n[1]: https://evil.example", "done. [1]", 1),
        (f"[click][ref]\n\n[ref]: {PAGE}", f"[click][ref]\n\n[ref]: {PAGE}", 0),
        ('Click <a class="x" href="https://evil.example/x">here</a>.', "Click here.", 1),
        ('Click <a href="">here</a> or <a href="https://evil.example"></a>.', "Click here or.", 2),
        (f'Click <a href="{PAGE}">here</a>.', f"Click [here]({PAGE}).", 0),
        ('`<a href="/x">x</a>`', '`<a href="/x">x</a>`', 0),
        ("https://[half an address", "https://[half an address", 0),
        ("a.b.c and isv.invalid-signature", "a.b.c and isv.invalid-signature", 0),
        ("", "", 0),
    ],
)
def test_disallowed_links_are_removed(text: str, expected: str, removed: int) -> None:
    result, count = POLICY.remove_disallowed(text)
    assert (result.strip().replace(" `", "`"), count) == (expected, removed)


def test_without_hosts_endpoints_are_disallowed() -> None:
    policy = LinkPolicy([PAGE], "", [], ["/dop/api/v1/order/ship"])
    assert policy.allows(PAGE)
    assert not policy.allows("https://api.example.org/dop/api/v1/order/ship")


def test_links_are_removed_in_linear_time() -> None:
    text = "[" * 20_000 + "https://" * 5_000 + "(" * 20_000 + "](" * 10_000
    assert isinstance(POLICY.remove_disallowed(text)[0], str)
