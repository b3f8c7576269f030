"""A callback that records the runs of a pipeline, for tests."""

from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler


class Trace(AsyncCallbackHandler):
    """Records the names of all runs, and the inputs and outputs of the runs called `name`."""

    def __init__(self, name: str) -> None:
        self.names: list[str] = []
        self.inputs: list[Any] = []
        self.outputs: list[dict[str, Any]] = []
        self._name = name
        self._ids: set[UUID] = set()

    async def on_chain_start(
        self, serialized: dict[str, Any] | None, inputs: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        self.names.append(kwargs["name"])
        if kwargs["name"] == self._name:
            self._ids.add(run_id)
            self.inputs.append(inputs)

    async def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if run_id in self._ids:
            self.outputs.append(outputs)
