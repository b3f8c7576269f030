"""Sources of kind `website`: pages found by links or by a sitemap, within the rules of a good crawler."""

import gzip
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ingestion.source_reading import ReadOptions
from ingestion.sources.fetch import MAX_REDIRECTS
from ingestion.sources.registry import FileResult, Waiting, read_source
from ingestion.sources.website import find_links
from ingestion.sync import Sync
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.ingestion import IngestionOptions, SourceReport
from schemas.platform import SourceLimits, WebsiteSourceConfig
from schemas.settings import read_settings
from tests.collections import open_collection, stored_rows
from tests.scripted_server import (
    Fault,
    Reply,
    Request,
    ScriptedServer,
    half,
    hang,
    serving,
    status,
)

pytestmark = pytest.mark.acceptance


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


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        guide = [f"/guide/p{number}" for number in range(1, 6)]
        site.pages["/guide/"] = page("Guide", "Start here.", *guide, "/guide/#top", "/blog/news")
        for number, path in enumerate(guide, 1):
            site.pages[path] = page(f"Page {number}", f"Send parcel {number} today.", "../guide/")
        site.pages["/blog/news"] = page("News", "We are hiring.")
        yield site


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


@pytest.fixture
def crawler(
    request: pytest.FixtureRequest, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Crawler]:
    monkeypatch.setattr("ingestion.sources.website.FIRST_RETRY_S", 0.01)
    crawler = Crawler(site, tmp_path, getattr(request, "param", "links") == "sitemap")
    yield crawler
    crawler.collection.close()


by_links_and_by_sitemap = pytest.mark.parametrize("crawler", ["links", "sitemap"], indirect=True)

FAULTS = {
    "401": (status(401), "HTTP 401"),
    "429": (status(429, Retry_After="0"), "HTTP 429"),
    "500": (status(500), "HTTP 500"),
    "half": (half, "cannot be fetched"),
    "timeout": (hang, "did not arrive"),
}
"""Lasting faults of a server, each with a part of the line in the report."""


def test_pages_below_the_start_page_are_read_with_their_main_content(crawler: Crawler) -> None:
    documents = crawler.documents()
    assert sorted(documents) == ["guide", *(f"guide/p{number}" for number in range(1, 6))]
    first = documents["guide/p1"]
    assert (first.title, first.page_url) == ("Page 1", f"{crawler.site.url}/guide/p1")
    assert [(s.heading, s.body) for s in first.sections] == [(("Sending",), "Send parcel 1 today.")]


@by_links_and_by_sitemap
def test_unchanged_pages_are_not_sent_again(crawler: Crawler) -> None:
    site = crawler.site
    assert crawler.sync().added == 6
    assert site.statuses == [200] * 6
    site.statuses.clear()
    report = crawler.sync()
    assert (report.unchanged, report.written) == (6, 0)
    assert site.statuses == [304] * 6
    site.pages["/guide/p2"] = page("Page 2", "Collect parcel 2.", "/guide/p6")
    site.pages["/guide/p6"] = page("Page 6", "New.")
    report = crawler.sync()
    assert (report.added, report.changed, report.unchanged) == (1, 1, 5)
    assert "Collect parcel 2" in crawler.texts()


@by_links_and_by_sitemap
def test_deleted_pages_are_deleted_and_many_are_kept(crawler: Crawler) -> None:
    crawler.sync()
    del crawler.site.pages["/guide/p5"]
    report = crawler.sync()
    assert (report.deleted, report.refused) == (1, [])
    for number in range(1, 5):
        del crawler.site.pages[f"/guide/p{number}"]
    report = crawler.sync()
    assert (report.deleted, report.kept) == (0, 4)


@by_links_and_by_sitemap
@pytest.mark.parametrize(("fault", "reason"), FAULTS.values(), ids=FAULTS)
def test_failing_page_deletes_nothing(crawler: Crawler, fault: Fault, reason: str) -> None:
    crawler.sync()
    crawler.limits = replace(crawler.limits, fetch_seconds=2.0)
    crawler.site.pages["/guide/p2"] += "<p>Changed</p>"
    del crawler.site.pages["/guide/p5"]
    crawler.site.fail(fault, "/guide/p2")
    report = crawler.sync()
    assert (report.deleted, report.kept) == (0, 2)
    (line,) = report.refused
    assert f"{crawler.site.url}/guide/p2: " in line
    assert reason in line
    assert "parcel 5" in crawler.texts()
    crawler.site.fault = None
    crawler.limits = replace(crawler.limits, fetch_seconds=30)
    report = crawler.sync()
    assert (report.deleted, report.refused) == (1, [])


@pytest.mark.parametrize("crawler", ["sitemap"], indirect=True)
@pytest.mark.parametrize(("fault", "reason"), FAULTS.values(), ids=FAULTS)
def test_failing_sitemap_deletes_nothing(crawler: Crawler, fault: Fault, reason: str) -> None:
    crawler.sync()
    crawler.limits = replace(crawler.limits, fetch_seconds=2.0)
    del crawler.site.pages["/guide/p5"]
    crawler.site.fail(fault, "/all.xml")
    report = crawler.sync()
    assert (report.deleted, report.kept) == (0, 6)
    (line,) = report.refused
    assert f"{crawler.site.url}/all.xml: " in line
    assert reason in line
    crawler.site.fault = None
    crawler.limits = replace(crawler.limits, fetch_seconds=30)
    assert crawler.sync().deleted == 1


@by_links_and_by_sitemap
@pytest.mark.parametrize("fault", [status(429, Retry_After="1"), status(503), half])
def test_passing_fault_is_retried(crawler: Crawler, fault: Fault) -> None:
    crawler.site.fail(fault, "/guide/p2", count=1)
    report = crawler.sync()
    assert (report.added, report.refused) == (6, [])


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b"x" * 20_000), "in total"),
        (Reply(b"x", headers={"Content-Encoding": "br"}), "unsupported content encoding"),
        (Reply(status=302, headers={"Location": "gopher://x/"}), "not an http(s) URL"),
        (Reply(status=302, headers={"Location": "/guide/p2"}), "redirects more than"),
    ],
    ids=["too large", "encoding", "invalid redirect", "endless redirect"],
)
def test_lasting_fault_is_not_retried(crawler: Crawler, reply: Reply, reason: str) -> None:
    crawler.limits = replace(crawler.limits, file_bytes=10_000)
    crawler.site.replies["/guide/p2"] = reply
    (line,) = crawler.sync().refused
    assert reason in line
    requests = crawler.site.fetched().count("/guide/p2")
    assert requests == (MAX_REDIRECTS + 1 if reason == "redirects more than" else 1)


def test_half_a_page_is_not_taken_from_the_cache(crawler: Crawler) -> None:
    crawler.site.fail(half, "/guide/p2")
    assert crawler.sync(max_errors=20).added == 5
    crawler.site.fault = None
    assert crawler.sync().added == 1


def test_crawl_ends_after_too_many_errors_and_at_the_time_limit(crawler: Crawler) -> None:
    crawler.sync()
    crawler.site.fail(status(403), "/guide/p")
    report = crawler.sync(max_errors=1)
    assert len(report.refused) == 2
    assert "abandoned after 2 errors (max_errors)" in report.refused[1]
    crawler.site.fail(hang, "/guide/p")
    started = time.monotonic()
    report = crawler.sync(timeout_seconds=0.5, requests_per_second=3)
    assert time.monotonic() - started < 20
    assert "(timeout_seconds)" in report.refused[-1]
    assert report.deleted == 0


def test_failing_start_page_ends_the_source(crawler: Crawler) -> None:
    del crawler.site.pages["/guide/"]
    with pytest.raises(SourceError, match="/guide/: answers with HTTP 404"):
        crawler.read()


def test_sitemaps_are_followed_and_their_faults_end_the_source(crawler: Crawler) -> None:
    site = crawler.site
    listed = site.sitemap("/guide/p1", "/blog/news", "/blog/gone")
    site.replies["/sitemap.xml"] = site.sitemap("/a.xml.gz", "/sitemap.xml", kind="sitemapindex")
    site.replies["/a.xml.gz"] = Reply(gzip.compress(listed.body))
    start = {"sitemap": f"{site.url}/sitemap.xml"}
    assert sorted(crawler.documents(**start)) == ["blog/news", "guide/p1"]
    assert sorted(crawler.documents(**start, exclude=["^/blog/"])) == ["guide/p1"]
    for broken in (
        listed.body[: len(listed.body) // 2],
        b"<html></html>",
        gzip.compress(b"x" * 99)[:20],
    ):
        site.replies["/a.xml.gz"] = Reply(broken)
        with pytest.raises(SourceError, match=r"/a\.xml\.gz: "):
            crawler.read(**start)
    entities = b'<!DOCTYPE x [<!ENTITY a "b">]><urlset/>'
    for data in (entities, entities.decode().encode("utf-16")):
        site.replies["/a.xml.gz"] = Reply(data)
        with pytest.raises(SourceError, match="document type"):
            crawler.read(**start)
    without_namespace = f"<urlset><url><loc>{site.url}/guide/p1</loc></url></urlset>"
    site.replies["/a.xml.gz"] = Reply(without_namespace.encode())
    assert sorted(crawler.documents(**start)) == ["guide/p1"]


def test_patterns_depth_and_number_of_pages_limit_the_crawl(crawler: Crawler) -> None:
    assert sorted(crawler.documents(include=["/p[12]$", "^/blog/"])) == [
        "blog/news",
        "guide/p1",
        "guide/p2",
    ]
    assert sorted(crawler.documents(depth=0)) == ["guide"]
    with pytest.raises(SourceError, match=r"has more than 3 pages \(max_pages\)"):
        crawler.read(max_pages=3)


def test_robots_txt_and_robots_meta_are_obeyed(crawler: Crawler) -> None:
    site = crawler.site
    site.robots = "User-agent: *\nDisallow: /guide/p1\nAllow: /\nDisallow: /*/p2$\n"
    site.pages["/guide/p3"] = page("P3", "x", head='<meta name="robots" content="noindex">')
    assert sorted(crawler.documents()) == ["guide", "guide/p4", "guide/p5"]
    assert not {"/guide/p1", "/guide/p2"} & set(site.paths())
    site.robots = "User-agent: apidesk\nDisallow: /\n"
    with pytest.raises(SourceError, match=r"robots\.txt disallows"):
        crawler.read()
    site.fail(status(500), "/robots.txt")
    with pytest.raises(SourceError, match=r"robots\.txt: answers with HTTP 500"):
        crawler.read()


def test_redirects_to_disallowed_pages_are_not_followed(crawler: Crawler) -> None:
    site = crawler.site
    site.robots = "User-agent: *\nDisallow: /private\n"
    for path in ("/private/x", "/guide/hidden"):
        site.pages[path] = page("Hidden", "Not for crawlers.", "/guide/hidden")
    site.replies["/guide/p1"] = Reply(status=302, headers={"Location": "/private/x"})
    assert sorted(crawler.documents()) == ["guide", *(f"guide/p{number}" for number in range(2, 6))]
    site.replies["/guide/"] = site.replies["/guide/p1"]
    with pytest.raises(SourceError, match=f"/guide/: robots.txt disallows {site.url}/private/x"):
        crawler.read()
    assert not {"/private/x", "/guide/hidden"} & set(site.paths())


def test_robots_none_and_nofollow_in_capitals_are_obeyed() -> None:
    html = '<meta name="robots" content="none"><a href="/a">a</a><a rel="NoFollow" href="/b">b</a>'
    links = find_links(html.encode(), "https://acme.example/")
    assert (links.may_index, links.may_follow) == (False, False)
    assert links.urls == ("https://acme.example/a",)


def test_link_that_leaves_the_folder_with_encoded_dots_is_resolved() -> None:
    links = find_links(b'<a href="%2e%2E/secret">s</a>', "https://acme.example/docs/")
    assert links.urls == ("https://acme.example/secret",)


# --- sites that ask for a login -------------------------------------------------------------------


def add_pages(site: Site) -> list[str]:
    """Add pages to the guide; return the paths of all its pages but the start page."""
    paths = [f"/guide/p{number}" for number in range(1, 13)]
    site.pages["/guide/"] = page("Guide", "Start here.", *paths)
    for number, path in enumerate(paths, 1):
        site.pages[path] = page(f"Page {number}", f"Send parcel {number} today.")
    return paths


def login_page(path: str) -> str:
    link = f'<a href="/login?next={path}">Sign in</a>'
    return page("Sign in", f"{link} with your company account.")


@by_links_and_by_sitemap
def test_pages_that_become_identical_are_kept(crawler: Crawler) -> None:
    paths = add_pages(crawler.site)
    crawler.sync()
    good = dict(crawler.site.pages)
    crawler.site.pages |= {path: login_page(path) for path in paths}
    crawler.site.pages["/guide/"] = page("Guide", "Begin here.", *paths)
    report = crawler.sync()
    assert (report.changed, report.kept, report.deleted) == (1, 12, 0)
    assert len(report.refused) == 1
    assert report.refused[0].startswith("12 pages have the same text")
    assert "parcel 5" in crawler.texts()
    assert "company account" not in crawler.texts()
    crawler.site.pages = good
    report = crawler.sync()
    assert (report.changed, report.unchanged, report.refused) == (1, 12, [])


def test_identical_pages_are_accepted_with_allow_deletes(crawler: Crawler) -> None:
    paths = add_pages(crawler.site)
    crawler.sync()
    crawler.site.pages |= {path: login_page(path) for path in paths}
    report = crawler.sync_with(IngestionOptions(allow_deletes=True))
    assert (report.changed, report.refused) == (12, [])


def test_pages_that_were_identical_before_may_change(crawler: Crawler) -> None:
    paths = add_pages(crawler.site)
    crawler.site.pages |= {path: page("Draft", "Coming soon.") for path in paths}
    crawler.sync()
    crawler.site.pages |= {path: page("Draft", "Coming next year.") for path in paths}
    report = crawler.sync()
    assert (report.changed, report.refused) == (12, [])


def test_few_pages_may_become_identical(crawler: Crawler) -> None:
    paths = add_pages(crawler.site)
    crawler.sync()
    crawler.site.pages |= {path: page("Moved", "See the manual.") for path in paths[:5]}
    report = crawler.sync()
    assert (report.changed, report.refused) == (5, [])


def redirect_to_login(site: Site, *paths: str) -> None:
    site.pages["/login"] = login_page("")
    for path in paths:
        target = {"Location": f"/login?next={path}"}
        site.replies[path] = Reply(status=302, headers=target)


@pytest.mark.parametrize("robots", ["", "User-agent: *\nDisallow: /login\n"])
def test_pages_behind_a_login_are_neither_replaced_nor_deleted(
    crawler: Crawler, robots: str
) -> None:
    crawler.site.robots = robots
    paths = add_pages(crawler.site)
    start = {"sitemap": f"{crawler.site.url}/sitemap.xml"}
    crawler.site.replies["/sitemap.xml"] = crawler.site.sitemap(*paths)
    crawler.sync(**start)
    redirect_to_login(crawler.site, *paths)
    for allow_deletes in (False, True):
        report = crawler.sync_with(IngestionOptions(allow_deletes=allow_deletes), **start)
        assert (report.documents, report.kept) == (0, 12)
        assert report.refused == [
            f"12 of 12 pages redirect to {crawler.site.url}/login and cannot be read"
        ]
    assert "company account" not in crawler.texts()


def test_few_pages_may_redirect_to_one_page(crawler: Crawler) -> None:
    paths = add_pages(crawler.site)
    crawler.site.replies["/sitemap.xml"] = crawler.site.sitemap(*paths)
    redirect_to_login(crawler.site, *paths[:2])
    documents = crawler.documents(sitemap=f"{crawler.site.url}/sitemap.xml")
    assert len(documents) == 12
    assert "login?next=/guide/p1" in documents


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"max_pages": 3}, "(max_pages)"),
        ({"max_errors": 0}, "(max_errors)"),
        ({"timeout_seconds": 1}, "(timeout_seconds)"),
    ],
)
def test_pages_behind_redirects_are_read_before_the_crawl_ends_with_an_error(
    crawler: Crawler, fields: dict[str, Any], reason: str
) -> None:
    site = crawler.site
    site.replies["/sitemap.xml"] = site.sitemap("/old", *(f"/guide/p{n}" for n in range(1, 6)))
    site.replies["/old"] = Reply(status=301, headers={"Location": "/new"})
    site.pages["/new"] = page("New", "Send a parcel by drone.")
    site.fail(hang if "timeout_seconds" in fields else status(403), "/guide/p3")
    start = {"sitemap": f"{site.url}/sitemap.xml"}
    report = crawler.sync(**start, **fields)
    assert reason in report.refused[-1]
    assert "by drone" in crawler.texts()


def test_start_page_behind_a_login_is_reported(crawler: Crawler) -> None:
    crawler.sync()
    site = crawler.site
    redirect_to_login(site, *(path for path in site.pages if path.startswith("/guide/")))
    report = crawler.sync()
    assert (report.added, report.kept) == (0, 6)
    assert report.refused == [
        f"{site.url}/guide/ redirects to {site.url}/login?next=/guide/, "
        "which is not a page of the source and does not link to one; check url and include"
    ]


def test_site_without_pages_is_not_advised_to_be_deleted(crawler: Crawler) -> None:
    crawler.sync()
    start = {"sitemap": f"{crawler.site.url}/sitemap.xml"}
    crawler.site.replies["/sitemap.xml"] = crawler.site.sitemap("/guide/gone")
    report = crawler.sync(**start)
    assert report.kept == 6
    assert report.refused == [
        "no documents were found, so the 6 indexed ones are kept: check the source"
    ]


def test_start_folder_may_contain_chinese(crawler: Crawler) -> None:
    folder = "/%E6%96%87%E6%A1%A3"
    site = crawler.site
    site.pages[f"{folder}/start"] = page("Start", "Read on.", f"{folder}/next", "/blog/news")
    site.pages[f"{folder}/next"] = page("Next", "The end.")
    documents = crawler.documents(url=f"{site.url}/文档/start").values()
    assert sorted(document.title for document in documents) == ["Next", "Start"]


def test_fragment_of_the_start_page_is_ignored(crawler: Crawler) -> None:
    start = f"{crawler.site.url}/guide/#/start"
    assert sorted(crawler.documents(url=start, include=["/p[12]$"])) == ["guide/p1", "guide/p2"]


def test_page_whose_name_ends_in_index_has_an_id_of_its_own(crawler: Crawler) -> None:
    site = crawler.site
    site.pages["/guide/p1"] = page("P1", "x", "/guide/my", "/guide/myindex.html")
    site.pages["/guide/my"] = page("My", "First.")
    site.pages["/guide/myindex.html"] = page("My index", "Second.")
    assert {"guide/my", "guide/myindex.html"} <= set(crawler.documents())


def test_rate_is_limited_by_the_setting_and_by_robots_txt(crawler: Crawler) -> None:
    started = time.monotonic()
    crawler.read(requests_per_second=10)
    assert time.monotonic() - started > 0.6
    crawler.site.robots = "User-agent: *\nCrawl-delay: 0.3\n"
    started = time.monotonic()
    crawler.read()
    assert time.monotonic() - started > 1.8


def test_rate_limit_may_be_slower_than_the_longest_wait_before_a_retry(
    crawler: Crawler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.sources.website.MAX_RETRY_DELAY_S", 0.01)
    started = time.monotonic()
    crawler.read(requests_per_second=10)
    assert time.monotonic() - started > 0.6


def test_other_hosts_are_never_contacted(crawler: Crawler) -> None:
    with serving(Site()) as other:
        other.pages["/guide/"] = page("Other", "Not ours.")
        site = crawler.site
        links = (
            f"{other.url}/guide/",
            "/guide/away",
            "mailto:a@b.example",
            "http://[",
            "/guide/in",
        )
        site.pages["/guide/"] = page("Guide", "Start here.", *links)
        site.replies["/guide/away"] = Reply(status=302, headers={"Location": f"{other.url}/guide/"})
        site.replies["/guide/in"] = Reply(status=302, headers={"Location": "/guide/p1"})
        assert sorted(crawler.documents()) == ["guide", "guide/p1"]
        assert other.requests == []


def test_private_addresses_are_refused_unless_allowed(crawler: Crawler) -> None:
    crawler.limits = replace(crawler.limits, private_hosts=())
    with pytest.raises(SourceError, match="APIDESK_PRIVATE_HOSTS"):
        crawler.read()
    assert crawler.site.requests == []


def test_pages_of_other_types_are_read_or_left_out(crawler: Crawler) -> None:
    site = crawler.site
    site.pages["/guide/"] = page("Guide", "Start here.", "/guide/llms.md", "/guide/logo.png")
    markdown = b"---\ntitle: For models\n---\n\n## Limits\n\nTen a second."
    site.replies["/guide/llms.md"] = Reply(markdown, headers={"Content-Type": "text/markdown"})
    site.replies["/guide/logo.png"] = Reply(b"\x89PNG", headers={"Content-Type": "image/png"})
    documents = crawler.documents()
    assert sorted(documents) == ["guide", "guide/llms.md"]
    assert documents["guide/llms.md"].title == "For models"


def test_start_page_of_another_type_is_reported(crawler: Crawler) -> None:
    crawler.site.replies["/guide/"] = Reply(b"%PDF", headers={"Content-Type": "application/pdf"})
    with pytest.raises(SourceError, match=r"/guide/: is application/pdf, but must be HTML"):
        crawler.read()


def test_page_whose_media_type_changes_is_read_again(crawler: Crawler) -> None:
    site = crawler.site
    site.pages["/guide/"] = page("Guide", "Start here.", "/guide/llms.md")
    text = b"# For models\n\nTen &amp; more."
    site.replies["/guide/llms.md"] = Reply(text, headers={"Content-Type": "text/plain"})
    crawler.sync()
    site.replies["/guide/llms.md"] = Reply(text, headers={"Content-Type": "text/markdown"})
    assert crawler.sync().changed == 1
    assert "Ten & more." in crawler.texts()


def test_unusable_cache_only_costs_time(crawler: Crawler) -> None:
    assert crawler.limits.website_cache is not None
    crawler.limits.website_cache.parent.mkdir()
    crawler.limits.website_cache.write_bytes(b"not a database" * 100)
    assert len(crawler.documents()) == 6


@pytest.mark.parametrize(
    "fields",
    [{}, {"url": "https://a.example", "sitemap": "https://a.example/s.xml"}, {"url": "ftp://a"}],
)
def test_source_names_one_start(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match=r"url or a sitemap|http://"):
        WebsiteSourceConfig.model_validate({"name": "site", "kind": "website", **fields})
