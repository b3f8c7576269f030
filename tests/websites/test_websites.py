"""Sources of kind `website`: pages found by links or by a sitemap, within the rules of a good crawler."""

import gzip
import time
from dataclasses import replace

import pytest
from pydantic import ValidationError

from ingestion.sources.fetch import MAX_REDIRECTS
from ingestion.sources.website import find_links
from schemas.errors import SourceError
from schemas.platform import WebsiteSourceConfig
from tests.scripted_server import Fault, Reply, half, hang, serving, status
from tests.websites.site import Crawler, Site, by_links_and_by_sitemap, page

pytestmark = pytest.mark.acceptance

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
