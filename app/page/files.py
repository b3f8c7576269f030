"""The files that make up the page: few, small, shipped with the package, and read once."""

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

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
