"""Reads the prose of an OpenAPI description: the texts about the API as a whole and about its tags.

Many descriptions explain authentication, errors and limits only in these texts.
"""

from collections.abc import Iterator

from ingestion.sources.markdown import markdown_content
from ingestion.sources.openapi.references import Node
from ingestion.sources.pages import SourcePage, documents_of_page
from schemas.document import SourceDocument
from schemas.platform import OpenApiSourceConfig, PageSourceConfig

OVERVIEW_ID = "overview"
"""Id of the document. An operation with the same operationId gets another id."""

MIN_CHARS = 80
"""Minimum length of a text in characters; shorter ones usually only repeat the name of the API or tag."""


def overview_documents(source: OpenApiSourceConfig, root: Node) -> list[SourceDocument]:
    """Return one document with the descriptions of the API and of its tags.

    Descriptions that are shorter than `MIN_CHARS` are left out; the list is empty if none remains. The
    heading of a tag's description is the tag's `x-displayName` or, if it has none, its name. Raises
    SourceError.
    """
    text = "\n\n".join(_texts(root))
    if not text:
        return []
    title, docs_url = root["info"].text("title"), root["externalDocs"].text("url")
    content = markdown_content(text)
    page = SourcePage(OVERVIEW_ID, content._replace(values={"title": title, "url": docs_url}))
    config = PageSourceConfig(name=source.name, page_url=("{url}",), api_pages=False)
    return documents_of_page(config, page) or []


def _texts(root: Node) -> Iterator[str]:
    if len(text := root["info"].text("description")) >= MIN_CHARS:
        yield text
    for tag in root["tags"].elements():
        if len(text := tag.text("description")) >= MIN_CHARS:
            yield f"# {tag.text('x-displayName') or tag.text('name')}\n\n{text}"
