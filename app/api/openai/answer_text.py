"""Converts answers to text and citations for chat clients, and the text of an answer back to its steps."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from app.api.markdown import (
    doubt_notes,
    join_paragraphs,
    link_lists,
    list_heading,
    note_start,
    source_link,
    source_name,
    sources_by_number,
)
from prompts.user_text import all_user_texts, user_text
from runnables.answer_events import StreamedAnswer
from runnables.grounding.markdown_text import renumber_citations
from schemas.answer import CHAT_FIELDS, Answer, CompleteSources, Event, Source, Sources, Step
from schemas.document import document_uri


class PageNumbering:
    """Numbers pages from 1, in the order in which the steps of one answer cite them.

    Clients such as Open WebUI read `[2]` as the second distinct URL among the annotations of a message. In
    an `Answer`, `[2]` is the second chunk that the model was given. Some chunks are not cited, and several
    chunks may belong to one page.
    """

    def __init__(self) -> None:
        self._pages: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    def apply(self, event: Event) -> Event:
        """Return `event` with page numbers in its citations.

        The events `sources` and `answer` restart the numbering at 1.
        """
        if isinstance(event.data, Sources):
            self._start(event.data.sources)
        elif isinstance(event.data, Step):
            text = self._renumber_text(event.data.text)
            return Event(event.name, event.data.model_copy(update={"text": text}))
        elif isinstance(event.data, Answer):
            return Event(event.name, self.renumber_answer(event.data))
        return event

    def renumber_answer(self, answer: Answer) -> Answer:
        """Return `answer` with page numbers in its steps and sources."""
        self._start(answer.sources)
        steps = list(map(self._renumber_text, answer.answer))
        sources = [
            source.model_copy(update={"number": self._number(source.number)})
            for source in answer.sources
        ]
        sources.sort(key=lambda source: source.number)
        return answer.model_copy(update={"answer": steps, "sources": sources})

    def _start(self, sources: Iterable[Source]) -> None:
        self._pages = {source.number: _page(source) for source in sources}
        self._numbers = {}

    def _renumber_text(self, text: str) -> str:
        return renumber_citations(text, self._number)

    def _number(self, chunk_number: int) -> int | None:
        page = self._pages.get(chunk_number)
        return None if page is None else self._numbers.setdefault(page, len(self._numbers) + 1)


def _page(source: Source) -> str:
    """Return the URL of the page, or the URI of the document if it has no page."""
    return source.page_url or document_uri(source.source, source.document_id)


class StreamedText:
    """Converts the events of an answer to text.

    Text cannot be changed after it was sent. A `sources` event after steps means that the pipeline starts
    the answer again; no more text is then sent until the final answer. If the final answer does not begin
    with the steps that were sent, all of its steps are sent, after a correction notice.
    """

    def __init__(self) -> None:
        self.text = ""
        """The text sent so far."""
        self._streamed = StreamedAnswer()
        self._sent_steps: list[str] = []
        self._has_complete_sources = False
        """Whether the answer was already complete when its sources were sent.

        If so, the steps are sent with the final answer, so that the note on doubts can precede them.
        """

    def add(self, event: Event) -> str:
        """Return the text to send after `event`, or an empty string."""
        self._streamed.apply(event)
        if isinstance(event.data, Sources):
            self._has_complete_sources = isinstance(event.data, CompleteSources)
        is_deferred = self._has_complete_sources or self._streamed.is_restarted
        if isinstance(event.data, Step) and not is_deferred:
            self._sent_steps.append(event.data.text)
            return self._send([event.data.text])
        if isinstance(event.data, Answer):
            return self._send([*self._rest(event.data), *link_lists(event.data)])
        return ""

    def _rest(self, answer: Answer) -> list[str]:
        """Return the paragraphs of the final answer that are still to be sent, except the lists of links.

        The note on doubts comes after the steps if some were sent and still hold, otherwise before them.
        """
        notes, count = list(doubt_notes(answer)), len(self._sent_steps)
        if answer.answer[:count] != self._sent_steps:
            notice = user_text(answer.language).answer.correction_notice
            return ["---", notice, *notes, *answer.answer]
        return [*answer.answer[count:], *notes] if count else [*notes, *answer.answer]

    def _send(self, paragraphs: list[str]) -> str:
        if not paragraphs:
            return ""
        text = join_paragraphs(["", *paragraphs] if self.text else paragraphs)
        self.text += text
        return text


def parse_answer_text(text: str) -> str:
    """Return the steps in the text of an answer, as one text.

    Notes on doubts, lists of links and everything up to the last correction notice are removed.
    """
    labels = [texts.answer for texts in all_user_texts()]
    for label in labels:
        text = text.rpartition(label.correction_notice)[2]
    # The list of pages that may help (`nearest`) comes after the list of sources: remove it first.
    for title in chain.from_iterable((label.nearest, label.sources) for label in labels):
        head, heading, tail = text.rpartition(list_heading(title))
        if heading and all(line.startswith("- ") for line in tail.split("\n") if line.strip()):
            text = head
    starts = tuple(map(note_start, labels))
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith(starts)).strip()


def url_citations(text: str, answer: Answer) -> list[dict[str, Any]]:
    """Return a citation for each page in the list of sources at the end of `text`.

    A citation contains the name and URL of the page, and the start and end of its link in `text`, in
    characters. Documents without a page are cited by their URI, so that the n-th citation belongs to `[n]`.
    """
    citations = []
    for sources in sources_by_number(answer):
        label, link = f"- [{sources[0].number}] ", source_link(sources)
        position = text.rfind(label + link)
        if position >= 0:
            start = position + len(label)
            citations.append(
                {
                    "start_index": start,
                    "end_index": start + len(link),
                    "title": source_name(sources),
                    "url": _page(sources[0]),
                }
            )
    return citations


def answer_details(answer: Answer) -> dict[str, Any]:
    """Return the CHAT_FIELDS of the answer as `POST /ask` serialises them."""
    return answer.model_dump(mode="json", by_alias=True, include=set(CHAT_FIELDS))
