"""Evaluates the question classifier against labelled questions."""

import asyncio
from collections.abc import Sequence

from app.analytics.evaluation.dataset import EvaluationQuestion
from app.analytics.evaluation.measures import confusion_matrix
from app.analytics.evaluation.result import ClassificationResult
from app.service.answer_service import AnswerService
from ingestion.text.language import detect_language
from runnables.run_context import with_deadline
from runnables.state import Classification
from schemas.question import Question

CLASSIFY_CONCURRENCY = 4
"""Questions classified at the same time."""


async def evaluate_classifier(
    answer_service: AnswerService, questions: Sequence[EvaluationQuestion]
) -> ClassificationResult | None:
    """Compare predicted types with labels; None if no question has a label.

    Raises ModelError if the model fails and APIDESK_ON_MODEL_FAILURE is `error`.
    """
    labelled = [(question.label, question) for question in questions if question.label]
    if not labelled:
        return None
    semaphore = asyncio.Semaphore(CLASSIFY_CONCURRENCY)

    async def classify(question: EvaluationQuestion) -> Classification:
        text, settings = question.question, answer_service.settings
        request = Question(text=text, k=settings.top_k, language=detect_language(text))
        async with semaphore:
            config = with_deadline({}, settings.request_timeout)
            return await answer_service.classify.ainvoke(request, config)

    predictions = await asyncio.gather(*(classify(question) for _, question in labelled))
    types = [each.structured.type for each in predictions]
    labels = [label for label, _ in labelled]
    correct = sum(label == type_ for label, type_ in zip(labels, types, strict=True))
    return ClassificationResult(
        by=_classifier_name(answer_service),
        matrix=confusion_matrix(zip(labels, types, strict=True)),
        accuracy=round(correct / len(labelled), 4),
        unanswered=sum(each.degraded is not None for each in predictions),
    )


def _classifier_name(answer_service: AnswerService) -> str:
    if answer_service.models is None:
        return "extractive"
    return answer_service.settings.structure_model or answer_service.settings.chat_model
