"""One question from the command line: by a desk of its own, or by the server that holds the store."""

from collections.abc import Mapping
from typing import Any

import httpx

from app.characters import whole_characters
from app.desk import check_question, open_desk
from app.local_server import local_server
from app.progress import ingestion_progress
from schemas.answer import Answer, Source
from schemas.errors import ApideskError, StoreLocked, StoreUnavailable
from schemas.settings import Settings


async def ask_once(
    settings: Settings,
    question: str,
    k: int | None,
    show_retrieved: bool,
    other_model: bool = False,
) -> tuple[Answer, list[Source]]:
    """The answer, and the chunks that were retrieved if they are to be shown. Raises ApideskError.

    With `other_model` the settings name another model than the server's, which cannot serve then.
    """
    question = whole_characters(question)
    check_question(question, settings)
    try:
        with ingestion_progress() as progress:
            async with open_desk(settings, progress) as desk:
                sources = await desk.retrieve(question, k) if show_retrieved else []
                return await desk.ask(question, k), sources
    except StoreLocked:
        url = local_server(settings)
        if url is None:
            raise
        if other_model:
            raise StoreLocked(
                f"the server at {url} holds the store and has its own model: stop it to try another"
            ) from None
        return await _ask_server(url, settings, question, k, show_retrieved)


async def _ask_server(
    url: str, settings: Settings, question: str, k: int | None, show_retrieved: bool
) -> tuple[Answer, list[Source]]:
    body = {"question": question} | ({"k": k} if k else {})
    timeout = settings.request_timeout + 5
    async with httpx.AsyncClient(base_url=url, timeout=timeout, trust_env=False) as client:
        found = await _post(client, "/retrieve", body) if show_retrieved else {"sources": []}
        answer = await _post(client, "/ask", body)
    sources = [Source.model_validate(source) for source in found["sources"]]
    return Answer.model_validate(answer), sources


async def _post(client: httpx.AsyncClient, path: str, body: Mapping[str, object]) -> dict[str, Any]:
    try:
        response = await client.post(path, json=body)
        found: dict[str, Any] = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise StoreUnavailable(f"the server at {client.base_url} does not answer") from error
    if response.is_error:
        raise ApideskError(found.get("detail", response.reason_phrase))
    return found
