"""POST /answers/{id}/feedback"""

from uuid import UUID

from litestar import post
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath, JSONBody
from pydantic import Field

from app.characters import storable
from app.masking.masking import mask
from app.records.keeper import Keeper
from app.security.keyring import Caller
from schemas.record import Feedback, Score
from schemas.wire import WireModel


class FeedbackRequest(WireModel):
    """What its caller thinks of an answer."""

    score: Score
    comment: str = Field(default="", max_length=2_000)


@post(
    "/answers/{answer_id:uuid}/feedback",
    status_code=204,
    operation_id="feedback",
    summary="Judge an answer",
    needs="ask",
)
async def give_feedback(
    answer_id: FromPath[UUID],
    data: JSONBody[FeedbackRequest],
    keeper: NamedDependency[Keeper],
    caller: NamedDependency[Caller],
) -> None:
    """Say whether an answer helped (1) or did not (-1); 0 takes back what was said. 404 for an answer
    that another key asked for, or that was not kept.
    """
    feedback = Feedback(score=data.score, comment=mask(storable(data.comment)))
    if not await keeper.rate(caller.id, str(answer_id), feedback):
        raise NotFoundException
