"""Sites that ask for a login: their pages are neither replaced nor deleted."""

from typing import Any

import pytest

from schemas.ingestion import IngestionOptions
from tests.scripted_server import Reply, hang, status
from tests.websites.site import Crawler, Site, by_links_and_by_sitemap, page

pytestmark = pytest.mark.acceptance


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
