"""Who hears of an answer while it is made: travels in the run's config, as the deadline does."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from schemas.events import Event

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

_SINK_KEY = "listener"

EventSink = Callable[[Event], Awaitable[None]]


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
