"""While no key is configured, only this machine is answered.
Who may do what: the guard of every route.

A route names what it needs: `needs="ask"`, `needs="ingest"`, `needs="admin"`, or `needs=None` where
everybody may come in. One that names nothing needs `admin`. `limited=False` takes it out of the limits.
"""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.enums import HttpMethod
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.openapi.spec import Components, SecurityRequirement, SecurityScheme
from litestar.plugins import ReceiveRoutePlugin
from litestar.routes import BaseRoute, HTTPRoute

from app.api.openapi import describe
from app.security.keyring import LOCAL, Caller, Keyring, anonymous
from app.security.rate_limits import RateLimiter
from schemas.choices import Scope
from schemas.errors import Forbidden, Unauthorized

MAKE_A_KEY = "make one with `apidesk keys add`, or set APIDESK_ADMIN_KEY"

FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")

Connection = ASGIConnection[Any, Any, Any, Any]


def is_loopback(host: str) -> bool:
    """Whether `host`, an address or a name, is this machine and reached by nobody else."""
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def check_local(connection: Connection) -> None:
    """Raises Forbidden for a request that this machine did not send to itself.

    A page of another site can make a browser here send one, by a name that it points to loopback:
    its Host and Origin tell. What a proxy passes on comes from elsewhere, too.
    """
    headers, peer = connection.headers, connection.client
    if peer and not is_loopback(peer.host):
        raise _forbidden("this one comes from elsewhere")
    if any(name in headers for name in FORWARDED):
        raise _forbidden("this one comes through a proxy")
    if not is_loopback(_host(f"//{headers.get('host', '')}")):
        raise _forbidden("the Host of this one is no loopback name")
    if "origin" in headers and not is_loopback(_host(headers["origin"])):
        raise _forbidden("the Origin of this one is no loopback name")


def from_this_machine(connection: Connection) -> bool:
    """Whether both ends of the connection are one machine, at whichever of its addresses."""
    peer, server = connection.client, connection.scope.get("server")
    return peer is None or is_loopback(peer.host) or bool(server and peer.host == server[0])


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _forbidden(why: str) -> Forbidden:
    return Forbidden(
        "no API key is configured, so only requests of this machine to itself are answered, and "
        f"{why}: {MAKE_A_KEY}"
    )


SECURITY: list[SecurityRequirement] = [{"bearer": []}, {"apiKey": []}]

SCHEMES = Components(
    security_schemes={
        "bearer": SecurityScheme(type="http", scheme="bearer"),
        "apiKey": SecurityScheme(type="apiKey", name="X-API-Key", security_scheme_in="header"),
    }
)

FOREIGN = "No key is configured, and the request is not of this machine"

REFUSALS = {
    401: "No key, or none that counts",
    403: "The key lacks the scope; or no key is configured, and the request is not of this machine",
    429: "Too much in too little time: Retry-After says when there is more",
}


class AuthGuard:
    """Lets a request in, or raises what the caller is told."""

    def __init__(self, keyring: Keyring, limits: RateLimiter) -> None:
        self._keyring = keyring
        self._limits = limits

    async def check(self, connection: Connection, handler: BaseRouteHandler) -> None:
        """A guard; the caller is `connection.user` after it.

        Raises Unauthorized, Forbidden, RateLimited.
        """
        address = _counted(connection)
        caller = self._caller(connection, address)
        needed: Scope | None = handler.opt.get("needs", "admin")
        if needed is None or connection.scope.get("method") == HttpMethod.OPTIONS:
            return
        limited = handler.opt.get("limited", True) and caller is not LOCAL
        connection.scope["user"] = await self._let_in(caller, address, needed, limited)

    def _caller(self, connection: Connection, address: str) -> Caller | None:
        """Who asks; None for a wrong key or none. Raises Forbidden."""
        if not self._keyring.required:
            check_local(connection)
            return anonymous(address)
        caller = self._keyring.caller_of(_key(connection))
        return None if caller is LOCAL and not from_this_machine(connection) else caller

    async def _let_in(
        self, caller: Caller | None, address: str, needed: Scope, limited: bool
    ) -> Caller:
        if caller is not LOCAL:
            await self._limits.check_guesses(address)
        if limited:
            await self._limits.take_address(address)
        if caller is None:
            await self._limits.take_guess(address)
            raise Unauthorized("a valid API key is needed: Authorization: Bearer, or X-API-Key")
        if not caller.may(needed):
            raise Forbidden(f"this takes an API key with the scope {needed}")
        if limited:
            await self._limits.take_request(caller.account)
        return caller


async def count_request(connection: Connection, limits: RateLimiter) -> None:
    """Count what is done on a route that is not limited itself. Raises RateLimited."""
    caller: Caller = connection.user
    if caller is not LOCAL:
        await limits.take_address(_counted(connection))
        await limits.take_request(caller.account)


def caller_of(request: Request[Any, Any, Any]) -> Caller:
    """The dependency `caller`, for routes that name what they need."""
    caller: Caller = request.user
    return caller


class OpenApiSecurityPlugin(ReceiveRoutePlugin):
    """Says in the OpenAPI document what each route needs, and how its guard refuses."""

    def receive_route(self, route: BaseRoute) -> None:
        """Describe the handlers of a route that is being registered."""
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else []:
            if handler.include_in_schema:
                _describe(handler)


def _describe(handler: HTTPRouteHandler) -> None:
    if handler.opt.get("needs", "admin") is None:
        handler.security = [{}]
        describe(handler, {403: FOREIGN})
    else:
        describe(handler, REFUSALS)


def _key(connection: Connection) -> str:
    """The key that a request brings, by either header; "" for none."""
    scheme, _, credentials = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    return connection.headers.get("x-api-key", "")


def _counted(connection: Connection) -> str:
    """What requests of an address are counted under: of IPv6, the network that one host has whole."""
    host = connection.client.host if connection.client else "local"
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        return str(ip_network((address.packed, 64), strict=False))
    return host
