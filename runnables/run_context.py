"""The context of a run, its custom events, and named pipeline steps.

A step is always a pipeline step here; the steps of an answer are called answer steps.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.runnables import RunnableConfig, RunnableLambda, ensure_config
from langchain_core.runnables.config import get_async_callback_manager_for_config, patch_config

from runnables.answer_events import StreamedAnswer, missing_events
from schemas.answer import Answer, Event

STRUCTURED_OUTPUT = "structured-output"
"""Custom event: a model returned a valid object.

Data: `step` (the pipeline step) and `rung` (the output method, a label in the metrics).
"""

MODEL_RETRY = "model-retry"
"""Custom event: a model call is retried. Data: `role` and `model`."""

MODEL_FAILURE = "model-failure"
"""Custom event: a model call failed, despite any retries, or its reply is invalid.

Data: `role`, `model` and `code`.
"""

_CONFIG_KEY = "__run_context"
"""Key of the context in `configurable`.

LangChain does not copy keys with the prefix `__` into the metadata of traces.
"""

Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True)
class RunContext:
    """Values of a run that its config passes to the pipeline steps and model calls."""

    deadline: float = math.inf
    """`time.monotonic()` at which the run has to end; infinite without a deadline."""
    has_fallback: bool = False
    """Whether another model is called if the current one fails."""
    streamed: StreamedAnswer | None = None
    """The part of the answer that has been dispatched; None if the caller does not stream."""


def run_context(config: RunnableConfig) -> RunContext:
    """Return the context that `config` carries, or one without deadline and streaming."""
    context: RunContext = config.get("configurable", {}).get(_CONFIG_KEY) or RunContext()
    return context


def with_deadline(config: RunnableConfig, timeout_s: float) -> RunnableConfig:
    """Return `config` with a deadline in `timeout_s` seconds, unless it already has an earlier one."""
    context = run_context(config)
    deadline = min(context.deadline, time.monotonic() + timeout_s)
    return _with_context(config, replace(context, deadline=deadline))


def with_fallback(config: RunnableConfig, has_fallback: bool) -> RunnableConfig:
    """Return `config` for the calls of one model, with the given value of `RunContext.has_fallback`."""
    return _with_context(config, replace(run_context(config), has_fallback=has_fallback))


def with_streaming(config: RunnableConfig) -> RunnableConfig:
    """Return `config` for a run that dispatches each answer step as soon as it is written."""
    return _with_context(config, replace(run_context(config), streamed=StreamedAnswer()))


def remaining_seconds(config: RunnableConfig) -> float:
    """Return the seconds until the deadline, at least 0; infinite without a deadline."""
    return max(0.0, run_context(config).deadline - time.monotonic())


def deadline_timeout(config: RunnableConfig) -> asyncio.Timeout:
    """Return an `asyncio.timeout` that expires at the deadline."""
    seconds = remaining_seconds(config)
    return asyncio.timeout(None if math.isinf(seconds) else seconds)


async def emit(config: RunnableConfig, event: Event) -> None:
    """Dispatch `event` as a custom event with the same name, and add it to the streamed answer, if any."""
    if (streamed := run_context(config).streamed) is not None:
        streamed.apply(event)
    await _dispatch(config, event.name, event.data)


async def emit_answer(config: RunnableConfig, answer: Answer) -> None:
    """Dispatch the sources and all answer steps of `answer`.

    Nothing is dispatched if exactly these answer steps have been dispatched before.
    """
    streamed = run_context(config).streamed or StreamedAnswer()
    for event in missing_events(streamed, answer):
        await emit(config, event)


async def dispatch_event(config: RunnableConfig, name: str, **data: str) -> None:
    """Dispatch a custom event to the callback handlers of the run; outside a run, do nothing."""
    await _dispatch(config, name, data)


async def _dispatch(config: RunnableConfig, name: str, data: object) -> None:
    callbacks = config.get("callbacks")
    # LangChain's `adispatch_custom_event` would configure another callback manager for each event.
    if isinstance(callbacks, AsyncCallbackManager) and callbacks.parent_run_id is not None:
        await callbacks.on_custom_event(name, data, run_id=callbacks.parent_run_id)


def child_config(config: RunnableConfig, name: str, **metadata: str) -> RunnableConfig:
    """Return `config` for a child run called `name`, with `metadata` added for the trace."""
    return {**config, "run_name": name, "metadata": {**config.get("metadata", {}), **metadata}}


class NamedStep(RunnableLambda[Input, Output]):
    """A pipeline step: an asynchronous function whose calls are traced as runs with a name.

    A call is about three times as fast as a call of RunnableLambda, which inspects its function and runs it
    in a separate task.
    """

    def __init__(
        self, function: Callable[[Input, RunnableConfig], Awaitable[Output]], name: str
    ) -> None:
        super().__init__(function, name=name)
        self._function = function

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """Return the function's result, traced as a run."""
        config = ensure_config(config)
        run = await get_async_callback_manager_for_config(config).on_chain_start(
            None, input, name=config.get("run_name") or self.get_name(), run_id=config.get("run_id")
        )
        try:
            output = await self._function(input, patch_config(config, callbacks=run.get_child()))
        except BaseException as error:
            await run.on_chain_error(error)
            raise
        await run.on_chain_end(output)
        return output


def _with_context(config: RunnableConfig, context: RunContext) -> RunnableConfig:
    return {**config, "configurable": {**config.get("configurable", {}), _CONFIG_KEY: context}}
