"""The deadline of a request, which travels in the run's config to every call that it has to hold."""

import time

from langchain_core.runnables import RunnableConfig

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
