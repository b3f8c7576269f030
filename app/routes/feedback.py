"""POST /answers/{id}/feedback"""

from typing import Annotated

from litestar import post
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import JSONBody
from pydantic import BeforeValidator, Field

from app.characters import storable
from app.description.tags import QUESTIONS
from app.masking.masking import mask
from app.records.keeper import RecordWriter
from app.routes.fields import PathId, id_of, whole_number
from app.security.keyring import Caller
from schemas.errors import StoreUnavailable
from schemas.record import Feedback, Score
from schemas.wire import ApiModel, examples


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
