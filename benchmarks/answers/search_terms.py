"""Measures retrieval with and without the search terms that a model writes when it classifies a question.

    python -m benchmarks.answers.search_terms [--set NAME ...] [--document docs/explanation/retrieval.md]

The terms are in benchmarks/questions/terms. A language model wrote them from the question and the
description of its platform, without the documents, so this benchmark needs no model.
"""

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from langsmith import tracing_context

from app.analytics.evaluation.answer_scoring import missing_facts
from app.analytics.evaluation.dataset import Fact
from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from benchmarks.answers.__main__ import CACHE, DATA
from benchmarks.answers.evidence import TOKENS, K
from benchmarks.answers.index_cache import indexed_settings
from benchmarks.answers.sets import PARTS, QUESTIONS, SETS, Part, is_available, read_set
from benchmarks.document import around_markers, prose, table, write_between_markers
from runnables.question.query_analysis import Glossary
from runnables.retrieval.chunk_search import (
    EVIDENCE_DEPTH,
    ChunkSearch,
    build_expand_query,
    fill_evidence,
)
from runnables.retrieval.retriever import open_search
from runnables.state import Classification, PipelineState
from schemas.question import Question, StructuredQuestion
from schemas.settings import Settings

MARKER = "search terms"

TERM_SETS = tuple(name for name in SETS if name not in ("synapse", "openviking"))
"""The sets whose questions have search terms."""


class Evidence(NamedTuple):
    """Whether the chunks found for one question state all facts.

    Each sequence has a value for the first `K` chunks, and one for each number of `TOKENS`.
    """

    part: Part
    without_terms: Sequence[bool]
    with_terms: Sequence[bool]


@click.command()
@click.option(
    "--set", "names", type=click.Choice(TERM_SETS), multiple=True, help="May be repeated."
)
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Markdown file that the figures are written to, between its markers.",
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=DATA)
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), default=CACHE)
def main(names: Sequence[str], document: Path | None, data: Path, cache: Path) -> None:
    """Measure the sets, and print the figures of both parts."""
    if document:
        around_markers(document, MARKER)  # before minutes of work
    found: list[Evidence] = []
    for name in names or TERM_SETS:
        if not is_available(name, data):
            click.echo(f"{name}: left out, its documents are missing", err=True)
            continue
        with tracing_context(enabled=False), indexed_settings(name, data, cache) as settings:
            found += asyncio.run(_measure_set(settings, name))
        click.echo(f"{name}: measured", err=True)
    text = report(found)
    if document:
        write_between_markers(document, text, MARKER)
    click.echo(text)


def report(found: Sequence[Evidence]) -> str:
    """Return the table of both parts."""
    introduction = """
        Written by `python -m benchmarks.answers.search_terms`: the share of questions whose facts are all
        in the first five chunks, and in the chunks that a chat model reads.
    """
    head = ["part", "questions", "search terms", "5 chunks", *(f"{n:,} tokens" for n in TOKENS)]
    rows = []
    for part in PARTS:
        of_part = [each for each in found if each.part == part]
        if of_part:
            rows += [
                [part, str(len(of_part)), "without", *_shares(e.without_terms for e in of_part)],
                [part, str(len(of_part)), "with", *_shares(e.with_terms for e in of_part)],
            ]
    return "\n\n".join([prose(introduction), table(head, rows, words=3)])


def _shares(found: Iterable[Sequence[bool]]) -> list[str]:
    columns = list(zip(*found, strict=True))
    return [f"{sum(column) / len(column):.2f}" for column in columns]


async def _measure_set(settings: Settings, name: str) -> list[Evidence]:
    """Measure the questions of both parts of a set that have facts."""
    async with open_answer_service(settings) as answer_service:
        glossary = Glossary(answer_service.platform.glossary)
        search = ChunkSearch(open_search("full_text", answer_service.collection, None), glossary)
        found = []
        for part in PARTS:
            terms = read_terms(part)
            for each in read_set(name, part):
                if each.facts:
                    question = answer_service.build_question(AskCommand(each.question, k=K))
                    measured = await _measure(search, question, terms[each.id], each.facts)
                    found.append(Evidence(part, *measured))
        return found


async def _measure(
    search: ChunkSearch, question: Question, terms: Sequence[str], facts: Sequence[Fact]
) -> tuple[list[bool], list[bool]]:
    """Return the values of `Evidence` without and with the terms."""
    structured = StructuredQuestion(type="general", search_terms=tuple(terms))
    chunks = await search.retrieve(question, {}, depth=EVIDENCE_DEPTH)
    state = PipelineState(
        question=question,
        classification=Classification(structured),
        retrieved=chunks[:K],
        further=chunks[K:],
    )
    expanded = await build_expand_query(search)(state, {})
    return _evidence(state, facts), _evidence(expanded, facts)


def _evidence(state: PipelineState, facts: Sequence[Fact]) -> list[bool]:
    best, ranking = state["retrieved"], [*state["retrieved"], *state["further"]]
    shown = [best, *(fill_evidence(best, ranking, tokens) for tokens in TOKENS)]
    return [not missing_facts(facts, "\n".join(r.chunk.text for r in chunks)) for chunks in shown]


def read_terms(part: Part) -> dict[str, list[str]]:
    """Return the search terms of each question of `part`, by the id of the question."""
    lines = (QUESTIONS / "terms" / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["searchTerms"] for row in map(json.loads, lines)}


if __name__ == "__main__":
    main()
