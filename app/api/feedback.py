"""POST /answers/{id}/feedback and DELETE /sessions/{session}: rate an answer, and delete a session."""

import asyncio
from typing import Annotated

from litestar import Response, delete, post
from litestar.background_tasks import BackgroundTask
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException, ValidationException
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, PathParameter
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from app.api.fields import (
    SESSION_SCHEMA,
    PathId,
    parse_id,
    validate_session_id,
    validate_whole_number,
)
from app.api.openapi import QUESTIONS_TAG
from app.masking.masking import mask
from app.security.api_keys import Caller
from app.service.answer_service import AnswerService
from app.service.record_writer import RecordWriter
from app.service.session_store import SessionStore
from ingestion.text.language import storable_text
from schemas.base import ApiModel, examples
from schemas.errors import StoreUnavailable
from schemas.insights import Feedback, Score


class FeedbackRequest(ApiModel):
    """The caller's rating of an answer."""

    model_config = examples({"score": 1, "comment": "solved"})

    score: Annotated[Score, BeforeValidator(validate_whole_number)]
    """1: helpful, -1: not helpful, 0: removes the rating."""
    comment: str = Field(default="", max_length=2_000)


@post(
    "/answers/{answer_id:str}/feedback",
    status_code=204,
    operation_id="feedback",
    summary="Rate an answer",
    # The handler returns a Response, which the OpenAPI document would otherwise describe as JSON.
    responses={204: ResponseSpec(None, description="The rating is stored")},
    tags=[QUESTIONS_TAG],
    needs="ask",
    errors=(StoreUnavailable,),
)
async def give_feedback(
    answer_id: PathId,
    data: JSONBody[FeedbackRequest],
    record_writer: NamedDependency[RecordWriter],
    answer_service: NamedDependency[AnswerService],
    caller: NamedDependency[Caller],
) -> Response[None]:
    """Rate an answer as helpful (1) or not helpful (-1); 0 removes the rating.

    Returns 404 if the question was asked with another key, or if the answer was not recorded.
    """
    feedback = Feedback(score=data.score, comment=mask(storable_text(data.comment)))
    run_id = parse_id(answer_id)
    if not await record_writer.rate(caller.id, run_id, feedback):
        raise NotFoundException
    send = BackgroundTask(asyncio.to_thread, answer_service.tracing.send_feedback, run_id, feedback)
    return Response(None, background=send)


@delete(
    "/sessions/{session:str}",
    operation_id="deleteSession",
    summary="Delete a session",
    response_description="The session is deleted",
    tags=[QUESTIONS_TAG],
    needs="ask",
    errors=(StoreUnavailable,),
)
async def delete_session(
    session: Annotated[str, PathParameter(schema_extra=SESSION_SCHEMA)],
    session_store: NamedDependency[SessionStore],
    caller: NamedDependency[Caller],
) -> None:
    """Delete the questions and answers of a session, but not their records for `GET /insights`.

    Returns 404 if the session has no questions.
    """
    try:
        validate_session_id(session)
    except PydanticCustomError as error:  # Litestar only runs pydantic validators on bodies
        problem = {"key": "session", "message": error.message()}
        raise ValidationException(extra=[problem]) from None
    if not await session_store.delete(caller.id, session):
        raise NotFoundException
