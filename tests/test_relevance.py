"""Tests of the last place of a ranking, which goes to the most relevant of the next chunks."""

import asyncio
from collections.abc import Set
from dataclasses import replace
from pathlib import Path

import pytest

from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from runnables.question.needs import Need
from runnables.retrieval.relevance import (
    MAX_COMPARED_CHUNKS,
    RankedChunk,
    relative_scores,
    with_relevant_chunk,
)
from schemas.answer import Source
from schemas.document import RetrievedChunk, SectionKind
from tests.chunks import page
from tests.refund_terms import TERMS
from tests.small_platform import PLATFORM, guides, settings_of


def ranking(*bodies: str) -> list[RetrievedChunk]:
    """Return chunks with these bodies, with falling scores."""
    return [
        RetrievedChunk(chunk=page(f"page{rank}", body)[0], score=10.0 - rank / 10)
        for rank, body in enumerate(bodies)
    ]


def bodies(chunks: list[RetrievedChunk]) -> list[str]:
    return [retrieved.chunk.body for retrieved in chunks]


def test_last_place_goes_to_the_most_relevant_of_the_next_chunks() -> None:
    chunks = ranking(
        "One refund.", "Two.", "Three.", "Four.", "Five.", "A refund has a deadline of 9 days."
    )
    assert bodies(with_relevant_chunk(chunks, 4, TERMS)) == [
        "One refund.",
        "Two.",
        "Three.",
        "A refund has a deadline of 9 days.",
    ]
    relevant_fourth = [*chunks[:3], chunks[5], *chunks[3:5]]
    assert with_relevant_chunk(relevant_fourth, 4, TERMS) == relevant_fourth[:4]


@pytest.mark.parametrize(("k", "count"), [(1, 5), (3, 5), (5, 5), (6, 5), (5, 0), (5, 1)])
def test_ranking_without_a_choice_stays(k: int, count: int) -> None:
    chunks = ranking("One.", "Two.", "Three.", "Four.", "A refund has a deadline of 9 days.")[
        :count
    ]
    assert with_relevant_chunk(chunks, k, TERMS) == chunks[:k]


def test_only_the_best_chunks_are_compared() -> None:
    chunks = ranking(*["A refund."] * MAX_COMPARED_CHUNKS, "A refund has a deadline of 9 days.")
    assert chunks[-1] not in with_relevant_chunk(chunks, 5, TERMS)


def test_added_chunk_without_a_score_counts_as_the_best() -> None:
    found = ranking("One.", "Two.")
    added = found[0].model_copy(update={"score": 0.0})
    assert relative_scores([*found, added]) == [1.0, 0.99, 1.0]
    assert relative_scores([]) == []
    negative = [each.model_copy(update={"score": -each.score}) for each in found]
    assert relative_scores(negative) == [1.0, 1.0]
    assert relative_scores([found[0], *negative]) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("needs", "stems", "unasked"),
    [(set(), ["offlin"], 1.0), ({"steps"}, ["offlin"], 0.0), (set(), ["offlin", "sampl"], 0.0)],
)
def test_code_that_only_uses_a_name_is_not_asked_for(
    needs: Set[Need], stems: list[str], unasked: float
) -> None:
    chunk = page("page", "```")[0]
    terms = replace(TERMS, values=frozenset({"msglifetime"}), needs=frozenset(needs), stems=stems)
    ranked = RankedChunk(chunk, terms, 0, 1.0)
    code = '```\n{"MsgLifeTime": 60}\n```'
    assert ranked.features(code, frozenset(), is_code=True)["unasked"] == unasked
    assert ranked.features("```\n{}\n```", frozenset(), is_code=True)["unasked"] == 0.0
    assert ranked.features(code, frozenset())["unasked"] == 0.0


@pytest.mark.parametrize(
    ("kind", "unasked"),
    [("request_headers", 0.0), ("error_codes", 0.0), ("response_parameters", 1.0)],
)
def test_section_that_describes_a_named_header_or_code_is_asked_for(
    kind: SectionKind, unasked: float
) -> None:
    chunk = page("page", "text")[0].model_copy(update={"kind": kind})
    ranked = RankedChunk(chunk, TERMS, 0, 1.0)
    assert ranked.features("text", frozenset())["unasked"] == 1.0
    assert ranked.features("text", frozenset(), is_named=True)["unasked"] == unasked


def test_retrieval_finds_the_section_that_answers_among_many_that_repeat_the_words(
    tmp_path: Path,
) -> None:
    """The sections at the top contain the rare word several times; the one at the end explains it."""
    (tmp_path / "platform.toml").write_text(PLATFORM)
    settings = settings_of(tmp_path)
    guides(settings).mkdir()
    for number in range(8):
        body = f"Number {number}: zebra mode, zebra mode, zebra mode."
        (guides(settings) / f"news{number}.md").write_text(f"# News {number}\n\n{body}\n")
    filler = "It waits for the courier. " * 25
    text = f"# Limits\n\n## Zebra mode\n\n{filler}It ends after 9 days.\n"
    (guides(settings) / "limits.md").write_text(text)

    async def retrieve() -> list[Source]:
        async with open_answer_service(settings) as service:
            return await service.retrieve(AskCommand("How long does the zebra mode last?", k=4))

    sources = asyncio.run(retrieve())
    assert len(sources) == 4
    assert "Zebra mode" in [source.section for source in sources]
