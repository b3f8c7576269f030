"""Evaluates answers: asks every question through the answer service, and scores the answers.

A question of an evaluation may list the facts that a right answer states. If a judge model is configured,
it compares each answer that cites a source with these facts, and grades the answer. Answers to questions
without facts are not graded. If LangSmith is configured, the results are stored there as an experiment.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from langsmith import tracing_context

from app.analytics.evaluation.answer_scoring import (
    SCORED_CHUNKS,
    AnswerEvaluation,
    AnswerJudge,
    ScoredAnswer,
    answer_scores,
    count_grades,
    open_answer_judge,
    question_scores,
    score_answer,
    score_retrieval,
)
from app.analytics.evaluation.dataset import (
    DocumentIndex,
    EvaluationQuestion,
    distinct_questions,
    read_questions,
)
from app.analytics.evaluation.experiments import ExperimentLog, LoggedResult
from app.service.answer_service import AnswerService, open_answer_service
from app.service.ask_command import AskCommand
from app.telemetry.progress import QuestionProgress, ingestion_progress
from schemas.answer import Answer
from schemas.settings import Settings

CONCURRENCY = 4
"""Maximum number of questions that are asked at the same time."""


class AnswerProbe:
    """Asks questions through `answer_service`, without the cache, sessions and records."""

    def __init__(self, answer_service: AnswerService, documents: DocumentIndex) -> None:
        self._answer_service = answer_service
        self._documents = documents

    async def retrieve(self, question: EvaluationQuestion) -> ScoredAnswer:
        """Return the result of retrieval alone. Raises ApideskError."""
        sources = await self._answer_service.retrieve(
            AskCommand(question.question, k=SCORED_CHUNKS)
        )
        return score_retrieval(question, self._documents.gold_documents(question), sources)

    async def ask(self, question: EvaluationQuestion) -> tuple[ScoredAnswer, Answer]:
        """Return the scored result and the answer. Raises ApideskError."""
        retrieved = await self.retrieve(question)
        answer = await self._answer_service.ask(AskCommand(question.question))
        return score_answer(retrieved, answer), answer


async def evaluate_answers(
    settings: Settings,
    path: Path,
    progress: QuestionProgress,
    judge_model: str | None,
) -> AnswerEvaluation:
    """Ask the questions in the file at `path`, and score the answers.

    `judge_model` is the `provider:model` that grades the answers; None means APIDESK_JUDGE_MODEL. No
    question is recorded. LangSmith, if configured, receives the questions and results, but no traces.

    Raises QuestionError if a question is invalid, ConfigurationError if a model is invalid, and other kinds
    of ApideskError if the store, the answer models or LangSmith fail.
    """
    all_questions = read_questions(path)
    questions = distinct_questions(all_questions)
    async with AsyncExitStack() as stack:
        with ingestion_progress() as show_ingestion, tracing_context(enabled=False):
            answer_service = await stack.enter_async_context(
                open_answer_service(settings, show_ingestion)
            )
        platform = answer_service.platform.platform
        judge = open_answer_judge(settings, judge_model, platform.language)
        documents = await asyncio.to_thread(DocumentIndex.read, answer_service.collection, 0)
        documents.check_gold(questions)
        experiments = await ExperimentLog.open(platform.name, questions)
        answered_by = settings.chat_model if answer_service.models else "extractive"
        run = _AnswerRun(AnswerProbe(answer_service, documents), judge, questions, progress)
        if experiments:
            metadata = {"answered_by": answered_by, "judge": judge.name if judge else None}
            results = await experiments.run("answers", run.logged_result, metadata, CONCURRENCY)
        else:
            results = await run.all()
    return AnswerEvaluation(
        platform=platform.name,
        documents=documents.count,
        repeated=len(all_questions) - len(questions),
        answered_by=answered_by,
        judge=judge.name if judge else None,
        scores=answer_scores(results),
        grades=count_grades(result.grade for result in results) if judge else None,
        experiments=tuple(experiments.names) if experiments else (),
        questions=tuple(results),
    )


class _AnswerRun:
    """Asks all questions, and grades the answers if there is a judge."""

    def __init__(
        self,
        probe: AnswerProbe,
        judge: AnswerJudge | None,
        questions: Sequence[EvaluationQuestion],
        progress: QuestionProgress,
    ) -> None:
        self._probe = probe
        self._judge = judge
        self._questions = questions
        self._progress = progress
        self._done = 0

    async def all(self) -> list[ScoredAnswer]:
        """Return the results in the order of the questions."""
        semaphore = asyncio.Semaphore(CONCURRENCY)

        async def ask(number: int) -> ScoredAnswer:
            async with semaphore:
                return await self._ask(number)

        return await asyncio.gather(*map(ask, range(len(self._questions))))

    async def logged_result(self, number: int) -> LoggedResult[ScoredAnswer]:
        """Return the result of one question, with the outputs and scores for LangSmith."""
        result = await self._ask(number)
        outputs = result.model_dump(
            by_alias=True, include={"steps", "outcome", "confidence", "missing_facts", "degraded"}
        )
        return LoggedResult(result, outputs, question_scores(result))

    async def _ask(self, number: int) -> ScoredAnswer:
        with tracing_context(enabled=False):
            result, _ = await self._probe.ask(self._questions[number])
            graded = await self._grade(result)
        self._done += 1
        self._progress(self._done, len(self._questions))
        return graded

    async def _grade(self, result: ScoredAnswer) -> ScoredAnswer:
        """Return `result` with the judge's grade or failure; unchanged if the judge is not asked."""
        if self._judge is None or result.outcome != "answered" or not result.facts:
            return result
        grade, failure = await self._judge.judge(result.question, result.facts, result.steps)
        return result.model_copy(update={"grade": grade, "judge_failure": failure})
