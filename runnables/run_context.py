"""The deadline of a request, which travels in the run's config to every call that it has to hold.
Who hears of an answer while it is made: travels in the run's config, as the deadline does.
What operators want to know of a run that no callback of LangChain's tells: its custom events.
A function as a named step of the pipeline.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForChainRun,
    BaseCallbackManager,
    adispatch_custom_event,
)
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from schemas.answer import Event, EventSink

_KEY = "__deadline"
"""LangChain puts what begins otherwise into the metadata of traces."""


def with_deadline(config: RunnableConfig, seconds: float) -> RunnableConfig:
    """`config` for a run that has `seconds` from now, or until its own deadline if that is sooner."""
    deadline = time.monotonic() + min(seconds, remaining(config))
    configurable = {**config.get("configurable", {}), _KEY: deadline}
    return {**config, "configurable": configurable}


def remaining(config: RunnableConfig) -> float:
    """Seconds until the deadline, not below 0; infinite where there is none."""
    deadline = config.get("configurable", {}).get(_KEY)
    return float("inf") if deadline is None else max(0.0, float(deadline) - time.monotonic())


_SINK_KEY = "listener"


def with_event_sink(config: "RunnableConfig", listener: EventSink) -> "RunnableConfig":
    """`config` for a run that tells `listener` what happens."""
    configurable = {**config.get("configurable", {}), _SINK_KEY: listener}
    return {**config, "configurable": configurable}


def event_sink(config: "RunnableConfig") -> EventSink | None:
    """Who listens, if anybody does."""
    listener: EventSink | None = config.get("configurable", {}).get(_SINK_KEY)
    return listener


async def emit(config: "RunnableConfig", event: Event) -> None:
    """Tell of `event` whoever listens."""
    if listener := event_sink(config):
        await listener(event)


STRUCTURED_OUTPUT = "structured-output"
"""A model gave an object: `step`, and the `rung` that gave it."""

MODEL_RETRY = "model-retry"
"""A model is called once more: `role`, `model`."""

MODEL_FAILURE = "model-failure"
"""A model gave no reply, with all retries: `role`, `model`, and the error's `code`."""


async def dispatch_event(config: RunnableConfig, event: str, **data: str) -> None:
    """Tell the callback handlers of the run; outside of a run there are none."""
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager) and callbacks.parent_run_id is not None:
        await adispatch_custom_event(event, data, config=config)


Input = TypeVar("Input")
Output = TypeVar("Output")


class NamedStep(RunnableLambda[Input, Output]):
    """A RunnableLambda that costs half as much: it does not look, at each call, whether its function
    is a generator or gives a Runnable to be run in its place.
    """

    def __init__(
        self, function: Callable[[Input, RunnableConfig], Awaitable[Output]], name: str
    ) -> None:
        super().__init__(function, name=name)
        self._function = function

    async def ainvoke(
        self, input: Input, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Output:
        """What the function gives, as a run of its own."""
        return await self._acall_with_config(self._call, input, config)

    async def _call(
        self, input: Input, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
    ) -> Output:
        return await self._function(input, config)


def named_step(
    name: str, function: Callable[[Input, RunnableConfig], Awaitable[Output]]
) -> Runnable[Input, Output]:
    """`function` as a Runnable whose run is called `name`; it passes its config on to what it runs."""
    return NamedStep(function, name)


def child_config(config: RunnableConfig, name: str, **metadata: str) -> RunnableConfig:
    """`config` for a child run called `name`, with `metadata` for the trace."""
    return {**config, "run_name": name, "metadata": {**config.get("metadata", {}), **metadata}}
