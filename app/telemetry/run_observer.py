"""LangChain callbacks that observe a run: its steps, its tokens, and the failures of its models."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult

from app.telemetry.logs import bind_log_context
from app.telemetry.metrics import Metrics
from ingestion.text.language import estimate_tokens
from runnables.run_context import MODEL_FAILURE, MODEL_RETRY, STRUCTURED_OUTPUT
from schemas.answer import Answer
from schemas.question import AnswerMode

TIMING_KEYS = {
    "condense": "condense",
    "structured-question": "structured-question",
    "retrieve": "retrieve",
    "boost-named-api": "focus",
    "research": "research",
    "web": "web",
    "answer": "answer",
    "ground": "ground",
}
"""Maps the name of a LangChain run to the name of the step in an answer's `timings` and in metrics.

Clients read the names of steps, so these names must not change when a run is renamed.
"""


class RunObserver(AsyncCallbackHandler):
    """Observes one run: measures the duration of its steps, counts its tokens, and updates `metrics`."""

    run_inline = True  # otherwise LangChain creates a task for each event, such as each token

    def __init__(self, metrics: Metrics) -> None:
        self.milliseconds: Counter[str] = Counter()
        """Duration of each step in milliseconds. The steps are the values of TIMING_KEYS."""
        self.tokens: Counter[str] = Counter()
        """Tokens by kind: `input`, `cached_input` (from the provider's cache), `output`."""
        self._metrics = metrics
        self._counters = {
            MODEL_FAILURE: metrics.model_failures,
            MODEL_RETRY: metrics.model_retries,
            STRUCTURED_OUTPUT: metrics.structured_outputs,
        }
        self._started: dict[UUID, tuple[str, float]] = {}
        self._call_metadata: dict[UUID, dict[str, Any]] = {}

    async def on_chain_start(
        self, serialized: dict[str, Any] | None, inputs: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Store the start time of a step, unless a step with the same name is in progress."""
        step = TIMING_KEYS.get(kwargs.get("name") or "")
        if step and step not in {started[0] for started in self._started.values()}:
            self._started[run_id] = (step, time.monotonic())

    async def on_retriever_start(
        self, serialized: dict[str, Any] | None, query: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Store the start time of a retrieval."""
        await self.on_chain_start(serialized, query, run_id=run_id, **kwargs)

    async def on_chain_end(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        """Record the duration of a step or retrieval that has ended or failed."""
        if started := self._started.pop(run_id, None):
            name, start = started
            seconds = time.monotonic() - start
            self.milliseconds[name] += round(seconds * 1000)
            self._metrics.step_seconds.labels(name).observe(seconds)

    on_chain_error = on_retriever_end = on_retriever_error = on_chain_end

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store the metadata of the call, which contain the role and the name of the model."""
        self._call_metadata[run_id] = metadata or {}

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a reply, if the provider reports them."""
        metadata = self._call_metadata.pop(run_id, {})
        labels = (metadata.get("role", "unknown"), metadata.get("model", "unknown"))
        for usage in _usages(response):
            for kind, count in _tokens_by_kind(usage).items():
                self.tokens[kind] += count
                self._metrics.tokens.labels(*labels, kind).inc(count)

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Discard the metadata of a call that failed."""
        self._call_metadata.pop(run_id, None)

    async def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the event if it reports a failure, a retry or a valid structured output of a model."""
        if counter := self._counters.get(name):
            counter.labels(**data).inc()

    def record_answer(self, answer: Answer, mode: AnswerMode) -> None:
        """Count the answer, and add its fields to the request's log line."""
        self._metrics.count_answer(answer, mode)
        bind_log_context(**_log_fields(answer, self.tokens))


def _tokens_by_kind(usage: UsageMetadata) -> dict[str, int]:
    """Return the tokens by kind. `input` does not include the tokens of `cached_input`."""
    cached = usage.get("input_token_details", {}).get("cache_read") or 0
    return {
        "input": usage["input_tokens"] - cached,
        "cached_input": cached,
        "output": usage["output_tokens"],
    }


def _log_fields(answer: Answer, tokens: Mapping[str, int]) -> dict[str, object]:
    """Return facts about the answer for the log, but none of its texts."""
    return {
        "answer": answer.id,
        "type": answer.type,
        "confidence": answer.confidence,
        "sources": len(answer.sources),
        "model": answer.answered_by,
        "degraded": bool(answer.degraded),
        **{f"{kind}_tokens": count for kind, count in tokens.items() if count},
    }


@dataclass
class _ModelCall:
    """A call in progress, and the estimated number of its tokens."""

    prompt: Sequence[str] = ()
    completion_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """Estimated tokens of the prompt. Computed on demand, because most providers report the number."""
        return sum(map(estimate_tokens, self.prompt))


class TokenMeter(AsyncCallbackHandler):
    """Counts the tokens of all calls of chat models in a run.

    If the provider does not report the number of tokens of a call, it is estimated.
    """

    run_inline = True  # as for RunObserver

    def __init__(self) -> None:
        self._prompt = 0
        self._completion = 0
        self._calls: dict[UUID, _ModelCall] = {}

    @property
    def tokens(self) -> int:
        """All tokens so far, including those of calls that were cancelled."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def prompt_tokens(self) -> int:
        """The input tokens so far."""
        return self._prompt + sum(call.prompt_tokens for call in self._calls.values())

    @property
    def completion_tokens(self) -> int:
        """The output tokens so far."""
        return self._completion + sum(call.completion_tokens for call in self._calls.values())

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Remember the prompt, in case the provider does not report its tokens."""
        self._calls[run_id] = _ModelCall([message.text for batch in messages for message in batch])

    async def on_llm_new_token(
        self, token: str | list[str | dict[str, Any]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Estimate the tokens of a streamed part of the output."""
        if call := self._calls.get(run_id):
            call.completion_tokens += estimate_tokens(str(token))

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call; estimate them if the provider does not report them."""
        call = self._calls.pop(run_id, _ModelCall())
        usages = [usage for usage in _usages(response) if usage["total_tokens"]]
        if usages:
            prompt = sum(usage["input_tokens"] for usage in usages)
            self._add(prompt, sum(usage["total_tokens"] for usage in usages) - prompt)
        else:
            texts = (generation.text for batch in response.generations for generation in batch)
            self._add(call.prompt_tokens, sum(map(estimate_tokens, texts)))

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the estimated tokens of a call that failed.

        A call that the provider rejected before any output costs nothing.
        """
        call = self._calls.pop(run_id, _ModelCall())
        was_rejected = hasattr(error, "status_code") or "Connect" in type(error).__name__
        if call.completion_tokens or not was_rejected:
            self._add(call.prompt_tokens, call.completion_tokens)

    def _add(self, prompt: int, completion: int) -> None:
        self._prompt += prompt
        self._completion += completion


def _usages(response: LLMResult) -> Iterator[UsageMetadata]:
    """Yield the token usage of each generation for which the provider reports it."""
    for generations in response.generations:
        for generation in generations:
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if isinstance(message, AIMessage) and message.usage_metadata:
                yield message.usage_metadata
