"""Numbers the citations of an answer by page, as chat clients count them.

Clients such as Open WebUI read `[2]` as the second distinct URL among the annotations. In an `Answer`, it
is the second chunk that the model was given. Some chunks are not cited, and several may share a page.
"""

from collections.abc import Iterable

from runnables.grounding.markdown_text import renumber_citations
from schemas.answer import Answer, Event, Source, Sources, Step


class PageNumbers:
    """Numbers pages from 1, in the order in which the steps of one answer cite them."""

    def __init__(self) -> None:
        self._pages: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    def apply(self, event: Event) -> Event:
        """Return `event` with page numbers in its citations. `sources` and `answer` restart at 1."""
        if isinstance(event.data, Sources):
            self._start(event.data.sources)
        elif isinstance(event.data, Step):
            text = self._renumber(event.data.text)
            return Event(event.name, event.data.model_copy(update={"text": text}))
        elif isinstance(event.data, Answer):
            return Event(event.name, self.answer(event.data))
        return event

    def answer(self, answer: Answer) -> Answer:
        """Return `answer` with page numbers in its steps and sources."""
        self._start(answer.sources)
        steps = list(map(self._renumber, answer.answer))
        sources = [
            source.model_copy(update={"number": self._number(source.number)})
            for source in answer.sources
        ]
        sources.sort(key=lambda source: source.number)
        return answer.model_copy(update={"answer": steps, "sources": sources})

    def _start(self, sources: Iterable[Source]) -> None:
        self._pages = {source.number: _page(source) for source in sources}
        self._numbers = {}

    def _renumber(self, text: str) -> str:
        return renumber_citations(text, self._number)

    def _number(self, chunk_number: int) -> int | None:
        page = self._pages.get(chunk_number)
        return None if page is None else self._numbers.setdefault(page, len(self._numbers) + 1)


def _page(source: Source) -> str:
    return source.page_url or f"{source.source}\0{source.document_id}"
