"""Answers printed to a pipe."""

import pytest

from app.cli.terminal import answer_output
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
    assert "\nConfidence high · general question · answered by extractive · 0 ms\n" in printed


def test_footer_is_in_the_language_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(ANSWER.model_copy(update={"language": "zh", "confidence": "low"}))
    assert "\n可信度 低 · 一般问题 · 作答方式 extractive · 0 ms\n" in capsys.readouterr().out


def test_footer_does_not_call_a_question_off_topic_that_is_not_covered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nearest = [Page(title="Start", page_url=URL)]
    uncovered = ANSWER.model_copy(update={"type": "unknown", "nearest": nearest, "sources": []})
    print_answer(uncovered)
    assert "\nanswered by extractive · 0 ms\n" in capsys.readouterr().out
    print_answer(uncovered.model_copy(update={"nearest": []}))
    assert "\noff topic · answered by extractive · 0 ms\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("update", "shown"),
    [
        (
            {"related_url": ["https://a", "https://b"], "cached": True},
            "https://a, https://b · true",
        ),
        ({"related_url": [], "session": None}, "false"),
    ],
)
def test_footer_shows_lists_and_flags_as_text(
    update: dict[str, object],
    shown: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer_output, "FOOTER_FIELDS", ("related_url", "session", "cached"))
    print_answer(ANSWER.model_copy(update=update))
    assert capsys.readouterr().out.endswith(f"\n{shown} · 0 ms\n")


def test_piped_table_of_chunks_keeps_urls(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_retrieved([SOURCE])
    printed = capsys.readouterr().err
    assert URL in printed
    assert SOURCE.section in printed
