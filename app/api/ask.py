"""An answer as events: what happens while it is made, then the answer itself.
What has to be known before a response of events begins: after that it can be no error any more.
POST /ask
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from litestar import MediaType, Request, post
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.params import HeaderParameter, JSONBody
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage

from app.api.fields import ChunkCount, QuestionText, SessionId
from app.api.openapi import EVENTS, QUESTIONS, AskOperation
from app.api.problems import problem_of
from app.api.retrieve import RETRIEVING
from app.security.keyring import Caller
from app.service.ask_command import Answerer, AskCommand
from schemas.answer import Answer, Event, EventSink, Sources, Step
from schemas.base import ApiModel, examples
from schemas.choices import Language
from schemas.errors import ModelBusy, ModelOutputInvalid, ServerStopping, ServiceBusy
from schemas.question import AnswerMode, Filters

HEARTBEAT_SECONDS = 10.0
"""Silence after which a sign of life is due: proxies cut connections that say nothing."""


async def stream_answer(
    asking: Callable[[EventSink], Awaitable[Answer]],
) -> AsyncGenerator[Event | None]:
    """The events of `asking`, the last of them `answer`; None when nothing happened for a while.

    Raises what `asking` raises. Closing the stream cancels it, and with it the model's call.
    """
    happened = _Happened()

    async def ask() -> Answer:
        try:
            return await asking(happened.listen)
        finally:
            happened.queue.put_nowait(None)

    task = asyncio.create_task(ask())
    try:
        async for event in _until_none(happened.queue):
            yield event
        answer = await task
        for event in happened.missing(answer):
            yield event
        yield Event("answer", answer)
    finally:
        task.cancel()


class _Happened:
    """What was told of an answer while it was made."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._understood = False
        self._steps: list[str] = []

    async def listen(self, event: Event) -> None:
        """Hear of an event."""
        if event.name == "structured":
            self._understood = True
        elif isinstance(event.data, Sources):
            self._steps.clear()
        elif isinstance(event.data, Step):
            self._steps.append(event.data.text)
        await self.queue.put(event)

    def missing(self, answer: Answer) -> Iterator[Event]:
        """What should have been told of `answer` and was not: it was known, or came out otherwise."""
        if not self._understood:
            yield Event("structured", answer.structured)
        if self._steps != answer.answer:
            yield from _steps(answer)


async def _until_none(happened: asyncio.Queue[Event | None]) -> AsyncGenerator[Event | None]:
    while True:
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                event = await happened.get()
        except TimeoutError:
            yield None
            continue
        if event is None:
            return
        yield event


def _steps(answer: Answer) -> Iterator[Event]:
    yield Event("sources", Sources(sources=answer.sources))
    for number, text in enumerate(answer.answer, 1):
        facts = [fact for fact in answer.unverified if fact in text]
        supported = number not in answer.unsupported
        yield Event("step", Step(number=number, text=text, unverified=facts, supported=supported))


async def first_event(
    events: AsyncGenerator[Event | None], request: Request[Any, Any, Any]
) -> Event | None:
    """The first event, so that what fails before it is a response of its own; or None for a client
    that has left.
    """
    coming = asyncio.ensure_future(anext(events))
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({coming, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        return None
    finally:
        leaving.cancel()
        coming.cancel()


async def _left(request: Request[Any, Any, Any]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


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
