"""POST /ask"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from litestar import MediaType, Request, post
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.params import HeaderParameter, JSONBody
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from app.asked import Answerer, AskCommand
from app.description.ask import EVENTS, AskOperation
from app.description.tags import QUESTIONS
from app.problems import problem_of
from app.routes.fields import ChunkCount, QuestionText, SessionId
from app.routes.first_event import first_event
from app.routes.retrieve import RETRIEVING
from app.security.keyring import Caller
from app.stream import stream_answer
from schemas.answer import Answer
from schemas.errors import ModelBusy, ModelOutputInvalid, ServerStopping, ServiceBusy
from schemas.events import Event
from schemas.language import Language
from schemas.question import AnswerMode, Filters
from schemas.wire import ApiModel, examples

HEARTBEAT = ServerSentEventMessage(data=None, comment="")


class AskRequest(ApiModel):
    """What is asked, and how the answer should be."""

    model_config = examples({"question": "what does error 44203 mean?", "session": "mine"})

    question: QuestionText
    """In Chinese or English; API details, responses and logs may be pasted into it."""
    k: ChunkCount | None = None
    """How many chunks to retrieve; APIDESK_TOP_K where it is not said."""
    filters: Filters | None = None
    language: Language | None = None
    """The language of the answer; the question's where it is not said."""
    session: SessionId | None = None
    """Continues a conversation, or begins one under this name."""
    mode: AnswerMode = "pipeline"
    """`tools`: a model looks things up before it answers."""


CacheControl = Annotated[
    str,
    HeaderParameter(name="Cache-Control", description="`no-cache`: not an answer from the cache"),
]

ANSWERED = ResponseSpec(Answer, False, "The answer; with `Accept: text/event-stream`, its events")


@post(
    "/ask",
    status_code=200,
    operation_id="ask",
    summary="Answer a question",
    tags=[QUESTIONS],
    responses={200: ANSWERED},
    operation_class=AskOperation,
    needs="ask",
    errors=(*RETRIEVING, ServiceBusy, ServerStopping, ModelBusy, ModelOutputInvalid),
)
async def ask(
    request: Request[Any, Any, Any],
    data: JSONBody[AskRequest],
    answerer: NamedDependency[Answerer],
    caller: NamedDependency[Caller],
    cache_control: CacheControl = "",
) -> Answer | ServerSentEvent:
    """Answer a question from the platform's documentation, with sources and related pages.

    With `Accept: text/event-stream` the answer comes as events: `structured`, `sources`, each `step`
    once it is complete and grounded, then `answer`; or `error` with the problem. `sources` that come
    again begin the steps anew.
    """
    asked = AskCommand(
        data.question,
        k=data.k,
        language=data.language,
        filters=data.filters,
        mode=data.mode,
        session=data.session,
        owner=caller.id,
        account=caller.account,
        fresh="no-cache" in cache_control.lower(),
    )

    if request.accept.best_match([MediaType.JSON, EVENTS]) != EVENTS:
        return await answerer.ask(asked)
    events = stream_answer(partial(answerer.ask, asked))
    first = await first_event(events, request)
    # Named here once more: Litestar would send the handler's own type, which is JSON's.
    return ServerSentEvent(_messages(first, events), headers={"Content-Type": EVENTS})


async def _messages(
    first: Event | None, events: AsyncGenerator[Event | None]
) -> AsyncGenerator[ServerSentEventMessage]:
    """The events on the wire; a comment where nothing happened for a while."""
    yield _message(first)
    async with aclosing(events):
        try:
            async for event in events:
                yield _message(event)
        except Exception as error:
            yield ServerSentEventMessage(event="error", data=problem_of(error))


def _message(event: Event | None) -> ServerSentEventMessage:
    if event is None:
        return HEARTBEAT
    return ServerSentEventMessage(event=event.name, data=event.data.model_dump_json(by_alias=True))
