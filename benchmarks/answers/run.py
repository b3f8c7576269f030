"""Asks the questions of the sets, one after the other."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langsmith import tracing_context

from app.analytics.evaluation.answer_run import AnswerProbe
from app.analytics.evaluation.answer_scoring import Outcome, ScoredAnswer, outcome_of
from app.analytics.evaluation.dataset import DocumentIndex, EvaluationQuestion
from app.service.answer_service import open_answer_service
from app.service.ask_command import AskCommand
from benchmarks.answers.evidence import measure_evidence
from benchmarks.answers.index_cache import indexed_settings
from benchmarks.answers.sets import EVERYDAY, Part, is_available, off_topic_questions, read_set
from schemas.answer import Answer
from schemas.settings import Settings

OFF_TOPIC = "offtopic"
"""Name of the sets of questions that are not about any developer platform."""

OnDetail = Callable[[dict[str, Any]], None]
"""Receives the details of a question as a JSON object."""

NOT_IN_DETAILS = {"id", "question", "answer", "sources", "timings", "language", "answered_by"}
"""Fields of an answer that `_details` leaves out.

Some of them are in the details anyway. The others differ between runs or explain nothing.
"""


@dataclass(frozen=True)
class RefusalFigures:
    """The outcomes of a set of questions that were asked about the samples."""

    questions: int
    refused: float
    """Share of the questions that are refused."""
    answered: float
    """Share of the questions that are answered with a quote."""


@dataclass(frozen=True)
class Measured:
    """The results of one part of the sets."""

    part: Part
    results: dict[str, list[ScoredAnswer]]
    """The results of each set whose documents are available."""
    refusals: Mapping[str, RefusalFigures] = field(default_factory=dict)
    """The outcomes of each off-topic set, and of the set `everyday`; empty if not measured."""
    evidence: Mapping[int, float] = field(default_factory=dict)
    """Share of the questions all of whose facts a model reads, by APIDESK_EVIDENCE_TOKENS.

    Empty if not measured.
    """


def measure_part(
    part: Part,
    names: Sequence[str],
    data: Path,
    cache: Path,
    on_detail: OnDetail = lambda detail: None,
    *,
    retrieval_only: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Measured:
    """Measure one part of the sets `names`, which may contain `OFF_TOPIC`. Raises ApideskError.

    `tell` receives a line for each set.
    """
    results = {}
    for name in (name for name in names if name != OFF_TOPIC):
        if not is_available(name, data):
            tell(f"{part}, {name}: left out, its documents are missing")
            continue
        started = time.monotonic()
        results[name] = measure_set(name, part, data, cache, on_detail, retrieval_only)
        seconds = time.monotonic() - started
        tell(f"{part}, {name}: {len(results[name])} questions, {seconds:.0f} s")
    if OFF_TOPIC not in names or retrieval_only:
        return Measured(part, results)
    refusals = measure_refusals(part, data, cache, on_detail)
    return Measured(part, results, refusals, measure_evidence(part, list(results), data, cache))


def measure_set(
    name: str,
    part: Part,
    data: Path,
    cache: Path,
    on_detail: OnDetail = lambda detail: None,
    retrieval_only: bool = False,
) -> list[ScoredAnswer]:
    """Return the results of one part of the set `name`. Raises ApideskError."""
    results = []
    with tracing_context(enabled=False), indexed_settings(name, data, cache) as settings:
        asked = asyncio.run(_ask_all(settings, read_set(name, part), retrieval_only))
    for result, answer in asked:
        results.append(result)
        on_detail({"set": name, **result.model_dump(by_alias=True), **_details(answer)})
    return results


def measure_refusals(
    part: Part, data: Path, cache: Path, on_detail: OnDetail = lambda detail: None
) -> dict[str, RefusalFigures]:
    """Ask the off-topic questions and the set `everyday` about the samples. Raises ApideskError."""
    on_topic = [question.question for question in read_set(EVERYDAY, part)]
    sets = {**off_topic_questions(part, data), EVERYDAY: on_topic}
    figures = {}
    with tracing_context(enabled=False), indexed_settings(EVERYDAY, data, cache) as settings:
        for name, texts in sets.items():
            outcomes = asyncio.run(_outcomes(settings, texts))
            for text, outcome in zip(texts, outcomes, strict=True):
                on_detail({"set": OFF_TOPIC, "topic": name, "question": text, "outcome": outcome})
            figures[name] = RefusalFigures(
                len(texts), _share(outcomes, "refused"), _share(outcomes, "answered")
            )
    return figures


async def _ask_all(
    settings: Settings, questions: Sequence[EvaluationQuestion], retrieval_only: bool
) -> list[tuple[ScoredAnswer, Answer | None]]:
    async with open_answer_service(settings) as answer_service:
        documents = await asyncio.to_thread(DocumentIndex.read, answer_service.collection, 0)
        documents.check_gold(questions)
        probe = AnswerProbe(answer_service, documents)
        return [await _ask(probe, question, retrieval_only) for question in questions]


async def _outcomes(settings: Settings, texts: Sequence[str]) -> list[Outcome]:
    async with open_answer_service(settings) as answer_service:
        return [outcome_of(await answer_service.ask(AskCommand(text))) for text in texts]


async def _ask(
    probe: AnswerProbe, question: EvaluationQuestion, retrieval_only: bool
) -> tuple[ScoredAnswer, Answer | None]:
    if retrieval_only:
        return await probe.retrieve(question), None
    return await probe.ask(question)


def _details(answer: Answer | None) -> dict[str, Any]:
    """Return the answer's fields except `NOT_IN_DETAILS`, and its sources without their texts."""
    if answer is None:
        return {}
    rest = answer.model_dump(mode="json", by_alias=True, exclude=NOT_IN_DETAILS)
    sources: Iterator[dict[str, Any]] = (
        source.model_dump(by_alias=True, include={"number", "document_id", "section", "score"})
        for source in answer.sources
    )
    return {"sources": list(sources), **rest}


def _share(outcomes: Sequence[str], wanted: str) -> float:
    return sum(outcome == wanted for outcome in outcomes) / len(outcomes)
