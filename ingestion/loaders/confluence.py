"""Loads Confluence pages as the HTML that readers see, with their headings, tables and code.

This module needs the extra `loaders`, so the other loaders must not import it.
"""

from typing import Any

from langchain_community.document_loaders.confluence import ConfluenceLoader, ContentFormat
from langchain_core.documents import Document

MAX_PAGES = 1_000_000
"""Maximum number of pages. By default, the base class stops after 1,000 pages, without an error."""


class ConfluenceHtmlLoader(ConfluenceLoader):
    """A ConfluenceLoader that does not flatten pages to text. It takes the same arguments.

    Attachments and comments are not loaded. Restricted pages are left out unless
    `include_restricted_content` is true.

    Failed requests are not repeated, because a wrong password must not be sent several times. After a
    transient error, `ingestion.sources.loader` starts the whole loader again.
    """

    def __init__(self, url: str, **arguments: Any) -> None:
        defaults: dict[str, Any] = {
            "content_format": ContentFormat.VIEW,
            "max_pages": MAX_PAGES,
            "number_of_retries": 1,
        }
        # By default, the client repeats a request as long as the reply is 429 with Retry-After.
        client_options = {"retry_with_header": False, **arguments.pop("confluence_kwargs", {})}
        super().__init__(url, confluence_kwargs=client_options, **defaults | arguments)

    def process_page(self, page: dict[str, Any], *_: Any, **__: Any) -> Document:
        """Return the page as HTML, with its `id`, its `title` and its address as `source`."""
        return Document(
            page_content=self.content_format.get_content(page),
            metadata={
                "id": page["id"],
                "title": page["title"],
                "source": self.base_url.rstrip("/") + page["_links"]["webui"],
            },
        )
