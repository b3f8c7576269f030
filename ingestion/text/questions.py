"""Turns the questions of FAQ pages into headings, so that each question becomes a section of its own."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from itertools import pairwise

from ingestion.text.markdown_blocks import MAX_HEADING_CHARS, MarkdownBlock, plain_text

QUESTION_LEVEL = 7
"""Level of the headings of questions: below every other heading, so that any heading ends an answer."""

MIN_QUESTIONS = 2
"""Minimum number of answered questions on a page. A single one may be part of the text around it."""

_BOLD = re.compile(
    r" {0,3}(?P<mark>\*\*|__)(?=\S)(?P<text>(?:(?!(?P=mark)).)+)(?P=mark)(?P<end>[?？]?)[:：]?"
    r"(?:[ \t]*(?:\\|<br\s*/?>))?[ \t]*"
)
"""A line that is entirely bold, possibly with a line break at its end."""
_MARK = re.compile(
    r"(?:Q(?:uestion)?[ \t]*\d*|问题?[ \t]*\d*)[ \t]*[:：.．、][ \t]*(?=\S)", re.IGNORECASE
)
"""The start of a question, such as "Q:", "Q1." or 问："""
_ANSWER = r"(?:A(?:nswer)?[ \t]*\d*|答案?|回答)[ \t]*"
_ANSWER_MARK = re.compile(
    rf"\s*(?:(?P<bold>\*\*|__){_ANSWER}(?:[:：](?P=bold)|(?P=bold)[:：])|{_ANSWER}[:：])[ \t]*(?=\S)",
    re.IGNORECASE,
)
"""The start of an answer, such as "A:", `**A:**` or 答："""


def with_question_headings(blocks: Sequence[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return the blocks of a page with headings instead of its questions.

    A question is a line in bold that ends with a question mark or begins with a mark such as "Q:", and that
    is followed by text. Its heading is below the heading above it, and has the same anchor. The mark of its
    answer, such as "A:", is removed. The blocks are unchanged if the page has less than `MIN_QUESTIONS`
    questions.
    """
    parts = [part for block in blocks for part in _split(block)]
    answered = {
        index
        for index, (part, following) in enumerate(pairwise(parts))
        if question_of(part) and following.kind != "heading" and not question_of(following)
    }
    if len(answered) < MIN_QUESTIONS:
        return list(blocks)
    anchor = ""
    found: list[MarkdownBlock] = []
    for index, part in enumerate(parts):
        if part.kind == "heading":
            anchor = part.anchor
        elif index in answered:
            title = question_of(part)
            part = MarkdownBlock("heading", part.text, QUESTION_LEVEL, title, anchor)
        elif index - 1 in answered and part.kind == "paragraph":
            part = MarkdownBlock("paragraph", _without_mark(part.text))
        found.append(part)
    return found


def question_of(block: MarkdownBlock) -> str:
    """Return the question of a block that is only a question, without its mark; empty for other blocks."""
    line = _BOLD.fullmatch(block.text) if block.kind == "paragraph" else None
    if line is None or len(line["text"]) > MAX_HEADING_CHARS:
        return ""
    text = " ".join(unescape(plain_text(line["text"] + line["end"])).split())
    mark = _MARK.match(text)
    is_question = mark is not None or text.endswith(("?", "？"))
    return text[mark.end() if mark else 0 :] if is_question else ""


def _without_mark(answer: str) -> str:
    mark = _ANSWER_MARK.match(answer)
    return answer[mark.end() :] if mark else answer


def _split(block: MarkdownBlock) -> Iterator[MarkdownBlock]:
    """Yield the questions in a paragraph, and the text between them, as blocks."""
    lines = block.text.split("\n") if block.kind == "paragraph" else []
    if len(lines) < 2 or not any(map(_BOLD.fullmatch, lines)):
        yield block
        return
    text: list[str] = []
    for line in lines:
        paragraph = MarkdownBlock("paragraph", line)
        if question_of(paragraph):
            yield from _paragraph(text)
            yield paragraph
            text = []
        else:
            text.append(line)
    yield from _paragraph(text)


def _paragraph(lines: Iterable[str]) -> Iterator[MarkdownBlock]:
    text = "\n".join(lines)
    if text.strip():
        yield MarkdownBlock("paragraph", text)
