"""GET /suggestions"""

import asyncio

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from app.answer_service import AnswerService
from app.description.tags import QUESTIONS
from app.page.suggestions import SuggestedQuestions
from schemas.errors import CollectionMismatch, CollectionMissing, StoreUnavailable
from schemas.language import Language
from schemas.wire import ApiModel


class Suggested(ApiModel):
    """Questions to begin with."""

    suggestions: tuple[str, ...]


@get(
    "/suggestions",
    operation_id="suggestions",
    summary="Questions to begin with",
    response_description="The questions",
    tags=[QUESTIONS],
    needs="ask",
    errors=(CollectionMismatch, CollectionMissing, StoreUnavailable),
)
async def suggest(
    suggestions: NamedDependency[SuggestedQuestions],
    answer_service: NamedDependency[AnswerService],
    language: FromQuery[Language | None] = None,
) -> Suggested:
    """Up to six questions that the platform's own documents answer, the same for the same documents."""
    spoken = language or answer_service.platform.platform.language
    return Suggested(suggestions=await asyncio.to_thread(suggestions.get, spoken))
