"""The rerankers: a server with a `/rerank` endpoint, the chat model, and a cross-encoder in this process.

Requests to the endpoint have the format of Jina, Cohere and vLLM; `_parse_results` lists the formats of
replies. The chat model reads all passages at once and writes their order. This is the permutation
generation of RankGPT (Sun et al., "Is ChatGPT Good at Search? Investigating Large Language Models as
Re-Ranking Agents", 2023, arXiv 2304.09542). RankGPT's sliding window is not needed, because the passages,
at most `RERANK_DEPTH`, are truncated so that they fit into one prompt.
"""

import asyncio
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import httpx
from langchain_core.runnables import RunnableConfig

from ingestion.local_models import open_local_reranker
from ingestion.store.client import batches
from ingestion.text.language import truncate_to_tokens
from prompts.chat_prompts import escape_data
from runnables.models.chat_model import ChatModel
from runnables.models.context_window import TAG_TOKENS, count_prompt_tokens, reserved_output_tokens
from runnables.models.json_text import strip_thinking
from runnables.models.structured_output import (
    MAX_QUOTED_REPLY_CHARS,
    PromptVariables,
    StructuredOutputCall,
)
from runnables.retrieval.compressors import Reranker, finite_float
from runnables.run_context import deadline_timeout
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
from schemas.settings import PREFIX, Settings

MAX_QUESTION_TOKENS = 250
"""Maximum length of the question for an endpoint or the chat model, in tokens; the rest is dropped."""

MAX_ENDPOINT_PASSAGE_TOKENS = 700
"""Maximum length of a chunk sent to an endpoint, in tokens.

Several rerankers reject requests in which the question and a chunk together exceed 1,024 tokens.
"""

MAX_PASSAGE_TOKENS = 300
"""Maximum length of a passage in a prompt, in tokens, as in RankGPT; less in a small context window."""

MIN_PASSAGE_TOKENS = 40
"""Minimum length to which passages are truncated, in tokens.

If the passages do not fit at this length, the last ones are left out.
"""

_NUMBER_SEQUENCE = re.compile(r"(?<![0-9])\[?[0-9]{1,3}\]?(?:[\s,>;，、；＞]+\[?[0-9]{1,3}\]?)+")
"""Numbers with only separators between them in a model's reply, such as `[2] > [1] > [3]`."""

_SETTING = "APIDESK_RERANK_URL"
_CHECK_TIMEOUT = "check APIDESK_RERANK_TIMEOUT"

_REFUSALS = {
    401: "the server refuses the key; check APIDESK_RERANK_API_KEY",
    403: "the server refuses the key; check APIDESK_RERANK_API_KEY",
    404: "the server does not know this path or model; check APIDESK_RERANK_URL and APIDESK_RERANK_MODEL",
}

MAX_PAIR_QUESTION_TOKENS = 100
"""Maximum length of the question for a cross-encoder, in tokens, so that the passage fits too."""

MAX_PAIR_PASSAGE_TOKENS = 300
"""Maximum length of a passage for a cross-encoder, in tokens.

Many cross-encoders read at most 512 tokens of question and passage together.
"""

BATCH_SIZE = 4
"""Number of passages that a cross-encoder scores at once."""


class EndpointReranker(Reranker):
    """Reranks with a server: one request per question, without retries."""

    def __init__(self, settings: Settings) -> None:
        """Read the address and the key from `settings`. Raises ConfigurationError for an invalid URL."""
        super().__init__()
        self._url = _rerank_url(settings.rerank_url)
        self._model = {"model": settings.rerank_model} if settings.rerank_model else {}
        key = settings.rerank_api_key
        self._headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        self._tls = httpx.create_ssl_context(trust_env=False)  # slow, so it is created once

    async def rank(
        self, question: str, passages: Sequence[str], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Return indexes of `passages`, best first, with the server's scores. Raises ModelError."""
        body = {
            **self._model,
            "query": truncate_to_tokens(question, MAX_QUESTION_TOKENS),
            "documents": [
                truncate_to_tokens(passage, MAX_ENDPOINT_PASSAGE_TOKENS) for passage in passages
            ],
            "top_n": len(passages),
            "return_documents": False,
        }
        try:
            async with deadline_timeout(config):
                response = await self._post(body)
        except TimeoutError:
            raise ModelTimeout(f"{_SETTING}: no answer in time; {_CHECK_TIMEOUT}") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            # Only the type is reported, because the message about an invalid header contains the key.
            name = type(error).__name__
            raise ModelUnavailable(f"{_SETTING}: the request failed ({name})") from None
        return _parse_ranks(response, len(passages))

    async def _post(self, body: dict[str, object]) -> httpx.Response:
        # One client per request, because a shared client is bound to one event loop and has to be closed.
        async with httpx.AsyncClient(verify=self._tls, trust_env=False, timeout=None) as client:
            return await client.post(self._url, json=body, headers=self._headers)


def _rerank_url(address: str | None) -> httpx.URL:
    """Return `address` with `/rerank` appended to its path, unless the path already ends with it.

    Raises ConfigurationError, without the address in the message.
    """
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
    """Return the indexes below `count` in the reply, best first, with their scores. Raises ModelError."""
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
    """Yield the index and score of each result that has both.

    The results are in `results` (Jina, Cohere, vLLM) or in `data` (Voyage), or are the reply itself (TEI).
    The score is `relevance_score` or `score`.
    """
    if isinstance(reply, dict):
        reply = reply.get("results", reply.get("data"))
    for result in reply if isinstance(reply, list) else []:
        if isinstance(result, dict):
            index = result.get("index")
            score = finite_float(result.get("relevance_score", result.get("score")))
            if type(index) is int and score is not None:
                yield index, score


class ListwiseReranker(Reranker):
    """Reranks with the chat model, which writes the order of the passages."""

    def __init__(self, step: str, model: ChatModel, platform_info: PlatformInfo) -> None:
        super().__init__()
        # The copy has its own circuit breaker: a model that is too slow to rerank may still answer.
        self._model = replace(model, output_modes=list(model.output_modes))
        self._platform_info = platform_info
        self._output = StructuredOutputCall(
            step, "rerank", platform_info.language, PassageOrder, parse_permutation
        )

    async def rank(
        self, question: str, passages: Sequence[str], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Return indexes of `passages`, most relevant first, without scores. Raises ModelError."""
        question = _truncate(question, MAX_QUESTION_TOKENS)
        shown = self._truncated(question, passages)
        variables = self._variables(question, shown)
        permutation = (await self._output.ask(self._model, variables, config)).value
        indexes = [number - 1 for number in permutation.ranking if 1 <= number <= len(shown)]
        if not indexes:
            setting = self._model.role.setting
            raise ModelOutputInvalid(f"{setting}: the reply names none of the documents")
        return dict.fromkeys(indexes)

    def _truncated(self, question: str, passages: Sequence[str]) -> list[str]:
        """Return as many passages as fit the context window, all truncated to the same length.

        Raises ModelError if fewer than two fit.
        """
        window = int(self._model.window / self._model.token_correction)
        prompt = self._output.messages(self._variables(question, []))
        output_tokens = reserved_output_tokens(window)
        available = int(window - output_tokens - count_prompt_tokens(prompt))
        count = min(len(passages), available // (MIN_PASSAGE_TOKENS + TAG_TOKENS))
        if count < 2:
            raise ModelError(
                f"{self._model.role.setting}: the context window is too small to rerank; "
                "set APIDESK_RERANK to another reranker"
            )
        tokens = min(MAX_PASSAGE_TOKENS, available // count - TAG_TOKENS)
        return [_truncate(passage, tokens) for passage in passages[:count]]

    def _variables(self, question: str, passages: list[str]) -> PromptVariables:
        return {"platform_info": self._platform_info, "question": question, "passages": passages}


def _truncate(text: str, tokens: int) -> str:
    """Escape `text`, then truncate it, so that it has at most `tokens` tokens in the prompt."""
    return truncate_to_tokens(escape_data(text), tokens)


def parse_permutation(text: str) -> PassageOrder | None:
    """Return the longest sequence of numbers in a reply without JSON; None if there is no sequence.

    Only the first `MAX_QUOTED_REPLY_CHARS` characters after the model's thinking are searched.
    """
    sequences = _NUMBER_SEQUENCE.findall(strip_thinking(text)[:MAX_QUOTED_REPLY_CHARS])
    if not sequences:
        return None
    return PassageOrder.model_validate({"ranking": max(sequences, key=len)})


class CrossEncoderReranker(Reranker):
    """Reranks with a cross-encoder, which reads the question together with each passage."""

    def __init__(self, settings: Settings) -> None:
        """Load the model that `settings` names. Raises ConfigurationError."""
        super().__init__()
        self._model = open_local_reranker(settings)
        self._setting = f"{PREFIX}RERANK={settings.rerank}"

    async def rank(
        self, question: str, passages: Sequence[str], config: RunnableConfig
    ) -> dict[int, float | None]:
        """Return indexes of `passages`, most relevant first, with scores from 0 to 1. Raises ModelError."""
        question = truncate_to_tokens(question, MAX_PAIR_QUESTION_TOKENS)
        truncated = [truncate_to_tokens(passage, MAX_PAIR_PASSAGE_TOKENS) for passage in passages]
        try:
            async with deadline_timeout(config):
                logits = await self._score(question, truncated)
        except TimeoutError:
            raise ModelTimeout(f"{self._setting}: not ready in time; {_CHECK_TIMEOUT}") from None
        except Exception as error:  # onnxruntime raises its own errors
            name = type(error).__name__
            raise ModelUnavailable(f"{self._setting}: the model failed ({name})") from error
        order = sorted(range(len(passages)), key=lambda index: -logits[index])
        return {index: _sigmoid(logits[index]) for index in order}

    async def _score(self, question: str, passages: list[str]) -> list[float]:
        """Return the unbounded score of each passage. If cancelled, only the current batch completes."""
        logits: list[float] = []
        for batch in batches(passages, BATCH_SIZE):
            logits += await asyncio.to_thread(self._score_batch, question, batch)
        return logits

    def _score_batch(self, question: str, passages: list[str]) -> list[float]:
        return list(self._model.rerank(question, passages, batch_size=BATCH_SIZE))


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-500.0, min(logit, 500.0))))
