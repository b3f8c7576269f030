"""Loads Notion pages with their headings, tables, code and links.

LangChain's NotionDBLoader reads only databases, as plain text.
"""

from collections.abc import Iterator
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from ingestion.loaders.wiki_api import (
    ApiObject,
    ContentBlock,
    ContentKind,
    JsonApi,
    TextRun,
    blocks_to_markdown,
    inline_markdown,
    read_paginated,
)

NOTION_VERSION = "2022-06-28"
PAGE_SIZE = 100

_KINDS: dict[str, ContentKind] = {
    "heading_1": "heading",
    "heading_2": "heading",
    "heading_3": "heading",
    "bulleted_list_item": "bullet",
    "to_do": "bullet",
    "toggle": "bullet",
    "numbered_list_item": "number",
    "quote": "quote",
    "callout": "quote",
    "code": "code",
}
"""Maps Notion's types of blocks to kinds of content. All other types, except tables, are text."""

_PAGINATION_FIELDS = ("results", "start_cursor", "next_cursor")
"""The arguments `items`, `cursor` and `next_cursor` of `read_paginated`."""
_SEPARATE_PAGES = {"child_page", "child_database"}


class NotionLoader(BaseLoader):
    """Loads the pages that are shared with an integration, or those of one database.

    `integration_token` is the secret of the integration. Without `database_id`, all shared pages are
    loaded. `base_url` is the address of the API. `timeout_s` is the maximum number of seconds to connect,
    and to wait for each part of a response.
    """

    def __init__(
        self,
        integration_token: str,
        database_id: str = "",
        base_url: str = "https://api.notion.com/v1",
        timeout_s: float = 30,
    ) -> None:
        headers = {
            "Authorization": f"Bearer {integration_token}",
            "Notion-Version": NOTION_VERSION,
        }
        self._api = JsonApi(base_url, headers, timeout_s)
        self._database_id = database_id

    def lazy_load(self) -> Iterator[Document]:
        """Yield a document per page, with its `id`, `title`, `url` and the values of its properties.

        The title of an untitled page is empty. Archived pages are left out. Raises httpx.HTTPError, and
        ValueError for a reply that is not a JSON object.
        """
        for page in self._pages():
            if page.get("archived") or page.get("in_trash"):
                continue
            properties = page.get("properties", {})
            metadata: dict[str, Any] = {
                name: _property_value(value) for name, value in properties.items()
            }
            titles = (
                _property_value(value)
                for value in properties.values()
                if value.get("type") == "title"
            )
            metadata |= {"id": page["id"], "title": next(titles, None) or "", "url": page["url"]}
            blocks = self._blocks(page["id"])
            yield Document(page_content=blocks_to_markdown(blocks), metadata=metadata)

    def _pages(self) -> Iterator[ApiObject]:
        path, body = "search", {"filter": {"property": "object", "value": "page"}}
        if self._database_id:
            path, body = f"databases/{self._database_id}/query", {}
        return read_paginated(
            lambda cursor: self._api.post(path, {**body, **cursor, "page_size": PAGE_SIZE}),
            *_PAGINATION_FIELDS,
        )

    def _blocks(self, parent_id: str) -> list[ContentBlock]:
        blocks = (self._block(block) for block in self._children(parent_id))
        return [block for block in blocks if block is not None]

    def _children(self, parent_id: str) -> Iterator[ApiObject]:
        path = f"blocks/{parent_id}/children"
        return read_paginated(
            lambda cursor: self._api.get(path, page_size=PAGE_SIZE, **cursor), *_PAGINATION_FIELDS
        )

    def _block(self, block: ApiObject) -> ContentBlock | None:
        """Return a block with its children; None if it is a separate page or database."""
        kind = block["type"]
        if kind in _SEPARATE_PAGES:
            return None
        content = block.get(kind) or {}
        if kind == "table":
            rows = (row.get("table_row", {}) for row in self._children(block["id"]))
            return ContentBlock("table", rows=[_cells(row) for row in rows])
        return ContentBlock(
            _KINDS.get(kind, "text"),
            _runs(content.get("rich_text") or content.get("caption") or ()),
            self._blocks(block["id"]) if block.get("has_children") else (),
            # Level 1 is the page's title.
            level=int(kind[-1]) + 1 if kind.startswith("heading_") else 1,
            language=str(content.get("language", "")).replace("plain text", ""),
        )


def _cells(table_row: ApiObject) -> list[str]:
    return [inline_markdown(_runs(cell)) for cell in table_row.get("cells", ())]


def _runs(rich_text: Any) -> list[TextRun]:
    return [
        TextRun(
            item.get("plain_text", ""),
            bool(item.get("annotations", {}).get("code")),
            item.get("href") or "",
        )
        for item in rich_text
    ]


def _property_value(value: ApiObject) -> object:
    """Return a property as text, a number, a boolean or a list of names.

    Returns None for an empty property and for a property of another type, such as a date.
    """
    content = value.get(value.get("type", ""))
    match content:
        case [{"plain_text": _}, *_]:
            return "".join(item["plain_text"] for item in content)
        case [{"name": _}, *_]:
            return [item.get("name") for item in content]
        case {"name": str(name)}:
            return name
        case str() | int() | float():
            return content
        case _:
            return None
