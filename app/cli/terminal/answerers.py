"""Answers questions for the command line, through a running server or in this process.

A running server is preferred, because opening an answer service in this process takes two seconds.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import TYPE_CHECKING, Protocol, TypeVar

import httpx
from httpx_sse import SSEError, aconnect_sse

from app.service.ask_command import Answerer, AskCommand
from app.serving.local_server import LocalServer, find_running_server
from schemas.answer import Answer, Event, EventName, EventSink, Source, Sources, Step
from schemas.base import ApiModel
from schemas.errors import ApideskError, StoreUnavailable
from schemas.question import StructuredQuestion
from schemas.settings import Settings

if TYPE_CHECKING:
    from app.service.answer_service import AnswerService

EVENT_MODELS: dict[EventName, type[ApiModel]] = {
    "structured": StructuredQuestion,
    "sources": Sources,
    "step": Step,
}
"""The pydantic model of each event that can precede the answer."""

EXTRA_TIMEOUT_S = 5.0
"""Seconds added to APIDESK_REQUEST_TIMEOUT, to connect and to transfer the answer."""

ModelT = TypeVar("ModelT", bound=ApiModel)


class ReportedError(ApiModel):
    """An error that a server reports."""

    detail: str
    """The message."""


class TerminalAnswerer(Answerer, Protocol):
    """Answers questions, with or without a session, and retrieves chunks."""

    async def retrieve(self, command: AskCommand) -> list[Source]:
        """Return the best chunks, at most k. Raises ApideskError.

        A chat model is called only for reranking.
        """


class RemoteAnswerer:
    """Sends questions to the HTTP API of a server, which also stores the sessions.

    `ask` sends only `text`, `k`, `mode` and `session` of a command, and `retrieve` only `text` and `k`.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, server: LocalServer, timeout_s: float
    ) -> AsyncIterator["RemoteAnswerer"]:
        """Connect to `server`. A request fails if no data arrives for `timeout_s` seconds."""
        async with server.client(timeout_s) as client:
            yield cls(client)

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        """Ask the server; `on_event` receives the events that the server streams before the answer.

        Raises StoreUnavailable if the server does not answer or its response is not valid, and ApideskError
        if the server reports an error.
        """
        body = {**_body(command), "mode": command.mode}
        if command.session is not None:
            body["session"] = command.session
        with self._translate_errors():
            return await self._stream_answer(body, on_event)

    async def retrieve(self, command: AskCommand) -> list[Source]:
        """Return the best chunks, at most k.

        Raises StoreUnavailable if the server does not answer or its response is not valid, and ApideskError
        if the server reports an error.
        """
        with self._translate_errors():
            response = await self._client.post("/retrieve", json=_body(command))
            return _read(Sources, _json_or_raise(response)).sources

    async def _stream_answer(
        self, body: Mapping[str, object], on_event: EventSink | None
    ) -> Answer:
        async with aconnect_sse(self._client, "POST", "/ask", json=body) as stream:
            if "json" in stream.response.headers.get("content-type", ""):
                await stream.response.aread()
                return _read(Answer, _json_or_raise(stream.response))
            async for message in stream.aiter_sse():
                if message.event == "error":
                    raise ApideskError(_read(ReportedError, message.json()).detail)
                if message.event == "answer":
                    return _read(Answer, message.json())
                if on_event is not None and message.event in EVENT_MODELS:
                    data = _read(EVENT_MODELS[message.event], message.json())
                    await on_event(Event(message.event, data))
        raise SSEError("the events ended before the answer")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        url = self._client.base_url
        try:
            yield
        except (SSEError, ValueError) as error:
            raise StoreUnavailable(f"the server at {url} did not return a valid answer") from error
        except httpx.HTTPError as error:
            raise StoreUnavailable(f"the server at {url} does not answer") from error


def _body(command: AskCommand) -> dict[str, object]:
    return {"question": command.text} | ({"k": command.k} if command.k else {})


def _read(model: type[ModelT], content: object) -> ModelT:
    """Parse `content`. Unknown fields are ignored, because the server can be newer than this client."""
    return model.model_validate(content, extra="ignore")


def _json_or_raise(response: httpx.Response) -> object:
    """Return the JSON of `response`. Raises ApideskError if the response is an error."""
    content: object = response.json()
    if response.is_error:
        raise ApideskError(_read(ReportedError, content).detail)
    return content


class LocalAnswerer:
    """Answers questions in this process, and stores sessions in the database."""

    def __init__(self, answer_service: "AnswerService") -> None:
        from app.service.middleware import SessionAnswerer
        from app.service.session_store import SessionStore

        self._answer_service = answer_service
        self._sessions = SessionStore(answer_service.engine, answer_service.settings)
        self._session_answerer = SessionAnswerer(answer_service, self._sessions)

    async def ask(self, command: AskCommand, on_event: EventSink | None = None) -> Answer:
        """Answer the question, in the session of `command` if there is one. Raises ApideskError."""
        return await self._session_answerer.ask(command, on_event)

    async def retrieve(self, command: AskCommand) -> list[Source]:
        """Return the best chunks, at most k. Raises ApideskError."""
        return await self._answer_service.retrieve(command)

    def close(self) -> None:
        """Close the session store. The answer service stays open."""
        self._sessions.close()


@asynccontextmanager
async def open_local_answerer(settings: Settings) -> AsyncIterator[LocalAnswerer]:
    """Open an answer service, and yield an answerer that uses it. Raises ApideskError.

    If the platform has never been indexed, it is indexed first, and the progress is shown. The imports are
    inside the function because they take two seconds, and a question that a server answers does not need
    them.
    """
    from app.service.answer_service import open_answer_service
    from app.telemetry.progress import ingestion_progress

    async with AsyncExitStack() as stack:
        with ingestion_progress() as progress:
            answer_service = await stack.enter_async_context(
                open_answer_service(settings, progress)
            )
        answerer = LocalAnswerer(answer_service)
        stack.push_async_callback(asyncio.to_thread, answerer.close)
        yield answerer


def open_terminal_answerer(
    settings: Settings, custom_model: bool
) -> AbstractAsyncContextManager[TerminalAnswerer]:
    """Connect to the running server that uses the index file in `settings`.

    If there is no such server, open an answer service in this process.

    `custom_model` means that the command line names a model. In this case, this process answers, because
    the server would use its own model. Raises ApideskError when the context is entered.
    """
    server = None if custom_model else find_running_server(settings)
    if server is not None:
        return RemoteAnswerer.connect(server, settings.request_timeout + EXTRA_TIMEOUT_S)
    return open_local_answerer(settings)
