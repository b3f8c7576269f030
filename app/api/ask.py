"""The routes that answer questions, retrieve chunks, rate answers and delete sessions.

`POST /ask` sends its answer as JSON or as server-sent events.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from litestar import Request, Response, delete, post
from litestar.background_tasks import BackgroundTask
from litestar.di import NamedDependency
from litestar.exceptions import ValidationException
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import (
    Example,
    Link,
    OpenAPIMediaType,
    Operation,
    Schema,
)
from litestar.openapi.spec.enums import OpenAPIType
from litestar.params import HeaderParameter, JSONBody, PathParameter
from litestar.response import ServerSentEvent
from litestar.response.sse import ServerSentEventMessage
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from app.api.event_stream import EVENT_STREAM, HEARTBEAT, Events, stream_response
from app.api.fields import (
    SESSION_SCHEMA,
    ChunkCount,
    PathId,
    QuestionText,
    SessionId,
    not_found,
    parse_id,
    prefers,
    validate_session_id,
    validate_whole_number,
)
from app.api.openapi import QUESTIONS_TAG, success_response
from app.api.problems import problem_json
from app.masking.masking import mask
from app.security.api_keys import Caller
from app.service.answer_service import AnswerService
from app.service.ask_command import Answerer, AskCommand
from app.service.middleware import MeteringAnswerer
from app.service.record_writer import RecordWriter
from app.service.session_store import SessionStore
from ingestion.text.language import storable_text
from prompts.user_text import language_choices
from schemas.answer import Answer, Source
from schemas.base import ApiModel, examples
from schemas.choices import Language
from schemas.errors import (
    CollectionMismatch,
    CollectionMissing,
    ModelBusy,
    ModelOutputInvalid,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    ServerStopping,
    ServiceBusy,
    StoreUnavailable,
)
from schemas.insights import Feedback, Score
from schemas.question import AnswerMode, Filters, StructuredQuestion

RETRIEVAL_ERRORS = (CollectionMismatch, CollectionMissing, StoreUnavailable)
"""The errors that `POST /retrieve` declares.

Model errors are not declared: if a model fails, retrieval continues without it.
"""

ANSWER_ERRORS = (
    *RETRIEVAL_ERRORS,
    ModelUnavailable,
    ModelRefused,
    ModelTimeout,
    ServiceBusy,
    ServerStopping,
    ModelBusy,
    ModelOutputInvalid,
)
"""The errors that `POST /ask` declares."""

EXAMPLE_STEP = (
    "**Update SKU Price**: `POST /dop/api/v1/product/sku_price`\n\n"
    "| Error code | Message | Cause | Remedy |\n| --- | --- | --- | --- |\n"
    "| `44203` | Price outside the range of the category | The category has a lowest or highest price, "
    "and the new price falls outside it. Usually yuan were sent instead of fen. | Check the unit first: "
    "139 CNY is 13900. The permitted range is given in error_message. |\n\n[1]"
)

ANSWER_LINKS = {
    "judge": Link(operation_id="feedback", parameters={"answer_id": "$response.body#/id"}),
    "forget": Link(operation_id="deleteSession", parameters={"session": "$response.body#/session"}),
}

ANSWER_RESPONSE = ResponseSpec(
    Answer, False, "The answer; with `Accept: text/event-stream`, its events"
)

CacheControl = Annotated[
    str,
    HeaderParameter(name="Cache-Control", description="`no-cache` bypasses the answer cache"),
]


class AskRequest(ApiModel):
    """A question and options for its answer."""

    model_config = examples({"question": "what does error 44203 mean?", "session": "mine"})

    question: QuestionText = Field(
        description=f"In {language_choices()}. The text may contain pasted API details, responses and logs."
    )
    k: ChunkCount | None = None
    """Maximum number of chunks to retrieve. Default: APIDESK_TOP_K."""
    filters: Filters | None = None
    language: Language | None = None
    """The language of the answer. Default: the language of the question."""
    session: SessionId | None = None
    """The id of the session to continue or start."""
    mode: AnswerMode = "pipeline"
    """`tools`: a model looks up documents with tools before it answers."""

    def to_command(self) -> AskCommand:
        """Return the request as an AskCommand.

        `owner`, `account` and `fresh` keep their default values, because they do not come from the body.
        """
        return AskCommand(
            self.question, self.k, self.language, self.filters, self.mode, self.session
        )


EXAMPLE_ANSWER = Answer(
    id="01a1ff87-c014-73d0-a8f6-8c1069c64748",
    question="what does error 44203 mean?",
    introduction="Hello, this is the documentation assistant of the Qingqiao Open Platform.",
    answer=[EXAMPLE_STEP],
    related_url=["https://open.example.com/#/api?apiId=1206"],
    type="api_call",
    structured=StructuredQuestion(type="api_call", api_name="Update SKU Price", error="44203"),
    sources=[
        Source(
            number=1,
            source="reference",
            document_id="1206",
            title="Update SKU Price",
            section="Error codes",
            page_url="https://open.example.com/#/api?apiId=1206",
            api_name="Update SKU Price",
            api_url="/dop/api/v1/product/sku_price",
            metadata={"version": "v1"},
            score=21.6,
            text="| Error code | Message | Cause | Remedy |…",
        )
    ],
    confidence="high",
    language="en",
    answered_by="extractive",
    session="mine",
    timings={"retrieve": 34, "answer": 2, "total": 56},
)
"""An answer about the sample platform, as an example in the OpenAPI document."""


@dataclass
class AskOperation(Operation):
    """The OpenAPI operation of `POST /ask`, with parts that Litestar cannot derive from the handler."""

    def __post_init__(self) -> None:
        """Add an example, the event stream, and links to other operations.

        The linked operations rate the answer and delete its session.
        """
        response = success_response(self)
        assert response.content
        (json_content,) = response.content.values()
        example = EXAMPLE_ANSWER.model_dump(mode="json", by_alias=True)
        json_content.examples = {"answer": Example(value=example)}
        events = Schema(type=OpenAPIType.STRING, description="Server-sent events with JSON data")
        response.content[EVENT_STREAM] = OpenAPIMediaType(events)
        response.links = dict(ANSWER_LINKS)


@post(
    "/ask",
    status_code=200,
    operation_id="ask",
    summary="Answer a question",
    tags=[QUESTIONS_TAG],
    responses={200: ANSWER_RESPONSE},
    operation_class=AskOperation,
    needs="ask",
    errors=ANSWER_ERRORS,
)
async def ask(
    request: Request[Any, Any, Any],
    data: JSONBody[AskRequest],
    answerer: NamedDependency[Answerer],
    caller: NamedDependency[Caller],
    cache_control: CacheControl = "",
) -> Answer | ServerSentEvent:
    """Answer a question from the platform's documentation, with sources and related pages.

    With `Accept: text/event-stream`, the answer is sent as events: `structured`, `sources`, one `step` per
    step of the answer, and finally `answer`. A step is sent once it is complete and has been checked
    against the documents. If another `sources` event arrives, the answer starts again: discard the steps
    received before it.

    If an error occurs during the stream, the last event is `error`. Its data is a `Problem`, as in the body
    of an error response.
    """
    command = replace(
        data.to_command(),
        owner=caller.id,
        account=caller.account,
        fresh="no-cache" in cache_control.lower(),
    )
    if not prefers(request, EVENT_STREAM):
        return await answerer.ask(command)
    return await stream_response(partial(answerer.ask, command), request, _to_messages)


async def _to_messages(events: Events) -> AsyncGenerator[ServerSentEventMessage]:
    async with aclosing(events):
        try:
            async for event in events:
                if event is None:
                    yield HEARTBEAT
                else:
                    data = event.data.model_dump_json(by_alias=True)
                    yield ServerSentEventMessage(event=event.name, data=data)
        except Exception as error:
            yield ServerSentEventMessage(event="error", data=problem_json(error))


class RetrieveRequest(ApiModel):
    """A question and the options of retrieval."""

    model_config = examples({"question": "what does error 44203 mean?", "k": 3})

    question: QuestionText
    k: ChunkCount | None = None
    """Maximum number of chunks to return. Default: APIDESK_TOP_K."""
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
    metering: NamedDependency[MeteringAnswerer],
    caller: NamedDependency[Caller],
) -> Retrieved:
    """Return the best chunks for a question, without answering it.

    If a chunk is short, its text also contains neighbouring sections of the same document, with their
    headings. A chat model is called only if APIDESK_RERANK is `model`.
    """
    command = AskCommand(data.question, k=data.k, filters=data.filters, account=caller.account)
    return Retrieved(sources=await metering.retrieve(command))


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
    # Without this, the OpenAPI document would describe a JSON body, because the handler returns a Response.
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
    run_id = parse_id(answer_id, "answer")
    if not await record_writer.rate(caller.id, run_id, feedback):
        raise not_found("answer")
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
    except PydanticCustomError as error:  # Litestar runs pydantic validators only on bodies
        problem = {"key": "session", "message": error.message()}
        raise ValidationException(extra=[problem]) from None
    if not await session_store.delete(caller.id, session):
        raise not_found("session")
