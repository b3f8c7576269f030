"""GET /, /admin, /embed, /widget.js and /assets/{path}: the web pages and their assets.

Files in `static` are read once at startup. The JavaScript modules that contain the texts in all languages
are generated from `prompts/text`.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import HttpMethod, Request, Response, get, route
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import FromPath
from pydantic.alias_generators import to_camel

from app.security.headers import ASSET_POLICY, page_policy
from app.service.answer_service import AnswerService
from prompts.user_text import user_text
from schemas.answer import FOOTER_FIELDS
from schemas.choices import LANGUAGES, Language
from schemas.platform import PlatformInfo

WIDGET = "widget.js"

STATIC = Path(__file__).parent / "static"

MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
"""Media types by suffix; files with other suffixes are not served."""

QUESTION_PAGE_TEXT = "js/text.js"
"""The module with the texts of the question page, which the admin page also imports."""

ADMIN_PAGE_TEXT = "js/admin/text.js"


class PageFile(NamedTuple):
    """A file with its response headers."""

    content: bytes
    media_type: str
    etag: str

    @classmethod
    def of(cls, name: str, content: bytes) -> "PageFile":
        """Return the file with the media type for the suffix of `name`."""
        return cls(content, MEDIA_TYPES[Path(name).suffix], f'"{sha256(content).hexdigest()[:32]}"')


class PageFiles:
    """The files in `static` and the generated modules, by path.

    HTML pages are rendered with the platform's name and language, and the widget with its labels.
    """

    def __init__(self, platform_info: PlatformInfo) -> None:
        pages = Environment(
            loader=FileSystemLoader(STATIC), autoescape=True, undefined=StrictUndefined
        )
        self._files = {
            name: PageFile.of(name, _read_content(path, pages, platform_info))
            for path in sorted(STATIC.rglob("*"))
            if path.suffix in MEDIA_TYPES
            for name in (path.relative_to(STATIC).as_posix(),)
        } | {name: PageFile.of(name, text.encode()) for name, text in text_modules().items()}

    def get(self, name: str) -> PageFile | None:
        """Return the file at the path `name`, or None."""
        return self._files.get(name)


def _read_content(path: Path, pages: Environment, platform_info: PlatformInfo) -> bytes:
    if path.suffix != ".html" and path.name != WIDGET:
        return path.read_bytes()
    template = pages.get_template(path.name)
    text = template.render(
        platform=platform_info, no_script=no_script_notice(), labels=widget_labels()
    )
    return text.encode()


PAGE_POLICY = page_policy(cache_control=None)


@route(
    "/",
    http_method=[HttpMethod.GET, HttpMethod.HEAD],
    include_in_schema=False,
    sync_to_thread=False,
    needs=None,
    policy=PAGE_POLICY,
)
def page(request: Request[Any, Any, Any], files: NamedDependency[PageFiles]) -> Response[bytes]:
    """Return the question page."""
    return _file_response(request, files, "index.html")


@get("/admin", include_in_schema=False, sync_to_thread=False, needs=None, policy=PAGE_POLICY)
def admin_page(
    request: Request[Any, Any, Any], files: NamedDependency[PageFiles]
) -> Response[bytes]:
    """Return the admin page. It contains no data, but calls the API with the user's key."""
    return _file_response(request, files, "admin.html")


@get("/embed", include_in_schema=False, sync_to_thread=False, needs=None, policy=PAGE_POLICY)
def embedded_page(
    request: Request[Any, Any, Any],
    files: NamedDependency[PageFiles],
    answer_service: NamedDependency[AnswerService],
) -> Response[bytes]:
    """Return the page of the widget, which the sites in APIDESK_EMBED_ORIGINS may frame."""
    response = _file_response(request, files, "embed.html")
    policy = page_policy(answer_service.settings.embed_origins)
    response.headers["Content-Security-Policy"] = policy.content_security_policy
    return response


@get("/widget.js", include_in_schema=False, sync_to_thread=False, needs=None, policy=ASSET_POLICY)
def widget(request: Request[Any, Any, Any], files: NamedDependency[PageFiles]) -> Response[bytes]:
    """Return the script that adds the widget to another site."""
    return _file_response(request, files, WIDGET)


@get(
    "/assets/{path:path}",
    include_in_schema=False,
    sync_to_thread=False,
    needs=None,
    policy=PAGE_POLICY,
)
def asset(
    request: Request[Any, Any, Any], path: FromPath[str], files: NamedDependency[PageFiles]
) -> Response[bytes]:
    """Return a script, style or image of the page."""
    return _file_response(request, files, path.lstrip("/"))


def _file_response(request: Request[Any, Any, Any], files: PageFiles, name: str) -> Response[bytes]:
    """Return the file, or status 304 if the browser already has it. Raises NotFoundException.

    Browsers revalidate every file, because files of different versions do not work together.
    """
    file = files.get(name)
    if file is None:
        raise NotFoundException
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(b"", status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


def text_modules() -> dict[str, str]:
    """Return the source of each generated JavaScript module, by its path."""
    page = {language: _page_texts(language) for language in LANGUAGES}
    admin = {language: dict(user_text(language).admin) for language in LANGUAGES}
    fields = [to_camel(name) for name in FOOTER_FIELDS]
    columns = [user_text(language).api_document.error_columns[0] for language in LANGUAGES]
    return {
        QUESTION_PAGE_TEXT: _export("texts", page)
        + _export("footerFields", fields)
        + _export("errorColumns", columns),
        ADMIN_PAGE_TEXT: _export("texts", admin),
    }


def widget_labels() -> dict[Language, str]:
    """Return the label of the widget's button in each language."""
    return {language: user_text(language).page["widget"] for language in LANGUAGES}


def no_script_notice() -> str:
    """Return the notice shown in browsers without JavaScript, in all languages."""
    return " ".join(user_text(language).page["noScript"] for language in LANGUAGES)


def _page_texts(language: Language) -> dict[str, str]:
    """Return the texts of the page by name.

    Where `[page]` and `[answer.fields]` both name a field, the text of `[page]` is used.
    """
    text = user_text(language)
    labels = {to_camel(name): label for name, label in text.answer.fields.items()}
    lists = {name: getattr(text.answer, name) for name in ("sources", "related", "nearest")}
    degraded = {f"degraded_{reason}": sentence for reason, sentence in text.degraded.items()}
    return labels | lists | degraded | text.page


def _export(name: str, value: object) -> str:
    return f"export const {name} = {json.dumps(value, ensure_ascii=False, indent=1)};\n"
