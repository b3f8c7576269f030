"""Tests of citation marks in all forms that models write."""

import random

import pytest

from runnables.grounding.markdown_text import resolve_citations, strip_citations


@pytest.mark.parametrize(
    ("written", "resolved", "numbers", "unknown"),
    [
        ("用它。[1]", "用它。[1]", (1,), 0),
        ("Use it [1].", "Use it [1].", (1,), 0),
        ("a[1][3]", "a[1][3]", (1, 3), 0),
        ("a[1-3]", "a[1][2][3]", (1, 2, 3), 0),
        ("a [2–4]", "a [2][3][4]", (2, 3, 4), 0),
        ("a[1, 3]", "a[1][3]", (1, 3), 0),
        ("a[1、2，4]", "a[1][2][4]", (1, 2, 4), 0),
        ("a[1-2, 4]", "a[1][2][4]", (1, 2, 4), 0),
        ("a[3-1]", "a[3][1]", (3, 1), 0),
        ("甲【1】乙［2］", "甲[1]乙[2]", (1, 2), 0),
        ("a【2†source】", "a[2]", (2,), 0),
        ("a[^2]", "a[2]", (2,), 0),
        ("a[ 2 ]", "a[2]", (2,), 0),
        ("b[2] a[1] b[2]", "b[2] a[1] b[2]", (2, 1), 0),
        ("a[6]。", "a。", (), 1),
        ("a [6], b [0].", "a, b.", (), 2),
        ("a[4-7]", "a[4][5]", (4, 5), 2),
        ("a[99]", "a", (), 1),
        ("a[5][6]", "a[5]", (5,), 1),
        ("`a[1]` b[2]", "`a[1]` b[2]", (2,), 0),
        ("```\nx[1]\n```\nb[2]", "```\nx[1]\n```\nb[2]", (2,), 0),
        ("orders[0].order_no [1]", "orders[0].order_no [1]", (1,), 0),
        ("from [0, 1] to [0-5] [1]", "from [0, 1] to [0-5] [1]", (1,), 0),
        ("in 2024 [2024]", "in 2024 [2024]", (), 0),
        ("a [text] []", "a [text] []", (), 0),
        ("", "", (), 0),
    ],
)
def test_resolve_citations(
    written: str, resolved: str, numbers: tuple[int, ...], unknown: int
) -> None:
    cited = resolve_citations(written, 5)
    assert (cited.text, cited.numbers, cited.unknown_count) == (resolved, numbers, unknown)
    again = resolve_citations(cited.text, 5)
    assert (again.text, again.numbers, again.unknown_count) == (resolved, numbers, 0)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("用它。[1][2]", "用它。"),
        ("`a[1]` b[2]", "`a[1]` b"),
        ("x[0].y [1]", "x[0].y"),
        ("[1]", ""),
    ],
)
def test_strip_citations_keeps_code(text: str, stated: str) -> None:
    assert strip_citations(text) == stated


@pytest.mark.parametrize("seed", range(20))
def test_resolved_citations_are_in_range(seed: int) -> None:
    """Random input: all remaining numbers are in range, and the cost is linear."""
    source = random.Random(seed)
    pieces = [
        "[",
        "]",
        "【",
        "】",
        "［",
        "］",
        "1",
        "7",
        "12",
        "-",
        ",",
        "、",
        "`",
        "```",
        " ",
        "a",
        "。",
    ]
    text = "".join(source.choices(pieces, k=20_000))
    cited = resolve_citations(text, 5)
    assert all(1 <= number <= 5 for number in cited.numbers)
    assert set(resolve_citations(cited.text, 5).numbers) <= set(range(1, 6))
