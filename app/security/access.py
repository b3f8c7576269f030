"""Who may do what: the guard of every route.

A route names what it needs: `needs="ask"`, `needs="ingest"`, `needs="admin"`, or `needs=None` where
everybody may come in. One that names nothing needs `admin`. `limited=False` takes it out of the limits.
"""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from litestar import Request
from litestar.enums import HttpMethod
from litestar.handlers import BaseRouteHandler, HTTPRouteHandler
from litestar.openapi.spec import Components, SecurityRequirement, SecurityScheme
from litestar.plugins import ReceiveRoutePlugin
from litestar.routes import BaseRoute, HTTPRoute

from app.description.problems import describe
from app.security.keyring import LOCAL, Caller, Keyring, anonymous
from app.security.limits import RateLimiter
from app.security.loopback import Connection, check_local, from_this_machine
from schemas.errors import Forbidden, Unauthorized
from schemas.scope import Scope

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
