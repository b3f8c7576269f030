"""A chat model with retries, a circuit breaker, a deadline and a limit on concurrent calls.

Callers that wait because of the limit are served in order of arrival.
"""

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from circuitbreaker import CircuitBreaker
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
)

from ingestion.providers import ModelRole, context_window_in, model_errors, retry_wait_s
from runnables.models.context_window import (
    count_prompt_tokens,
    finish_reason,
    is_cut_reasoning_reply,
    lift_output_limit,
    lower_output_limit,
)
from runnables.models.json_text import is_unfinished, strip_thinking
from runnables.run_context import (
    MODEL_FAILURE,
    MODEL_RETRY,
    deadline_timeout,
    dispatch_event,
    remaining_seconds,
    run_context,
)
from schemas.errors import (
    ContextExceeded,
    ModelBusy,
    ModelError,
    ModelNotCalled,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from schemas.settings import PREFIX

OutputMode = Literal["json_schema", "json_object", "json_mode", "plain"]
"""The way in which JSON is requested from the provider; the best way is first.

- `json_schema`: the provider enforces the schema.
- `json_object`: the provider's JSON mode, with the schema in a field of the request.
- `json_mode`: the provider's JSON mode, with the schema only in the prompt.
- `plain`: only the prompt asks for JSON.
"""

CircuitState = Literal["closed", "half_open", "open"]
"""The state of a circuit breaker.

- `closed`: the model is called.
- `open`: the model is not called.
- `half_open`: the model is called again; the first result closes or reopens the circuit.
"""

OnText = Callable[[str], Awaitable[None]]
"""Callback that receives the whole text of a reply so far each time that the text grows."""

MAX_ATTEMPTS = 4
"""Maximum number of calls for one reply if the provider is overloaded or unreachable."""

FAILURE_THRESHOLD = 5
"""Number of consecutive failures (ModelUnavailable or ModelTimeout) that open the circuit."""

RECOVERY_TIMEOUT_S = 10
"""Seconds for which an open circuit rejects calls before the model is called again."""

FALLBACK_TIME_SHARE = 0.5
"""Share of the remaining time that is kept for the fallback model while a streaming model is silent."""

FALLBACK_TIME_SHARE_OF_REPLY = 0.25
"""`FALLBACK_TIME_SHARE` for a reply that is not streamed.

It is smaller, because without streaming a model is silent until the whole reply is complete.
"""

MODE_ERRORS = (500, 501, 502)
"""HTTP statuses that some servers return for an output mode that they do not support."""

MAX_TOKEN_CORRECTION = 3.0
"""Upper bound of `ChatModel.token_correction`.

Larger factors come from a wrong count by the provider or from a very short prompt.
"""

_USAGE_REFUSAL = re.compile("stream_options|include_usage")
_LIMIT_REFUSAL = re.compile("max_tokens|max_completion_tokens")
_SYSTEM_REFUSAL = re.compile(r"system (?:role|message|prompt)|roles must alternate", re.IGNORECASE)


@dataclass
class ChatModel:
    """A chat model, and what its earlier calls have shown about it."""

    role: ModelRole
    client: BaseChatModel
    window: int
    """Size of the context window, in tokens."""
    limiter: "ConcurrencyLimiter" = field(repr=False)
    """Limits concurrent calls; shared by all models of a process."""
    output_modes: list[OutputMode] = field(default_factory=list)
    """Output modes that the provider has not refused, best first; empty until a call has found them."""
    server_errors: Counter[OutputMode] = field(default_factory=Counter, repr=False)
    """Number of server errors in each output mode before the first reply in that mode."""
    clients_by_mode: dict[tuple[OutputMode, type], Runnable[Any, Any]] = field(
        default_factory=dict, repr=False
    )
    """Clients bound to an output mode and a schema, created on first use."""
    has_system_role: bool = True
    """Whether the model accepts system messages; false once it has refused one."""
    token_correction: float = 1.0
    """Factor by which the provider counts more tokens than apidesk; at least 1, never lowered."""
    has_replied: bool = False
    """Whether a call has succeeded."""
    last_error: ModelError | None = None
    """The error of the last call; None if the call succeeded, or if there was no call.

    Calls that were not sent, because of the limiter, the open circuit or the deadline, do not count.
    """
    last_called_at: float | None = None
    """`time.monotonic()` of the last call; None before the first."""

    @property
    def name(self) -> str:
        """The name of the model, as `provider:model`."""
        return self.role.model

    @property
    def circuit(self) -> CircuitState:
        """The state of the circuit breaker."""
        state: CircuitState = self._circuit.state
        return state

    async def ask(
        self,
        messages: Sequence[BaseMessage],
        config: RunnableConfig,
        runnable: Runnable[Any, Any] | None = None,
        on_text: OnText | None = None,
        is_proven: bool = True,
    ) -> AIMessage:
        """Return the model's reply to `messages`.

        If `runnable` is given, such as a client bound to tools, it is called instead of the plain client.
        `on_text` receives the text while it is streamed; a text that is shorter than the previous one
        belongs to another attempt. `is_proven` is false if the output mode of `runnable` has not worked
        yet, and another mode can be tried; a status in MODE_ERRORS then means that the provider refuses the
        mode. Raises ModelError.
        """
        if self.circuit == "open":
            seconds = max(1, self._circuit.open_remaining)
            raise ModelUnavailable(
                f"{self.role.setting}: the model is down and is not called for {seconds} s", seconds
            )
        metadata = {**config.get("metadata", {}), **self.role.labels}
        run: RunnableConfig = {**config, "metadata": metadata}
        try:
            call = _Call(messages, run, runnable or self.client, on_text, is_proven)
            reply: AIMessage = await self._circuit.call_async(self._reply_with_retries, call)
        except (ModelBusy, ModelNotCalled):
            raise  # the model was not called
        except ModelError as error:
            self.last_error = error
            if isinstance(error, ContextExceeded):
                self._learn_window(error.window)
            await dispatch_event(config, MODEL_FAILURE, **self.role.labels, code=error.code)
            raise
        self.last_error, self.has_replied = None, True
        self._learn_token_correction(messages, reply)
        return reply

    def _learn_token_correction(self, messages: Sequence[BaseMessage], reply: AIMessage) -> None:
        """Raise the correction if the provider counts more tokens in the prompt than estimated."""
        counted = reply.usage_metadata["input_tokens"] if reply.usage_metadata else 0
        estimated = count_prompt_tokens(messages)
        self.token_correction = min(
            MAX_TOKEN_CORRECTION, max(self.token_correction, counted / max(estimated, 1))
        )

    def _learn_window(self, window: int) -> None:
        """Use the size of the context window, in tokens, that the provider states in an error.

        If the window is not smaller than assumed, the prompt was longer than estimated, so
        `token_correction` is raised.
        """
        if window < self.window:
            self.window = window
            lower_output_limit(self.client, window)
            self.clients_by_mode.clear()  # these clients have the old limit
        else:
            self.token_correction = min(MAX_TOKEN_CORRECTION, self.token_correction * 1.5)

    @cached_property
    def _circuit(self) -> CircuitBreaker:
        return ModelCircuit(
            failure_threshold=FAILURE_THRESHOLD,
            recovery_timeout=RECOVERY_TIMEOUT_S,
            expected_exception=(ModelUnavailable, ModelTimeout),
        )

    async def _reply_with_retries(self, call: "_Call") -> AIMessage:
        async def report_retry(_: RetryCallState) -> None:
            await dispatch_event(call.config, MODEL_RETRY, **self.role.labels)

        def is_last_attempt(state: RetryCallState) -> bool:
            has_time = retry_wait_s(state) < call.max_silence_s
            return state.attempt_number >= MAX_ATTEMPTS or not has_time

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(ModelUnavailable),
            wait=retry_wait_s,
            stop=is_last_attempt,
            before_sleep=report_retry,
            reraise=True,
        )
        reply: AIMessage = await retrying(self._reply, call)
        return reply

    async def _reply(self, call: "_Call") -> AIMessage:
        async with self._slot(call.config):
            if not remaining_seconds(call.config):
                raise ModelNotCalled(f"{self.role.setting}: not called: no time is left")
            self.last_called_at = time.monotonic()
            try:
                with model_errors(self.role):
                    async with deadline_timeout(call.config):
                        return await self._send_without_refused_options(call)
            except ModelUnavailable as error:
                if call.is_proven or error.status not in MODE_ERRORS:
                    raise
                refusal = ModelRefused(str(error), error.status)
                refusal.provider_message = error.provider_message
                raise refusal from error

    async def _send_without_refused_options(self, call: "_Call") -> AIMessage:
        """Send the request; repeat it without options that the provider refuses, such as the temperature.

        If the limit on the length of replies ends a reply while the model is reasoning, the request is
        repeated without the limit (see `is_cut_reasoning_reply`).
        """
        while True:
            if not self.has_system_role:
                call = replace(call, messages=_merge_system_message(call.messages))
            sent = self.client.model_copy()  # concurrent calls may change the options of the client
            try:
                reply = await call.send()
            except Exception as error:
                if not self._drop_refused(error, call.messages, sent):
                    raise
            else:
                if is_cut_reasoning_reply(reply) and self._lift_limit(sent):
                    continue
                if not finish_reason(reply) and _ended_early(reply):
                    raise ModelUnavailable(f"{self.role.setting}: the reply ended early")
                return reply

    def _drop_refused(
        self, error: Exception, messages: Sequence[BaseMessage], sent: BaseChatModel
    ) -> bool:
        """Drop the option that the provider refuses, and return whether the request should be repeated.

        `messages` are those of the refused request; `sent` is a copy of the client with its options.
        """
        status, message = getattr(error, "status_code", None), str(error)
        is_refusal = status in (400, 422)
        has_usage = getattr(sent, "stream_usage", False)
        if is_refusal and has_usage and _USAGE_REFUSAL.search(message):
            set_stream_usage(self.client, False)
            return True
        # Some servers answer 500 if the chat template of the model, such as Gemma 2 or Mistral 7B,
        # rejects the role.
        may_refuse_role = isinstance(messages[0], SystemMessage) and (is_refusal or status == 500)
        if may_refuse_role and _SYSTEM_REFUSAL.search(message):
            self.has_system_role = False
            return True
        has_temperature = getattr(sent, "temperature", None) is not None
        if is_refusal and has_temperature and "temperature" in message:
            self.client.temperature = None  # type: ignore[attr-defined]
            return True
        is_about_limit = is_refusal and _LIMIT_REFUSAL.search(message)
        if is_about_limit and not context_window_in(error):
            return self._lift_limit(sent)
        return False

    def _lift_limit(self, sent: BaseChatModel) -> bool:
        """Remove the limit on the length of replies, and return whether `sent` had one."""
        for runnable in self.clients_by_mode.values():
            if isinstance(runnable, RunnableBinding):
                runnable.kwargs.get("extra_body", {}).pop("max_tokens", None)
        lift_output_limit(self.client)
        return lift_output_limit(sent)

    @asynccontextmanager
    async def _slot(self, config: RunnableConfig) -> AsyncIterator[None]:
        """Hold a slot of the limiter during one call, but not between retries.

        Raises ModelBusy if the limiter does not admit the call before the deadline.
        """
        # The stack keeps `yield` outside of `try`: only a timeout in `acquire` raises ModelBusy.
        async with AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(self.limiter.acquire(remaining_seconds(config)))
            except TimeoutError:
                raise ModelBusy(
                    f"{self.role.setting}: not called in time: "
                    f"{PREFIX}MAX_CONCURRENCY limits concurrent calls"
                ) from None
            yield


_NOT_COUNTED = (ModelBusy, ModelNotCalled, asyncio.CancelledError)


class ModelCircuit(CircuitBreaker):  # type: ignore[misc]  # the library has no types
    """A circuit breaker that ignores cancelled calls, and calls for which there was no slot or no time.

    The library would count a call without time as a failure, and the others as successes.
    """

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> bool:
        if exc_type is not None and issubclass(exc_type, _NOT_COUNTED):
            return False
        return bool(super().__exit__(exc_type, exc_value, traceback))


@dataclass(frozen=True)
class _Call:
    """The arguments of `ChatModel.ask`."""

    messages: Sequence[BaseMessage]
    config: RunnableConfig
    runnable: Runnable[Any, Any]
    on_text: OnText | None
    is_proven: bool

    @property
    def max_silence_s(self) -> float:
        """Maximum number of seconds to wait for the reply or, if it is streamed, for each of its chunks."""
        share = FALLBACK_TIME_SHARE if self.on_text else FALLBACK_TIME_SHARE_OF_REPLY
        if not run_context(self.config).has_fallback:
            share = 0.0
        return (1 - share) * remaining_seconds(self.config)

    async def send(self) -> AIMessage:
        """Return the reply. Raises TimeoutError if the model is silent for longer than `max_silence_s`."""
        seconds = self.max_silence_s
        async with asyncio.timeout(None if math.isinf(seconds) else seconds) as silence:
            if self.on_text is not None:
                return await self._stream(self.on_text, silence, seconds)
            reply = await self.runnable.ainvoke(self.messages, self.config)
            return reply if isinstance(reply, AIMessage) else AIMessage(str(reply))

    async def _stream(
        self, on_text: OnText, silence: asyncio.Timeout, max_silence_s: float
    ) -> AIMessage:
        chunks: list[AIMessageChunk] = []
        text = ""
        async for chunk in self.runnable.astream(self.messages, self.config):
            if not math.isinf(max_silence_s):
                silence.reschedule(asyncio.get_running_loop().time() + max_silence_s)
            chunks.append(chunk)
            text += chunk.text
            await on_text(text)
            await asyncio.sleep(0)  # lets other requests run if many chunks arrive at once
        # All chunks are added at once, because each addition takes time in proportion to the whole text.
        return add_ai_message_chunks(*chunks) if chunks else AIMessageChunk(content="")


def disable_chunk_timeout(client: BaseChatModel) -> None:
    """Disable the client's timeout per chunk, which creates a task for each chunk.

    The deadline of the whole call still applies.
    """
    if "stream_chunk_timeout" in type(client).model_fields:
        client.stream_chunk_timeout = None  # type: ignore[attr-defined]


def set_stream_usage(client: BaseChatModel, enabled: bool) -> None:
    """Set whether the client requests the token usage of streamed replies.

    By default, OpenAI's client requests it only from OpenAI's own address.
    """
    if "stream_usage" in type(client).model_fields:
        client.stream_usage = enabled  # type: ignore[attr-defined]


def _ended_early(reply: AIMessage) -> bool:
    """Return whether `reply`, which has no finish reason, is empty or incomplete.

    It must have text or tool calls. If it was streamed, it must not end while the model thinks, or within
    a JSON object in the text or in the arguments of a tool call.
    """
    if not isinstance(reply, AIMessageChunk):  # it was not streamed
        return not (reply.text or reply.tool_calls)
    text, calls = strip_thinking(reply.text), reply.tool_call_chunks
    objects = [text, *(call["args"] or "" for call in calls)]
    return not (text or calls) or any("{" in each and is_unfinished(each) for each in objects)


def _merge_system_message(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Move the text of a leading system message to the start of the next message; return the messages."""
    if not isinstance(messages[0], SystemMessage):
        return messages
    system, human, *others = messages
    return [HumanMessage(f"{system.text}\n\n{human.text}"), *others]


class ConcurrencyLimiter:
    """A semaphore that counts running and waiting callers, for one event loop."""

    def __init__(
        self, size: int, on_change: "Callable[[ConcurrencyLimiter], None]" = lambda limiter: None
    ) -> None:
        """Allow `size` concurrent callers, and call `on_change` when `running` or `waiting` changes."""
        self._on_change = on_change
        self._semaphore = asyncio.Semaphore(size)
        self._running = 0
        self._waiting = 0

    @property
    def running(self) -> int:
        """Number of callers in the block of `acquire`."""
        return self._running

    @property
    def waiting(self) -> int:
        """Number of callers that wait to enter the block of `acquire`."""
        return self._waiting

    @asynccontextmanager
    async def acquire(self, timeout_s: float) -> AsyncIterator[None]:
        """Wait until fewer than `size` callers run, then run the block.

        Raises TimeoutError after waiting for `timeout_s` seconds. The block itself has no timeout.
        """
        await self._acquire(timeout_s)
        self._count(running=1)
        try:
            yield
        finally:
            self._count(running=-1)
            self._semaphore.release()

    async def _acquire(self, timeout_s: float) -> None:
        if not self._semaphore.locked():
            await self._semaphore.acquire()  # without waiting
            return
        self._count(waiting=1)
        try:
            async with asyncio.timeout(None if math.isinf(timeout_s) else timeout_s):
                await self._semaphore.acquire()
        finally:
            self._count(waiting=-1)

    def _count(self, running: int = 0, waiting: int = 0) -> None:
        self._running += running
        self._waiting += waiting
        self._on_change(self)
