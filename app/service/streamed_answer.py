"""StreamedAnswer: the state of an answer while its events arrive."""

from schemas.answer import Event, Source, Sources, Step
from schemas.question import StructuredQuestion


class StreamedAnswer:
    """Assembles the events of one answer.

    A `sources` event starts the list of steps; a second one discards the steps received so far.
    Every Python client of the events uses this class, so that the rule is stated once.
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
        """The texts of the steps."""
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
