"""Loads Yuque documents with their ids and addresses.

LangChain's YuqueLoader reads only the first 100 documents of each of the user's own books, and yields
neither ids nor addresses.
"""

from collections.abc import Iterator, Sequence

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from ingestion.loaders.wiki_api import ApiObject, JsonApi

PAGE_SIZE = 100

_FORMATS = {"markdown", "lake"}
"""Formats of documents with text. Sheets and boards have other formats."""


class YuqueLoader(BaseLoader):
    """Loads the published documents of `books`, except sheets and boards.

    Each of `books` is the path in the URL of a book, such as `group/book`. `access_token` is an API token.
    `base_url` is the address of Yuque. `timeout_s` is the maximum number of seconds to connect, and to wait
    for each part of a response.
    """

    def __init__(
        self,
        access_token: str,
        books: Sequence[str],
        base_url: str = "https://www.yuque.com",
        timeout_s: float = 30,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._api = JsonApi(f"{self._base_url}/api/v2", {"X-Auth-Token": access_token}, timeout_s)
        self._books = books

    def lazy_load(self) -> Iterator[Document]:
        """Yield each document with its `id` (`group/book/slug`), `title`, `description` and `url`.

        Raises httpx.HTTPError, and ValueError for a response that is not a JSON object.
        """
        for book in self._books:
            for entry in self._entries(book):
                if str(entry.get("status", 1)) != "1":  # a draft
                    continue
                page = self._api.get(f"repos/{book}/docs/{entry['slug']}")["data"]
                if page.get("format", "markdown") not in _FORMATS:
                    continue
                path = f"{book}/{entry['slug']}"
                metadata = {
                    "id": path,
                    "title": page["title"],
                    "description": page.get("description") or "",
                    "url": f"{self._base_url}/{path}",
                }
                yield Document(page_content=page.get("body") or "", metadata=metadata)

    def _entries(self, book: str) -> Iterator[ApiObject]:
        offset = 0
        while True:
            entries = self._api.get(f"repos/{book}/docs", offset=offset, limit=PAGE_SIZE)["data"]
            yield from entries
            offset += len(entries)
            if len(entries) < PAGE_SIZE:
                return
