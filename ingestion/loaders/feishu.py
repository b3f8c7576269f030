"""Loads the documents of a Feishu or Lark wiki with their headings, tables and code.

LangChain's LarkSuiteWikiLoader loads a single document, as plain text.
"""

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from ingestion.loaders.wiki_api import (
    ApiObject,
    ContentBlock,
    ContentKind,
    JsonApi,
    TextRun,
    blocks_to_markdown,
    read_paginated,
)

NODE_PAGE_SIZE = 50
BLOCK_PAGE_SIZE = 500

BUSY_CODE = 99991400
"""Error code for too many requests. It is in the body of a reply with HTTP status 400."""

_KINDS: dict[str, ContentKind] = {
    "bullet": "bullet",
    "todo": "bullet",
    "ordered": "number",
    "quote": "quote",
    "quote_container": "quote",
    "callout": "quote",
    "code": "code",
}
"""Maps Feishu's types of blocks to kinds of content."""

_DOCUMENT_TYPE = "docx"

TRANSIENT_CODES = {BUSY_CODE, 1500, 131001, 1771001}
"""BUSY_CODE, and the codes for server errors: 1500 (all APIs), 131001 (wikis) and 1771001 (documents)."""


class FeishuError(Exception):
    """The API reported an error; the message contains the error's code and reason."""

    def __init__(self, code: object, reason: object) -> None:
        super().__init__(f"code {code}: {reason}")
        self.is_transient = code in TRANSIENT_CODES
        """Whether the same request may succeed later."""


class FeishuWikiLoader(BaseLoader):
    """Loads the documents of a wiki space.

    `app_id` and `app_secret` are the credentials of an app that may read the space `space_id`. `base_url`
    is the address of the API without `/open-apis`, and the URLs of pages begin with `wiki_url`. `timeout_s`
    is the maximum number of seconds to connect, and to wait for each part of a response.
    """

    def __init__(
        self,
        app_id: str,
        app_secret: str,
        space_id: str,
        base_url: str = "https://open.feishu.cn",
        wiki_url: str = "https://feishu.cn/wiki",
        timeout_s: float = 30,
    ) -> None:
        self._api = JsonApi(f"{base_url.rstrip('/')}/open-apis", {}, timeout_s, BUSY_CODE)
        self._credentials = {"app_id": app_id, "app_secret": app_secret}
        self._space_id = space_id
        self._wiki_url = wiki_url.rstrip("/")

    def lazy_load(self) -> Iterator[Document]:
        """Yield each document of the wiki that has the type `docx`, with its `id`, `title` and `url`.

        Raises FeishuError, httpx.HTTPError, and ValueError for a reply that is not a JSON object.
        """
        reply = _checked(self._api.post("auth/v3/tenant_access_token/internal", self._credentials))
        self._api.client.headers["Authorization"] = f"Bearer {reply['tenant_access_token']}"
        for node in self._nodes(""):
            if node["obj_type"] != _DOCUMENT_TYPE:
                continue
            token = node["node_token"]
            blocks = {
                block["block_id"]: block
                for block in self._items(
                    f"docx/v1/documents/{node['obj_token']}/blocks", BLOCK_PAGE_SIZE
                )
            }
            yield Document(
                page_content=_page_markdown(blocks),
                metadata={"id": token, "title": node["title"], "url": f"{self._wiki_url}/{token}"},
            )

    def _nodes(self, parent_token: str) -> Iterator[ApiObject]:
        """Yield the nodes of the wiki's page tree below a parent node, each before its children.

        `parent_token` identifies the parent node. If it is empty, all nodes of the space are returned.
        """
        path = f"wiki/v2/spaces/{self._space_id}/nodes"
        for node in self._items(path, NODE_PAGE_SIZE, parent_node_token=parent_token):
            yield node
            if node.get("has_child"):
                yield from self._nodes(node["node_token"])

    def _items(self, path: str, page_size: int, **params: str) -> Iterator[ApiObject]:
        def request(cursor: ApiObject) -> ApiObject:
            reply = self._api.get(path, page_size=page_size, **params, **cursor)
            data: ApiObject = _checked(reply)["data"]
            # The API omits `items` and `has_more` if the list is empty.
            return {"items": (), "has_more": False, **data}

        return read_paginated(request, "items", "page_token", "page_token")


def _checked(reply: ApiObject) -> ApiObject:
    """Return `reply`. Raises FeishuError if its `code` is not 0, even with HTTP status 200."""
    if reply.get("code") != 0:
        raise FeishuError(reply.get("code"), reply.get("msg"))
    return reply


def _page_markdown(blocks: Mapping[str, ApiObject]) -> str:
    root = next((block for block in blocks.values() if "page" in block), None)
    return "" if root is None else blocks_to_markdown(_children(root, blocks))


def _children(block: ApiObject, blocks: Mapping[str, ApiObject]) -> list[ContentBlock]:
    ids = block.get("children") or ()
    return [_block(blocks[block_id], blocks) for block_id in ids if block_id in blocks]


def _block(block: ApiObject, blocks: Mapping[str, ApiObject]) -> ContentBlock:
    if "table" in block:
        return ContentBlock("table", rows=_rows(block["table"], blocks))
    name = next((key for key, value in block.items() if _has_elements(value)), "")
    runs = [_run(element) for element in (block.get(name) or {}).get("elements", ())]
    children = _children(block, blocks)
    level = name.removeprefix("heading")
    if level.isdecimal():  # level 1 is the page's title, so `heading1` becomes level 2
        return ContentBlock("heading", runs, children, level=int(level) + 1)
    kind: ContentKind = next((_KINDS[key] for key in block if key in _KINDS), "text")
    return ContentBlock(kind, runs, children)


def _has_elements(value: object) -> bool:
    return isinstance(value, dict) and "elements" in value


def _rows(table: ApiObject, blocks: Mapping[str, ApiObject]) -> list[list[str]]:
    width = max(1, table["property"]["column_size"])
    cells = [
        blocks_to_markdown(_children(blocks[cell], blocks)) if cell in blocks else ""
        for cell in table.get("cells") or ()
    ]
    return [cells[start : start + width] for start in range(0, len(cells), width)]


def _run(element: ApiObject) -> TextRun:
    run = element.get("text_run") or element.get("equation")
    if run is None:  # a mention of a document; any other element becomes empty
        mention = element.get("mention_doc") or {}
        return TextRun(mention.get("title", ""), link=unquote(mention.get("url", "")))
    style = run.get("text_element_style") or {}
    link = (style.get("link") or {}).get("url", "")  # the API percent-encodes the whole URL
    return TextRun(run["content"], bool(style.get("inline_code")), unquote(link))
