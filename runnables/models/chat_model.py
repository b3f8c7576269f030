"""One chat model: asked with retries, within the deadline, and left alone while it is down."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from circuitbreaker import CircuitBreaker
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
)
from tenacity.stop import stop_base

from ingestion.providers import ModelRole, model_errors, wait_as_told
from ingestion.text.language import estimate_tokens
from runnables.models.concurrency import ConcurrencyLimiter
from runnables.run_context import MODEL_FAILURE, MODEL_RETRY, dispatch_event, remaining
from schemas.errors import ModelBusy, ModelError, ModelTimeout, ModelUnavailable
from schemas.settings import PREFIX

OutputMode = Literal["json_schema", "json_mode", "plain"]
"""A way to ask a provider for JSON."""

CircuitState = Literal["closed", "half_open", "open"]
"""Whether a model is asked, tried again, or left alone."""

OnText = Callable[[str], Awaitable[None]]
"""Is told the text of a reply so far, again and again."""

ATTEMPTS = 4
"""Calls that one reply may cost while the provider is overloaded or out of reach."""

FAILURES_TO_OPEN = 5
"""Failed replies in a row after which a model is left alone."""

REST_SECONDS = 10
"""How long it is left alone before one call tries it again."""

MAX_TOKEN_CORRECTION = 3.0
"""Higher counts are a provider's mistake, or a prompt of a few words."""


@dataclass
class ChatModel:
    """One chat model: asked with retries, within the run's deadline, and left alone while it is down."""

    role: ModelRole
    client: BaseChatModel
    window: int
    """Tokens of its context window."""
    slots: ConcurrencyLimiter = field(repr=False)
    """What each call takes one of; all models of a process share them."""
    modes: list[OutputMode] = field(default_factory=list)
    """The ways of structured output that it has not refused, best first; empty until it is asked."""
    bound: dict[tuple[OutputMode, type], Runnable[Any, Any]] = field(
        default_factory=dict, repr=False
    )
    """The client bound to a way of structured output for a schema, once it was needed."""
    token_correction: float = 1.0
    """How many times more tokens the provider has counted in a prompt than were estimated; at least 1."""
    problem: ModelError | None = None
    """What its last call failed with; None when that went well."""
    asked_at: float | None = None
    """When it was last asked (`time.monotonic`); None when it never was."""

    @property
    def name(self) -> str:
        """`provider:model`."""
        return self.role.model

    @property
    def circuit(self) -> CircuitState:
        """Whether it is asked, tried again, or left alone."""
        state: CircuitState = self._circuit.state
        return state

    async def ask(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        runnable: Runnable[Any, Any] | None = None,
        follow: OnText | None = None,
    ) -> AIMessage:
        """The model's reply to `messages`; `runnable` is the client bound to a mode. Raises ModelError.

        `follow` is called with the text so far while the reply comes; a text that is shorter than the
        one before belongs to another attempt.
        """
        if self.circuit == "open":
            seconds = max(1, self._circuit.open_remaining)
            raise ModelUnavailable(
                f"{self.role.setting}: down, tried again in {seconds} s", seconds
            )
        self.asked_at = time.monotonic()
        metadata = {**config.get("metadata", {}), **self.role.labels}
        run: RunnableConfig = {**config, "metadata": metadata}
        try:
            reply: AIMessage = await self._circuit.call_async(
                self._ask_with_retries, messages, run, runnable or self.client, follow
            )
        except ModelBusy:
            raise  # it was not asked
        except ModelError as error:
            self.problem = error
            await dispatch_event(config, MODEL_FAILURE, **self.role.labels, code=error.code)
            raise
        self.problem = None
        self._learn_token_correction(messages, reply)
        return reply

    def _learn_token_correction(self, messages: Sequence[BaseMessage], reply: AIMessage) -> None:
        """Mind the provider's own count of a prompt where it is higher than the estimate."""
        counted = reply.usage_metadata["input_tokens"] if reply.usage_metadata else 0
        estimated = sum(estimate_tokens(message.text) for message in messages)
        self.token_correction = min(
            MAX_TOKEN_CORRECTION, max(self.token_correction, counted / max(estimated, 1))
        )

    @cached_property
    def _circuit(self) -> CircuitBreaker:
        return CircuitBreaker(
            failure_threshold=FAILURES_TO_OPEN,
            recovery_timeout=REST_SECONDS,
            expected_exception=(ModelUnavailable, ModelTimeout),
        )

    async def _ask_with_retries(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        runnable: Runnable[Any, Any],
        follow: OnText | None,
    ) -> AIMessage:
        async def tell(_: RetryCallState) -> None:
            await dispatch_event(config, MODEL_RETRY, **self.role.labels)

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(ModelUnavailable),
            wait=wait_as_told,
            stop=stop_after_attempt(ATTEMPTS) | _StopAtDeadline(config),
            before_sleep=tell,
            reraise=True,
        )
        reply: AIMessage = await retrying(self._ask_once, messages, config, runnable, follow)
        return reply

    async def _ask_once(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        runnable: Runnable[Any, Any],
        follow: OnText | None,
    ) -> AIMessage:
        async with self._slot(config):
            seconds = remaining(config)
            with model_errors(self.role):
                async with asyncio.timeout(None if seconds == float("inf") else seconds):
                    return await self._counted(runnable, messages, config, follow)

    async def _counted(
        self,
        runnable: Runnable[Any, Any],
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        follow: OnText | None,
    ) -> AIMessage:
        """The reply with its tokens counted, or without where the provider refuses that."""
        try:
            return await _reply(runnable, messages, config, follow)
        except Exception as error:
            if not self._uncounted(error):
                raise
        return await _reply(runnable, messages, config, follow)

    @asynccontextmanager
    async def _slot(self, config: RunnableConfig) -> AsyncIterator[None]:
        """Held for one call, not while it waits for the next try. Raises ModelBusy at the deadline."""
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self.slots.taken(remaining(config)))
            except TimeoutError:
                raise ModelBusy(
                    f"{self.role.setting}: not asked in time, {PREFIX}MAX_CONCURRENCY calls are under way"
                ) from None
            yield

    def _uncounted(self, error: Exception) -> bool:
        """Whether `error` refuses to count the tokens of a stream; that is then asked for no more."""
        refused = getattr(error, "status_code", None) in (400, 422) and any(
            name in str(error) for name in ("stream_options", "include_usage")
        )
        if refused:
            count_streams(self.client, False)
        return refused


def wait_for_chunks(client: BaseChatModel) -> None:
    """Let a stream's chunks come without a time limit each, which costs a task a chunk: the deadline of
    the whole call holds anyway.
    """
    if "stream_chunk_timeout" in type(client).model_fields:
        client.stream_chunk_timeout = None  # type: ignore[attr-defined]


def count_streams(client: BaseChatModel, count: bool) -> None:
    """Ask for the tokens of streams too, or no more; OpenAI's client does not by itself at any other
    address than OpenAI's.
    """
    if "stream_usage" in type(client).model_fields:
        client.stream_usage = count  # type: ignore[attr-defined]


class _StopAtDeadline(stop_base):
    """Stop when the wait would take longer than the run has."""

    def __init__(self, config: RunnableConfig) -> None:
        self._config = config

    def __call__(self, retry_state: RetryCallState) -> bool:
        return remaining(self._config) <= wait_as_told(retry_state)


async def _reply(
    runnable: Runnable[Any, Any],
    messages: Sequence[BaseMessage],
    config: RunnableConfig,
    follow: OnText | None,
) -> AIMessage:
    if follow is not None:
        return await _followed(runnable, messages, config, follow)
    reply = await runnable.ainvoke(messages, config)
    return reply if isinstance(reply, AIMessage) else AIMessage(str(reply))


async def _followed(
    runnable: Runnable[Any, Any],
    messages: Sequence[BaseMessage],
    config: RunnableConfig,
    follow: OnText,
) -> AIMessage:
    whole: AIMessageChunk | None = None
    async for chunk in runnable.astream(messages, config):
        whole = chunk if whole is None else whole + chunk
        await follow(whole.text)
        await asyncio.sleep(0)  # chunks that come all at once would keep everybody else waiting
    return whole or AIMessage("")
