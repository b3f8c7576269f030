"""Source documents, their sections, the chunks in the collection and the catalogue of documents."""

from typing import Literal
from urllib.parse import quote

from pydantic import Field

from schemas.base import ApiModel
from schemas.choices import Language

SectionKind = Literal[
    "request_headers",
    "request_url",
    "public_parameters",
    "request_parameters",
    "response_parameters",
    "error_codes",
    "permission_package",
    "prose",
]

DOCUMENT_URI = "apidesk://documents/"
"""Start of the URIs of documents."""


def document_uri(source: str, document_id: str) -> str:
    """Return the URI of a document, which identifies it to clients even if it has no page."""
    return f"{DOCUMENT_URI}{quote(source, safe='')}/{quote(document_id, safe='')}"


class Section(ApiModel):
    """The part of a document under one heading."""

    kind: SectionKind
    heading: tuple[str, ...]
    """The path of headings to this section, without the page's title."""
    body: str
    """Markdown."""
    blocks: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    """Texts of the Markdown blocks of `body`, to split it without parsing; empty if they are unknown."""
    page_url: str = ""
    """The section's own URL; empty to use the document's."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Metadata of the section in addition to the document's."""


class SourceDocument(ApiModel):
    """One page or API as read from its source."""

    id: str
    """Unique and stable within its source: an API id or a relative path."""
    source: str
    title: str
    language: Language
    page_url: str = ""
    service_id: str = ""
    service_name: str = ""
    api_id: str = ""
    api_name: str = ""
    api_url: str = ""
    metadata: dict[str, str] = Field(default_factory=dict)
    sections: tuple[Section, ...]
    fingerprint: str = ""
    """Hash of the file and the reader's settings; empty if a document comes from several files."""


class Chunk(ApiModel):
    """The unit of retrieval and citation: a section, or a part of a long section."""

    id: str
    """Derived from source, document, section and part, so that ids are stable between runs."""
    source: str
    document_id: str
    title: str
    section: str
    """The path of headings, joined by ` > `; empty above the first heading of a page."""
    kind: SectionKind
    position: int
    """Index within the document, from 0."""
    language: Language
    service_id: str = ""
    api_id: str = ""
    api_name: str = ""
    api_url: str = ""
    page_url: str = ""
    metadata: dict[str, str] = Field(default_factory=dict)
    body: str
    """The Markdown of the section, or of its part."""
    text: str
    """The text given to models: front matter, heading and body."""
    content_hash: str
    """SHA-256 of the fields above except `id`, in hexadecimal."""
    fingerprint: str = ""
    """The document's fingerprint; a file whose fingerprint is unchanged is not read again."""

    @property
    def document_key(self) -> tuple[str, str]:
        """The source and the id of the chunk's document, which together are unique."""
        return self.source, self.document_id


class RetrievedChunk(ApiModel):
    """A chunk with its score; a higher score is better.

    The scale depends on the retrieval mode and the reranker.
    """

    chunk: Chunk
    score: float


EntryKind = Literal["api", "page"]


class CatalogueEntry(ApiModel):
    """A document in the catalogue (table of contents) of the collection."""

    source: str
    document_id: str
    """Unique within its source."""
    title: str
    kind: EntryKind
    service_id: str = ""
    api_id: str = ""
    api_name: str = ""
    api_url: str = ""
    page_url: str = ""
    language: Language
    outline: tuple[str, ...] = ()
    """The distinct heading paths (`a > b`) of its sections, in document order."""
