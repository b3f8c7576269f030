"""Sets the security headers of responses, and configures which other sites may call the API (CORS)."""

from collections.abc import Iterable
from dataclasses import dataclass

from litestar.config.cors import CORSConfig
from litestar.datastructures import MutableScopeHeaders
from litestar.types import Message, Scope

from schemas.settings import Settings


@dataclass(frozen=True)
class HeaderPolicy:
    """The security headers of a route. Pass a policy to the route decorator as `policy=`.

    If the handler sets a Content-Security-Policy, that header is kept.
    """

    content_security_policy: str
    cross_origin_resource_policy: str = "same-origin"
    """Which sites may load the response as a script, style or image."""
    cache_control: str | None = "no-store"
    """The Cache-Control header; None if the handler sets this header."""


_SAME_ORIGIN_DIRECTIVES = (
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

DATA_POLICY = HeaderPolicy("default-src 'none'; frame-ancestors 'none'")
"""The default policy, for API responses. A browser that displays the response loads nothing else."""


def page_policy(
    embedded_by: Iterable[str] = (), cache_control: str | None = "no-store"
) -> HeaderPolicy:
    """Return the policy of a page that loads only this server's resources and `data:` images.

    The browser does not run inline scripts or apply inline styles. Only the origins in `embedded_by` may
    frame the page. `cache_control` is None if the handler sets Cache-Control.
    """
    ancestors = " ".join(embedded_by) or "'none'"
    return HeaderPolicy(
        "; ".join((*_SAME_ORIGIN_DIRECTIVES, f"frame-ancestors {ancestors}")),
        cache_control=cache_control,
    )


ASSET_POLICY = HeaderPolicy(
    DATA_POLICY.content_security_policy,
    cross_origin_resource_policy="cross-origin",
    cache_control=None,
)
"""The policy of a script or style that other sites may load."""


async def add_security_headers(message: Message, scope: Scope) -> None:
    """Set the security headers. Litestar calls this function before it sends a response or an error."""
    if message["type"] != "http.response.start":
        return
    handler = scope.get("route_handler")  # None if no route matches
    policy: HeaderPolicy = handler.opt.get("policy", DATA_POLICY) if handler else DATA_POLICY
    headers = MutableScopeHeaders.from_message(message)
    content = headers.setdefault("Content-Security-Policy", policy.content_security_policy)
    headers["Cross-Origin-Resource-Policy"] = policy.cross_origin_resource_policy
    headers["Referrer-Policy"] = "no-referrer"
    headers["X-Content-Type-Options"] = "nosniff"
    if "frame-ancestors 'none'" in content:
        headers["X-Frame-Options"] = "DENY"  # for browsers that ignore frame-ancestors
    if policy.cache_control is not None:
        headers["Cache-Control"] = policy.cache_control


def cors_config(settings: Settings) -> CORSConfig | None:
    """Return the CORS configuration, or None if the settings allow no other site.

    Cookies are not allowed, because a page sends its API key in a header. Any request header is allowed,
    because clients such as the OpenAI and MCP SDKs send their own headers. This is safe, because no header
    grants more rights than the API key.
    """
    if not settings.cors_origins:
        return None
    return CORSConfig(
        allow_origins=list(settings.cors_origins),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],  # Litestar then allows each header that a preflight request names
        allow_credentials=False,
        expose_headers=["X-Request-ID", "Retry-After"],
    )
