"""POST /retrieve"""

from litestar import post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from app.api.fields import ChunkCount, QuestionText
from app.api.openapi import QUESTIONS
from app.security.keyring import Caller
from app.security.rate_limits import RateLimiter
from app.service.answer_service import AnswerService
from app.service.ask_command import AskCommand
from schemas.answer import Source
from schemas.base import ApiModel, examples
from schemas.errors import (
    CollectionMismatch,
    CollectionMissing,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StoreUnavailable,
)
from schemas.question import Filters

RETRIEVING = (
    CollectionMismatch,
    CollectionMissing,
    StoreUnavailable,
    ModelUnavailable,
    ModelRefused,
    ModelTimeout,
)
"""What retrieval may fail with; the model is the one that embeds."""


class RetrieveRequest(ApiModel):
    """What to look for, and how many chunks to give."""

    model_config = examples({"question": "what does error 44203 mean?", "k": 3})

    question: QuestionText
    k: ChunkCount | None = None
    """How many chunks to give; APIDESK_TOP_K where it is not said."""
    filters: Filters | None = None


class Retrieved(ApiModel):
    """The chunks found, best first."""

    sources: list[Source]


@post(
    "/retrieve",
    status_code=200,
    operation_id="retrieve",
    summary="Find chunks",
    response_description="The chunks, best first",
    tags=[QUESTIONS],
    needs="ask",
    errors=RETRIEVING,
)
async def retrieve(
    data: JSONBody[RetrieveRequest],
    answer_service: NamedDependency[AnswerService],
    limits: NamedDependency[RateLimiter],
    caller: NamedDependency[Caller],
) -> Retrieved:
    """The chunks that an answer would rest on, without asking a model."""
    async with limits.metered(caller.account) as meter:
        asked = AskCommand(data.question, k=data.k, filters=data.filters, callbacks=(meter,))
        found = await answer_service.retrieve(asked)
    return Retrieved(sources=found)
