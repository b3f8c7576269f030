"""Reranking by a server that speaks the `/rerank` format of Jina, Cohere and vLLM."""

import asyncio
import math
from collections.abc import Iterator, Sequence

import httpx
from langchain_core.runnables import RunnableConfig

from ingestion.collection_schema import embedded_text
from runnables.deadline import remaining
from runnables.retrieval.rerank_text import QUESTION_TOKENS, truncate_to_tokens
from schemas.document import RetrievedChunk
from schemas.errors import (
    ConfigurationError,
    ModelError,
    ModelOutputInvalid,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from schemas.settings import Settings

ENDPOINT_PASSAGE_TOKENS = 700
"""Of a chunk. With the question it stays below 1,024, where several rerankers refuse the whole request."""

SETTING = "APIDESK_RERANK_URL"

_REFUSALS = {
    401: "the server refuses the key; check APIDESK_RERANK_API_KEY",
    403: "the server refuses the key; check APIDESK_RERANK_API_KEY",
    404: "the server knows no such path or model; check it and APIDESK_RERANK_MODEL",
}


class EndpointReranker:
    """Asks the server that Settings name, once a question and without retries."""

    def __init__(self, settings: Settings) -> None:
        """Raises ConfigurationError for an address that is missing or none."""
        self._url = _rerank_url(settings.rerank_url)
        self._model = {"model": settings.rerank_model} if settings.rerank_model else {}
        key = settings.rerank_api_key
        self._headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        self._tls = httpx.create_ssl_context(trust_env=False)  # takes longer than all else here

    async def rank(
        self, question: str, chunks: Sequence[RetrievedChunk], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Places in `chunks`, the most relevant first, with the server's scores. Raises ModelError."""
        body = {
            **self._model,
            "query": truncate_to_tokens(question, QUESTION_TOKENS),
            "documents": [
                truncate_to_tokens(embedded_text(each.chunk), ENDPOINT_PASSAGE_TOKENS)
                for each in chunks
            ],
            "top_n": len(chunks),
            "return_documents": False,
        }
        try:
            async with asyncio.timeout(remaining(config)):
                response = await self._post(body)
        except TimeoutError:
            raise ModelTimeout(f"{SETTING}: no answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            # Only its kind is said: the message of a header that cannot be sent holds the key.
            name = type(error).__name__
            raise ModelUnavailable(f"{SETTING}: the server cannot be reached ({name})") from None
        return _ranks(response, len(chunks))

    async def _post(self, body: dict[str, object]) -> httpx.Response:
        # A client of its own: one that is held belongs to an event loop, and somebody has to close it.
        async with httpx.AsyncClient(verify=self._tls, trust_env=False, timeout=None) as client:
            return await client.post(self._url, json=body, headers=self._headers)


def _rerank_url(address: str | None) -> httpx.URL:
    """`address`, ending in `/rerank`. Raises ConfigurationError, which does not repeat it."""
    if not address:
        raise ConfigurationError(f"APIDESK_RERANK=endpoint needs {SETTING}")
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError(f"{SETTING}: is no address that begins with http:// or https://")
    path = url.path.rstrip("/")
    return url.copy_with(path=path if path.endswith("/rerank") else f"{path}/rerank")


def _ranks(response: httpx.Response, count: int) -> dict[int, float | None]:
    """The places below `count` that the reply scores, best first. Raises ModelError."""
    status = response.status_code
    if status != httpx.codes.OK:
        raise _status_error(status)
    try:
        reply = response.json()
    except (ValueError, RecursionError):
        raise ModelOutputInvalid(f"{SETTING}: the reply is no JSON") from None
    scores: dict[int, float] = {}
    for place, score in _scored(reply):
        if 0 <= place < count:
            scores[place] = max(score, scores.get(place, score))
    if not scores:
        raise ModelOutputInvalid(f"{SETTING}: the reply scores no document")
    return {place: scores[place] for place in sorted(scores, key=lambda p: (-scores[p], p))}


def _status_error(status: int) -> ModelError:
    if status in (408, 429) or status >= 500:
        return ModelUnavailable(f"{SETTING}: the server answers {status}")
    return ModelRefused(
        f"{SETTING}: {_REFUSALS.get(status, f'the server answers {status}')}", status
    )


def _scored(reply: object) -> Iterator[tuple[int, float]]:
    """Index and score of each result that has both.

    Results are `results` (Jina, Cohere, vLLM), `data` (Voyage) or the reply itself (TEI); their score
    is `relevance_score` or `score`.
    """
    if isinstance(reply, dict):
        reply = reply.get("results", reply.get("data"))
    for result in reply if isinstance(reply, list) else []:
        if isinstance(result, dict):
            place = result.get("index")
            score = _finite(result.get("relevance_score", result.get("score")))
            if type(place) is int and score is not None:
                yield place, score


def _finite(value: object) -> float | None:
    """`value`, where it is a number that can be compared."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None
