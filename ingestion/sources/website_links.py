"""Finds the links of HTML pages, and reads sitemaps."""

import zlib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin
from xml.etree import ElementTree

from schemas.errors import SourceError
from schemas.platform import SourceLimits

_GZIP_MARK = b"\x1f\x8b"


@dataclass(frozen=True)
class PageLinks:
    """The links of a page, and what its `<meta>` elements named `robots` or `apidesk` allow."""

    urls: tuple[str, ...] = ()
    may_index: bool = True
    """Whether the page may be indexed."""
    may_follow: bool = True
    """Whether the links of the page may be followed."""


@dataclass(frozen=True)
class Sitemap:
    """The URLs in a sitemap."""

    pages: tuple[str, ...]
    sitemaps: tuple[str, ...]
    """Further sitemaps, if the sitemap is an index."""


@dataclass
class _LinkParser(HTMLParser):
    base: str = ""
    urls: list[str] = field(default_factory=list)
    robots: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and "nofollow" not in (values.get("rel") or ""):
            self.urls.append(values.get("href") or "")
        elif tag == "base":
            self.base = self.base or values.get("href") or ""
        elif tag == "meta" and (values.get("name") or "").lower() in ("robots", "apidesk"):
            self.robots += (values.get("content") or "").lower()


def find_links(data: bytes, page_url: str) -> PageLinks:
    """Return the http(s) links of the HTML page at `page_url`, without their fragments.

    Links with `rel="nofollow"` are left out.
    """
    parser = _LinkParser()
    parser.feed(data.decode("utf-8", "replace"))
    base = _join(page_url, parser.base)
    # Large pages have thousands of links to the sections of a few pages.
    hrefs = dict.fromkeys(url.strip().partition("#")[0] for url in parser.urls)
    urls = [_join(base, href) for href in hrefs if href]
    return PageLinks(
        tuple(url for url in urls if url.startswith(("http://", "https://"))),
        may_index="noindex" not in parser.robots,
        may_follow="nofollow" not in parser.robots,
    )


def _join(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:
        return ""


def read_sitemap(data: bytes, limits: SourceLimits) -> Sitemap:
    """Return the URLs in a sitemap, which may be compressed with gzip.

    Raises SourceError if `data` is not a sitemap, declares a document type, or is larger than
    `limits.unpacked_bytes` after unpacking.
    """
    if data.startswith(_GZIP_MARK):
        data = _unpack(data, limits.unpacked_bytes)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise SourceError("a sitemap must not declare a document type")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise SourceError(f"not a sitemap: {error}") from None
    kind = root.tag.rpartition("}")[2]
    if kind not in ("urlset", "sitemapindex"):
        raise SourceError(f"not a sitemap: its root is <{kind}>")
    entries = (child.text or "" for entry in root for child in entry if child.tag.endswith("}loc"))
    urls = tuple(url.strip() for url in entries)
    return Sitemap(urls, ()) if kind == "urlset" else Sitemap((), urls)


def _unpack(data: bytes, max_bytes: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(data, max_bytes)
    except zlib.error as error:
        raise SourceError(f"not a sitemap: {error}") from None
    if not unpacker.eof:
        raise SourceError("incomplete, or too large after unpacking (APIDESK_MAX_UNPACKED_BYTES)")
    return unpacked
