"""Evaluates answers: asks every question through the answer service, and scores the answers.

A judge, if one is configured, also grades them: a model that compares an answer with the facts that a
right answer states.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from langsmith import tracing_context
from pydantic import ConfigDict, Field

from app.analytics.evaluation.answer_scoring import (
    GRADES,
    AnswerEvaluation,
    Grade,
    K,
    ScoredAnswer,
    answer_scores,
    score_answer,
    score_retrieval,
)
from app.analytics.evaluation.dataset import DocumentIndex, EvaluationQuestion, read_questions
from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from app.telemetry.progress import ingestion_progress
from runnables.models.chat_model import ChatModel
from runnables.models.chat_models import open_judge_model
from runnables.models.structured_output import StructuredOutputCall
from runnables.run_context import with_deadline
from schemas.answer import Answer
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.errors import ConfigurationError
from schemas.settings import Settings

CONCURRENCY = 4
"""Maximum number of questions that are asked at the same time."""

AnswerProgress = Callable[[int, int], None]
"""A callback that receives the number of finished questions and the total number."""


class AnswerGrade(ApiModel):
    """The reply of the judge."""

    model_config = ConfigDict(extra="ignore")

    grade: Grade = Field(description="correct, partly or wrong")


class AnswerJudge:
    """Grades answers, with one call of `model` each, within `timeout_s`."""

    def __init__(self, model: ChatModel, language: Language, timeout_s: float) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._output = StructuredOutputCall("grade", "grade", language, AnswerGrade)

    async def grade(self, result: ScoredAnswer) -> ScoredAnswer:
        """Return `result` with its grade if it has facts and quotes a source. Raises ModelError."""
        if result.outcome != "answered" or not result.facts:
            return result
        variables = {
            "facts": result.facts,
            "question": result.question,
            "written": "\n".join(result.steps),
        }
        config = with_deadline({}, self._timeout_s)
        reply = await self._output.ask(self._model, variables, config)
        return result.model_copy(update={"grade": reply.value.grade})


def open_answer_judge(settings: Settings, model: str, language: Language) -> AnswerJudge:
    """Return a judge that calls `model`, with APIDESK_JUDGE_BASE_URL and APIDESK_JUDGE_API_KEY.

    `language` is the language of its prompt. Raises ConfigurationError if the model's name or provider is
    invalid.
    """
    opened = open_judge_model(settings.model_copy(update={"judge_model": model}))
    if opened is None:
        raise ConfigurationError("--judge: is empty")
    return AnswerJudge(opened, language, settings.request_timeout)


class AnswerProbe:
    """Asks questions of `answer_service`. The answers bypass the cache, sessions and records."""

    def __init__(self, answer_service: AnswerService, documents: DocumentIndex) -> None:
        self._answer_service = answer_service
        self._documents = documents

    async def retrieve(self, question: EvaluationQuestion) -> ScoredAnswer:
        """Return the result of retrieval alone. Raises ModelError or StoreError."""
        sources = await self._answer_service.retrieve(AskCommand(question.question, k=K))
        return score_retrieval(question, self._documents.gold_documents(question), sources)

    async def ask(self, question: EvaluationQuestion) -> tuple[ScoredAnswer, Answer]:
        """Return the scored result and the answer. Raises ModelError or StoreError."""
        retrieved = await self.retrieve(question)
        answer = await self._answer_service.ask(AskCommand(question.question))
        return score_answer(retrieved, answer), answer


async def evaluate_answers(
    settings: Settings,
    path: Path,
    progress: AnswerProgress = lambda done, total: None,
    judge_model: str | None = None,
) -> AnswerEvaluation:
    """Ask the questions in the file at `path`, and score the answers. Nothing is recorded or traced.

    `judge_model` is the `provider:model` that grades the answers, or None for no grades. Raises
    QuestionError for invalid questions, ConfigurationError if a model is invalid, ModelError if a model
    fails, and StoreError if the store fails.
    """
    questions = read_questions(path)
    with ingestion_progress() as show_ingestion, tracing_context(enabled=False):
        async with open_answer_service(settings, show_ingestion) as answer_service:
            platform = answer_service.platform.platform
            judge = (
                open_answer_judge(settings, judge_model, platform.language) if judge_model else None
            )
            documents = await asyncio.to_thread(DocumentIndex.read, answer_service.collection, 0)
            documents.check_gold(questions)
            probe = AnswerProbe(answer_service, documents)
            results = await _ask_all(probe, judge, questions, progress)
    return AnswerEvaluation(
        platform=platform.name,
        documents=documents.count,
        answered_by=settings.chat_model if answer_service.models else "extractive",
        judge=judge_model,
        scores=answer_scores(results),
        grades=_count_grades(results) if judge_model else None,
        questions=tuple(results),
    )


async def _ask_all(
    probe: AnswerProbe,
    judge: AnswerJudge | None,
    questions: Sequence[EvaluationQuestion],
    progress: AnswerProgress,
) -> list[ScoredAnswer]:
    """Return the results in the order of `questions`."""
    semaphore = asyncio.Semaphore(CONCURRENCY)
    done = 0

    async def ask(question: EvaluationQuestion) -> ScoredAnswer:
        nonlocal done
        async with semaphore:
            result, _ = await probe.ask(question)
            graded = await judge.grade(result) if judge else result
        done += 1
        progress(done, len(questions))
        return graded

    return await asyncio.gather(*map(ask, questions))


def _count_grades(results: Sequence[ScoredAnswer]) -> dict[Grade, int]:
    counts = Counter(result.grade for result in results)
    return {grade: counts[grade] for grade in GRADES}
