"""GET /, /admin, /embed, /widget.js and /assets/{path}"""

from typing import Any

from litestar import Request, Response, get
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from app.answer_service import AnswerService
from app.page.files import PageFiles
from app.security.headers import ASSET, page_policy

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
