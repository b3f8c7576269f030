"""What is indexed: a source document, its sections, and the chunks made of them.
What the collection holds, one entry a document.
"""

from typing import Literal

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


class Section(ApiModel):
    """A part of a document under one heading."""

    kind: SectionKind
    heading: tuple[str, ...]
    """The headings from the page's top down to this section, without the page's title."""
    body: str
    """Markdown."""
    page_url: str = ""
    """The section's own link; empty where the document's serves."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """What is true of this section beyond the document's metadata."""


class SourceDocument(ApiModel):
    """One page or API as its source tells it."""

    id: str
    """Unique and stable within its source: an api id, a relative path."""
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
    """Of the file, and of how it was read; empty where a document is more than one file's."""


class Chunk(ApiModel):
    """What is retrieved and cited: one section, or a part of a long one."""

    id: str
    """Derived from source, document, section and part: the same document lands on the same rows."""
    source: str
    document_id: str
    title: str
    section: str
    """The heading path, joined by ` > `; empty above a page's first heading."""
    kind: SectionKind
    position: int
    """Place among the document's chunks, from 0."""
    language: Language
    service_id: str = ""
    api_id: str = ""
    api_name: str = ""
    api_url: str = ""
    page_url: str = ""
    metadata: dict[str, str] = Field(default_factory=dict)
    body: str
    """The section's Markdown."""
    text: str
    """What a model reads: front matter, heading and body."""
    content_hash: str
    """SHA-256 of everything above, hexadecimal."""
    fingerprint: str = ""
    """The document's: a file with the same one need not be read again."""


class RetrievedChunk(ApiModel):
    """A chunk with its score: higher is better; BM25, cosine or a fusion, as retrieval says."""

    chunk: Chunk
    score: float


EntryKind = Literal["api", "page"]


class CatalogueEntry(ApiModel):
    """A document as a table of contents names it."""

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
    """The headings of its sections in the document's order, each as its path (`a > b`), each once."""
