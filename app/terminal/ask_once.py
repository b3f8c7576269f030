"""One question from the command line: by a desk of its own, or by the server that holds the store."""

from collections.abc import Mapping
from typing import Any

import httpx
from httpx_sse import SSEError, aconnect_sse

from app.asked import Asked
from app.characters import whole_characters
from app.desk import check_question, open_desk
from app.serving.local_server import LocalServer, local_server
from app.terminal.progress import ingestion_progress
from runnables.listener import Listener
from schemas.answer import Answer, Source
from schemas.errors import ApideskError, StoreLocked, StoreUnavailable
from schemas.events import Event, EventName, Sources, Step
from schemas.question import AnswerMode, StructuredQuestion
from schemas.settings import Settings
from schemas.wire import WireModel

TOLD: dict[EventName, type[WireModel]] = {
    "structured": StructuredQuestion,
    "sources": Sources,
    "step": Step,
}
"""What comes before the answer, by event."""


async def ask_once(
    settings: Settings,
    question: str,
    k: int | None,
    show_retrieved: bool,
    other_model: bool = False,
    mode: AnswerMode = "pipeline",
    listener: Listener | None = None,
) -> tuple[Answer, list[Source]]:
    """The answer, and the chunks that were retrieved if they are to be shown; `listener` is told how it
    comes about. Raises ApideskError.

    With `other_model` the settings name another model than the server's, which cannot serve then.
    """
    question = whole_characters(question)
    check_question(question, settings)
    try:
        with ingestion_progress() as progress:
            async with open_desk(settings, progress) as desk:
                asked = Asked(question, k=k, mode=mode)
                sources = await desk.retrieve(asked) if show_retrieved else []
                return await desk.ask(asked, listener), sources
    except StoreLocked:
        server = local_server(settings)
        if server is None:
            raise
        if other_model:
            raise StoreLocked(
                f"the server at {server.url} holds the store and has its own model: stop it to try another"
            ) from None
        body: dict[str, object] = {"question": question} | ({"k": k} if k else {})
        return await _ask_server(server, settings, body, mode, show_retrieved, listener)


async def _ask_server(
    server: LocalServer,
    settings: Settings,
    body: Mapping[str, object],
    mode: AnswerMode,
    show_retrieved: bool,
    listener: Listener | None,
) -> tuple[Answer, list[Source]]:
    async with server.client(settings.request_timeout + 5) as client:
        try:
            found = await _post(client, "/retrieve", body) if show_retrieved else {"sources": []}
            answer = await _events(client, {**body, "mode": mode}, listener or _nobody)
        except (httpx.HTTPError, SSEError, ValueError) as error:
            raise StoreUnavailable(f"the server at {client.base_url} does not answer") from error
    return answer, [Source.model_validate(source) for source in found["sources"]]


async def _post(client: httpx.AsyncClient, path: str, body: Mapping[str, object]) -> dict[str, Any]:
    response = await client.post(path, json=body)
    return _checked(response, response.json())


async def _events(
    client: httpx.AsyncClient, body: Mapping[str, object], listener: Listener
) -> Answer:
    """The answer at the end of the server's events, each of which `listener` is told."""
    async with aconnect_sse(client, "POST", "/ask", json=body) as stream:
        if "json" in stream.response.headers.get("content-type", ""):
            await stream.response.aread()
            return Answer.model_validate(_checked(stream.response, stream.response.json()))
        async for sent in stream.aiter_sse():
            if sent.event == "error":
                raise ApideskError(sent.json()["detail"])
            if sent.event == "answer":
                return Answer.model_validate_json(sent.data)
            if sent.event in TOLD:
                await listener(Event(sent.event, TOLD[sent.event].model_validate_json(sent.data)))
    raise SSEError("the events ended before the answer")


def _checked(response: httpx.Response, found: dict[str, Any]) -> dict[str, Any]:
    if response.is_error:
        raise ApideskError(found.get("detail", response.reason_phrase))
    return found


async def _nobody(event: Event) -> None:
    pass
