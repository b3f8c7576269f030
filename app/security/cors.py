"""Which other sites' pages may call the API from a browser."""

from litestar.config.cors import CORSConfig

from schemas.settings import Settings


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
