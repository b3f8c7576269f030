"""POST /answers/{id}/feedback
DELETE /sessions/{session}
"""

from typing import Annotated

from litestar import delete, post
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException, ValidationException
from litestar.params import JSONBody, PathParameter
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from app.api.fields import SESSION, PathId, check_session, id_of, whole_number
from app.api.openapi import QUESTIONS
from app.masking.masking import mask
from app.security.keyring import Caller
from app.service.record_writer import RecordWriter
from app.service.sessions import SessionStore
from ingestion.text.language import storable
from schemas.base import ApiModel, examples
from schemas.errors import StoreUnavailable
from schemas.record import Feedback, Score


class FeedbackRequest(ApiModel):
    """What its caller thinks of an answer."""

    model_config = examples({"score": 1, "comment": "solved"})

    score: Annotated[Score, BeforeValidator(whole_number)]
    """1: it helped, -1: it did not, 0 takes that back."""
    comment: str = Field(default="", max_length=2_000)


@post(
    "/answers/{answer_id:str}/feedback",
    status_code=204,
    operation_id="feedback",
    summary="Judge an answer",
    response_description="It is kept",
    tags=[QUESTIONS],
    needs="ask",
    errors=(StoreUnavailable,),
)
async def give_feedback(
    answer_id: PathId,
    data: JSONBody[FeedbackRequest],
    keeper: NamedDependency[RecordWriter],
    caller: NamedDependency[Caller],
) -> None:
    """Say whether an answer helped (1) or did not (-1); 0 takes back what was said. 404 for an answer
    that another key asked for, or that was not kept.
    """
    feedback = Feedback(score=data.score, comment=mask(storable(data.comment)))
    if not await keeper.rate(caller.id, id_of(answer_id), feedback):
        raise NotFoundException


@delete(
    "/sessions/{session:str}",
    operation_id="deleteSession",
    summary="Forget a session",
    response_description="It is forgotten",
    tags=[QUESTIONS],
    needs="ask",
    errors=(StoreUnavailable,),
)
async def delete_session(
    session: Annotated[str, PathParameter(schema_extra=SESSION)],
    history: NamedDependency[SessionStore],
    caller: NamedDependency[Caller],
) -> None:
    """Delete what was asked and answered in the session. 404 when nothing of it is remembered."""
    try:
        check_session(session)
    except PydanticCustomError as error:  # which Litestar asks of bodies alone
        problem = {"key": "session", "message": error.message()}
        raise ValidationException(extra=[problem]) from None
    if not await history.delete(caller.id, session):
        raise NotFoundException
