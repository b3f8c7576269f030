"""A site on loopback, and a crawler that fills a collection from it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ingestion.source_reading import ReadOptions
from ingestion.sources.registry import FileResult, Waiting, read_source
from ingestion.sync import Sync
from schemas.document import SourceDocument
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.platform import SourceLimits, WebsiteSourceConfig
from schemas.settings import read_settings
from tests.collections import open_collection, stored_rows
from tests.scripted_server import (
    Reply,
    Request,
    ScriptedServer,
)


def page(title: str, text: str, *links: str, head: str = "") -> str:
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return (
        f"<html><head><title>{title} | Acme</title>{head}</head><body><nav>{anchors}</nav>"
        f"<main><h1>{title}</h1><h2>Sending</h2><p>{text}</p></main>"
        "<footer>All rights reserved</footer></body></html>"
    )


@dataclass
class Site(ScriptedServer):
    """A site whose pages have an ETag of their content."""

    pages: dict[str, str] = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)
    """Other replies by path."""
    robots: str = ""
    statuses: list[int] = field(default_factory=list)
    """Status of each page that was requested."""

    def __post_init__(self) -> None:
        super().__init__()

    def reply(self, request: Request) -> Reply:
        if request.path == "/robots.txt":
            return Reply(self.robots.encode(), 200 if self.robots else 404)
        if request.path == "/all.xml":
            return self.sitemap(*self.pages)
        reply = self._page(request)
        self.statuses.append(reply.status)
        return reply

    def _page(self, request: Request) -> Reply:
        if request.path in self.replies:
            return self.replies[request.path]
        text = self.pages.get(request.path)
        if text is None:
            return Reply(b"<h1>Not found</h1>", 404)
        etag = f'"{abs(hash(text))}"'
        headers = {"ETag": etag, "Content-Type": "text/html; charset=utf-8"}
        if request.headers["If-None-Match"] == etag:
            return Reply(b"", 304, headers)
        return Reply(text.encode(), 200, headers)

    def fetched(self) -> list[str]:
        return [path for path in self.paths() if path != "/robots.txt"]

    def sitemap(self, *paths: str, kind: str = "urlset") -> Reply:
        entries = "".join(f"<url><loc>{self.url}{path}</loc></url>" for path in paths)
        namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
        xml = f'<?xml version="1.0"?><{kind} xmlns="{namespace}">{entries}</{kind}>'
        return Reply(xml.encode(), headers={"Content-Type": "application/xml"})


@dataclass
class Crawler:
    """A collection filled from a site, with a cache."""

    site: Site
    folder: Path
    by_sitemap: bool = False
    """Whether a sitemap lists the pages; otherwise they are found by links from the start page."""

    def __post_init__(self) -> None:
        settings = read_settings(milvus_uri=str(self.folder / "milvus.db"))
        self.collection = open_collection(settings, "embedded")
        self.limits = SourceLimits(
            private_hosts=("127.0.0.1",), website_cache=self.folder / "cache" / "websites.db"
        )

    def source(self, **fields: Any) -> WebsiteSourceConfig:
        start: dict[str, Any] = {"url": f"{self.site.url}/guide/"}
        if self.by_sitemap:
            start = {"sitemap": f"{self.site.url}/all.xml", "include": ["^/guide/"]}
        if "sitemap" in fields or "url" in fields:
            start = {}
        return WebsiteSourceConfig.model_validate(
            {"name": "site", "kind": "website", "requests_per_second": 1_000, **start, **fields}
        )

    def read(self, **fields: Any) -> list[FileResult]:
        results = read_source(self.source(**fields), self.limits)
        return [result for result in results if not isinstance(result, Waiting)]

    def documents(self, **fields: Any) -> dict[str, SourceDocument]:
        found = self.read(**fields)
        documents = [document for document in found if isinstance(document, SourceDocument)]
        assert found == documents
        return {document.id: document for document in documents}

    def sync(self, **fields: Any) -> SourceReport:
        return self.sync_with(IngestionOptions(), **fields)

    def sync_with(self, options: IngestionOptions, **fields: Any) -> SourceReport:
        sync = Sync(self.collection, None, ReadOptions(self.limits, 400), options)
        sync.run([self.source(**fields)])
        return sync.reports[0]

    def texts(self) -> str:
        return "\n".join(str(row["text"]) for row in stored_rows(self.collection).values())


by_links_and_by_sitemap = pytest.mark.parametrize("crawler", ["links", "sitemap"], indirect=True)
