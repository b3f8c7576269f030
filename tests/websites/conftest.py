"""A site, and a crawler that finds its pages by links or by a sitemap."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripted_server import serving
from tests.websites.site import Crawler, Site, page


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        guide = [f"/guide/p{number}" for number in range(1, 6)]
        site.pages["/guide/"] = page("Guide", "Start here.", *guide, "/guide/#top", "/blog/news")
        for number, path in enumerate(guide, 1):
            site.pages[path] = page(f"Page {number}", f"Send parcel {number} today.", "../guide/")
        site.pages["/blog/news"] = page("News", "We are hiring.")
        yield site


@pytest.fixture
def crawler(
    request: pytest.FixtureRequest, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Crawler]:
    monkeypatch.setattr("ingestion.sources.website.FIRST_RETRY_S", 0.01)
    crawler = Crawler(site, tmp_path, getattr(request, "param", "links") == "sitemap")
    yield crawler
    crawler.collection.close()
