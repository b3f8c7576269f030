"""Prose is split into sentences in one way for quotes, permissions, checks and web pages."""

import pytest

from ingestion.text.sentences import first_sentence, split_sentences


@pytest.mark.parametrize(
    ("prose", "sentences"),
    [
        ("First. Second! Third?", ["First. ", "Second! ", "Third?"]),
        ("先签名。再发送；最后验签！", ["先签名。", "再发送；", "最后验签！"]),
        ("Use e.g. `a. b` here. Then stop.", ["Use e.g. `a. b` here. ", "Then stop."]),
        ("See https://example.com/v1.2?x=1. It works.", ["See https://example.com/v1.2?x=1. ", "It works."]),
        ("他说“可以。”然后离开。", ["他说“可以。”", "然后离开。"]),
        ("Version 1.5 is out. [1] Upgrade.", ["Version 1.5 is out. [1] ", "Upgrade."]),
        ("One\ntwo\n\nthree", ["One\ntwo\n\n", "three"]),
        ("At most max. 100 entries, incl. deleted ones. Stop.", ["At most max. 100 entries, incl. deleted ones. ", "Stop."]),
        ("At 9 a.m. or later, see sec. 4.", ["At 9 a.m. or later, see sec. 4."]),
        ("Is it safe? No. Use No. 7.", ["Is it safe? ", "No. ", "Use No. 7."]),
        ("Ask J. R. Smith. Use plan B. Then stop.", ["Ask J. R. Smith. ", "Use plan B. ", "Then stop."]),
        ("", []),
    ],
)  # fmt: skip
def test_sentences(prose: str, sentences: list[str]) -> None:
    assert list(split_sentences(prose)) == sentences
    assert "".join(split_sentences(prose)) == prose


def test_the_first_sentence_has_no_whitespace_around_it() -> None:
    assert first_sentence("  Create a booking.\nThen pay. ") == "Create a booking."
    assert first_sentence(" \n ") == ""
