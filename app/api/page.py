"""GET /, /admin, /embed, /widget.js and /assets/{path}: the web pages and their assets.

Files in `static` are read once at startup. The JavaScript modules with the texts in all languages are
generated from `prompts/text` and platform.toml. The colours are derived from the platform's accent colour.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Controller, HttpMethod, Request, Response, get, route
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

ACCENT_STYLE = "css/accent.css"
"""The path of the generated style sheet, which sets the platform's colour."""

DEFAULT_ACCENT = "#0b5d78"

STATIC = Path(__file__).parent / "static"

MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".webp": "image/webp",
}
"""Media types by suffix; files with other suffixes are not served."""

QUESTION_PAGE_TEXT = "js/text.js"
"""The path of the module with the texts of the question page. The admin page imports this module too."""

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
    """The files in `static`, the generated modules and style sheet, and the platform's logo, by path.

    The HTML pages and the widget script are templates, rendered with the platform's name, colour and logo.
    """

    def __init__(self, platform_info: PlatformInfo) -> None:
        pages = Environment(
            loader=FileSystemLoader(STATIC), autoescape=True, undefined=StrictUndefined
        )
        self._files = {
            path.relative_to(STATIC).as_posix(): PageFile.of(
                path.name, _read_content(path, pages, platform_info)
            )
            for path in sorted(STATIC.rglob("*"))
            if path.suffix in MEDIA_TYPES
        }
        accent = accent_style(platform_info.accent) if platform_info.accent else ""
        generated = text_modules(platform_info) | {ACCENT_STYLE: accent}
        self._files |= {n: PageFile.of(n, text.encode()) for n, text in generated.items()}
        if logo := platform_info.logo:
            self._files[_logo_name(logo)] = PageFile.of(logo.name, logo.read_bytes())

    def response(self, request: Request[Any, Any, Any], name: str) -> Response[bytes]:
        """Return the file at the path `name`, or status 304 if the browser already has it.

        Browsers must revalidate a cached file before each use, because files of different versions do not
        work together. Raises NotFoundException if there is no such file.
        """
        file = self._files.get(name)
        if file is None:
            raise NotFoundException
        headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(b"", status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)


def _read_content(path: Path, pages: Environment, platform_info: PlatformInfo) -> bytes:
    if path.suffix != ".html" and path.name != WIDGET:
        return path.read_bytes()
    template = pages.get_template(path.name)
    text = template.render(
        platform=platform_info,
        logo=platform_info.logo and _logo_name(platform_info.logo),
        # shown in browsers without JavaScript, in all languages
        no_script=" ".join(user_text(language).page["noScript"] for language in LANGUAGES),
        labels={language: user_text(language).page["widget"] for language in LANGUAGES},
        accent=light_colours(platform_info.accent or DEFAULT_ACCENT).accent,
    )
    return text.encode()


def _logo_name(logo: Path) -> str:
    return f"logo{logo.suffix}"


PAGE_POLICY = page_policy(cache_control=None)  # `PageFiles.response` sets Cache-Control


class PageController(Controller):
    """The routes of the web pages and their assets, all of which are public."""

    include_in_schema = False
    opt: Mapping[str, object] = {"needs": None}

    @route(
        "/",
        http_method=[HttpMethod.GET, HttpMethod.HEAD],
        sync_to_thread=False,
        policy=PAGE_POLICY,
    )
    def page(
        self, request: Request[Any, Any, Any], files: NamedDependency[PageFiles]
    ) -> Response[bytes]:
        """Return the question page."""
        return files.response(request, "index.html")

    @get("/admin", sync_to_thread=False, policy=PAGE_POLICY)
    def admin_page(
        self, request: Request[Any, Any, Any], files: NamedDependency[PageFiles]
    ) -> Response[bytes]:
        """Return the admin page. It contains no data, but calls the API with the user's key."""
        return files.response(request, "admin.html")

    @get("/embed", sync_to_thread=False, policy=PAGE_POLICY)
    def embedded_page(
        self,
        request: Request[Any, Any, Any],
        files: NamedDependency[PageFiles],
        answer_service: NamedDependency[AnswerService],
    ) -> Response[bytes]:
        """Return the page that the widget shows. Only sites in APIDESK_EMBED_ORIGINS may frame it."""
        response = files.response(request, "embed.html")
        policy = page_policy(answer_service.settings.embed_origins)
        response.headers["Content-Security-Policy"] = policy.content_security_policy
        return response

    @get("/widget.js", sync_to_thread=False, policy=ASSET_POLICY)
    def widget(
        self, request: Request[Any, Any, Any], files: NamedDependency[PageFiles]
    ) -> Response[bytes]:
        """Return the script that adds the widget to a page of a web site."""
        return files.response(request, WIDGET)

    @get("/assets/{path:path}", sync_to_thread=False, policy=PAGE_POLICY)
    def asset(
        self,
        request: Request[Any, Any, Any],
        path: FromPath[str],
        files: NamedDependency[PageFiles],
    ) -> Response[bytes]:
        """Return a file of the pages, such as a script, a style sheet or an image."""
        return files.response(request, path.lstrip("/"))


def text_modules(platform_info: PlatformInfo) -> dict[str, str]:
    """Return the source of each generated JavaScript module, by its path."""
    page = {
        language: _page_texts(language) | _platform_texts(platform_info, language)
        for language in LANGUAGES
    }
    admin = {language: dict(user_text(language).admin) for language in LANGUAGES}
    fields = [to_camel(name) for name in FOOTER_FIELDS]
    columns = [user_text(language).api_document.error_columns[0] for language in LANGUAGES]
    return {
        QUESTION_PAGE_TEXT: _export("texts", page)
        + _export("footerFields", fields)
        + _export("errorColumns", columns),
        ADMIN_PAGE_TEXT: _export("texts", admin),
    }


def _page_texts(language: Language) -> dict[str, str]:
    """Return the texts of the question page by name.

    Texts in `[page]` of the text file take precedence over other texts with the same name.
    """
    text = user_text(language)
    labels = {to_camel(name): label for name, label in text.answer.fields.items()}
    lists = {name: getattr(text.answer, name) for name in ("sources", "related", "nearest")}
    degraded = {f"degraded_{reason}": sentence for reason, sentence in text.degraded.items()}
    return labels | lists | degraded | text.page


def _platform_texts(platform_info: PlatformInfo, language: Language) -> dict[str, str]:
    return {
        "platformName": platform_info.name_in(language),
        "platformDescription": platform_info.description_in(language),
        "greeting": platform_info.greeting.in_language(language),
    }


def _export(name: str, value: object) -> str:
    return f"export const {name} = {json.dumps(value, ensure_ascii=False, indent=1)};\n"


# --- colours --------------------------------------------------------------------------------------

MIN_CONTRAST = 4.5
"""Minimum contrast ratio of text on its background, by WCAG 2.2 at level AA."""

TINT_SHARE = 0.12
"""Share of the accent colour in the background of citation numbers and selected items."""

_WHITE, _DARK_SURFACE = (255, 255, 255), (27, 31, 34)

Rgb = tuple[int, int, int]


class AccentColours(NamedTuple):
    """The colour of links and buttons, and a faint tint of this colour for backgrounds, as `#rrggbb`."""

    accent: str
    tint: str


def light_colours(accent: str) -> AccentColours:
    """Return the colours for the light theme. The accent is darkened until it is readable on the tint."""
    return _readable(accent, _WHITE, (0, 0, 0))


def dark_colours(accent: str) -> AccentColours:
    """Return the colours for the dark theme. The accent is lightened until it is readable on the tint."""
    return _readable(accent, _DARK_SURFACE, _WHITE)


def accent_style(accent: str) -> str:
    """Return a style sheet that overrides the colours of `base.css`. It must be loaded after `base.css`."""
    light, dark = light_colours(accent), dark_colours(accent)
    return (
        f":root {{ --accent: light-dark({light.accent}, {dark.accent}); "
        f"--tint: light-dark({light.tint}, {dark.tint}); }}\n"
    )


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours given as `#rrggbb`, from 1 to 21."""
    lower, higher = sorted((_luminance(_parse(one)), _luminance(_parse(other))))
    return (higher + 0.05) / (lower + 0.05)


def _readable(accent: str, surface: Rgb, extreme: Rgb) -> AccentColours:
    """Return the colours for a page with the background `surface`.

    `accent` is mixed with `extreme`, black or white, until it is readable on the tint.
    """
    candidates = (_mix(_parse(accent), extreme, percent / 100) for percent in range(0, 101, 4))
    pairs = [AccentColours(_hex(c), _hex(_mix(surface, c, TINT_SHARE))) for c in candidates]
    return next(pair for pair in pairs if contrast(*pair) >= MIN_CONTRAST)


def _mix(colour: Rgb, other: Rgb, share: float) -> Rgb:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(colour, other, strict=True))
    return red, green, blue


def _parse(colour: str) -> Rgb:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def _hex(colour: Iterable[int]) -> str:
    return f"#{bytes(colour).hex()}"


def _luminance(colour: Rgb) -> float:
    """Return the relative luminance, as defined by WCAG 2.2."""
    shares = (part / 255 for part in colour)
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
