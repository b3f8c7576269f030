"""Resolves the relative links of Markdown pages to the URLs of the pages that they name."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from ingestion.sources.folder import PageValues, page_url, path_values
from schemas.errors import SourceError
from schemas.platform import PageSourceConfig

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^)\s>]+)>?(?:\s+[\"'][^)]*)?\)")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
_SUFFIXES = (".md", ".mdx", "/index.md", "/index.mdx", "/README.md", "/_index.md")
_NAME = re.compile(r"\{(\w+)")
_PATH_NAMES = {"path", "page_path", "folder", "stem", "suffix"}


class LinkResolver:
    """Resolves links within one source. `front_matter` returns the values of a page's front matter."""

    def __init__(
        self, source: PageSourceConfig, front_matter: Callable[[Path], PageValues]
    ) -> None:
        self._source = source
        self._front_matter = front_matter
        self._root = source.path
        names = {name for template in source.page_url for name in _NAME.findall(template)}
        self._needs_front_matter = not names <= _PATH_NAMES

    def resolve(self, markdown: str, path: Path) -> str:
        """Return `markdown` with absolute links; of a link to an unknown page only the label stays."""
        if "](" not in markdown:
            return markdown
        return _LINK.sub(lambda match: self._link(match, path), markdown)

    def _link(self, match: re.Match[str], path: Path) -> str:
        label, target = match[1], match[2]
        if _SCHEME.match(target):
            return match[0]
        url = self._url(target, path)
        return f"[{label}]({url})" if url else label

    def _url(self, target: str, path: Path) -> str:
        address, hash_mark, fragment = target.partition("#")
        page = self._page(re.sub(r"\.html?$", "", address.partition("?")[0]), path)
        if page is None:
            return ""
        try:
            front_matter = self._front_matter(page) if self._needs_front_matter else {}
        except SourceError:
            return ""
        url = page_url(
            self._source.page_url, {**front_matter, **path_values(page, self._source.path)}
        )
        return f"{url}{hash_mark}{fragment}" if url else ""

    def _page(self, address: str, path: Path) -> Path | None:
        """Return the file of the source that `address` names, relative to the page or to the site."""
        base = self._root if address.startswith("/") else path.parent
        target = os.path.normpath(base / address.strip("/"))
        if not target.startswith(f"{self._root}{os.sep}"):
            return None
        ends = ("",) if target.endswith((".md", ".mdx")) else _SUFFIXES
        files = (Path(target + end) for end in ends)
        return next((file for file in files if file.is_file()), None)
