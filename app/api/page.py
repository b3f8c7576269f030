"""The files that make up the page: few, small, shipped with the package, and read once.
GET /, /admin, /embed, /widget.js and /assets/{path}
"""

from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from app.security.headers import ASSET, page_policy
from app.service.answer_service import AnswerService
from schemas.platform import PlatformInfo

STATIC = Path(__file__).parent / "static"

MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
"""By suffix; a file with another one is not served."""


class PageFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    media_type: str
    etag: str

    @classmethod
    def of(cls, name: str, content: bytes) -> "PageFile":
        """`content` under the media type that `name` ends in."""
        return cls(content, MEDIA_TYPES[Path(name).suffix], f'"{sha256(content).hexdigest()[:32]}"')


class PageFiles:
    """Every file by its path below `static`; pages carry the platform's name and language."""

    def __init__(self, platform_info: PlatformInfo) -> None:
        pages = Environment(
            loader=FileSystemLoader(STATIC), autoescape=True, undefined=StrictUndefined
        )
        self._files = {
            name: PageFile.of(name, _content(path, pages, platform_info))
            for path in sorted(STATIC.rglob("*"))
            if path.suffix in MEDIA_TYPES
            for name in (path.relative_to(STATIC).as_posix(),)
        }

    def get(self, name: str) -> PageFile | None:
        """The file at `name`, exactly as it is spelt; None where there is none."""
        return self._files.get(name)


def _content(path: Path, pages: Environment, platform_info: PlatformInfo) -> bytes:
    if path.suffix != ".html":
        return path.read_bytes()
    return pages.get_template(path.name).render(platform=platform_info).encode()


PAGE = page_policy(cache=None)


@get("/", include_in_schema=False, sync_to_thread=False, needs=None, policy=PAGE)
def page(request: Request[Any, Any, Any], files: NamedDependency[PageFiles]) -> Response[bytes]:
    """The page."""
    return _send(request, files, "index.html")


@get("/admin", include_in_schema=False, sync_to_thread=False, needs=None, policy=PAGE)
def admin_page(
    request: Request[Any, Any, Any], files: NamedDependency[PageFiles]
) -> Response[bytes]:
    """The admin view, which says nothing by itself: all that it shows it asks for with a key."""
    return _send(request, files, "admin.html")


@get("/embed", include_in_schema=False, sync_to_thread=False, needs=None, policy=PAGE)
def embedded_page(
    request: Request[Any, Any, Any],
    files: NamedDependency[PageFiles],
    answer_service: NamedDependency[AnswerService],
) -> Response[bytes]:
    """The page as the widget frames it; the sites of APIDESK_EMBED_ORIGINS may."""
    response = _send(request, files, "embed.html")
    policy = page_policy(answer_service.settings.embed_origins)
    response.headers["Content-Security-Policy"] = policy.content
    return response


@get("/widget.js", include_in_schema=False, sync_to_thread=False, needs=None, policy=ASSET)
def widget(request: Request[Any, Any, Any], files: NamedDependency[PageFiles]) -> Response[bytes]:
    """The script that puts the widget on another site."""
    return _send(request, files, "widget.js")


@get("/assets/{path:path}", include_in_schema=False, sync_to_thread=False, needs=None, policy=PAGE)
def asset(
    request: Request[Any, Any, Any], path: FromPath[str], files: NamedDependency[PageFiles]
) -> Response[bytes]:
    """A script, a style or an image of the page."""
    return _send(request, files, path.lstrip("/"))


def _send(request: Request[Any, Any, Any], files: PageFiles, name: str) -> Response[bytes]:
    """The file; 304 to whoever has it. Raises NotFoundException.

    Nothing is used without asking whether it is still so: files of two versions do not go together.
    """
    file = files.get(name)
    if file is None:
        raise NotFoundException
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
