"""Reranking by a server with a `/rerank` endpoint in the format of Jina, Cohere, vLLM, Voyage or TEI."""

import math
from collections.abc import Iterator, Sequence

import httpx
from langchain_core.runnables import RunnableConfig

from ingestion.store.schema import embedded_text
from ingestion.text.language import truncate_to_tokens
from runnables.run_context import deadline_timeout
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

MAX_QUESTION_TOKENS = 250
"""Tokens of the question; a longer one is cut and leaves room for the passage."""

MAX_ENDPOINT_PASSAGE_TOKENS = 700
"""Tokens of a chunk. Several rerankers reject a request in which question and chunk exceed 1,024."""

_SETTING = "APIDESK_RERANK_URL"

_REFUSALS = {
    401: "the server refuses the key; check APIDESK_RERANK_API_KEY",
    403: "the server refuses the key; check APIDESK_RERANK_API_KEY",
    404: "the server knows no such path or model; check it and APIDESK_RERANK_MODEL",
}
"""Error messages by HTTP status."""


class EndpointReranker:
    """Sends one request per question, without retries."""

    def __init__(self, settings: Settings) -> None:
        """Raises ConfigurationError for a missing or invalid URL."""
        self._url = _rerank_url(settings.rerank_url)
        self._model = {"model": settings.rerank_model} if settings.rerank_model else {}
        key = settings.rerank_api_key
        self._headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        self._tls = httpx.create_ssl_context(trust_env=False)  # slow, so it is created once

    async def rank(
        self, question: str, chunks: Sequence[RetrievedChunk], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Return indexes of `chunks`, most relevant first, with the server's scores. Raises ModelError."""
        body = {
            **self._model,
            "query": truncate_to_tokens(question, MAX_QUESTION_TOKENS),
            "documents": [
                truncate_to_tokens(embedded_text(retrieved.chunk), MAX_ENDPOINT_PASSAGE_TOKENS)
                for retrieved in chunks
            ],
            "top_n": len(chunks),
            "return_documents": False,
        }
        try:
            async with deadline_timeout(config):
                response = await self._post(body)
        except TimeoutError:
            raise ModelTimeout(f"{_SETTING}: no answer in time") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            # Only the type: the message about a header that cannot be sent contains the key.
            name = type(error).__name__
            raise ModelUnavailable(f"{_SETTING}: the server cannot be reached ({name})") from None
        return _parse_ranks(response, len(chunks))

    async def _post(self, body: dict[str, object]) -> httpx.Response:
        # One client per request: a shared client is bound to one event loop and has to be closed.
        async with httpx.AsyncClient(verify=self._tls, trust_env=False, timeout=None) as client:
            return await client.post(self._url, json=body, headers=self._headers)


def _rerank_url(address: str | None) -> httpx.URL:
    """`address`, ending in `/rerank`. Raises ConfigurationError, which does not repeat the address."""
    if not address:
        raise ConfigurationError(f"APIDESK_RERANK=endpoint needs {_SETTING}")
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError(f"{_SETTING}: must be a URL that begins with http:// or https://")
    path = url.path.rstrip("/")
    return url.copy_with(path=path if path.endswith("/rerank") else f"{path}/rerank")


def _parse_ranks(response: httpx.Response, count: int) -> dict[int, float | None]:
    """The indexes below `count` that the reply scores, best first. Raises ModelError."""
    status = response.status_code
    if status != httpx.codes.OK:
        raise _status_error(status)
    try:
        reply = response.json()
    except (ValueError, RecursionError):
        raise ModelOutputInvalid(f"{_SETTING}: the reply is not JSON") from None
    scores: dict[int, float] = {}
    for index, score in _parse_results(reply):
        if 0 <= index < count:
            scores[index] = max(score, scores.get(index, score))
    if not scores:
        raise ModelOutputInvalid(f"{_SETTING}: the reply scores no document")
    return {index: scores[index] for index in sorted(scores, key=lambda i: (-scores[i], i))}


def _status_error(status: int) -> ModelError:
    if status in (408, 429) or status >= 500:
        return ModelUnavailable(f"{_SETTING}: the server answers {status}")
    return ModelRefused(
        f"{_SETTING}: {_REFUSALS.get(status, f'the server answers {status}')}", status
    )


def _parse_results(reply: object) -> Iterator[tuple[int, float]]:
    """Index and score of each result that has both.

    Results are in `results` (Jina, Cohere, vLLM), in `data` (Voyage) or the reply itself (TEI); their
    score is `relevance_score` or `score`.
    """
    if isinstance(reply, dict):
        reply = reply.get("results", reply.get("data"))
    for result in reply if isinstance(reply, list) else []:
        if isinstance(result, dict):
            index = result.get("index")
            score = _finite_float(result.get("relevance_score", result.get("score")))
            if type(index) is int and score is not None:
                yield index, score


def _finite_float(value: object) -> float | None:
    """`value` as a finite float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond the range of floats
        return None
