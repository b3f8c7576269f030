"""How well the desk's own classifier tells the types of labelled questions."""

import asyncio
from collections.abc import Sequence

from app.answer_service import AnswerService
from app.evaluation.measures import confusion
from app.evaluation.questions import EvaluationQuestion
from app.evaluation.result import ClassificationResult
from ingestion.language import detect_language
from runnables.deadline import with_deadline
from runnables.state import Classification
from schemas.question import Question

AT_A_TIME = 4
"""Questions that are classified at the same time."""


async def classify(
    answer_service: AnswerService, questions: Sequence[EvaluationQuestion]
) -> ClassificationResult | None:
    """The types that labelled questions are given, against their labels; None without labels.

    Raises ModelError where APIDESK_ON_MODEL_FAILURE is `error`.
    """
    labelled = [(question.label, question) for question in questions if question.label]
    if not labelled:
        return None
    turns = asyncio.Semaphore(AT_A_TIME)

    async def type_of(asked: EvaluationQuestion) -> Classification:
        language = detect_language(asked.question)
        question = Question(text=asked.question, k=answer_service.settings.top_k, language=language)
        async with turns:
            config = with_deadline({}, answer_service.settings.request_timeout)
            return await answer_service.classify.ainvoke(question, config)

    given = await asyncio.gather(*(type_of(question) for _, question in labelled))
    types = [each.structured.type for each in given]
    labels = [label for label, _ in labelled]
    right = sum(label == said for label, said in zip(labels, types, strict=True))
    return ClassificationResult(
        by=_classifier_name(answer_service),
        matrix=confusion(zip(labels, types, strict=True)),
        accuracy=round(right / len(labelled), 4),
        unanswered=sum(each.degraded is not None for each in given),
    )


def _classifier_name(answer_service: AnswerService) -> str:
    if answer_service.models is None:
        return "extractive"
    return answer_service.settings.structure_model or answer_service.settings.chat_model
