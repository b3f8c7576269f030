"""How much of a text a reranker reads.
Reranking by a server that speaks the `/rerank` format of Jina, Cohere and vLLM.
Reranking by the chat model, listwise: it reads all passages at once and writes their order.

The permutation generation of RankGPT (Sun et al., "Is ChatGPT Good at Search? Investigating Large
Language Models as Re-Ranking Agents", 2023, arXiv 2304.09542), without its sliding window: thirty
passages, each cut to the same length, fit one prompt.
"""

import asyncio
import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import httpx
from langchain_core.runnables import RunnableConfig

from ingestion.store.schema import embedded_text
from ingestion.text.language import estimate_tokens
from prompts import escape_data, load_prompt
from runnables.answer.write_answer import MAX_OUTPUT_SHARE, OUTPUT_TOKENS, TAG_TOKENS
from runnables.models.chat_model import ChatModel
from runnables.models.json_text import without_thinking
from runnables.models.structured_output import SHOWN, PromptVariables, StructuredOutputCall
from runnables.run_context import remaining
from schemas.document import RetrievedChunk
from schemas.errors import (
    ConfigurationError,
    ModelError,
    ModelOutputInvalid,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from schemas.model_output import PassageOrder
from schemas.platform import PlatformInfo
from schemas.settings import Settings

QUESTION_TOKENS = 250
"""Of a question; what is longer leaves a reranker no room for the passage."""


def truncate_to_tokens(text: str, tokens: int) -> str:
    """The beginning of `text` that is worth at most `tokens`."""
    text = text[: 4 * tokens]  # four characters are one token at least
    lengths = range(len(text) + 1)
    return text[: bisect_right(lengths, tokens, key=lambda n: estimate_tokens(text[:n])) - 1]


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


PASSAGE_TOKENS = 300
"""Of a chunk, as in RankGPT; fewer where the window is small."""

LEAST_TOKENS = 40
"""Below that a passage tells nothing; then fewer passages are shown instead."""

_SCHEMA = json.dumps(PassageOrder.model_json_schema(), ensure_ascii=False)
_RUN = re.compile(r"(?<![0-9])\[?[0-9]{1,3}\]?(?:[\s,>;，、；＞]+\[?[0-9]{1,3}\]?)+")
"""Numbers with nothing but separators between them: `[2] > [1] > [3]`."""


class ListwiseReranker:
    """Asks the chat model for the order of a question's passages."""

    def __init__(self, step: str, model: ChatModel, platform_info: PlatformInfo) -> None:
        # A circuit of its own: what is too slow to rerank in a few seconds may answer all the same.
        self._model = replace(model, modes=list(model.modes))
        self._platform_info = platform_info
        self._output = StructuredOutputCall(
            step, "rerank", platform_info.language, PassageOrder, permutation_of_text
        )

    async def rank(
        self, question: str, chunks: Sequence[RetrievedChunk], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Places in `chunks`, the most relevant first, without scores. Raises ModelError."""
        question = _beginning(question, QUESTION_TOKENS)
        passages = self._passages(question, chunks)
        variables = self._variables(question, passages)
        permutation = (await self._output.ask(self._model, variables, config)).value
        places = [number - 1 for number in permutation.ranking if 1 <= number <= len(passages)]
        if not places:
            setting = self._model.role.setting
            raise ModelOutputInvalid(f"{setting}: the reply names no document that there is")
        return dict.fromkeys(places)

    def _passages(self, question: str, chunks: Sequence[RetrievedChunk]) -> list[str]:
        """As many of `chunks` as the window holds, all cut to one length. Raises ModelError."""
        window = int(self._model.window / self._model.token_correction)
        bare = load_prompt("rerank", self._platform_info.language).render(
            schema=_SCHEMA, **self._variables(question, [])
        )
        reply = min(OUTPUT_TOKENS, window * MAX_OUTPUT_SHARE)
        room = int(window - reply - estimate_tokens(bare))
        shown = min(len(chunks), room // (LEAST_TOKENS + TAG_TOKENS))
        if shown < 2:
            raise ModelError(f"{self._model.role.setting}: its window is too small to rerank")
        tokens = min(PASSAGE_TOKENS, room // shown - TAG_TOKENS)
        return [_beginning(embedded_text(each.chunk), tokens) for each in chunks[:shown]]

    def _variables(self, question: str, passages: list[str]) -> PromptVariables:
        return {"platform_info": self._platform_info, "question": question, "passages": passages}


def _beginning(text: str, tokens: int) -> str:
    """The beginning of `text`, as long in the prompt as it is here: what `data` changes is longer."""
    return truncate_to_tokens(escape_data(text), tokens)


def permutation_of_text(text: str) -> PassageOrder | None:
    """The longest run of numbers in a reply without JSON; prose with numbers in it is none."""
    runs = [found[0] for found in _RUN.finditer(without_thinking(text[:SHOWN]))]
    return PassageOrder.model_validate({"ranking": max(runs, key=len)}) if runs else None
