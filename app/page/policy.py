"""The page's content security policy: its own files, its own server, and nothing else."""

from collections.abc import Iterable

_DIRECTIVES = (
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


def page_policy(embedded_by: Iterable[str] = ()) -> str:
    """The value of Content-Security-Policy; only the origins in `embedded_by` may frame the page."""
    ancestors = " ".join(embedded_by) or "'none'"
    return "; ".join((*_DIRECTIVES, f"frame-ancestors {ancestors}"))
