"""Downloads documents over HTTP from one origin, within byte and time limits.

Connections to private addresses are refused, unless the settings allow the host.
"""

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import httpx

from schemas.errors import SourceError
from schemas.platform import SourceLimits

MAX_REDIRECTS = 5
"""Maximum number of redirects that one download follows."""

_REDIRECT_STATUSES = {301, 302, 303, 307, 308}
USER_AGENT = "apidesk"

_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate",
    "Cache-Control": "no-cache",  # caches must not hide a page that was just published
    "User-Agent": USER_AGENT,
}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Download(NamedTuple):
    """Downloaded data, with its URL after redirects."""

    url: str
    data: bytes
    media_type: str
    """Media type in lower case, without parameters; empty if the server does not send it."""


class CrossOriginError(SourceError):
    """A URL or a redirect leads to another origin."""


class DisallowedError(SourceError):
    """The robots.txt of a site disallows a URL or the target of a redirect."""

    def __init__(self, url: str) -> None:
        super().__init__(f"robots.txt disallows {url}")
        self.url = url


class StatusError(SourceError):
    """The server answers with a status other than 200."""

    def __init__(self, status: int, retry_after: str = "") -> None:
        super().__init__(f"answers with HTTP {status}")
        self.status = status
        self.retry_after = float(retry_after) if retry_after.isdecimal() else 0.0
        """Seconds to wait before a retry, from the header `Retry-After`; 0 if it is not a whole number."""


class TransientError(SourceError):
    """A download fails for a reason that may be temporary, such as a broken connection or a timeout."""


class Downloader:
    """Downloads an OpenAPI description and the documents it refers to, or one page of a web site.

    `limits.file_bytes` and `limits.fetch_seconds` limit all downloads of a Downloader together. `cache` is
    a SQLite file of responses. If it is set, each download asks the server whether the cached response is
    still valid. `may_fetch` returns whether robots.txt allows a request for a URL.
    """

    def __init__(
        self,
        url: str,
        limits: SourceLimits,
        cache: Path | None = None,
        may_fetch: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Allow only downloads from `url`'s origin. Raises SourceError if the URL is invalid."""
        self.limits = limits
        self.cache = cache
        self.may_fetch = may_fetch
        self.origin = _origin(_parse_url(url))
        self.bytes_left = limits.file_bytes
        self.seconds_left = limits.fetch_seconds

    def get(self, url: str) -> Download:
        """Download the document at `url`, following redirects within its origin.

        Raises SourceError if the URL or a redirect leads to another origin or must not be fetched, if the
        host has an address that is neither public nor allowed, or if the download fails or exceeds a limit.
        """
        started = time.monotonic()
        download = _DownloadThread(self)
        try:
            return download.run(url)
        finally:
            self.seconds_left -= time.monotonic() - started


class _DownloadThread:
    """One download in its own thread.

    A thread is needed because the timeouts of httpx do not cover name resolution, and apply to each read
    separately. The deadline of the thread covers the whole download, even if the server sends its headers
    byte by byte.
    """

    def __init__(self, downloader: Downloader) -> None:
        self.downloader = downloader
        self.deadline = time.monotonic() + downloader.seconds_left
        self.result: Download | SourceError = TransientError("cannot be fetched")
        self.streams: list[object] = []

    def run(self, url: str) -> Download:
        thread = threading.Thread(target=self._work, args=(url,), daemon=True, name="fetch")
        thread.start()
        thread.join(max(0.0, self.seconds_left))
        if thread.is_alive():
            self._close_connections()
            raise self._too_slow()
        if isinstance(self.result, SourceError):
            raise self.result
        return self.result

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def _too_slow(self) -> TransientError:
        seconds = self.downloader.limits.fetch_seconds
        return TransientError(f"did not arrive within {seconds:g} seconds (APIDESK_FETCH_TIMEOUT)")

    def _work(self, url: str) -> None:
        try:
            with httpx.Client(
                transport=self._transport(),
                trust_env=False,
                follow_redirects=False,
                headers=_HEADERS,
            ) as client:
                self.result = self._follow(client, _parse_url(url))
        except SourceError as error:
            self.result = error
        except httpx.TimeoutException:
            self.result = self._too_slow()
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError) as error:
            self.result = TransientError(f"cannot be fetched: {_reason(error)}")

    def _transport(self) -> httpx.BaseTransport:
        transport = _CheckedTransport(self.downloader.limits)
        if self.downloader.cache is None:
            return transport
        from hishel import SqliteStorage
        from hishel.httpx import CacheTransport

        storage = SqliteStorage(database_path=self.downloader.cache)
        return CacheTransport(transport, storage, rfc={"shared": False})

    def _follow(self, client: httpx.Client, url: httpx.URL) -> Download:
        for _ in range(MAX_REDIRECTS + 1):
            if _origin(url) != self.downloader.origin:
                raise CrossOriginError(
                    "leads to another origin: scheme, host and port must be those of the source"
                )
            if not self.downloader.may_fetch(str(url)):
                raise DisallowedError(str(url))
            timeout = max(0.001, self.seconds_left)
            trace = {"trace": self._record_stream}
            with client.stream("GET", url, timeout=timeout, extensions=trace) as response:
                if response.status_code not in _REDIRECT_STATUSES:
                    media_type = response.headers.get("content-type", "").partition(";")[0]
                    return Download(str(url), self._body(response), media_type.strip().lower())
                url = _redirect_url(url, response.headers)
        raise SourceError(f"redirects more than {MAX_REDIRECTS} times")

    def _body(self, response: httpx.Response) -> bytes:
        if response.status_code != 200:
            raise StatusError(response.status_code, response.headers.get("retry-after", ""))
        encoding = response.headers.get("content-encoding", "").strip().lower()
        # Combined encodings such as `gzip, gzip` are refused: a few bytes could unpack to gigabytes.
        if encoding not in ("", "identity", "gzip", "deflate"):
            raise SourceError("unsupported content encoding: only gzip and deflate are accepted")
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > self.downloader.bytes_left:
                megabytes = self.downloader.limits.file_bytes / 1_000_000
                raise SourceError(f"exceeds {megabytes:g} MB in total (APIDESK_MAX_FILE_BYTES)")
            if self.seconds_left <= 0:
                raise self._too_slow()
        self.downloader.bytes_left -= len(body)
        return bytes(body)

    def _record_stream(self, event: str, info: Mapping[str, object]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self.streams.append(info["return_value"])

    def _close_connections(self) -> None:
        """Shut down the sockets, so that a blocked read in the thread returns."""
        for stream in self.streams:
            extra: Callable[[str], object] = getattr(stream, "get_extra_info", lambda _: None)
            connection = extra("socket")
            if isinstance(connection, socket.socket):
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


class _CheckedTransport(httpx.BaseTransport):
    """Resolves the host of each request once, checks its addresses and connects to one of them.

    The host name is not resolved again to connect, so DNS rebinding cannot replace a checked address.
    """

    def __init__(self, limits: SourceLimits) -> None:
        self.limits = limits
        self.inner = httpx.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` to a checked address. The Host header and the TLS server name do not change."""
        addresses = checked_addresses(request.url.host, request.url.port or 0, self.limits)
        problem: httpx.ConnectError | None = None
        for address in addresses:
            try:
                return self.inner.handle_request(_with_address(address, request))
            except httpx.ConnectError as error:
                problem = error
        raise problem or httpx.ConnectError("no address")

    def close(self) -> None:
        """Close all connections."""
        self.inner.close()


def _with_address(address: str, request: httpx.Request) -> httpx.Request:
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )


def checked_addresses(host: str, port: int, limits: SourceLimits) -> list[str]:
    """Return the addresses of `host`. They must be public unless `limits.private_hosts` contains `host`.

    Raises SourceError if the host cannot be resolved, or if an address is neither public nor allowed.
    """
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise TransientError("host name cannot be resolved") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    is_allowed = host.lower() in limits.private_hosts
    if not is_allowed and not all(map(is_public, map(ipaddress.ip_address, addresses))):
        raise SourceError(
            f"{host} has a private address; add it to APIDESK_PRIVATE_HOSTS to allow it"
        )
    return addresses


def is_public(address: Address) -> bool:
    """Return whether `address` is globally routable, and neither multicast nor reserved.

    If an IPv6 address contains an IPv4 address (mapped, 6to4, Teredo or NAT64), the IPv4 address is
    checked instead. The obsolete IPv4-compatible addresses, such as `::192.0.2.1`, are not public.
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in _NAT64:
            inner = ipaddress.IPv4Address(address.packed[-4:])
        if inner is not None:
            return is_public(inner)
        if address.is_site_local or address.packed[:12] == bytes(12):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _parse_url(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise SourceError("invalid URL") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise SourceError("not an http(s) URL")
    return parsed


def _redirect_url(url: httpx.URL, headers: httpx.Headers) -> httpx.URL:
    try:
        return _parse_url(str(url.join(headers.get("location", ""))))
    except (httpx.InvalidURL, ValueError):
        raise SourceError("redirects to an invalid URL") from None


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host.lower(), url.port or (443 if url.scheme == "https" else 80)


def _reason(error: Exception) -> str:
    if isinstance(error.__cause__ or error, ssl.SSLError) or "CERTIFICATE" in str(error):
        return "TLS certificate cannot be verified"
    if isinstance(error, httpx.ConnectError):
        return "connection failed"
    return type(error).__name__
