"""Measures how often the chunks that a chat model reads state all facts of a right answer."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from langsmith import tracing_context

from app.analytics.evaluation.answer_scoring import missing_facts
from app.analytics.evaluation.dataset import EvaluationQuestion
from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from benchmarks.answers.index_cache import indexed_settings
from benchmarks.answers.sets import Part, is_available, read_set
from runnables.retrieval.chunk_search import EVIDENCE_DEPTH, fill_evidence
from runnables.retrieval.retriever import RetrievalMode
from schemas.settings import Settings

TOKENS = (2_000, 4_000, 6_000)
"""Values of APIDESK_EVIDENCE_TOKENS to compare."""

K = 5
"""Number of chunks that a model reads in any case."""


def measure_evidence(
    part: Part, names: Sequence[str], data: Path, cache: Path
) -> Mapping[int, float]:
    """Return the share of questions all of whose facts the chunks state, by APIDESK_EVIDENCE_TOKENS.

    Only questions with facts count; without any, the result is empty. Raises ApideskError.
    """
    found: list[Mapping[int, bool]] = []
    for name in names:
        if is_available(name, data):
            with tracing_context(enabled=False), indexed_settings(name, data, cache) as settings:
                found += asyncio.run(_measure_set(settings, read_set(name, part)))
    return {tokens: sum(each[tokens] for each in found) / len(found) for tokens in TOKENS if found}


async def _measure_set(
    settings: Settings, questions: Sequence[EvaluationQuestion]
) -> list[Mapping[int, bool]]:
    async with open_answer_service(settings) as answer_service:
        return [
            await measure_question(answer_service, each, "full_text")
            for each in questions
            if each.facts
        ]


async def measure_question(
    answer_service: AnswerService, question: EvaluationQuestion, mode: RetrievalMode
) -> Mapping[int, bool]:
    """Return, by number of tokens, whether the chunks state all facts. Raises ApideskError."""
    command = AskCommand(question.question, k=EVIDENCE_DEPTH)
    retriever = answer_service.retriever(mode)
    further = await retriever.ainvoke(answer_service.build_question(command))
    best = await retriever.ainvoke(
        answer_service.build_question(AskCommand(question.question, k=K))
    )
    texts = {
        tokens: "\n".join(r.chunk.text for r in fill_evidence(best, further, tokens))
        for tokens in TOKENS
    }
    return {tokens: not missing_facts(question.facts, text) for tokens, text in texts.items()}
