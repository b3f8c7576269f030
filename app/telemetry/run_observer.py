"""How long each step of a question took, read off the pipeline's own run names."""

import time
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler

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


class StepTimings(AsyncCallbackHandler):
    """Milliseconds by step, of one run of the pipeline."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, int] = {}
        self._started: dict[UUID, tuple[str, float]] = {}

    async def on_chain_start(
        self, serialized: dict[str, Any] | None, inputs: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Note when a step began. A step inside one of the same name is part of it."""
        name = kwargs.get("name")
        if name in STEPS and name not in {started[0] for started in self._started.values()}:
            self._started[run_id] = (name, time.monotonic())

    async def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note how long a step took."""
        if started := self._started.pop(run_id, None):
            name, began = started
            self.milliseconds[name] = round((time.monotonic() - began) * 1000)
