"""Reads the pages of a web site. Finds them through links from a start page, or in a sitemap.

Requests go to one origin, at a limited rate and according to the robots.txt of the site. Pages that the
server declares unchanged (ETag, Last-Modified) come from a cache.
"""

import logging
import re
import sqlite3
import time
import zlib
from collections import Counter, deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin
from xml.etree import ElementTree

import httpx
from hishel import SqliteStorage
from protego import Protego

from ingestion.sources.fetch import (
    USER_AGENT,
    CrossOriginError,
    DisallowedError,
    Download,
    Downloader,
    StatusError,
    TransientError,
)
from ingestion.sources.registry import FileResult, KnownFiles, Waiting
from ingestion.sources.remote_pages import (
    MAX_RETRY_DELAY_S,
    Deadline,
    RemotePage,
    SourceAbandoned,
    read_remote_page,
)
from schemas.errors import SourceError
from schemas.platform import PageFormat, SourceLimits, WebsiteSourceConfig

MAX_ATTEMPTS = 3
"""Maximum number of requests for a URL. Only transient errors lead to another request."""

FIRST_RETRY_S = 1.0
"""Delay before a request is repeated, in seconds; it doubles with each attempt."""

MAX_SITEMAPS = 500
"""Maximum number of sitemaps of a site. If there are more, the source cannot be read."""

_ENCODED_DOT = re.compile("%2e", re.IGNORECASE)
"""An encoded dot, which servers and browsers treat like a plain one: `%2e%2e/` means `../`."""

MIN_REDIRECTS = 6
MAX_REDIRECTED_SHARE = 0.3
"""Redirects to one page are suspicious if they come from at least MIN_REDIRECTS pages, and if these pages
are more than MAX_REDIRECTED_SHARE of the requested pages. The site is then probably faulty or asks for a
login. An error is reported, and the target is indexed only if a link or the sitemap names it.
"""

MAX_HELD_PAGES = 100
"""Maximum number of redirect targets that are held back while their redirects are counted."""

_TRANSIENT_STATUSES = {408, 425, 429, 500, 502, 503, 504}
_GONE_STATUSES = {404, 410}
_FORMATS: dict[str, PageFormat] = {
    "": "html",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/plain": "text",
}

_GZIP_MARK = b"\x1f\x8b"

log = logging.getLogger(__name__)


class WebsiteReader:
    """The SourceReader for web sites."""

    def read(
        self, source: WebsiteSourceConfig, limits: SourceLimits, known: KnownFiles
    ) -> Iterator[FileResult]:
        """Yield the documents of each page, and a SourceError for each page that cannot be read.

        A page yields nothing if it does not exist, redirects to another origin or to a URL that robots.txt
        disallows, must not be indexed, or is neither HTML, Markdown nor plain text. Raises SourceError if
        robots.txt, a sitemap or the start page cannot be read, if the start page has another format, or if
        the source exceeds a limit.
        """
        for result in _Crawl(source, limits).results():
            if isinstance(result, RemotePage):
                yield from read_remote_page(source, limits, known, result)
            else:
                yield result


READER = WebsiteReader()


class _Crawl:
    """Reads the pages of one site. Contains the state of the crawl."""

    def __init__(self, source: WebsiteSourceConfig, limits: SourceLimits) -> None:
        self._source = source
        self._limits = limits
        self._site_url = httpx.URL(source.site_url)
        self._start_page = _without_fragment(source.url or "")
        """The URL of the start page; empty if the pages come from a sitemap."""
        path = self._site_url.raw_path.decode("ascii").partition("?")[0]
        self._folder = path.rpartition("/")[0] + "/"
        """The folder of the start page.

        Only pages below this folder are read, unless the source has `include` patterns or a sitemap.
        """
        self._cache = _usable_cache(limits)
        self._deadline = Deadline(source.timeout_seconds)
        self._robots = Protego.parse("")
        self._interval_s = 1 / source.requests_per_second
        self._last_request_at = -self._interval_s
        self._queue: deque[tuple[str, int]] = deque()
        """Pages to request: pairs of a URL and its depth, the number of links from the start page to it."""
        self._found_urls: set[str] = set()
        """All URLs that were passed to `_enqueue`, without fragments."""
        self._seen_page_ids: set[str] = set()
        """Ids of the pages that were queued or read."""
        self._errors = 0
        self._requested = 0
        """Number of pages that were requested."""
        self._redirects: Counter[str] = Counter()
        """Number of pages that redirect to each target, by the target's URL without its query."""
        self._held: deque[tuple[str, RemotePage]] = deque()
        """Redirect targets that may still be dropped: pairs of a URL without its query and a page."""
        self._start_target = ""
        """The URL to which the start page redirects, if any."""
        self._has_pages = False
        """Whether a page that can be indexed was found."""

    def results(self) -> Iterator[RemotePage | SourceError | Waiting]:
        yield from self._read_robots()
        if self._start_page:
            self._enqueue(self._start_page, 0)
        else:
            yield from self._read_sitemaps(self._source.site_url)
        try:
            yield from self._read_pages()
        except SourceError:
            yield from self._release(0)
            raise
        self._check_start()
        yield from self._release(0)
        for target, count in self._redirects.items():
            if self._is_suspicious(target):
                yield SourceError(
                    f"{count} of {self._requested} pages redirect to {target} and cannot be read"
                )

    def _read_pages(self) -> Iterator[RemotePage | SourceError | Waiting]:
        """Read the queued pages and the pages that they link to.

        Raises SourceError if the start page fails or a limit is exceeded.
        """
        while self._queue:
            self._requested += 1
            if self._requested > self._source.max_pages:
                raise SourceError(f"has more than {self._source.max_pages} pages (max_pages)")
            url, depth = self._queue.popleft()
            try:
                yield from self._read_page(url, depth)
            except SourceAbandoned:
                raise
            except SourceError as error:
                yield self._count_error(url, error)

    def _check_start(self) -> None:
        """Raise SourceError if the start page redirects and no page to index was found."""
        if self._start_target and not self._has_pages:
            raise SourceError(
                f"{self._source.site_url} redirects to {self._start_target}, "
                "which is not a page of the source and does not link to one; check url and include"
            )

    def _hold(self, page: RemotePage, url: str) -> Iterator[RemotePage]:
        """Hold back `page`, the target of a redirect to `url`. Release pages if too many are held back."""
        self._held.append((_without_query(url), page))
        yield from self._release(MAX_HELD_PAGES)

    def _release(self, count: int) -> Iterator[RemotePage]:
        """Release the oldest held pages until `count` are left.

        Targets of suspicious redirects are dropped, unless a link or the sitemap names them. The other
        pages are yielded.
        """
        while len(self._held) > count:
            target, page = self._held.popleft()
            if page.values["url"] in self._found_urls or not self._is_suspicious(target):
                yield page

    def _is_suspicious(self, target: str) -> bool:
        count = self._redirects[target]
        return count >= MIN_REDIRECTS and count > MAX_REDIRECTED_SHARE * self._requested

    def _read_page(self, url: str, depth: int) -> Iterator[RemotePage | Waiting]:
        try:
            download = yield from self._download(url)
        except (CrossOriginError, DisallowedError, StatusError) as error:
            if isinstance(error, DisallowedError):
                self._count_redirect(url, _without_fragment(error.url))
            can_skip = not isinstance(error, StatusError) or error.status in _GONE_STATUSES
            if can_skip and url != self._start_page:
                return
            raise
        final = _without_fragment(download.url)
        is_redirected = self._count_redirect(url, final)
        if _page_id(final) != _page_id(url) and not self._mark_seen(final):
            return
        page_format = self._format_of(download, url)
        if page_format is None:
            return
        links = find_links(download.data, final) if page_format == "html" else PageLinks()
        follows = self._start_page and depth < self._source.depth and links.may_follow
        for link in links.urls if follows else ():
            self._enqueue(link, depth + 1)
        if links.may_index and self._is_wanted(final):
            page_id = _page_id(final)
            page = RemotePage(page_id, page_format, download.data, {"url": final, "path": page_id})
            yield from self._hold(page, final) if is_redirected else (page,)
            self._has_pages = True

    def _format_of(self, download: Download, url: str) -> PageFormat | None:
        """Return the format of a page, or None. Raises SourceError if the start page has no format."""
        page_format = _FORMATS.get(download.media_type)
        if page_format is None and url == self._start_page:
            raise SourceError(f"is {download.media_type}, but must be HTML, Markdown or plain text")
        return page_format

    def _count_redirect(self, url: str, final: str) -> bool:
        """Return whether `url` redirects to a URL with another path, `final`. If so, count the redirect."""
        target = _without_query(final)
        if _page_id(target) == _page_id(_without_query(url)):
            return False
        self._redirects[target] += 1
        if url == self._start_page:
            self._start_target = final
        return True

    def _enqueue(self, url: str, depth: int) -> None:
        url = _without_fragment(url)
        if url in self._found_urls:
            return
        self._found_urls.add(url)
        is_start = url == self._start_page
        if (is_start or self._is_wanted(url)) and self._mark_seen(url):
            self._queue.append((url, depth))

    def _mark_seen(self, url: str) -> bool:
        """Add the page of `url` to `_seen_page_ids`, and return whether the page is new."""
        page_id = _page_id(url)
        is_new = page_id not in self._seen_page_ids
        self._seen_page_ids.add(page_id)
        return is_new

    def _is_wanted(self, url: str) -> bool:
        try:
            parts = httpx.URL(url)
        except httpx.InvalidURL:
            return False
        if (parts.scheme, parts.netloc) != (self._site_url.scheme, self._site_url.netloc):
            return False
        target = parts.raw_path.decode("ascii")
        include, exclude = self._source.include, self._source.exclude
        if not include and self._start_page and not target.startswith(self._folder):
            return False
        return (
            (not include or any(pattern.search(target) for pattern in include))
            and not any(pattern.search(target) for pattern in exclude)
            and self._may_fetch(url)
        )

    def _may_fetch(self, url: str) -> bool:
        return self._robots.can_fetch(url, USER_AGENT)

    def _count_error(self, url: str, error: SourceError) -> SourceError:
        """Return `error` with its URL, for the report.

        Raises SourceError if the start page failed or if there are too many errors.
        """
        line = SourceError(f"{url}: {error}")
        self._errors += 1
        if url == self._start_page:
            raise line
        if self._errors > self._source.max_errors:
            raise SourceError(f"{line}; abandoned after {self._errors} errors (max_errors)")
        return line

    def _read_robots(self) -> Iterator[Waiting]:
        """Read robots.txt. If the site has none, all pages are allowed.

        A redirect to another origin, or an error status below 500 except 429, means that the site has none.
        Any other failure raises SourceError, because robots.txt might disallow every page.
        """
        url = str(self._site_url.join("/robots.txt"))
        try:
            download = yield from self._download(url)
        except CrossOriginError:
            return
        except StatusError as error:
            if error.status < 500 and error.status != 429:
                return
            raise SourceError(f"{url}: {error}") from None
        except SourceError as error:
            raise SourceError(f"{url}: {error}") from None
        self._robots = Protego.parse(download.data.decode("utf-8", "replace"))
        delay = self._robots.crawl_delay(USER_AGENT)
        self._interval_s = max(self._interval_s, float(delay or 0))

    def _read_sitemaps(self, url: str) -> Iterator[Waiting]:
        """Queue the pages of a sitemap or of an index of sitemaps.

        Raises SourceError if a sitemap cannot be read or if there are more than MAX_SITEMAPS.
        """
        sitemaps = deque([url])
        known = {url}
        while sitemaps:
            url = sitemaps.popleft()
            try:
                download = yield from self._download(url)
                sitemap = read_sitemap(download.data, self._limits)
            except SourceError as error:
                raise SourceError(f"{url}: {error}") from None
            for page in sitemap.pages:
                self._enqueue(page, 0)
            new = [found for found in sitemap.sitemaps if found not in known]
            known.update(new)
            sitemaps.extend(new)
            if len(known) > MAX_SITEMAPS:
                raise SourceError(f"{url}: more than {MAX_SITEMAPS} sitemaps")

    def _download(self, url: str) -> Generator[Waiting, None, Download]:
        """Return the response for `url`. The rate of requests is limited.

        A request that fails with a transient error or status is repeated, up to MAX_ATTEMPTS requests in
        all. Raises SourceError if there is no successful response, and SourceAbandoned at the time limit.
        """
        for attempt in range(MAX_ATTEMPTS):
            yield from self._deadline.sleep(
                self._last_request_at + self._interval_s - time.monotonic()
            )
            self._last_request_at = started = time.monotonic()
            delay = FIRST_RETRY_S * 2**attempt
            try:
                site_url = self._source.site_url
                return Downloader(site_url, self._limits, self._cache, self._may_fetch).get(url)
            except StatusError as error:
                if error.status not in _TRANSIENT_STATUSES or attempt == MAX_ATTEMPTS - 1:
                    raise
                delay = max(delay, error.retry_after)
            except TransientError:
                if attempt == MAX_ATTEMPTS - 1:
                    raise
            finally:
                self._deadline.spend(started)
            yield from self._deadline.sleep(min(delay, MAX_RETRY_DELAY_S))
        raise AssertionError("unreachable")


def _usable_cache(limits: SourceLimits) -> Path | None:
    """Return the path of the cache; None if no cache is configured or it cannot be used."""
    path = limits.website_cache
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        storage = SqliteStorage(database_path=path)
        storage.get_entries("")  # opens the file
        storage.close()
    except (OSError, sqlite3.Error, ValueError) as error:
        log.warning(
            "the website cache %s cannot be used, so all pages are downloaded: %s", path, error
        )
        return None
    return path


def _without_fragment(url: str) -> str:
    return url.partition("#")[0]


def _without_query(url: str) -> str:
    return url.partition("?")[0]


def _page_id(url: str) -> str:
    """Return the path and the query of a page.

    The path has no leading or trailing slash and no final `index.html`. An empty path becomes `index`.
    """
    parts = httpx.URL(url)
    path = re.sub(r"(^|/)index\.html$", r"\1", parts.path).strip("/") or "index"
    return f"{path}?{parts.query.decode('ascii')}" if parts.query else path


# --- links and sitemaps ---------------------------------------------------------------------------


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
    robots: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and "nofollow" not in (values.get("rel") or "").lower():
            self.urls.append(values.get("href") or "")
        elif tag == "base":
            self.base = self.base or values.get("href") or ""
        elif tag == "meta" and (values.get("name") or "").lower() in ("robots", "apidesk"):
            self.robots |= set(re.findall(r"\w+", (values.get("content") or "").lower()))


def find_links(data: bytes, page_url: str) -> PageLinks:
    """Return the http(s) links of the HTML page at `page_url`, and what its `<meta>` elements allow.

    The links have no fragments. Links with `rel="nofollow"` are left out.
    """
    parser = _LinkParser()
    parser.feed(data.decode("utf-8", "replace"))
    base = _join(page_url, parser.base)
    # Remove duplicates: large pages have thousands of links to the sections of a few pages.
    hrefs = dict.fromkeys(url.strip().partition("#")[0] for url in parser.urls)
    urls = [_join(base, href) for href in hrefs if href]
    return PageLinks(
        tuple(url for url in urls if url.startswith(("http://", "https://"))),
        may_index=parser.robots.isdisjoint(("noindex", "none")),
        may_follow=parser.robots.isdisjoint(("nofollow", "none")),
    )


def _join(base: str, url: str) -> str:
    try:
        return urljoin(base, _ENCODED_DOT.sub(".", url))
    except ValueError:
        return ""


def read_sitemap(data: bytes, limits: SourceLimits) -> Sitemap:
    """Return the URLs in a sitemap, which may be compressed with gzip.

    Raises SourceError if `data` is not a sitemap, declares a document type, or cannot be unpacked to at
    most `limits.unpacked_bytes`.
    """
    if data.startswith(_GZIP_MARK):
        data = _unpack(data, limits.unpacked_bytes)
    if b"<!DOCTYPE" in data.replace(b"\0", b""):  # also in UTF-16
        raise SourceError("a sitemap must not declare a document type")
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise SourceError(f"not a sitemap: {error}") from None
    kind = root.tag.rpartition("}")[2]
    if kind not in ("urlset", "sitemapindex"):
        raise SourceError(f"not a sitemap: its root is <{kind}>")
    children = (child for entry in root for child in entry)
    entries = (child.text or "" for child in children if child.tag.rpartition("}")[2] == "loc")
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
