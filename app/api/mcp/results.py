"""The structured results of the MCP tools."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field, create_model

from schemas.answer import AGENT_FIELDS, Answer
from schemas.base import ApiModel
from schemas.document import CatalogueEntry, RetrievedChunk


class CitedPage(ApiModel):
    """The page behind a citation `[number]`."""

    number: int
    title: str
    section: str
    page_url: str


def _answer_fields() -> dict[str, Any]:
    """Return the definitions of the result's fields: as in Answer, but without default values."""
    fields: dict[str, Any] = {}
    for name in AGENT_FIELDS:
        field = Answer.model_fields[name]
        annotation = list[CitedPage] if name == "sources" else field.annotation
        fields[name] = (annotation, Field(description=field.description))
    return fields


AnswerResult = create_model(
    "Answered", __base__=ApiModel, __doc__="The answer to a question.", **_answer_fields()
)
"""The result of `ask`: the AGENT_FIELDS of the answer. Agents read the text of sources with `open`."""


def answer_result(answer: Answer) -> ApiModel:
    """Return the result of `ask`."""
    sources = [
        CitedPage(**{name: getattr(source, name) for name in CitedPage.model_fields})
        for source in answer.sources
    ]
    fields = {name: getattr(answer, name) for name in AGENT_FIELDS}
    return AnswerResult(**fields | {"sources": sources})


class Passage(ApiModel):
    """A complete passage of a document."""

    title: str
    section: str
    page_url: str
    api_name: str
    api_url: str
    text: str

    @classmethod
    def of(cls, retrieved: RetrievedChunk) -> "Passage":
        """Return the passage of a chunk."""
        chunk = retrieved.chunk
        return cls(
            title=chunk.title,
            section=chunk.section,
            page_url=chunk.page_url,
            api_name=chunk.api_name,
            api_url=chunk.api_url,
            text=chunk.body,
        )

    @property
    def markdown(self) -> str:
        """The passage under its title, section and URL."""
        heading = " > ".join(filter(None, [self.title, self.section]))
        head = "\n".join(filter(None, [f"# {heading}", self.page_url]))
        return f"{head}\n\n{self.text.strip()}"


class Passages(ApiModel):
    """The result of `search` and `open`: passages, best first."""

    passages: list[Passage]

    @classmethod
    def of(cls, chunks: Iterable[RetrievedChunk]) -> "Passages":
        """Return the passages of the chunks."""
        return cls(passages=list(map(Passage.of, chunks)))


class Document(ApiModel):
    """A document and its headings."""

    title: str
    service: str
    api_name: str
    api_url: str
    page_url: str
    headings: list[str]

    @classmethod
    def of(cls, entry: CatalogueEntry) -> "Document":
        """Return the document of a catalogue entry."""
        return cls(
            title=entry.title,
            service=entry.service_id,
            api_name=entry.api_name,
            api_url=entry.api_url,
            page_url=entry.page_url,
            headings=list(entry.outline),
        )


class Documents(ApiModel):
    """The result of `outline`: the documents that match the name, then others of their services."""

    documents: list[Document]

    @classmethod
    def of(cls, entries: Iterable[CatalogueEntry]) -> "Documents":
        """Return the documents of the catalogue entries."""
        return cls(documents=list(map(Document.of, entries)))
