"""A function as a named step of the pipeline."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForChainRun
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

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
