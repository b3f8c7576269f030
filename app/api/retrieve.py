"""POST /retrieve: retrieve the chunks for a question."""

from litestar import post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from app.api.fields import ChunkCount, QuestionText
from app.api.openapi import QUESTIONS_TAG
from app.security.api_keys import Caller
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

RETRIEVAL_ERRORS = (
    CollectionMismatch,
    CollectionMissing,
    StoreUnavailable,
    ModelUnavailable,
    ModelRefused,
    ModelTimeout,
)
"""The errors of retrieval. The errors of models come from the embedding model."""


class RetrieveRequest(ApiModel):
    """A question and the number of chunks to return."""

    model_config = examples({"question": "what does error 44203 mean?", "k": 3})

    question: QuestionText
    k: ChunkCount | None = None
    """The number of chunks to return. Default: APIDESK_TOP_K."""
    filters: Filters | None = None


class Retrieved(ApiModel):
    """The retrieved chunks, best first."""

    sources: list[Source]


@post(
    "/retrieve",
    status_code=200,
    operation_id="retrieve",
    summary="Retrieve chunks",
    response_description="The chunks, best first",
    tags=[QUESTIONS_TAG],
    needs="ask",
    errors=RETRIEVAL_ERRORS,
)
async def retrieve(
    data: JSONBody[RetrieveRequest],
    answer_service: NamedDependency[AnswerService],
    limits: NamedDependency[RateLimiter],
    caller: NamedDependency[Caller],
) -> Retrieved:
    """Return the chunks that an answer would be based on. No chat model is called."""
    async with limits.meter_tokens(caller.account) as meter:
        command = AskCommand(data.question, k=data.k, filters=data.filters, callbacks=(meter,))
        sources = await answer_service.retrieve(command)
    return Retrieved(sources=sources)
