"""Source documents, their sections, the chunks in the collection, the catalogue, and API documents.

The first part of this module defines what ingestion makes of any source. The second part defines the format
of API documents, which ingestion only reads.

An API document is a JSON file of a source with `kind = "api_docs"`. It describes one operation, that is, a
method with a URL. In the names of fields, such as `api_id`, an operation is called an API. Platform teams
export their reference to this format; see `samples/api` for examples.
"""

from typing import Literal
from urllib.parse import quote

from pydantic import Field, JsonValue

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
    """The Markdown blocks of `body`, for splitting it without parsing; empty if unknown."""
    page_url: str = ""
    """The section's own URL; empty to use the document's."""
    metadata: dict[str, str] = Field(default_factory=dict)
    """Metadata of the section, merged with the document's; the section's values take precedence."""


class SourceDocument(ApiModel):
    """One page or API as read from its source."""

    id: str
    """Unique and stable within its source, such as an API id or a relative path."""
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
    """The text given to models: YAML front matter (ids, API, URL, metadata), headings and body."""
    content_hash: str
    """SHA-256 of the fields above except `id`, in hexadecimal."""
    fingerprint: str = ""
    """The document's fingerprint; a file whose fingerprint is unchanged is not parsed again."""

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

    @property
    def document_key(self) -> tuple[str, str]:
        """The source and the id of the chunk's document, which together are unique."""
        return self.chunk.document_key


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


# --- API documents --------------------------------------------------------------------------------


class AllowedValue(ApiModel):
    """One value of an enumerated parameter and its meaning."""

    value: str
    meaning: str = ""


Requirement = bool | str | None
"""Whether a parameter is required, as documented: yes, no, or a condition such as "one of two".

For a field of a response, it says whether the field is always returned. None if the documentation does not
say.
"""


class Parameter(ApiModel):
    """A header, or a field of a request or response.

    The `children` of an object, or of an array of objects, are the fields of the object.
    """

    name: str = Field(min_length=1)
    type: str = "string"
    required: Requirement = Field(default=False, union_mode="left_to_right")
    """A JSON file may omit this field if its value is false."""
    description: str = ""
    example: str = ""
    values: tuple[AllowedValue, ...] = ()
    children: tuple["Parameter", ...] = ()
    dimensions: int = 0
    """Number of nested arrays around the children. With two, a child is indexed as `items[][].id`."""
    location: str = ""
    """Where a request has the parameter: query, path or body; empty to show no location.

    It is shown in the Markdown table of parameters that is indexed.
    """


class ErrorCode(ApiModel):
    """An error that the operation returns."""

    code: str = Field(min_length=1)
    message: str = ""
    cause: str = ""
    remedy: str = ""


class PermissionPackage(ApiModel):
    """A permission package (scope) that an application needs to call the operation."""

    name: str = Field(min_length=1)
    description: str = ""


class Example(ApiModel):
    """An example of a request or response, as a JSON value or verbatim text."""

    title: str = ""
    value: JsonValue


class ApiDocument(ApiModel):
    """The reference of one operation.

    Omit `page_url` if the source in platform.toml has a template `page_url`, which builds the URL from
    the other fields.
    """

    service_id: str = Field(min_length=1)
    service_name: str = ""
    api_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"] = "POST"
    url: str = Field(min_length=1)
    page_url: str = ""
    version: str = ""
    language: Language = "zh"
    deprecated: bool = False
    description: str = ""
    request_headers: tuple[Parameter, ...] = ()
    public_parameters: tuple[Parameter, ...] = ()
    """Parameters that many operations share (公共参数)."""
    request_parameters: tuple[Parameter, ...] = ()
    response_parameters: tuple[Parameter, ...] = ()
    error_codes: tuple[ErrorCode, ...] = ()
    permission_packages: tuple[PermissionPackage, ...] = ()
    request_example: JsonValue = None
    response_example: JsonValue = None
    request_examples: tuple[Example, ...] = ()
    """Examples with titles, in addition to `request_example`."""
    response_examples: tuple[Example, ...] = ()
    """Examples with titles, in addition to `response_example`."""
    request_description: str = ""
    """Description of the request body as a whole."""
    response_description: str = ""
    servers: tuple[str, ...] = ()
    """Base URLs. In documents made from OpenAPI, `url` already includes the path of the first one."""
    authentication: str = ""
    """How a request authenticates, such as `HTTP basic`. Scopes are permission packages."""
