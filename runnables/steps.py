"""A function as a named step of the pipeline."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from langchain_core.runnables import RunnableConfig, RunnableLambda

Input = TypeVar("Input")
Output = TypeVar("Output")


def step(
    name: str, function: Callable[[Input, RunnableConfig], Awaitable[Output]]
) -> RunnableLambda[Input, Output]:
    """`function` as a Runnable whose run is called `name`; it passes its config on to what it runs."""
    return RunnableLambda(function, name=name)


def child(config: RunnableConfig, name: str, **metadata: str) -> RunnableConfig:
    """`config` for a child run called `name`, with `metadata` for the trace."""
    return {**config, "run_name": name, "metadata": {**config.get("metadata", {}), **metadata}}
