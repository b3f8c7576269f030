"""Answers printed to a pipe."""

import pytest

from app.cli.terminal.answer_output import print_answer, print_retrieved
from schemas.answer import Answer, Page, Source
from schemas.question import StructuredQuestion

URL = (
    "https://open.example.com/docs/guides/signing-requests?version=2026-01-01&section=query-strings"
)
SOURCE = Source(
    number=1,
    source="guides",
    document_id="signing",
    title="Sign requests",
    section="How parameters in the query string are sorted and signed",
    page_url=URL,
    api_name="",
    api_url="",
    score=1.0,
    text="",
)
ANSWER = Answer(
    id="1",
    question="",
    introduction="Hello.",
    answer=[f"Sign requests as in [this guide, which has all the steps]({URL}). [1]", "- `a`: b"],
    related_url=[URL],
    type="general",
    structured=StructuredQuestion(type="general"),
    sources=[SOURCE],
    nearest=[Page(title="Signing", page_url=URL)],
    confidence="high",
    language="en",
    answered_by="extractive",
)


def test_piped_answer_is_markdown_with_whole_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_answer(ANSWER)
    printed = capsys.readouterr().out
    assert "\n\n".join(ANSWER.answer) in printed
    assert printed.count(URL) == 3
    assert "\nConfidence high · general · answered by extractive · 0 ms\n" in printed


def test_piped_table_of_chunks_keeps_urls(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_retrieved([SOURCE])
    printed = capsys.readouterr().err
    assert URL in printed
    assert SOURCE.section in printed
