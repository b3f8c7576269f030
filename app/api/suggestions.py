"""GET /suggestions: questions to start with."""

import asyncio

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from app.api.openapi import QUESTIONS_TAG
from app.service.answer_service import AnswerService
from app.service.suggested_questions import SuggestedQuestions
from schemas.base import ApiModel
from schemas.choices import Language
from schemas.errors import CollectionMismatch, CollectionMissing, StoreUnavailable


class Suggested(ApiModel):
    """Questions to start with."""

    suggestions: tuple[str, ...]


@get(
    "/suggestions",
    operation_id="suggestions",
    summary="Suggest questions",
    response_description="The questions",
    tags=[QUESTIONS_TAG],
    needs="ask",
    errors=(CollectionMismatch, CollectionMissing, StoreUnavailable),
)
async def get_suggestions(
    suggestions: NamedDependency[SuggestedQuestions],
    answer_service: NamedDependency[AnswerService],
    language: FromQuery[Language | None] = None,
) -> Suggested:
    """Return up to six questions that the documents answer, always the same for the same documents."""
    language = language or answer_service.platform.platform.language
    return Suggested(suggestions=await asyncio.to_thread(suggestions.get, language))
