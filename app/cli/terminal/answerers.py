"""A desk in another process: the server that holds the embedded store, asked over HTTP.
Whoever answers at the terminal: the server that holds the embedded store, or a desk of this process.
One question from the command line.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from typing import Any, Protocol

import httpx
from httpx_sse import SSEError, aconnect_sse

from app.service.ask_command import Answerer, AskCommand, check_question
from app.serving.local_server import LocalServer, local_server, running_server
from ingestion.text.language import whole_characters
from schemas.answer import Answer, Event, EventName, EventSink, Source, Sources, Step
from schemas.base import ApiModel
from schemas.errors import ApideskError, StoreLocked, StoreUnavailable
from schemas.question import AnswerMode, StructuredQuestion
from schemas.settings import Settings

TOLD: dict[EventName, type[ApiModel]] = {
    "structured": StructuredQuestion,
    "sources": Sources,
    "step": Step,
}
"""What comes before the answer, by event."""


class RemoteAnswerer:
    """Asks as any client of the API would, and remembers nothing: sessions are the server's."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    @classmethod
    @asynccontextmanager
    async def connected(
        cls, server: LocalServer, seconds: float
    ) -> AsyncIterator["RemoteAnswerer"]:
        """The desk of `server`, which may take `seconds` for an answer."""
        async with server.client(seconds) as client:
            yield cls(client)

    async def ask(self, asked: AskCommand, listener: EventSink | None = None) -> Answer:
        """The answer at the end of the server's events, each of which `listener` is told.

        Raises ApideskError, StoreUnavailable when the server does not answer.
        """
        body = {**_body(asked), "mode": asked.mode}
        if asked.session is not None:
            body["session"] = asked.session
        with self._wire_errors():
            return await self._events(body, listener)

    async def retrieve(self, asked: AskCommand) -> list[Source]:
        """The k best chunks. Raises ApideskError, StoreUnavailable when the server does not answer."""
        with self._wire_errors():
            response = await self._client.post("/retrieve", json=_body(asked))
            found = _checked(response, response.json())
            return [Source.model_validate(source) for source in found["sources"]]

    async def _events(self, body: Mapping[str, object], listener: EventSink | None) -> Answer:
        async with aconnect_sse(self._client, "POST", "/ask", json=body) as stream:
            if "json" in stream.response.headers.get("content-type", ""):
                await stream.response.aread()
                return Answer.model_validate(_checked(stream.response, stream.response.json()))
            async for sent in stream.aiter_sse():
                if sent.event == "error":
                    raise ApideskError(sent.json()["detail"])
                if sent.event == "answer":
                    return Answer.model_validate_json(sent.data)
                if listener is not None and sent.event in TOLD:
                    told = TOLD[sent.event].model_validate_json(sent.data)
                    await listener(Event(sent.event, told))
        raise SSEError("the events ended before the answer")

    @contextmanager
    def _wire_errors(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, SSEError, ValueError) as error:
            at = self._client.base_url
            raise StoreUnavailable(f"the server at {at} does not answer") from error


def _body(asked: AskCommand) -> dict[str, object]:
    return {"question": asked.text} | ({"k": asked.k} if asked.k else {})


def _checked(response: httpx.Response, found: dict[str, Any]) -> dict[str, Any]:
    if response.is_error:
        raise ApideskError(found.get("detail", response.reason_phrase))
    return found


PATIENCE = 5.0
"""Seconds beyond those that an answer may take, for what comes before and after it."""


class TerminalAnswerer(Answerer, Protocol):
    """Answers, in sessions too, and retrieves."""

    async def retrieve(self, asked: AskCommand) -> list[Source]:
        """The k best chunks, without asking a model. Raises ApideskError."""


@asynccontextmanager
async def open_terminal_answerer(
    settings: Settings, other_model: bool = False
) -> AsyncIterator[TerminalAnswerer]:
    """The server's desk, where one holds the embedded store; else one of this process.

    With `other_model` the settings name another model than the server's, which cannot serve then.

    Raises ApideskError.
    """
    async with AsyncExitStack() as stack:
        found: TerminalAnswerer
        server = running_server(settings)
        if server is None:
            try:
                found = await stack.enter_async_context(_own(settings))
            except StoreLocked:  # by a server that has just begun
                server = local_server(settings)
                if server is None:
                    raise
        if server is not None:
            if other_model:
                raise _has_its_own_model(server) from None
            seconds = settings.request_timeout + PATIENCE
            found = await stack.enter_async_context(RemoteAnswerer.connected(server, seconds))
        yield found


def _own(settings: Settings) -> AbstractAsyncContextManager[TerminalAnswerer]:
    # Imported here: it takes two seconds, which a question to a server need not wait.
    from app.cli.terminal.local_answerer import open_local_answerer

    return open_local_answerer(settings)


def _has_its_own_model(server: LocalServer) -> StoreLocked:
    return StoreLocked(
        f"the server at {server.url} holds the store and has its own model: stop it to try another"
    )


async def ask_once(
    settings: Settings,
    question: str,
    k: int | None,
    show_retrieved: bool,
    other_model: bool = False,
    mode: AnswerMode = "pipeline",
    listener: EventSink | None = None,
) -> tuple[Answer, list[Source]]:
    """The answer, and the chunks that were retrieved if they are to be shown; `listener` is told how it
    comes about. Raises ApideskError.

    With `other_model` the settings name another model than the server's, which cannot serve then.
    """
    question = whole_characters(question)
    check_question(question, settings)
    asked = AskCommand(question, k=k, mode=mode)
    async with open_terminal_answerer(settings, other_model) as answer_service:
        sources = await answer_service.retrieve(asked) if show_retrieved else []
        return await answer_service.ask(asked, listener), sources
