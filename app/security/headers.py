"""Headers that tell browsers what a response may do and who may use it."""

from dataclasses import dataclass

from litestar.datastructures import MutableScopeHeaders
from litestar.types import Message, Scope


@dataclass(frozen=True)
class Policy:
    """What a route allows the browsers that get its responses; routes name theirs as `policy=`."""

    content: str
    """The Content-Security-Policy."""
    resource: str = "same-origin"
    """Whose pages may load it as a script, a style or an image: Cross-Origin-Resource-Policy."""
    cache: str | None = "no-store"
    """The Cache-Control; None leaves it to the route."""


DATA = Policy("default-src 'none'; frame-ancestors 'none'")
"""For what is no page: nothing may come of it."""


def page(frame_ancestors: str = "'none'") -> Policy:
    """For a page whose scripts, styles, images and calls are this server's own, none of them inline.

    `frame_ancestors` are the origins that may embed it.
    """
    own = ("script-src", "style-src", "img-src", "font-src", "connect-src", "form-action")
    directives = ["default-src 'none'", *(f"{name} 'self'" for name in own), "base-uri 'none'"]
    return Policy("; ".join([*directives, f"frame-ancestors {frame_ancestors}"]))


ASSET = Policy(DATA.content, resource="cross-origin", cache=None)
"""For a script or a style that pages of other sites may load."""


async def add_security_headers(message: Message, scope: Scope) -> None:
    """A hook before every response is sent, errors included."""
    if message["type"] != "http.response.start":
        return
    handler = scope.get("route_handler")  # None where no route fits
    policy: Policy = handler.opt.get("policy", DATA) if handler else DATA
    headers = MutableScopeHeaders.from_message(message)
    headers["Content-Security-Policy"] = policy.content
    headers["Cross-Origin-Resource-Policy"] = policy.resource
    headers["Referrer-Policy"] = "no-referrer"
    headers["X-Content-Type-Options"] = "nosniff"
    if "frame-ancestors 'none'" in policy.content:
        headers["X-Frame-Options"] = "DENY"  # for browsers that know no frame-ancestors
    if policy.cache is not None:
        headers["Cache-Control"] = policy.cache
