"""The events that a run dispatches while it makes an answer, and the answer assembled from them.

A run dispatches three LangChain custom events: `structured` (the structured question), `sources`, and
`step` (a text of the list `Answer.answer`). Callback handlers and `astream_events` receive the data of
these events as models of `schemas`, not as dictionaries.
"""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler

from schemas.answer import Answer, CompleteSources, Event, EventSink, Source, Sources, Step
from schemas.question import StructuredQuestion

ANSWER_EVENTS = {"structured", "sources", "step"}
"""The names of the custom events that carry parts of the answer."""


class StreamedAnswer:
    """Assembles an answer from its events.

    The steps follow a `sources` event. A second `sources` event means that the answer starts again, so the
    steps received so far are discarded.
    """

    def __init__(self) -> None:
        self.structured: StructuredQuestion | None = None
        """The structured question; None before its event."""
        self.sources: list[Source] = []
        self.steps: list[Step] = []
        self.is_restarted = False
        """Whether steps were discarded."""

    @property
    def texts(self) -> list[str]:
        """The texts of the current steps."""
        return [step.text for step in self.steps]

    def apply(self, event: Event) -> None:
        """Update the state with the next event."""
        if isinstance(event.data, StructuredQuestion):
            self.structured = event.data
        elif isinstance(event.data, Sources):
            self.is_restarted = self.is_restarted or bool(self.steps)
            self.sources = event.data.sources
            self.steps = []
        elif isinstance(event.data, Step):
            self.steps.append(event.data)


def missing_events(streamed: StreamedAnswer, answer: Answer) -> Iterator[Event]:
    """Yield the sources and steps of `answer`; nothing if `streamed` has steps with the same texts."""
    if streamed.texts != answer.answer:
        yield Event("sources", CompleteSources(sources=answer.sources))
        for number, text in enumerate(answer.answer, 1):
            facts = [fact for fact in answer.unverified if fact in text]
            supported = number not in answer.unsupported
            yield Event(
                "step", Step(number=number, text=text, unverified=facts, supported=supported)
            )


class AnswerEventHandler(AsyncCallbackHandler):
    """Passes the events of an answer to a callback. An error of the callback ends the run."""

    run_inline = True
    raise_error = True

    def __init__(self, on_event: EventSink) -> None:
        self._on_event = on_event

    async def on_custom_event(self, name: Any, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Pass an event in `ANSWER_EVENTS` to the callback, and ignore all others."""
        if name in ANSWER_EVENTS:
            await self._on_event(Event(name, data))
