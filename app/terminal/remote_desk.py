"""A desk in another process: the server that holds the embedded store, asked over HTTP."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
from httpx_sse import SSEError, aconnect_sse

from app.asked import AskCommand
from app.serving.local_server import LocalServer
from runnables.listener import EventSink
from schemas.answer import Answer, Source
from schemas.errors import ApideskError, StoreUnavailable
from schemas.events import Event, EventName, Sources, Step
from schemas.question import StructuredQuestion
from schemas.wire import ApiModel

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
