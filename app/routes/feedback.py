"""POST /answers/{id}/feedback"""

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
    "/answers/{answer_id:str}/feedback",
    status_code=204,
    operation_id="feedback",
    summary="Judge an answer",
    needs="ask",
)
async def give_feedback(
    answer_id: FromPath[str],
    data: JSONBody[FeedbackRequest],
    keeper: NamedDependency[Keeper],
    caller: NamedDependency[Caller],
) -> None:
    """1: it helped, -1: it did not, 0 takes that back. 404 for an answer that another key asked for, or
    that is not kept.
    """
    feedback = Feedback(score=data.score, comment=mask(storable(data.comment)))
    if not await keeper.rate(caller.id, answer_id, feedback):
        raise NotFoundException
