"""What the collection holds, one entry a document."""

from typing import Literal

from schemas.language import Language
from schemas.wire import ApiModel

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
