"""What the tools give a program, and what a model reads of it."""

from collections.abc import Iterable

from schemas.answer import Answer, Confidence, Page, Source
from schemas.catalogue import CatalogueEntry
from schemas.document import RetrievedChunk
from schemas.question import QuestionType
from schemas.wire import ApiModel


class CitedPage(ApiModel):
    """What a citation `[number]` stands for."""

    number: int
    title: str
    section: str
    page_url: str


class Answered(ApiModel):
    """What `ask` gives."""

    id: str
    type: QuestionType
    """`unknown`: the question is not about this platform."""
    confidence: Confidence
    answer: list[str]
    """The steps; `[n]` in them is the number of a source."""
    sources: list[CitedPage]
    nearest: list[Page]
    """Where to look instead, when the documents do not answer the question."""
    unverified: list[str]
    """Paths, names and codes in the answer that the documents do not bear out."""

    @classmethod
    def of(cls, answer: Answer) -> "Answered":
        """What an agent needs of `answer`; what the sources say it can open."""
        return cls(
            id=answer.id,
            type=answer.type,
            confidence=answer.confidence,
            answer=answer.answer,
            sources=list(map(_cited, answer.sources)),
            nearest=answer.nearest,
            unverified=answer.unverified,
        )


class Passage(ApiModel):
    """A part of a document, whole."""

    title: str
    section: str
    page_url: str
    api_name: str
    api_url: str
    text: str

    @property
    def shown(self) -> str:
        """For a reader."""
        where = " > ".join(filter(None, [self.title, self.section]))
        head = "\n".join(filter(None, [f"# {where}", self.page_url]))
        return f"{head}\n\n{self.text.strip()}"


class Passages(ApiModel):
    """What `search` and `open` give, best first."""

    passages: list[Passage]

    @classmethod
    def of(cls, found: Iterable[object]) -> "Passages":
        """The chunks in `found`."""
        return cls(passages=[_passage(each) for each in found if isinstance(each, RetrievedChunk)])


class Document(ApiModel):
    """A document, and what is in it."""

    title: str
    service: str
    api_name: str
    api_url: str
    page_url: str
    headings: list[str]


class Documents(ApiModel):
    """What `outline` gives: those that the name may mean first, then others of their services."""

    documents: list[Document]

    @classmethod
    def of(cls, found: Iterable[object]) -> "Documents":
        """The documents in `found`."""
        return cls(
            documents=[_document(each) for each in found if isinstance(each, CatalogueEntry)]
        )


def _cited(source: Source) -> CitedPage:
    return CitedPage(
        number=source.number,
        title=source.title,
        section=source.section,
        page_url=source.page_url,
    )


def _passage(retrieved: RetrievedChunk) -> Passage:
    chunk = retrieved.chunk
    return Passage(
        title=chunk.title,
        section=chunk.section,
        page_url=chunk.page_url,
        api_name=chunk.api_name,
        api_url=chunk.api_url,
        text=chunk.body,
    )


def _document(entry: CatalogueEntry) -> Document:
    return Document(
        title=entry.title,
        service=entry.service_id,
        api_name=entry.api_name,
        api_url=entry.api_url,
        page_url=entry.page_url,
        headings=list(entry.outline),
    )
