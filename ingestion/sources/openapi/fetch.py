"""Downloads over http(s), bounded in bytes and time, from one host, at an address that was checked."""

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import httpx

from schemas.errors import SourceError
from schemas.source import SourceLimits

MOST_REDIRECTS = 5

_REDIRECTS = {301, 302, 303, 307, 308}
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate", "User-Agent": "apidesk"}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Downloaded(NamedTuple):
    """What arrived, and the url that it came from in the end."""

    url: str
    data: bytes


class Downloader:
    """The downloads of one description: its url and what is referred to from there.

    `limits.file_bytes` and `limits.fetch_seconds` bound them all together.
    """

    def __init__(self, url: str, limits: SourceLimits) -> None:
        """Raises SourceError for a `url` that is none."""
        self.limits = limits
        self.origin = _origin(_url(url))
        self.bytes_left = limits.file_bytes
        self.seconds_left = limits.fetch_seconds

    def get(self, url: str) -> Downloaded:
        """The document at `url`, redirects within its host followed.

        Raises SourceError for another host than the first url's, for an address that is not public,
        and for what is too large, too slow or not there.
        """
        started = time.monotonic()
        attempt = _Attempt(self)
        try:
            return attempt.run(url)
        finally:
            self.seconds_left -= time.monotonic() - started


class _Attempt:
    """One download in a thread of its own: whatever it waits for (a name, a handshake, a header that
    comes byte by byte), at the deadline it is over."""

    def __init__(self, downloads: Downloader) -> None:
        self.downloads = downloads
        self.deadline = time.monotonic() + downloads.seconds_left
        self.result: Downloaded | SourceError = SourceError("cannot be fetched")
        self.streams: list[object] = []

    def run(self, url: str) -> Downloaded:
        thread = threading.Thread(target=self._work, args=(url,), daemon=True, name="fetch")
        thread.start()
        thread.join(max(0.0, self.remaining))
        if thread.is_alive():
            self._hang_up()
            raise self._too_slow()
        if isinstance(self.result, SourceError):
            raise self.result
        return self.result

    @property
    def remaining(self) -> float:
        return self.deadline - time.monotonic()

    def _too_slow(self) -> SourceError:
        seconds = self.downloads.limits.fetch_seconds
        return SourceError(f"did not arrive within {seconds:g} seconds (APIDESK_FETCH_TIMEOUT)")

    def _work(self, url: str) -> None:
        try:
            with httpx.Client(
                transport=_CheckedTransport(self.downloads.limits),
                trust_env=False,
                follow_redirects=False,
                headers=_HEADERS,
            ) as client:
                self.result = self._follow(client, _url(url))
        except SourceError as error:
            self.result = error
        except httpx.TimeoutException:
            self.result = self._too_slow()
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError) as error:
            self.result = SourceError(f"cannot be fetched: {_reason(error)}")

    def _follow(self, client: httpx.Client, url: httpx.URL) -> Downloaded:
        for _ in range(MOST_REDIRECTS + 1):
            if _origin(url) != self.downloads.origin:
                raise SourceError("leads to another host than the description's own")
            timeout = max(0.001, self.remaining)
            trace = {"trace": self._remember}
            with client.stream("GET", url, timeout=timeout, extensions=trace) as response:
                if response.status_code not in _REDIRECTS:
                    return Downloaded(str(url), self._body(response))
                url = _joined(url, response.headers)
        raise SourceError(f"redirects more than {MOST_REDIRECTS} times")

    def _body(self, response: httpx.Response) -> bytes:
        if response.status_code != 200:
            raise SourceError(f"answers with HTTP {response.status_code}")
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "deflate"):  # gzip in gzip has no bounds
            raise SourceError("is encoded in another way than gzip or deflate")
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > self.downloads.bytes_left:
                megabytes = self.downloads.limits.file_bytes / 1_000_000
                raise SourceError(f"larger than {megabytes:g} MB (APIDESK_MAX_FILE_BYTES)")
            if self.remaining <= 0:
                raise self._too_slow()
        self.downloads.bytes_left -= len(body)
        return bytes(body)

    def _remember(self, event: str, info: Mapping[str, object]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self.streams.append(info["return_value"])

    def _hang_up(self) -> None:
        """Wakes the thread from whatever it reads."""
        for stream in self.streams:
            extra: Callable[[str], object] = getattr(stream, "get_extra_info", lambda _: None)
            connection = extra("socket")
            if isinstance(connection, socket.socket):
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


class _CheckedTransport(httpx.BaseTransport):
    """Looks a host up, checks the addresses, and connects to these: a second look-up, which could
    be told something else, never happens."""

    def __init__(self, limits: SourceLimits) -> None:
        self.limits = limits
        self.inner = httpx.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends `request`, whose Host header and TLS name remain the host's."""
        addresses = checked_addresses(request.url.host, request.url.port or 0, self.limits)
        problem: httpx.ConnectError | None = None
        for address in addresses:
            try:
                return self.inner.handle_request(_sent_to(address, request))
            except httpx.ConnectError as error:
                problem = error
        raise problem or httpx.ConnectError("no address")

    def close(self) -> None:
        """Closes every connection."""
        self.inner.close()


def _sent_to(address: str, request: httpx.Request) -> httpx.Request:
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )


def checked_addresses(host: str, port: int, limits: SourceLimits) -> list[str]:
    """The addresses of `host`, all of them public unless `limits.private_hosts` names the host.

    Raises SourceError for a host that is not known, or has an address that is not public.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise SourceError("its host is not known") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    is_let_in = host.lower() in limits.private_hosts
    if not is_let_in and not all(is_public(ipaddress.ip_address(each)) for each in addresses):
        raise SourceError(
            f"{host} has a private address; APIDESK_PRIVATE_HOSTS may name it all the same"
        )
    return addresses


def is_public(address: Address) -> bool:
    """Whether anybody on the internet means the same by `address`, whatever it is wrapped in."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if address in _NAT64:
            inner = ipaddress.IPv4Address(address.packed[-4:])
        if inner is not None:
            return is_public(inner)
        if address.is_site_local or address.packed[:12] == bytes(12):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _url(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, UnicodeError):
        raise SourceError("is no url") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise SourceError("is no http(s) url")
    return parsed


def _joined(url: httpx.URL, headers: httpx.Headers) -> httpx.URL:
    try:
        return _url(str(url.join(headers.get("location", ""))))
    except (httpx.InvalidURL, ValueError, UnicodeError):
        raise SourceError("redirects to what is no url") from None


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host.lower(), url.port or (443 if url.scheme == "https" else 80)


def _reason(error: Exception) -> str:
    if isinstance(error.__cause__ or error, ssl.SSLError) or "CERTIFICATE" in str(error):
        return "its certificate or TLS cannot be trusted"
    if isinstance(error, httpx.ConnectError):
        return "no connection"
    return type(error).__name__
