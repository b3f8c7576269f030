"""What a run of the pipeline tells while it goes on: how long its steps take, what its models do."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult

from app.telemetry.logs import bind_log_context
from app.telemetry.metrics import Metrics
from runnables.run_context import MODEL_FAILURE, MODEL_RETRY, STRUCTURED_OUTPUT
from schemas.answer import Answer
from schemas.question import AnswerMode

STEPS = {
    "condense",
    "structured-question",
    "retrieve",
    "focus",
    "research",
    "web",
    "answer",
    "ground",
}


class RunObserver(AsyncCallbackHandler):
    """Times the steps of one run by their run names, and counts for `metrics`."""

    run_inline = True  # else LangChain makes a task of each event, and every token is one

    def __init__(self, metrics: Metrics) -> None:
        self.milliseconds: Counter[str] = Counter()
        """By step."""
        self.tokens: Counter[str] = Counter()
        """By kind: `input`, `cached_input` (from the provider's cache), `output`."""
        self._metrics = metrics
        self._counters = {
            MODEL_FAILURE: metrics.model_failures,
            MODEL_RETRY: metrics.model_retries,
            STRUCTURED_OUTPUT: metrics.structured_outputs,
        }
        self._started: dict[UUID, tuple[str, float]] = {}
        self._asked: dict[UUID, dict[str, Any]] = {}

    async def on_chain_start(
        self, serialized: dict[str, Any] | None, inputs: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Note when a step began. A step inside one of the same name is part of it."""
        name = kwargs.get("name")
        if name in STEPS and name not in {started[0] for started in self._started.values()}:
            self._started[run_id] = (name, time.monotonic())

    async def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note how long a step took."""
        self._ended(run_id)

    async def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A step that failed took its time as well."""
        self._ended(run_id)

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Note which model is asked."""
        self._asked[run_id] = metadata or {}

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a reply, where the provider tells."""
        asked = self._asked.pop(run_id, {})
        labels = (asked.get("role", "unknown"), asked.get("model", "unknown"))
        for usage in _usages(response):
            for kind, count in _by_kind(usage).items():
                self.tokens[kind] += count
                self._metrics.tokens.labels(*labels, kind).inc(count)

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A reply that failed counts no tokens."""
        self._asked.pop(run_id, None)

    async def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Count one of `runnables.telemetry`."""
        if counter := self._counters.get(name):
            counter.labels(**data).inc()

    def answered(self, answer: Answer, mode: AnswerMode) -> None:
        """Count the answer that goes out, and note it for the log."""
        self._metrics.count_answer(answer, mode)
        bind_log_context(**_told(answer, self.tokens))

    def _ended(self, run_id: UUID) -> None:
        if started := self._started.pop(run_id, None):
            name, began = started
            seconds = time.monotonic() - began
            self.milliseconds[name] += round(seconds * 1000)
            self._metrics.step_seconds.labels(name).observe(seconds)


def _usages(response: LLMResult) -> Iterator[UsageMetadata]:
    for generations in response.generations:
        for generation in generations:
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if isinstance(message, AIMessage) and message.usage_metadata:
                yield message.usage_metadata


def _by_kind(usage: UsageMetadata) -> dict[str, int]:
    """Tokens by kind; no token is of two kinds."""
    cached = usage.get("input_token_details", {}).get("cache_read") or 0
    kinds = {"input": usage["input_tokens"] - cached, "cached_input": cached}
    return kinds | {"output": usage["output_tokens"]}


def _told(answer: Answer, tokens: Mapping[str, int]) -> dict[str, object]:
    """What the log tells of an answer: nothing of what was asked or said."""
    return {
        "answer": answer.id,
        "type": answer.type,
        "confidence": answer.confidence,
        "sources": len(answer.sources),
        "model": answer.answered_by,
        "degraded": bool(answer.degraded),
        **{f"{kind}_tokens": count for kind, count in tokens.items() if count},
    }
