"""Headers that tell browsers what a response may do and who may use it.
Which other sites' pages may call the API from a browser.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from litestar.config.cors import CORSConfig
from litestar.datastructures import MutableScopeHeaders
from litestar.types import Message, Scope

from schemas.settings import Settings


@dataclass(frozen=True)
class HeaderPolicy:
    """What a route allows the browsers that get its responses; routes name theirs as `policy=`.

    A response that brings its own Content-Security-Policy keeps it.
    """

    content: str
    """The Content-Security-Policy."""
    resource: str = "same-origin"
    """Whose pages may load it as a script, a style or an image: Cross-Origin-Resource-Policy."""
    cache: str | None = "no-store"
    """The Cache-Control; None leaves it to the route."""


_OWN = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)

DATA = HeaderPolicy("default-src 'none'; frame-ancestors 'none'")
"""For what is no page: nothing may come of it."""


def page_policy(embedded_by: Iterable[str] = (), cache: str | None = "no-store") -> HeaderPolicy:
    """For a page whose scripts, styles, images and calls are this server's own, none of them inline.

    Only the origins in `embedded_by` may frame it.
    """
    ancestors = " ".join(embedded_by) or "'none'"
    return HeaderPolicy("; ".join((*_OWN, f"frame-ancestors {ancestors}")), cache=cache)


ASSET = HeaderPolicy(DATA.content, resource="cross-origin", cache=None)
"""For a script or a style that pages of other sites may load."""


async def add_security_headers(message: Message, scope: Scope) -> None:
    """A hook before every response is sent, errors included."""
    if message["type"] != "http.response.start":
        return
    handler = scope.get("route_handler")  # None where no route fits
    policy: HeaderPolicy = handler.opt.get("policy", DATA) if handler else DATA
    headers = MutableScopeHeaders.from_message(message)
    content = headers.setdefault("Content-Security-Policy", policy.content)
    headers["Cross-Origin-Resource-Policy"] = policy.resource
    headers["Referrer-Policy"] = "no-referrer"
    headers["X-Content-Type-Options"] = "nosniff"
    if "frame-ancestors 'none'" in content:
        headers["X-Frame-Options"] = "DENY"  # for browsers that know no frame-ancestors
    if policy.cache is not None:
        headers["Cache-Control"] = policy.cache


def cors_config(settings: Settings) -> CORSConfig | None:
    """None where Settings name no site. Browsers send no cookies along: a page brings its key itself."""
    if not settings.cors_origins:
        return None
    return CORSConfig(
        allow_origins=list(settings.cors_origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
        allow_credentials=False,
        expose_headers=["X-Request-ID", "Retry-After"],
    )
