"""Folders of Markdown pages (.md, .mdx), with or without front matter."""

import re
import tomllib
from pathlib import Path
from typing import Any

import frontmatter
import yaml
from frontmatter.default_handlers import BaseHandler

from ingestion.sources.folder import FolderReader, PageValues, read_text
from ingestion.sources.pages import PagePart, page_document
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import MarkdownSourceConfig, SourceLimits

SUFFIXES = {".md", ".mdx"}


class _TomlHandler(BaseHandler):
    """TOML between lines of `+++`, as in Hugo; the library's own handler needs another package."""

    FM_BOUNDARY = re.compile(r"^\+{3,}\s*$", re.MULTILINE)

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        return tomllib.loads(fm)


_HANDLERS = [*frontmatter.handlers, _TomlHandler()]


def _document(
    source: MarkdownSourceConfig, _limits: SourceLimits, path: Path
) -> SourceDocument | None:
    values, body = _split_front_matter(path)
    return page_document(source, path, values, [PagePart(body)])


def _split_front_matter(path: Path) -> tuple[PageValues, str]:
    """Return the front matter and the body; a page that begins with a thematic break is all body."""
    text = read_text(path).strip()
    handler = frontmatter.detect_format(text, _HANDLERS)
    if handler is None:
        return {}, text
    try:
        head, body = handler.split(text)
    except ValueError:  # the front matter is never closed
        return {}, text
    try:
        values = handler.load(head)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error)
        raise SourceError(f"front matter: {problem}") from None
    return (values or {}, body.strip()) if isinstance(values or {}, dict) else ({}, text)


READER = FolderReader[MarkdownSourceConfig](lambda _: SUFFIXES, _document)
