"""Checks authentication, scopes and rate limits before each request is handled.

A route can set two options:

- `needs`: the scope that the route requires, by default `"admin"`; None makes the route public
- `limited=False`: requests do not count towards the rate limits, unless a required key is missing or wrong

Public routes have no rate limits. If an API key is configured, commands such as `apidesk ask` on this
machine are the caller `LOCAL`, which has no rate limits either. While no API key is configured, all callers
are anonymous, and all routes accept only requests from localhost.
"""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.enums import HttpMethod
from litestar.handlers import BaseRouteHandler

from app.security.api_keys import LOCAL, Caller, Keyring, anonymous
from app.security.rate_limits import RateLimiter
from schemas.choices import Scope
from schemas.errors import Forbidden, RateLimited, Unauthorized

CREATE_KEY_HINT = "create a key with `apidesk keys add`, or set APIDESK_ADMIN_KEY"

PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip")

Connection = ASGIConnection[Any, Any, Any, Any]


class AuthGuard:
    """Allows a request, or raises the error that the caller receives."""

    def __init__(self, keyring: Keyring, limits: RateLimiter) -> None:
        self._keyring = keyring
        self._limits = limits

    async def check(self, connection: Connection, handler: BaseRouteHandler) -> None:
        """Litestar guard: check a request and set `connection.user` to its caller.

        On a public route, the user can be None (see `_check_public_caller`). For an OPTIONS request, the
        user is not set. Raises Unauthorized, Forbidden or RateLimited.
        """
        address = _rate_limited_address(connection)
        caller = self._identify(connection, address)
        scope: Scope | None = handler.opt.get("needs", "admin")
        if connection.scope.get("method") == HttpMethod.OPTIONS:
            return
        if scope is None:
            connection.scope["user"] = await self._check_public_caller(connection, caller, address)
            return
        is_limited = handler.opt.get("limited", True) and caller is not LOCAL
        connection.scope["user"] = await self._authorize(caller, address, scope, is_limited)

    def _identify(self, connection: Connection, address: str) -> Caller | None:
        """Return the caller, or None if a key is required but no valid key was sent.

        The key of LOCAL is valid only on this machine. Raises Forbidden for a remote request while no API
        key is configured.
        """
        if not self._keyring.is_key_required:
            check_local(connection)
            return anonymous(address)
        caller = self._keyring.caller_of(_api_key(connection))
        return None if caller is LOCAL and not is_same_machine(connection) else caller

    async def _check_public_caller(
        self, connection: Connection, caller: Caller | None, address: str
    ) -> Caller | None:
        """Return the caller of a public route.

        The result is None in two cases: API keys are configured but the request has no valid key, or the
        address has sent too many wrong keys. In both cases, the route still answers the request.

        Wrong keys are counted, so that public routes cannot be used to guess keys.
        """
        if caller is LOCAL or not _api_key(connection):
            return caller
        try:
            await self._limits.check_wrong_keys(address)
            if caller is None:
                await self._limits.count_wrong_key(address)
        except RateLimited:
            return None
        return caller

    async def _authorize(
        self, caller: Caller | None, address: str, scope: Scope, is_limited: bool
    ) -> Caller:
        if caller is not LOCAL:
            await self._limits.check_wrong_keys(address)
        if is_limited:
            await self._limits.count_address(address)
        if caller is None:
            await self._limits.count_wrong_key(address)
            raise Unauthorized("a valid API key is required, in Authorization: Bearer or X-API-Key")
        if not caller.has_scope(scope):
            raise Forbidden(f"an API key with the scope {scope} is required")
        if is_limited:
            await self._limits.count_request(caller.account)
        return caller


def get_caller(request: Request[Any, Any, Any]) -> Caller:
    """Return the caller of a request. Litestar passes the result to handlers as `caller`.

    The route must require a scope: on public routes, `AuthGuard` may set the user to None.
    """
    caller: Caller = request.user
    return caller


async def count_mcp_request(connection: Connection, limits: RateLimiter) -> None:
    """Count an MCP message as a request towards the rate limits. Raises RateLimited.

    Call this function for each tool call, and for each list or read of resources.
    """
    caller: Caller = connection.user
    if caller is not LOCAL:
        await limits.count_address(_rate_limited_address(connection))
        await limits.count_request(caller.account)


def check_local(connection: Connection) -> None:
    """Raise Forbidden unless the request comes from this machine.

    The header `Host`, and `Origin` if it is sent, must name this machine. Otherwise, a page of another site
    could use a domain name that resolves to loopback (DNS rebinding), and send requests through a browser
    on this machine. Requests through a proxy are rejected, because their client may be on another machine.
    """
    headers, peer = connection.headers, connection.client
    if peer and not is_loopback(peer.host):
        raise _forbidden("this request comes from another machine")
    if any(name in headers for name in PROXY_HEADERS):
        raise _forbidden("this request comes through a proxy")
    if not is_loopback(_hostname(f"//{headers.get('host', '')}")):
        raise _forbidden("the Host header of this request is not a loopback name")
    if "origin" in headers and not is_loopback(_hostname(headers["origin"])):
        raise _forbidden("the Origin header of this request is not a loopback name")


def is_loopback(host: str) -> bool:
    """Return whether `host`, an address or a name, can only be reached from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def is_same_machine(connection: Connection) -> bool:
    """Return whether the client runs on this machine. It may connect from any address of the machine."""
    peer, server = connection.client, connection.scope.get("server")
    return peer is None or is_loopback(peer.host) or bool(server and peer.host == server[0])


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _forbidden(reason: str) -> Forbidden:
    return Forbidden(
        f"no API key is configured, so only localhost may connect, and {reason}: {CREATE_KEY_HINT}"
    )


def _api_key(connection: Connection) -> str:
    """Return the API key in the header Authorization or X-API-Key, or ""."""
    scheme, _, credentials = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    return connection.headers.get("x-api-key", "")


def _rate_limited_address(connection: Connection) -> str:
    """Return the address under which requests are counted.

    For an IPv6 client, this is its /64 network. For an IPv4 address that is mapped to IPv6, this is the
    IPv4 address.
    """
    host = connection.client.host if connection.client else "local"
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ip_network((address.packed, 64), strict=False))
    return host
